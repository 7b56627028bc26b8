package graph

import "github.com/minfer-go/minfer/quant"

// An Op says what a node computes. The set is sealed: the structs of this file. Every Op is comparable, so that two
// graphs can be compared node by node with ==; whatever changes the computation is a field of its Op.
type Op interface {
	// Kind is the name that exports, traces and errors show.
	Kind() string
	sealed()
}

// A Weight names a tensor of the model. The zero Weight means that there is none.
type Weight struct {
	Name string
	Type quant.Type
	In   int // ne[0]: inputs, or the length of a vector
	Out  int // ne[1]: outputs; 1 for a vector
}

// Present reports whether w names a tensor.
func (w Weight) Present() bool { return w.Name != "" }

// InputKind says which per-step data an Input node stands for.
type InputKind uint8

// The inputs of a step.
const (
	Tokens    InputKind = iota // token ids, [n]
	Positions                  // position of each token within its own sequence, [n]
	Cells                      // KV cell that each token's K and V rows go to, [n]
	OutRows                    // rows whose logits are wanted, ascending, [nOut]
)

// String is the name under which exports show the input.
func (k InputKind) String() string {
	return [...]string{"tokens", "positions", "cells", "out_rows"}[k]
}

// RopeStyle says which elements of a head RoPE rotates together.
type RopeStyle uint8

// The two published layouts.
const (
	RopeNeoX RopeStyle = iota // element i with i+rot/2
	RopeNorm                  // element 2i with 2i+1, as llama GGUF files store Q and K
)

// Rope describes rotary position embedding (Su et al. 2021) of heads of HeadDim elements, the first Rot of which
// turn: pair i by the angle pos · Base^(−2i/Rot), changed by the scaling that the model file asks for.
type Rope struct {
	HeadDim, Rot int
	Style        RopeStyle
	Base         float32
	Factors      Weight // per-pair divisors of the frequency (Llama 3.x "rope_freqs"), or none
	Scaling      RopeScaling
}

// RopeScaling stretches positions beyond the trained context.
type RopeScaling struct {
	Kind      string  // "" for none, "linear", "yarn"
	Factor    float32 // context multiple
	Original  int     // trained context, for yarn
	Attention float32 // yarn's magnitude factor, 0 for its own default
	BetaFast  float32
	BetaSlow  float32
}

// The leaf and dense ops. Inputs are listed in order.
type (
	// Input is a leaf that the host fills at each step: no inputs, one i32 output.
	Input struct{ Which InputKind }
	// Embed looks token ids up: (tokens [n]) → [W.In, n].
	Embed struct{ W Weight }
	// RMSNorm is x / sqrt(mean(x²)+Eps) · W over a token's features (Zhang & Sennrich 2019): (x [d,n]) → [d,n].
	RMSNorm struct {
		W   Weight
		Eps float32
	}
	// HeadNorm is RMSNorm over each head of W.In features: (x [heads·W.In, n]) → same shape.
	HeadNorm struct {
		W   Weight
		Eps float32
	}
	// MatMul is W·x: (x [W.In, n]) → [W.Out, n].
	MatMul struct{ W Weight }
	// Bias adds a vector to every token: (x [W.In, n]) → same shape.
	Bias struct{ W Weight }
	// RoPE rotates heads by their token's position: (x [heads·HeadDim, n], positions [n]) → x's shape.
	RoPE struct{ Rope }
	// StoreKV writes K and V rows of a layer into the KV cells: (k [kvHeads·headDim, n], v same, cells [n]) → KV handle.
	StoreKV struct{ Layer int }
	// Attention is causal softmax(Scale·q·Kᵀ)·V over the cells of each token's own sequence:
	// (q [Heads·HeadDim, n], KV handle, positions [n]) → [Heads·HeadDim, n].
	Attention struct {
		Layer, Heads, KVHeads, HeadDim int
		Scale                          float32
	}
	// Rows picks tokens: (x [d,n], rows [m]) → [d,m].
	Rows struct{}
	// Add is a+b: (a, b of one shape) → same shape.
	Add struct{}
	// Mul is a·b element by element: (a, b of one shape) → same shape.
	Mul struct{}
	// Scale is x·By.
	Scale struct{ By float32 }
	// Silu is x/(1+e^−x).
	Silu struct{}
	// Copy makes a contiguous copy of a view.
	Copy struct{}
)

// The view ops: their output is the input's memory under another layout; they run nothing.
type (
	// Slice keeps the elements [From, To) of dimension Dim.
	Slice struct{ Dim, From, To int }
	// Reshape gives contiguous memory another shape of equal element count; trailing zeros stand for 1.
	Reshape struct{ Shape [4]int }
	// Permute reorders dimensions: output dimension i is input dimension Dims[i].
	Permute struct{ Dims [4]int }
)

