package cpu

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/internal/team"
	"github.com/minfer-go/minfer/quant"
)

// A Device owns packed weights, activation memory and a worker team. It implements backend.Device.
type Device struct {
	options  backend.Options
	kernels  *simd.Set
	team     *team.Team
	matrices map[string]*simd.Weight
	vectors  map[string][]float32
	ropes    map[graph.Rope]*ropeTable
	pool     []float32 // activations of all programs, one at a time; grows to the largest plan
	scratch  []byte    // inputs of products, in the form that kernels read, of the largest program
	attn     attnMemory
	frees    []func() error
	timing   *timing // nil unless MINFER_OP_TIMING is set
}

// Info names the kernels and the threads.
func (d *Device) Info() string {
	return fmt.Sprintf("cpu (%s, %d threads)", d.kernels.ISA, d.team.Size())
}

// Close stops the workers and frees the memory. Programs, cells and logits of the device must not be used afterwards.
func (d *Device) Close() error {
	d.team.Close()
	return d.release()
}

// packChunk is the number of panels that one task packs.
const packChunk = 16

// packStep packs a matrix, a range of panels a task.
type packStep struct {
	w      *simd.Weight
	src    []byte
	panels int
}

func (s *packStep) Tasks() int { return (s.panels + packChunk - 1) / packChunk }

func (s *packStep) Do(_ *team.Worker, task int) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // the source is a mapped file, which others can cut short
	from := task * packChunk
	simd.Pack(s.w.Panels, s.w.Type, s.src, s.w.Rows, s.w.Cols, from, min(from+packChunk, s.panels))
}

// isVector reports whether a weight is a norm, a bias or the like.
func isVector(w graph.Weight) bool { return w.Out == 1 && vectorType(w.Type) }

// Load packs matrices and expands vectors to f32. A cancelled context stops between tensors.
func (d *Device) Load(ctx context.Context, weights []graph.Weight, src backend.WeightSource) error {
	total := 0
	for _, w := range weights {
		if !isVector(w) {
			bytes, err := packedBytes(w)
			if err != nil {
				return err
			}
			total += align(bytes)
		}
	}
	mem, err := d.allocate(total) // all in one, so that small matrices share huge pages
	if err != nil {
		return err
	}
	for _, w := range weights {
		if err := ctx.Err(); err != nil {
			return err
		}
		data, err := src.Weight(w)
		if err != nil {
			return err
		}
		if isVector(w) {
			if d.vectors[w.Name], err = decodeVector(w, data); err != nil {
				return err
			}
		} else {
			bytes, err := packedBytes(w)
			if err != nil {
				return err
			}
			if err := d.pack(w, data, mem[:bytes:bytes]); err != nil {
				return err
			}
			mem = mem[align(bytes):]
		}
		src.Done(w)
	}
	return nil
}

// decodeVector expands a vector.
func decodeVector(w graph.Weight, data []byte) (v []float32, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = unreadable(w, fmt.Errorf("%v", p))
		}
	}()
	v = make([]float32, w.In)
	if err := quant.Decode(w.Type, v, data); err != nil {
		return nil, fmt.Errorf("%w: vector %s: %w", backend.ErrUnsupported, w.Name, err)
	}
	return v, nil
}

// unreadable is the error of a weight whose bytes could not be read to their end.
func unreadable(w graph.Weight, err error) error {
	return fmt.Errorf("%w: weight %s cannot be read; has its file become shorter? %w", backend.ErrRun, w.Name, err)
}

// packedBytes is the size of a packed matrix.
func packedBytes(w graph.Weight) (int, error) {
	bytes, err := simd.PackedBytes(w.Type, w.Out, w.In)
	if err != nil {
		return 0, fmt.Errorf("%w: weight %s: %w", backend.ErrUnsupported, w.Name, err)
	}
	return bytes, nil
}

// pack packs a matrix into mem, which has its packedBytes.
func (d *Device) pack(w graph.Weight, data, mem []byte) error {
	row, err := w.Type.RowBytes(w.In)
	if err != nil || len(data) != row*w.Out {
		return fmt.Errorf("%w: weight %s: %d bytes for [%d, %d] of %s", backend.ErrUnsupported, w.Name, len(data), w.In, w.Out, w.Type)
	}
	m := &simd.Weight{Type: w.Type, Rows: w.Out, Cols: w.In, Panels: mem}
	if err := d.team.Run([]team.Step{&packStep{m, data, simd.Panels(w.Out)}}); err != nil {
		var p *team.PanicError
		var fault interface{ Addr() uintptr } // what the runtime's error of a memory fault has beside its text
		if errors.As(err, &p) {
			if e, ok := p.Value.(error); ok && errors.As(e, &fault) {
				return unreadable(w, e)
			}
		}
		return fmt.Errorf("%w: packing %s: %w", backend.ErrRun, w.Name, err)
	}
	d.matrices[w.Name] = m
	return nil
}

// WeightBytes is what Load would keep.
func (d *Device) WeightBytes(weights []graph.Weight) (int, error) {
	total := 0
	for _, w := range weights {
		bytes := 4 * w.In
		if !isVector(w) {
			var err error
			if bytes, err = packedBytes(w); err != nil {
				return 0, err
			}
		}
		total += bytes
	}
	return total, nil
}

func (d *Device) matrix(w graph.Weight) (*simd.Weight, error) {
	if m := d.matrices[w.Name]; m != nil {
		return m, nil
	}
	if v := d.vectors[w.Name]; v != nil && w.Out == 1 { // numbers in one row: Load could not know that it is a matrix
		b := make([]byte, 4*len(v))
		if err := quant.Encode(quant.F32, b, v); err != nil {
			return nil, err
		}
		row := graph.Weight{Name: w.Name, Type: quant.F32, In: w.In, Out: 1}
		bytes, err := packedBytes(row)
		if err != nil {
			return nil, err
		}
		mem, err := d.allocate(bytes)
		if err != nil {
			return nil, err
		}
		if err := d.pack(row, b, mem); err != nil {
			return nil, err
		}
		return d.matrices[w.Name], nil
	}
	return nil, fmt.Errorf("%w: matrix %s is not loaded", backend.ErrUnsupported, w.Name)
}

// vector is a loaded vector; nil for an absent weight.
func (d *Device) vector(w graph.Weight) ([]float32, error) {
	if !w.Present() {
		return nil, nil
	}
	if v := d.vectors[w.Name]; v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("%w: vector %s is not loaded", backend.ErrUnsupported, w.Name)
}
