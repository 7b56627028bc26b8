package graph

import "github.com/minfer-go/minfer/quant"

// Phase says what a step is for. It is part of Params because a backend may compile the two differently.
type Phase uint8

// The phases.
const (
	Prefill Phase = iota // at least one sequence brings several tokens
	Decode               // every sequence brings one token
)

// String is the name that exports show.
func (p Phase) String() string { return [...]string{"prefill", "decode"}[p] }

// Params is everything that the topology of a forward pass depends on. It is comparable: equal Params mean an equal
// graph, so a program compiled for one step serves every later step with the same Params.
type Params struct {
	Tokens  int        // rows of the step
	Outputs int        // rows whose logits are wanted; 0 for a prompt chunk that nobody samples from
	Hidden  bool       // the wanted rows give the final hidden state, [width], instead of logits
	Phase   Phase      //
	Cells   int        // KV cells of the arena
	KVType  quant.Type // element type of the cells
	Fuse    Rules      // rewrite rules that may fire
	Device  uint64     // participating backends, one bit each
	Weights uint64     // version of the weights, raised when they are reloaded
}

// input is the type and layout of an Input.
func (p Params) input(kind InputKind) Tensor {
	if kind == OutRows {
		return dense(I32, p.Outputs)
	}
	return dense(I32, p.Tokens)
}
