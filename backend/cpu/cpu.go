// Package cpu is the CPU backend: it packs weights into panels, compiles a planned graph into a list of parallel steps,
// and walks them with a team of workers.
//
// On one instruction set a token's logits are the same bits whatever the number of workers, the other rows of the step,
// the cells its sequence lies in, or what ran before: every kernel reduces in an order that depends on its own row alone.
package cpu

import (
	"fmt"
	"os"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/internal/team"
	"github.com/minfer-go/minfer/quant"
)

// priority of the CPU: below every accelerator.
const priority = 100

func init() { backend.Register(Backend{}) }

// Backend is the CPU as a kind of device.
type Backend struct{}

// Name is "cpu".
func (Backend) Name() string { return "cpu" }

// Priority is the lowest of all backends.
func (Backend) Priority() int { return priority }

// Usable is always nil.
func (Backend) Usable() error { return nil }

// KVTypes are f16, f32 and q8_0; f16 is the default: half the bytes of f32, and no loss that shows. q8_0 takes about half
// of that again and needs heads of a multiple of 32 elements.
func (Backend) KVTypes() []quant.Type { return []quant.Type{quant.F16, quant.F32, quant.Q8_0} }

// Fuses is every rule.
func (Backend) Fuses() graph.Rules { return graph.AllRules }

// Supports reports why a node cannot run: a weight type without kernels.
func (Backend) Supports(g *graph.Graph, node int) error {
	op, packed := g.Nodes[node].Op, false
	switch op := op.(type) {
	case graph.Input, graph.Rows, graph.Add, graph.Mul, graph.Scale, graph.Silu, graph.Copy, graph.SwiGLU,
		graph.Slice, graph.Reshape, graph.Permute, graph.StoreKV, graph.Attention,
		graph.RMSNorm, graph.AddRMSNorm, graph.HeadNorm, graph.Bias, graph.RoPE, graph.QKVStore:
	case graph.Embed, graph.MatMul, graph.MultiMatMul:
		packed = true
	case graph.GateUp:
		packed = true
		if simd.KindFor(op.Gate.Type) != simd.KindFor(op.Up.Type) {
			return fmt.Errorf("%w: gate %s of type %s and up %s of type %s take their input in different forms",
				backend.ErrUnsupported, op.Gate.Name, op.Gate.Type, op.Up.Name, op.Up.Type)
		}
	default:
		return fmt.Errorf("%w: cpu has no kernel for op %s", backend.ErrUnsupported, op.Kind())
	}
	for _, w := range graph.WeightsOf(op) {
		if packed {
			if _, err := packedBytes(w); err != nil {
				return err
			}
		} else if !vectorType(w.Type) {
			return fmt.Errorf("%w: vector %s of type %s", backend.ErrUnsupported, w.Name, w.Type)
		}
	}
	return nil
}

// vectorType reports whether norms and biases may have the type.
func vectorType(t quant.Type) bool { return t == quant.F32 || t == quant.F16 || t == quant.BF16 }

// Open starts a device with its own worker team.
func (Backend) Open(o backend.Options) (backend.Device, error) {
	d := &Device{
		options: o, kernels: simd.Best(), team: team.New(o.Threads),
		matrices: map[string]*simd.Weight{}, vectors: map[string][]float32{}, ropes: map[graph.Rope]*ropeTable{},
	}
	if os.Getenv("MINFER_OP_TIMING") != "" {
		d.timing = newTiming()
	}
	return d, nil
}
