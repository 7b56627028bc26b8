package model

import (
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
)

func init() { Register(Architecture{"qwen3", bindQwen3}) }

// qwen3 is the dense Qwen3: a head dimension of its own, RMSNorm on every head of Q and K, no biases.
type qwen3 struct {
	dense
	Embed  graph.Weight `gguf:"token_embd.weight" shape:"width,vocab"`
	Norm   graph.Weight `gguf:"output_norm.weight" shape:"width"`
	Output graph.Weight `gguf:"output.weight" shape:"width,vocab" tied:"token_embd.weight"`
	Layers []struct {
		AttnNorm graph.Weight `gguf:"attn_norm.weight" shape:"width"`
		Q        graph.Weight `gguf:"attn_q.weight" shape:"width,q"`
		K        graph.Weight `gguf:"attn_k.weight" shape:"width,kv"`
		V        graph.Weight `gguf:"attn_v.weight" shape:"width,kv"`
		NormQ    graph.Weight `gguf:"attn_q_norm.weight" shape:"head"`
		NormK    graph.Weight `gguf:"attn_k_norm.weight" shape:"head"`
		Out      graph.Weight `gguf:"attn_output.weight" shape:"q,width"`
		FFNNorm  graph.Weight `gguf:"ffn_norm.weight" shape:"width"`
		Gate     graph.Weight `gguf:"ffn_gate.weight" shape:"width,ffn"`
		Up       graph.Weight `gguf:"ffn_up.weight" shape:"width,ffn"`
		Down     graph.Weight `gguf:"ffn_down.weight" shape:"ffn,width"`
	} `gguf:"blk.%d."`
}

func bindQwen3(f *gguf.File) (Model, error) {
	m := &qwen3{}
	return m, m.load(f, m, "qwen3", graph.RopeNeoX)
}

// Build makes the graph of a step.
func (m *qwen3) Build(p graph.Params) (*graph.Graph, error) {
	d := m.decoder(p)
	return d.Run(m.Embed, m.Norm, m.Output, graph.Weight{}, func(i int) block {
		l := &m.Layers[i]
		return block{
			attn: func(h graph.Value) graph.Value {
				x := d.Norm(name(i, "attn_norm"), h, l.AttnNorm)
				q := d.HeadNorm(name(i, "q_norm"), d.Linear(name(i, "attn_q"), x, l.Q, graph.Weight{}), l.NormQ)
				k := d.HeadNorm(name(i, "k_norm"), d.Linear(name(i, "attn_k"), x, l.K, graph.Weight{}), l.NormK)
				v := d.Linear(name(i, "attn_v"), x, l.V, graph.Weight{})
				return d.Linear(name(i, "attn_output"), d.Attend(i, m.config.Rope, q, k, v), l.Out, graph.Weight{})
			},
			ffn: func(h graph.Value) graph.Value {
				return d.FFN(i, d.Norm(name(i, "ffn_norm"), h, l.FFNNorm), l.Gate, l.Up, l.Down)
			},
		}
	})
}
