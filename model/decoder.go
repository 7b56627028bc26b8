package model

import (
	"fmt"
	"math"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
)

// dense is what the weights structs of dense decoders embed: hyper-parameters and the list of bound weights.
type dense struct {
	config  Config
	weights []graph.Weight
}

// Config is the hyper-parameters.
func (d *dense) Config() *Config { return &d.config }

// Weights lists the bound tensors.
func (d *dense) Weights() []graph.Weight { return d.weights }

// load reads the hyper-parameters and binds dst, the weights struct that embeds d.
func (d *dense) load(f *gguf.File, dst any, arch string, style graph.RopeStyle, fallback ...string) error {
	c, err := readConfig(f, arch, style, fallback...)
	if err != nil {
		return err
	}
	d.config = c
	d.weights, err = bind(f, map[string]int{
		"layers": c.Layers, "width": c.Width, "vocab": c.Vocab, "ffn": c.FFN, "head": c.HeadDim,
		"q": c.Heads * c.HeadDim, "kv": c.KVHeads * c.HeadDim, "pairs": c.Rope.Rot / 2,
	}, dst)
	return err
}

// A decoder builds the graph of a pre-norm transformer decoder.
type decoder struct {
	*graph.Builder
	Config
}

func (d *dense) decoder(p graph.Params) *decoder {
	return &decoder{graph.NewBuilder(p), d.config}
}

// name gives layer i's node its name.
func name(i int, what string) string { return fmt.Sprintf("blk.%d.%s", i, what) }

// Norm is RMSNorm.
func (d *decoder) Norm(label string, x graph.Value, w graph.Weight) graph.Value {
	return d.Node(label, graph.RMSNorm{W: w, Eps: d.Eps}, x)
}

// Linear is w·x + bias, the bias where there is one.
func (d *decoder) Linear(label string, x graph.Value, w, bias graph.Weight) graph.Value {
	x = d.Node(label, graph.MatMul{W: w}, x)
	if bias.Present() {
		x = d.Node(label+".bias", graph.Bias{W: bias}, x)
	}
	return x
}

// Heads is RMSNorm of each head.
func (d *decoder) HeadNorm(label string, x graph.Value, w graph.Weight) graph.Value {
	return d.Node(label, graph.HeadNorm{W: w, Eps: d.Eps}, x)
}

// Attend rotates q and k, stores k and v, and attends: [heads·headDim, n] → same shape.
func (d *decoder) Attend(i int, rope graph.Rope, q, k, v graph.Value) graph.Value {
	pos := d.Input(graph.Positions)
	q = d.Node(name(i, "q_rope"), graph.RoPE{Rope: rope}, q, pos)
	k = d.Node(name(i, "k_rope"), graph.RoPE{Rope: rope}, k, pos)
	kv := d.Node(name(i, "store"), graph.StoreKV{Layer: i}, k, v, d.Input(graph.Cells))
	return d.Node(name(i, "attn"), graph.Attention{
		Layer: i, Heads: d.Config.Heads, KVHeads: d.KVHeads, HeadDim: d.HeadDim, Scale: float32(1 / math.Sqrt(float64(d.HeadDim))),
	}, q, kv, pos)
}

// FFN is down·(silu(gate·x) · (up·x)).
func (d *decoder) FFN(i int, x graph.Value, gate, up, down graph.Weight) graph.Value {
	g := d.Node(name(i, "ffn_gate"), graph.MatMul{W: gate}, x)
	u := d.Node(name(i, "ffn_up"), graph.MatMul{W: up}, x)
	g = d.Node(name(i, "ffn_silu"), graph.Silu{}, g)
	g = d.Node(name(i, "ffn_act"), graph.Mul{}, g, u)
	return d.Node(name(i, "ffn_down"), graph.MatMul{W: down}, g)
}

// A block is one layer's two halves, each without its residual: attn ends in the output projection.
type block struct {
	attn func(h graph.Value) graph.Value
	ffn  func(h graph.Value) graph.Value
}

// Run builds embedding, layers with their residuals, final norm and logits. The last layer's feed-forward and what
// follows see only the rows whose logits are asked for; where none are, the graph ends at the last layer's KV store.
func (d *decoder) Run(embed, norm, output, outputBias graph.Weight, layer func(i int) block) (*graph.Graph, error) {
	h := d.Node("embed", graph.Embed{W: embed}, d.Input(graph.Tokens))
	p := d.Params()
	for i := range d.Layers {
		b := layer(i)
		a := b.attn(h)
		if i == d.Layers-1 && p.Outputs < p.Tokens {
			if p.Outputs == 0 {
				return d.Build()
			}
			rows := d.Input(graph.OutRows)
			a = d.Node("tail_attn", graph.Rows{}, a, rows)
			h = d.Node("tail_residual", graph.Rows{}, h, rows)
		}
		h = d.Node(name(i, "attn_residual"), graph.Add{}, h, a)
		h = d.Node(name(i, "ffn_residual"), graph.Add{}, h, b.ffn(h))
	}
	h = d.Norm("output_norm", h, norm)
	if p.Hidden {
		d.Output(h)
		return d.Build()
	}
	d.Output(d.Linear("logits", h, output, outputBias))
	return d.Build()
}
