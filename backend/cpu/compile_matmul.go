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
// those of few tokens stream panels, and each stream should be long enough to be worth starting. No task takes more than
// maxPanels, so that a worker that is held up does not hold up the others for long.
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
		least = max(1, streamBytes/panelBytes)
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

// needs is the memory of each kind of activations: what the largest product of the graph takes.
func (d *Device) needs(g *graph.Graph) (need [actsKinds]int, total int) {
	for i := range g.Nodes {
		if g.Nodes[i].Dead {
			continue
		}
		for _, w := range matrices(g.Nodes[i].Op) {
			kind := d.kind(w)
			need[kind] = max(need[kind], d.actsBytes(kind, w.In, g.Tensor(g.Nodes[i].In[0]).Shape[1]))
		}
	}
	for k := range need {
		need[k] = align(need[k])
		total += need[k]
	}
	return need, total
}

// ScratchBytes is what a program of the graph needs beyond its plan: inputs of products in the form that kernels read,
// and what workers keep for attention and for fused feed-forwards.
func (d *Device) ScratchBytes(g *graph.Graph, kv backend.KVSpec) int {
	_, total := d.needs(g)
	attn, gate := 0, 0
	for i := range g.Nodes {
		if g.Nodes[i].Dead {
			continue
		}
		switch op := g.Nodes[i].Op.(type) {
		case graph.Attention:
			attn = max(attn, d.attnBytes(op, g.Tensor(g.Nodes[i].In[0]).Shape[1], kv.Cells))
		case graph.GateUp:
			gate = d.team.Size() * gateScratch
		}
	}
	return total + attn + gate
}

// reserve gives each kind of activations its memory.
func (c *compiler) reserve() error {
	need, total := c.d.needs(c.g)
	if len(c.d.scratch) < total {
		mem, err := c.d.allocate(total)
		if err != nil {
			return err
		}
		c.d.scratch = mem
	}
	at := 0
	for k := range need {
		c.acts[k] = actsSlot{value: graph.Value{Node: -1}, mem: c.d.scratch[at : at+need[k]]}
		at += need[k]
	}
	return nil
}

// The kinds of memory that hold a product's input: simd's two, and plain rows for the reference path.
const (
	actsPlain = 2
	actsKinds = 3
)

// kind is the form in which a weight wants its input.
func (d *Device) kind(w graph.Weight) int {
	if d.options.F32Activations {
		return actsPlain
	}
	return int(simd.KindFor(w.Type))
}

func (d *Device) actsBytes(kind, cols, tokens int) int {
	if kind == actsPlain {
		return 4 * cols * tokens
	}
	return d.kernels.ActsBytes(simd.ActsKind(kind), cols, tokens)
}

// An actsSlot is the memory of one kind of activations and the value that it holds at this point of the program.
type actsSlot struct {
	value graph.Value
	mem   []byte
	acts  *simd.Acts
	plain []float32
}

// rowsAs is rows under another name in timings.
func (c *compiler) rowsAs(op string, n int, f func(row int), views ...view) {
	outer := c.op
	c.op = op
	c.rows(n, f, views...)
	c.op = outer
}

// input makes the activations of a kind hold a value, as row work unless they do already.
func (c *compiler) input(v graph.Value, x view, kind int) *actsSlot {
	slot := &c.acts[kind]
	if slot.value == v {
		return slot
	}
	slot.value = v
	if kind == actsPlain {
		slot.plain = floats(slot.mem)[:x.n*x.d]
		plain := slot.plain
		c.rowsAs("quantize", x.n, func(r int) { copy(plain[r*x.d:(r+1)*x.d], x.row(r)) }, x)
		return slot
	}
	mat := &c.d.kernels.Mat
	acts := mat.Acts(slot.mem[:mat.ActsBytes(simd.ActsKind(kind), x.d, x.n)], simd.ActsKind(kind), x.d, x.n)
	slot.acts = &acts
	c.rowsAs("quantize", x.n, func(r int) { mat.SetRow(&acts, r, x.row(r)) }, x)
	return slot
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

// gateScratch bounds the memory in which a worker keeps the up rows of one task.
const gateScratch = 256 << 10

// A gateStep computes silu(gate·x)·(up·x), a range of panels a task: the gate rows go to the destination, the up rows to
// the worker's own memory, and both meet while they are warm.
type gateStep struct {
	matStep
	kernels *simd.Set
	gate    *simd.Weight
	up      []simd.Weight // the panels of each task, as a matrix of their own
	dst     view
	panels  int
}

func (s *gateStep) Do(w *team.Worker, task int) {
	from := task * s.chunk
	part := &s.up[task]
	up := floats(w.Scratch)[:s.tokens*part.Rows]
	s.multiply(s.gate, s.dst.data, s.dst.pitch, from, min(from+s.chunk, s.panels))
	s.multiply(part, up, part.Rows, 0, simd.Panels(part.Rows))
	first := from * simd.PanelRows
	for t := range s.tokens {
		y := s.dst.row(t)[first : first+part.Rows]
		s.kernels.SwiGLU(y, y, up[t*part.Rows:(t+1)*part.Rows])
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
	s := &gateStep{kernels: c.d.kernels, gate: gate, dst: out, panels: simd.Panels(op.Gate.Out)}
	s.mat = &c.d.kernels.Mat
	s.from(c.input(v, x, c.d.kind(op.Gate)), x.n)
	c.flush()
	perPanel := 4 * simd.PanelRows * x.n
	s.chunk = min(c.chunkOf(s.panels, len(gate.Panels)/s.panels, x.n), max(1, gateScratch/perPanel))
	s.tasks = (s.panels + s.chunk - 1) / s.chunk
	size := simd.PanelBytes(up.Type, up.Cols)
	for from := 0; from < s.panels; from += s.chunk {
		to := min(from+s.chunk, s.panels)
		s.up = append(s.up, simd.Weight{
			Type: up.Type, Rows: min(to*simd.PanelRows, up.Rows) - from*simd.PanelRows, Cols: up.Cols, Panels: up.Panels[from*size : to*size],
		})
	}
	if err := c.d.team.EnsureScratch(s.chunk * perPanel); err != nil {
		return fmt.Errorf("%w: %w", backend.ErrRun, err)
	}
	c.emit(s, c.op)
	return nil
}