// The fused ops: only rewrite rules make them, each where its backend says that it runs it.
type (
	// SwiGLU is silu(gate)·up (Shazeer 2020): (gate, up of one shape) → same shape.
	SwiGLU struct{}
	// MultiMatMul is up to four products of one input: (x [in, n]) → N outputs [Ws[i].Out, n].
	MultiMatMul struct {
		Ws [4]Weight
		N  int
	}
	// GateUp is silu(Gate·x)·(Up·x): (x [in, n]) → [Gate.Out, n].
	GateUp struct{ Gate, Up Weight }
	// AddRMSNorm is a residual add and the norm of its sum: (a, b [d,n]) → sum [d,n], norm(sum) [d,n].
	AddRMSNorm struct {
		W   Weight
		Eps float32
	}
	// QKVStore is the epilogue of the Q, K and V products: add biases, normalise heads, rotate Q and K, store K and V:
	// (q [heads·hd, n], k [kvHeads·hd, n], v, positions [n], cells [n]) → rotated q, KV handle. Absent biases and norms are skipped.
	QKVStore struct {
		Layer               int
		BiasQ, BiasK, BiasV Weight
		NormQ, NormK        Weight
		Eps                 float32 // of the norms
		Rope                Rope
	}
)

// Kind names; the lower-case names of trace files and graph exports.
func (Input) Kind() string       { return "input" }
func (Embed) Kind() string       { return "embed" }
func (RMSNorm) Kind() string     { return "rms_norm" }
func (HeadNorm) Kind() string    { return "head_norm" }
func (MatMul) Kind() string      { return "matmul" }
func (Bias) Kind() string        { return "bias" }
func (RoPE) Kind() string        { return "rope" }
func (StoreKV) Kind() string     { return "store_kv" }
func (Attention) Kind() string   { return "attention" }
func (Rows) Kind() string        { return "rows" }
func (Add) Kind() string         { return "add" }
func (Mul) Kind() string         { return "mul" }
func (Scale) Kind() string       { return "scale" }
func (Silu) Kind() string        { return "silu" }
func (Copy) Kind() string        { return "copy" }
func (Slice) Kind() string       { return "slice" }
func (Reshape) Kind() string     { return "reshape" }
func (Permute) Kind() string     { return "permute" }
func (SwiGLU) Kind() string      { return "swiglu" }
func (MultiMatMul) Kind() string { return "multi_matmul" }
func (GateUp) Kind() string      { return "gate_up" }
func (AddRMSNorm) Kind() string  { return "add_rms_norm" }
func (QKVStore) Kind() string    { return "qkv_store" }

func (Input) sealed()       {}
func (Embed) sealed()       {}
func (RMSNorm) sealed()     {}
func (HeadNorm) sealed()    {}
func (MatMul) sealed()      {}
func (Bias) sealed()        {}
func (RoPE) sealed()        {}
func (StoreKV) sealed()     {}
func (Attention) sealed()   {}
func (Rows) sealed()        {}
func (Add) sealed()         {}
func (Mul) sealed()         {}
func (Scale) sealed()       {}
func (Silu) sealed()        {}
func (Copy) sealed()        {}
func (Slice) sealed()       {}
func (Reshape) sealed()     {}
func (Permute) sealed()     {}
func (SwiGLU) sealed()      {}
func (MultiMatMul) sealed() {}
func (GateUp) sealed()      {}
func (AddRMSNorm) sealed()  {}
func (QKVStore) sealed()    {}

// AllOps lists one zero value of every op, for tables and matrix tests.
func AllOps() []Op {
	return []Op{
		Input{},
		Embed{},
		RMSNorm{},
		HeadNorm{},
		MatMul{},
		Bias{},
		RoPE{},
		StoreKV{},
		Attention{},
		Rows{},
		Add{},
		Mul{},
		Scale{},
		Silu{},
		Copy{},
		Slice{},
		Reshape{},
		Permute{},
		SwiGLU{},
		MultiMatMul{},
		GateUp{},
		AddRMSNorm{},
		QKVStore{},
	}
}

// WeightsOf lists the weights that an op reads, absent ones left out.
func WeightsOf(op Op) []Weight {
	var all []Weight
	switch o := op.(type) {
	case Embed:
		all = []Weight{o.W}
	case RMSNorm:
		all = []Weight{o.W}
	case HeadNorm:
		all = []Weight{o.W}
	case MatMul:
		all = []Weight{o.W}
	case Bias:
		all = []Weight{o.W}
	case RoPE:
		all = []Weight{o.Factors}
	case MultiMatMul:
		all = o.Ws[:o.N]
	case GateUp:
		all = []Weight{o.Gate, o.Up}
	case AddRMSNorm:
		all = []Weight{o.W}
	case QKVStore:
		all = []Weight{o.BiasQ, o.BiasK, o.BiasV, o.NormQ, o.NormK, o.Rope.Factors}
	}
	var present []Weight
	for _, w := range all {
		if w.Present() {
			present = append(present, w)
		}
	}
	return present
}
