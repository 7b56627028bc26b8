package simd

import (
	"fmt"
	"sync"

	"github.com/minfer-go/minfer/quant"
)

// Mat multiplies packed weights with activations.
//
// Numbers: an output element is one sequence of operations over the blocks of its row, whatever the number of tokens,
// their group, the panels around it or the caller's split. Per block of 32 inputs the codes' dot product i is an exact
// integer, and f, from zero, becomes
//
//	classBlock  f + (i·scale)·d
//	classMin    (f + min·(d·Σq)) + (i·scale)·d
//	classHalf   f + (i₀·scale₀ + i₁·scale₁)·d
//	classQ2     ((f + min₀·(n₀·d)) + min₁·(n₁·d)) + (i₀·scale₀ + i₁·scale₁)·d    n = −32Σq of the half
//	classFloat  f + w·x, input by input
//
// where the vector sets fuse the last product of each sum with it and the portable set does not.
type Mat struct {
	tile int // tokens in a group of activations, at most maxTile

	// dot multiplies a panel's expanded records with a group's records and adds to dst, or begins it.
	dot func(t *dotTask)
	// expand writes the records of whole units of a panel.
	expand func(f *form, t quant.Type, dst, units []byte)
	// prefetch asks for memory that is read soon; it may be nil.
	prefetch func(b []byte)
	// quantize is quantizeGeneric's equal.
	quantize func(buf []byte, width, slot int, x []float32)
	// few multiplies panels with one group of at most fewTile tokens straight from the packed form; nil where a type has
	// no such kernel. Activations of at most fewMost tokens form such groups.
	few              [typeCount]func(t fewTask)
	fewTile, fewMost int
}

// maxTile is the widest group of any set.
const maxTile = 12

// dotTask is one panel's span of records against the same span of a group of activations: for each token t < width and
// row r < rows, dst[t·stride + r] is begun (first) or continued.
type dotTask struct {
	class   class
	dst     []float32
	stride  int
	rows    int
	records []byte // expanded weights, records × recordBytes[class]
	acts    []byte // activations, records × width × record
	width   int
	count   int // records
	start   int // word array that the integer sums start from, recordWords for none
	first   bool
}

// fewTask is a run of panels against the one group of activations.
type fewTask struct {
	dst    []float32
	stride int
	rows   int    // rows of the matrix from the first panel's first on
	panels []byte // packed
	size   int    // bytes of a panel
	count  int    // panels
	units  int    // in a panel
	acts   []byte
	width  int
}

// scratchBytes is the memory that expanded panels take during a product: a part of a core's second-level cache.
const scratchBytes = 192 << 10

