package tokenizer

import (
	"errors"
	"math"

	"github.com/minfer-go/minfer/gguf"
)

// New builds the tokenizer that f describes. It needs f only during the call.
//
// Errors name the file, the key and the value, and wrap one of [ErrModel],
// [ErrPre], [ErrVocab], [ErrByteTokens], [ErrMerges], [ErrSpecial], or what the
// gguf package says about a missing or mistyped key.
func New(f *gguf.File) (*Tokenizer, error) {
	d := &vocabData{file: f.Name()}
	var err error
	if d.model, err = f.String(keyModel); err != nil {
		return nil, err
	}
	if d.pre, err = optional(f.String(keyPre)); err != nil {
		return nil, err
	}
	if d.model != "gpt2" || rules[d.pre].stages == nil {
		return newTokenizer(d) // refused by name, whatever else the file says
	}
	if d.tokens, err = f.Strings(keyTokens); err != nil {
		return nil, err
	}
	if d.types, err = optional(f.Ints(keyTypes)); err != nil {
		return nil, err
	}
	if d.merges, err = optional(f.Strings(keyMerges)); err != nil {
		return nil, err // an absent table is refused as an empty one
	}
	for _, e := range []struct {
		key string
		id  *int32
	}{
		{keyBOS, &d.bos},
		{keyEOS, &d.eos},
		{keyEOT, &d.eot},
		{keyEOM, &d.eom},
		{keyUNK, &d.unk},
		{keyPAD, &d.pad},
		{keyFIMPad, &d.fimPad},
		{keyFIMRep, &d.fimRep},
		{keyFIMSep, &d.fimSep},
	} {
		if *e.id, err = specialID(f, d, e.key); err != nil {
			return nil, err
		}
	}
	add, err := f.Bool(keyAddBOS)
	switch {
	case err == nil:
		d.addBOS = &add
	case !errors.Is(err, gguf.ErrMissingKey):
		return nil, err
	}
	return newTokenizer(d)
}

// optional turns a missing key into the zero value.
func optional[T any](v T, err error) (T, error) {
	if errors.Is(err, gguf.ErrMissingKey) {
		var zero T
		return zero, nil
	}
	return v, err
}

// specialID reads a token id. An absent key and -1, in any integer type, say
// that there is no such token.
func specialID(f *gguf.File, d *vocabData, key string) (int32, error) {
	v, err := f.Int(key)
	switch {
	case errors.Is(err, gguf.ErrMissingKey):
		return noToken, nil
	case err != nil:
		return noToken, err
	case v == -1 || v == math.MaxUint32:
		return noToken, nil
	case v < 0 || v > math.MaxInt32:
		return noToken, d.fail(key, ErrSpecial, "id %d", v)
	}
	return int32(v), nil
}
