package cpu

import (
	"fmt"
	"math"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/internal/team"
)

// A product is one weight of a matStep and where its rows go.
type product struct {
	w      *simd.Weight
	dst    view
	panels int
	tasks  int
}

// A matStep multiplies one input with one or more weights, a range of panels a task.
type matStep struct {
	mat      *simd.Mat
	acts     *simd.Acts
	plain    []float32 // the input's rows on the reference path, which does not quantize them
	tokens   int
	products []product
	chunk    int // panels a task
	tasks    int
}

func (s *matStep) Tasks() int { return s.tasks }

func (s *matStep) Do(_ *team.Worker, task int) {
	for i := range s.products {
		p := &s.products[i]
		if task >= p.tasks {
			task -= p.tasks
			continue
		}
		from := task * s.chunk
		s.multiply(p.w, p.dst.data, p.dst.pitch, from, min(from+s.chunk, p.panels))
		return
	}
}

// multiply writes rows of the panels [from, to) for every token.
func (s *matStep) multiply(w *simd.Weight, dst []float32, pitch, from, to int) {
	if s.plain != nil {
		s.mat.MatMulReference(dst, pitch, w, s.plain, s.tokens, from, to)
		return
	}
	s.mat.MatMul(dst, pitch, w, s.acts, from, to)
}

// The sizes of tasks. Products of many tokens expand expandPanels panels together, so that fewer would waste some of it;
// those of few tokens stream panels, and each stream should be long enough to be worth starting: twice as long for one
// token, which waits for memory alone. No task takes more than maxPanels, so that a worker that is held up does not hold
// up the others for long.
const (
	expandPanels = 8
	streamTokens = 64
	streamBytes  = 256 << 10
	maxPanels    = 64
)

// chunkOf is how many panels of the given size a task takes when there are panels in all: what lets the workers end
// together, the smallest such number for the sake of busy machines.
func (c *compiler) chunkOf(panels, panelBytes, tokens int) int {
	least := expandPanels
	if tokens <= streamTokens {
		least = streamBytes / panelBytes
		if tokens == 1 {
			least *= 2
		}
		least = max(1, least)
	}
	workers := c.d.team.Size()
	most := min((panels+workers-1)/workers, maxPanels)
	best, cost := most, math.MaxInt
	for chunk := min(least, most); chunk <= most; chunk++ {
		tasks := (panels + chunk - 1) / chunk
		if turns := (tasks + workers - 1) / workers * chunk; turns < cost {
			best, cost = chunk, turns
		}
	}
	return best
}

// matrices lists the weights that an op multiplies its input with.
func matrices(op graph.Op) []graph.Weight {
	switch op := op.(type) {
	case graph.MatMul:
		return []graph.Weight{op.W}
	case graph.MultiMatMul:
		return op.Ws[:op.N]
	case graph.GateUp:
		return []graph.Weight{op.Gate, op.Up}
	}
	return nil
}

// matmul compiles products of one input. Weights that want it in the same form share one parallel step.
func (c *compiler) matmul(v graph.Value, x view, ws []graph.Weight, out []view) error {
	for kind := range actsKinds {
		s := &matStep{mat: &c.d.kernels.Mat}
		panels, bytes := 0, 0
		for i, w := range ws {
			if c.d.kind(w) != kind {
				continue
			}
			m, err := c.d.matrix(w)
			if err != nil {
				return err
			}
			s.products = append(s.products, product{w: m, dst: out[i], panels: simd.Panels(w.Out)})
			panels += simd.Panels(w.Out)
			bytes += len(m.Panels)
		}
		if panels == 0 {
			continue
		}
		s.from(c.input(v, x, kind), x.n)
		c.flush()
		s.chunk = c.chunkOf(panels, bytes/panels, x.n)
		for i := range s.products {
			p := &s.products[i]
			p.tasks = (p.panels + s.chunk - 1) / s.chunk
			s.tasks += p.tasks
		}
		c.emit(s, c.op)
	}
	return nil
}

