package model

import (
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
)

func init() { Register(Architecture{"qwen2", bindQwen2}) }

// qwen2 is Qwen2, Qwen2.5 and DeepSeek-R1-Distill-Qwen: grouped-query attention with biases on Q, K and V.
type qwen2 struct {
	dense
	Embed      graph.Weight `gguf:"token_embd.weight" shape:"width,vocab"`
	Norm       graph.Weight `gguf:"output_norm.weight" shape:"width"`
	Output     graph.Weight `gguf:"output.weight" shape:"width,vocab" tied:"token_embd.weight"`
	OutputBias graph.Weight `gguf:"output.bias" shape:"vocab" optional:"yes"`
	Layers     []struct {
		AttnNorm graph.Weight `gguf:"attn_norm.weight" shape:"width"`
		Q        graph.Weight `gguf:"attn_q.weight" shape:"width,q"`
		K        graph.Weight `gguf:"attn_k.weight" shape:"width,kv"`
		V        graph.Weight `gguf:"attn_v.weight" shape:"width,kv"`
		BiasQ    graph.Weight `gguf:"attn_q.bias" shape:"q"`
		BiasK    graph.Weight `gguf:"attn_k.bias" shape:"kv"`
		BiasV    graph.Weight `gguf:"attn_v.bias" shape:"kv"`
		Out      graph.Weight `gguf:"attn_output.weight" shape:"q,width"`
		FFNNorm  graph.Weight `gguf:"ffn_norm.weight" shape:"width"`
		Gate     graph.Weight `gguf:"ffn_gate.weight" shape:"width,ffn"`
		Up       graph.Weight `gguf:"ffn_up.weight" shape:"width,ffn"`
		Down     graph.Weight `gguf:"ffn_down.weight" shape:"ffn,width"`
	} `gguf:"blk.%d."`
}

func bindQwen2(f *gguf.File) (Model, error) {
	m := &qwen2{}
	return m, m.load(f, m, "qwen2", graph.RopeNeoX, "llama")
}

// Build makes the graph of a step.
func (m *qwen2) Build(p graph.Params) (*graph.Graph, error) {
	d := m.decoder(p)
	return d.Run(m.Embed, m.Norm, m.Output, m.OutputBias, func(i int) block {
		l := &m.Layers[i]
		return block{
			attn: func(h graph.Value) graph.Value {
				x := d.Norm(name(i, "attn_norm"), h, l.AttnNorm)
				q := d.Linear(name(i, "attn_q"), x, l.Q, l.BiasQ)
				k := d.Linear(name(i, "attn_k"), x, l.K, l.BiasK)
				v := d.Linear(name(i, "attn_v"), x, l.V, l.BiasV)
				return d.Linear(name(i, "attn_output"), d.Attend(i, m.config.Rope, q, k, v), l.Out, graph.Weight{})
			},
			ffn: func(h graph.Value) graph.Value {
				return d.FFN(i, d.Norm(name(i, "ffn_norm"), h, l.FFNNorm), l.Gate, l.Up, l.Down)
			},
		}
	})
}