// scratch memory is reused across products. Its bytes are never read before they are written.
type scratch struct {
	mem  [scratchBytes + 64]byte
	task dotTask // here, because a call through a function value would move it to the heap
	rows [PanelRows][]float32
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

// aligned is the 64-byte aligned part.
func (s *scratch) aligned() []byte { return alignedTo(s.mem[:], 64)[:scratchBytes] }

// spanRecords is the number of records that are expanded at a time, whole units of every type.
func (c class) spanRecords() int {
	if c == classFloat {
		return 16
	}
	return 32
}

// startWord is the word array of activations that integer sums of the form start from.
func (f *form) startWord() int {
	switch f.offset {
	case 8:
		return wordMinus8
	case 16:
		return wordMinus16
	case 128:
		return wordMinus128
	}
	return recordWords
}

// MatMul computes, for the rows of the panels [panelFrom, panelTo) and every token of a, the dot product of the row
// with the token: dst[token·dstStride + row]. Rows beyond w.Rows are not written. a must have KindFor(w.Type) and w.Cols
// columns. Disjoint ranges of panels may run concurrently.
func (m *Mat) MatMul(dst []float32, dstStride int, w *Weight, a *Acts, panelFrom, panelTo int) {
	f := formOf(w.Type)
	checkProduct(f, dst, dstStride, w, a, panelTo)
	if panelFrom >= panelTo || a.Tokens == 0 {
		return
	}
	if few := m.few[w.Type]; few != nil && a.tile == m.fewTile {
		matMulPacked(few, f, dst, dstStride, w, a, panelFrom, panelTo)
		return
	}
	s := scratches.Get().(*scratch)
	m.matMulExpanded(s, f, dst, dstStride, w, a, panelFrom, panelTo)
	scratches.Put(s)
}

// packedBytes bounds the panels that several groups of tokens go over before the next panels: they stay in a core's
// second-level cache.
const packedBytes = 64 << 10

// matMulPacked runs the groups of tokens over the packed panels, a few panels at a time.
func matMulPacked(few func(t fewTask), f *form, dst []float32, dstStride int, w *Weight, a *Acts, panelFrom, panelTo int) {
	size := f.panelBytes(w.Cols)
	chunk := panelTo - panelFrom
	if a.Tokens > a.tile {
		chunk = max(1, packedBytes/size)
	}
	for ; panelFrom < panelTo; panelFrom += chunk {
		chunk = min(chunk, panelTo-panelFrom)
		task := fewTask{
			stride: dstStride, rows: w.Rows - panelFrom*PanelRows, panels: w.Panels[panelFrom*size : (panelFrom+chunk)*size],
			size: size, count: chunk, units: f.units(w.Cols),
		}
		for token := 0; token < a.Tokens; token += a.tile {
			task.acts, task.width = a.group(token)
			task.dst = dst[token*dstStride+panelFrom*PanelRows:]
			few(task)
		}
	}
}

// chunkPanels is the number of panels that are expanded together when there are several groups of tokens: a group's
// activations are used that often once they are in the first-level cache.
const chunkPanels = 8

// matMulExpanded expands a few panels at a time, a span of records each, and multiplies them with every group. Meanwhile
// it asks for the memory of the spans that come next.
func (m *Mat) matMulExpanded(s *scratch, f *form, dst []float32, dstStride int, w *Weight, a *Acts, panelFrom, panelTo int) {
	mem, task := s.aligned(), &s.task
	span := f.class.spanRecords()
	recordSize := recordBytes[f.class]
	spanBytes, spanUnits := span*recordSize, span/f.unitRecords()
	units, panelBytes := f.units(w.Cols), f.panelBytes(w.Cols)
	chunk := min(chunkPanels, scratchBytes/spanBytes)
	if a.Tokens <= a.tile {
		chunk = 1 // one use of each expansion: keep it in the first-level cache
	}
	for ; panelFrom < panelTo; panelFrom += chunk {
		chunk = min(chunk, panelTo-panelFrom)
		for unit := 0; unit < units; unit += spanUnits {
			n := min(spanUnits, units-unit)
			for p := range chunk {
				panel := w.panel(f, panelFrom+p)
				m.expand(f, w.Type, mem[p*spanBytes:(p+1)*spanBytes], panel[unit*f.unitBytes:(unit+n)*f.unitBytes])
			}
			// The spans that come next: of these panels, or the first of the next ones.
			next := w.Panels[panelFrom*panelBytes+(unit+n)*f.unitBytes:]
			nextBytes := spanUnits * f.unitBytes
			if unit+n == units {
				next = w.Panels[(panelFrom+chunk)*panelBytes:]
			}

			count := n * f.unitRecords()
			*task = dotTask{class: f.class, stride: dstStride, count: count, start: f.startWord(), first: unit == 0}
			for token := 0; token < a.Tokens; token += a.tile {
				acts, width := a.group(token)
				task.width = width
				task.acts = acts[unit*f.unitRecords()*width*a.size:][:count*width*a.size]
				// This group's share of the memory to ask for, panel by panel.
				ahead, share := nextBytes*token/a.Tokens, nextBytes*width/a.Tokens
				for p := range chunk {
					row := (panelFrom + p) * PanelRows
					task.rows = min(PanelRows, w.Rows-row)
					task.dst = dst[token*dstStride+row:][:(width-1)*dstStride+task.rows]
					task.records = mem[p*spanBytes:][:count*recordSize]
					m.dot(task)
					if m.prefetch != nil && ahead+share <= len(next) {
						m.prefetch(next[ahead : ahead+share])
					}
					ahead += panelBytes
				}
			}
		}
	}
	*task = dotTask{} // keeps no one's memory
}

// checkProduct panics where memory would be written or read out of range: the kernels do not look.
func checkProduct(f *form, dst []float32, dstStride int, w *Weight, a *Acts, panelTo int) {
	switch {
	case f.class == classNone:
		panic("simd: MatMul of a type without kernels: " + w.Type.String())
	case a.Kind != KindFor(w.Type) || a.Cols != w.Cols:
		panic(fmt.Sprintf("simd: MatMul of %s × %d columns with activations of kind %d × %d", w.Type, w.Cols, a.Kind, a.Cols))
	case panelTo > Panels(w.Rows) || len(w.Panels) < Panels(w.Rows)*f.panelBytes(w.Cols):
		panic(fmt.Sprintf("simd: MatMul of panel %d of %d rows in %d bytes", panelTo, w.Rows, len(w.Panels)))
	case a.Tokens > 0 && len(dst) < (a.Tokens-1)*dstStride+min(w.Rows, panelTo*PanelRows):
		panic(fmt.Sprintf("simd: MatMul of %d tokens × %d rows into %d numbers", a.Tokens, w.Rows, len(dst)))
	}
}

// MatMulReference computes what MatMul does from activations x, row-major [tokens][w.Cols], that are not quantized:
// the weights' exact numbers, products and sums in float64, rounded once.
func (m *Mat) MatMulReference(dst []float32, dstStride int, w *Weight, x []float32, tokens, panelFrom, panelTo int) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	for p := panelFrom; p < panelTo; p++ {
		w.decodePanel(s, p)
		for r := range min(PanelRows, w.Rows-p*PanelRows) {
			for t := range tokens {
				dst[t*dstStride+p*PanelRows+r] = dotF64(s.rows[r], x[t*w.Cols:(t+1)*w.Cols])
			}
		}
	}
}

// decodePanel writes the numbers of a panel to s.rows.
func (w *Weight) decodePanel(s *scratch, p int) {
	f := formOf(w.Type)
	for r := range s.rows {
		if cap(s.rows[r]) < w.Cols {
			s.rows[r] = make([]float32, w.Cols)
		}
		s.rows[r] = s.rows[r][:w.Cols]
	}
	panel, mem := w.panel(f, p), s.aligned()
	for at := 0; at < w.Cols; at += f.unit {
		f.expand(mem, panel[at/f.unit*f.unitBytes:][:f.unitBytes])
		for r := range s.rows {
			f.rowOf(s.rows[r][at:min(at+f.unit, w.Cols)], mem, r)
		}
	}
}

// dotF64 is the sum of products, four partial sums over the inputs modulo 4.
func dotF64(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += float64(a[i]) * float64(b[i])
		s1 += float64(a[i+1]) * float64(b[i+1])
		s2 += float64(a[i+2]) * float64(b[i+2])
		s3 += float64(a[i+3]) * float64(b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i]) * float64(b[i])
	}
	return float32((s0 + s1) + (s2 + s3))
}