// from sets the input of a step.
func (s *matStep) from(slot *actsSlot, tokens int) {
	s.acts, s.plain, s.tokens = slot.acts, slot.plain, tokens
}

// gateScratch bounds the memory in which a worker keeps the gate or the up rows of one task.
const gateScratch = 256 << 10

// A gateStep computes silu(gate·x)·(up·x), a range of panels a task: both halves go to the worker's own memory and meet
// while they are warm. The result goes to rows, or straight into the activations of the product that reads it.
type gateStep struct {
	matStep
	kernels  *simd.Set
	gate, up []simd.Weight // the panels of each task, as matrices of their own
	dst      view
	next     *simd.Acts // instead of dst
}

func (s *gateStep) Do(w *team.Worker, task int) {
	a, b := &s.gate[task], &s.up[task]
	n, first := a.Rows, task*s.chunk*simd.PanelRows
	mem := floats(w.Scratch)[:2*s.tokens*n]
	gate, up := mem[:s.tokens*n], mem[s.tokens*n:]
	s.multiply(a, gate, n, 0, simd.Panels(n))
	s.multiply(b, up, n, 0, simd.Panels(n))
	for t := range s.tokens {
		x := gate[t*n : (t+1)*n]
		if s.next != nil {
			s.kernels.SwiGLU(x, x, up[t*n:(t+1)*n])
			s.mat.SetPart(s.next, t, first, x)
		} else {
			s.kernels.SwiGLU(s.dst.row(t)[first:first+n], x, up[t*n:(t+1)*n])
		}
	}
}

// gateUp compiles a fused feed-forward half. Weights that want their input in different forms run as two products.
func (c *compiler) gateUp(v graph.Value, x view, op graph.GateUp, out view) error {
	if c.d.kind(op.Gate) != c.d.kind(op.Up) {
		return fmt.Errorf("%w: gate %s of type %s and up %s of type %s take their input in different forms; MINFER_NO_FUSE_FFN=1 runs them apart",
			backend.ErrUnsupported, op.Gate.Name, op.Gate.Type, op.Up.Name, op.Up.Type)
	}
	gate, err := c.d.matrix(op.Gate)
	if err != nil {
		return err
	}
	up, err := c.d.matrix(op.Up)
	if err != nil {
		return err
	}
	s := &gateStep{kernels: c.d.kernels, dst: out}
	s.mat = &c.d.kernels.Mat
	s.from(c.input(v, x, c.d.kind(op.Gate)), x.n)
	c.flush()
	panels, perPanel := simd.Panels(op.Gate.Out), 4*simd.PanelRows*x.n
	s.chunk = min(c.chunkOf(panels, len(gate.Panels)/panels, x.n), max(1, gateScratch/perPanel))
	if s.chunk > 1 {
		s.chunk &^= 1 // whole records of activations
	}
	s.next = c.store(out, s.chunk*simd.PanelRows)
	s.tasks = (panels + s.chunk - 1) / s.chunk
	for from := 0; from < panels; from += s.chunk {
		to := min(from+s.chunk, panels)
		s.gate, s.up = append(s.gate, rowsOf(gate, from, to)), append(s.up, rowsOf(up, from, to))
	}
	if err := c.d.team.EnsureScratch(s.chunk * 2 * perPanel); err != nil {
		return fmt.Errorf("%w: %w", backend.ErrRun, err)
	}
	c.emit(s, c.op)
	return nil
}

// rowsOf is the rows of the panels [from, to) as a matrix of their own.
func rowsOf(w *simd.Weight, from, to int) simd.Weight {
	size := simd.PanelBytes(w.Type, w.Cols)
	return simd.Weight{
		Type: w.Type, Rows: min(to*simd.PanelRows, w.Rows) - from*simd.PanelRows, Cols: w.Cols, Panels: w.Panels[from*size : to*size],
	}
}
