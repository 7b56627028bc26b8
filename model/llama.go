package model

import (
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
)

func init() { Register(Architecture{"llama", bindLlama}) }

// llama is Llama 2 and 3.x, Mistral, SmolLM2 and what else keeps their layout: Q and K stored for interleaved RoPE,
// frequency divisors in rope_freqs (Llama 3.x), biases only where a file has them.
type llama struct {
	dense
	Embed     graph.Weight `gguf:"token_embd.weight" shape:"width,vocab"`
	Norm      graph.Weight `gguf:"output_norm.weight" shape:"width"`
	Output    graph.Weight `gguf:"output.weight" shape:"width,vocab" tied:"token_embd.weight"`
	RopeFreqs graph.Weight `gguf:"rope_freqs.weight" shape:"pairs" optional:"yes"`
	Layers    []struct {
		AttnNorm graph.Weight `gguf:"attn_norm.weight" shape:"width"`
		Q        graph.Weight `gguf:"attn_q.weight" shape:"width,q"`
		K        graph.Weight `gguf:"attn_k.weight" shape:"width,kv"`
		V        graph.Weight `gguf:"attn_v.weight" shape:"width,kv"`
		BiasQ    graph.Weight `gguf:"attn_q.bias" shape:"q" optional:"yes"`
		BiasK    graph.Weight `gguf:"attn_k.bias" shape:"kv" optional:"yes"`
		BiasV    graph.Weight `gguf:"attn_v.bias" shape:"kv" optional:"yes"`
		Out      graph.Weight `gguf:"attn_output.weight" shape:"q,width"`
		BiasOut  graph.Weight `gguf:"attn_output.bias" shape:"width" optional:"yes"`
		FFNNorm  graph.Weight `gguf:"ffn_norm.weight" shape:"width"`
		Gate     graph.Weight `gguf:"ffn_gate.weight" shape:"width,ffn"`
		Up       graph.Weight `gguf:"ffn_up.weight" shape:"width,ffn"`
		Down     graph.Weight `gguf:"ffn_down.weight" shape:"ffn,width"`
	} `gguf:"blk.%d."`
}

func bindLlama(f *gguf.File) (Model, error) {
	m := &llama{}
	err := m.load(f, m, "llama", graph.RopeNorm)
	m.config.Rope.Factors = m.RopeFreqs
	return m, err
}

// Build makes the graph of a step.
func (m *llama) Build(p graph.Params) (*graph.Graph, error) {
	d := m.decoder(p)
	return d.Run(m.Embed, m.Norm, m.Output, graph.Weight{}, func(i int) block {
		l := &m.Layers[i]
		return block{
			attn: func(h graph.Value) graph.Value {
				x := d.Norm(name(i, "attn_norm"), h, l.AttnNorm)
				q := d.Linear(name(i, "attn_q"), x, l.Q, l.BiasQ)
				k := d.Linear(name(i, "attn_k"), x, l.K, l.BiasK)
				v := d.Linear(name(i, "attn_v"), x, l.V, l.BiasV)
				return d.Linear(name(i, "attn_output"), d.Attend(i, m.config.Rope, q, k, v), l.Out, l.BiasOut)
			},
			ffn: func(h graph.Value) graph.Value {
				return d.FFN(i, d.Norm(name(i, "ffn_norm"), h, l.FFNNorm), l.Gate, l.Up, l.Down)
			},
		}
	})
}
