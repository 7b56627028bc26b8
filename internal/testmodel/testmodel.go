// Package testmodel makes small model files in memory for tests: random weights of any type in the architectures that
// package model knows, complete enough to load and run, and easy to damage in one named way.
//
// Equal Configs give equal bytes.
package testmodel

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/quant"
)

// A Config describes a model file. Start from Default.
type Config struct {
	Arch                          string // general.architecture
	Layers, Width, FFN            int
	Heads, KVHeads, HeadDim       int
	Vocab, Context                int
	Type                          quant.Type            // of the matrices
	Types                         map[string]quant.Type // exceptions, by tensor name
	Tied                          bool                  // no output.weight
	RopeFreqs                     bool                  // llama: a rope_freqs.weight
	Seed                          uint64
	Keys                          map[string]gguf.Value // replace or add metadata
	DropKeys, DropTensors         []string
	Shapes                        map[string][]int // replace a tensor's shape
	Extra                         []Tensor         // tensors that no architecture has
	Prefix                        string           // of the hyper-parameters' keys; empty for Arch
	ValueLength, RopeDim, Experts int              // written if above 0
}

// A Tensor is a tensor's declaration: shape has the fastest-running dimension first.
type Tensor struct {
	Name  string
	Type  quant.Type
	Shape []int
}

// Default is a model of two layers with grouped heads, wide enough for every block type.
func Default(arch string) Config {
	return Config{
		Arch: arch, Layers: 2, Width: 256, FFN: 256, Heads: 4, KVHeads: 2, HeadDim: 64, Vocab: 96, Context: 512, Type: quant.F32, Seed: 1,
	}
}

// Tensors lists what the file declares, in order.
func (c Config) Tensors() []Tensor {
	q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	var all []Tensor
	add := func(name string, t quant.Type, shape ...int) {
		for _, drop := range c.DropTensors {
			if drop == name {
				return
			}
		}
		if other, ok := c.Types[name]; ok {
			t = other
		}
		if other, ok := c.Shapes[name]; ok {
			shape = other
		}
		all = append(all, Tensor{name, t, shape})
	}
	add("token_embd.weight", c.Type, c.Width, c.Vocab)
	add("output_norm.weight", quant.F32, c.Width)
	if !c.Tied {
		add("output.weight", c.Type, c.Width, c.Vocab)
	}
	if c.RopeFreqs {
		add("rope_freqs.weight", quant.F32, c.HeadDim/2)
	}
	for l := range c.Layers {
		p := fmt.Sprintf("blk.%d.", l)
		add(p+"attn_norm.weight", quant.F32, c.Width)
		add(p+"attn_q.weight", c.Type, c.Width, q)
		add(p+"attn_k.weight", c.Type, c.Width, kv)
		add(p+"attn_v.weight", c.Type, c.Width, kv)
		switch c.Arch {
		case "qwen2":
			add(p+"attn_q.bias", quant.F32, q)
			add(p+"attn_k.bias", quant.F32, kv)
			add(p+"attn_v.bias", quant.F32, kv)
		case "qwen3":
			add(p+"attn_q_norm.weight", quant.F32, c.HeadDim)
			add(p+"attn_k_norm.weight", quant.F32, c.HeadDim)
		}
		add(p+"attn_output.weight", c.Type, q, c.Width)
		add(p+"ffn_norm.weight", quant.F32, c.Width)
		add(p+"ffn_gate.weight", c.Type, c.Width, c.FFN)
		add(p+"ffn_up.weight", c.Type, c.Width, c.FFN)
		add(p+"ffn_down.weight", c.Type, c.FFN, c.Width)
	}
	return append(all, c.Extra...)
}

// A keyValue is one metadata entry.
type keyValue struct {
	key   string
	value gguf.Value
}

func (c Config) keys() []keyValue {
	prefix := c.Prefix
	if prefix == "" {
		prefix = c.Arch
	}
	u := func(n int) gguf.Value { return gguf.ValueOf(uint32(n)) }
	all := []keyValue{
		{"general.architecture", gguf.ValueOf(c.Arch)},
		{"general.name", gguf.ValueOf("test " + c.Arch)},
		{prefix + ".context_length", u(c.Context)},
		{prefix + ".block_count", u(c.Layers)},
		{prefix + ".embedding_length", u(c.Width)},
		{prefix + ".feed_forward_length", u(c.FFN)},
		{prefix + ".attention.head_count", u(c.Heads)},
		{prefix + ".attention.head_count_kv", u(c.KVHeads)},
		{prefix + ".attention.key_length", u(c.HeadDim)},
		{prefix + ".attention.layer_norm_rms_epsilon", gguf.ValueOf(float32(1e-6))},
		{prefix + ".rope.freq_base", gguf.ValueOf(float32(10000))},
	}
	for _, o := range []struct {
		name string
		n    int
	}{{".attention.value_length", c.ValueLength}, {".rope.dimension_count", c.RopeDim}, {".expert_count", c.Experts}} {
		if o.n > 0 {
			all = append(all, keyValue{prefix + o.name, u(o.n)})
		}
	}
	var kept []keyValue
	for _, kv := range all {
		if v, ok := c.Keys[kv.key]; ok {
			kv.value = v
		}
		if !contains(c.DropKeys, kv.key) {
			kept = append(kept, kv)
		}
	}
	for _, key := range sorted(c.Keys) {
		if !has(all, key) {
			kept = append(kept, keyValue{key, c.Keys[key]})
		}
	}
	return kept
}

// Bytes is the file.
func (c Config) Bytes() ([]byte, error) {
	var out bytes.Buffer
	w := gguf.NewWriter("testmodel", &out)
	for _, kv := range c.keys() {
		if err := w.Set(kv.key, kv.value); err != nil {
			return nil, err
		}
	}
	tensors := c.Tensors()
	for _, t := range tensors {
		if err := w.AddTensor(t.Name, t.Type, t.Shape); err != nil {
			return nil, err
		}
	}
	for i, t := range tensors {
		rng := rand.New(rand.NewPCG(c.Seed, uint64(i)))
		data, err := t.random(rng)
		if err != nil {
			return nil, err
		}
		if err := w.WriteTensor(t.Name, data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// File is the file, open.
func (c Config) File() (*gguf.File, error) {
	b, err := c.Bytes()
	if err != nil {
		return nil, err
	}
	return gguf.FromBytes("testmodel.gguf", b)
}

// random gives matrices entries of variance 1/inputs, so that activations keep their size, and vectors entries around 1.
func (t Tensor) random(rng *rand.Rand) ([]byte, error) {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	if len(t.Shape) < 2 {
		x := make([]float32, n)
		for i := range x {
			x[i] = 1 + 0.2*float32(rng.NormFloat64())
		}
		return Encode(t.Type, x, rng)
	}
	return Matrix(t.Type, t.Shape[0], n/t.Shape[0], rng)
}
