package testmodel

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/minfer-go/minfer/gguf"
)

// Types of tokens in tokenizer.ggml.token_type that the tags of reasoning have in published files.
const (
	ControlToken     = 3
	UserDefinedToken = 4
)

// WithReasoningTags is a byte-level BPE model whose last two merged tokens have become <think> and </think>, of one type.
func WithReasoningTags(file []byte, tokenType int64) ([]byte, error) {
	f, err := gguf.FromBytes("untagged", file)
	if err != nil {
		return nil, err
	}
	tokens, err1 := f.Strings("tokenizer.ggml.tokens")
	types, err2 := f.Ints("tokenizer.ggml.token_type")
	merges, err3 := f.Strings("tokenizer.ggml.merges")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	tokens, types = slices.Clone(tokens), slices.Clone(types)
	for _, tag := range []string{"<think>", "</think>"} {
		last := merges[len(merges)-1]
		merges = merges[:len(merges)-1]
		id := slices.Index(tokens, strings.Replace(last, " ", "", 1))
		if id < 0 {
			return nil, errors.New("testmodel: no token for the merge " + last)
		}
		tokens[id], types[id] = tag, tokenType
	}
	var out bytes.Buffer
	w := gguf.NewWriter("tagged", &out)
	for _, k := range f.Keys() {
		v, _ := f.Value(k)
		switch k {
		case "tokenizer.ggml.tokens":
			v = gguf.ArrayOf(tokens)
		case "tokenizer.ggml.token_type":
			v = gguf.ArrayOf(types)
		case "tokenizer.ggml.merges":
			v = gguf.ArrayOf(merges)
		}
		if err := w.Set(k, v); err != nil {
			return nil, err
		}
	}
	for _, x := range f.Tensors() {
		if err := w.AddTensor(x.Name, x.Type, x.Shape); err != nil {
			return nil, err
		}
	}
	for _, x := range f.Tensors() {
		if err := w.WriteTensor(x.Name, x.Data()); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), w.Close()
}
