package gguf

import (
	"cmp"
	"slices"

	"github.com/minfer-go/minfer/quant"
)

// Tensor is one tensor of an open file. Its fields must not be changed.
type Tensor struct {
	Name string
	Type quant.Type
	// Shape is the number of elements in each dimension, the fastest-running first: [in, out] for a matrix. It has at
	// least one dimension and no zero.
	Shape []int

	offset uint64 // of the data within its part
	size   uint64
	data   []byte
	part   int
	mapped bool // data lies in a mapping of a file
}

// Data returns the bytes of the tensor, rows of whole blocks, without a copy. They are read-only and valid until the
// file is closed; after that Data returns nil. Within the file they begin at a multiple of its alignment; a mapped file
// begins at a page, but a slice given to [FromBytes] may lie anywhere.
func (t *Tensor) Data() []byte { return t.data }

// Size returns the number of bytes of the data.
func (t *Tensor) Size() int { return int(t.size) }

// Elements returns the number of elements, the product of the shape.
func (t *Tensor) Elements() int {
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Part returns the index in [File.Parts] of the file that holds the data, and Offset the byte where it begins there.
func (t *Tensor) Part() int { return t.part }

// Offset returns the position of the data in its part, in bytes from the beginning of the file.
func (t *Tensor) Offset() int64 { return int64(t.offset) }

// Drop tells the system that the mapped pages which only this tensor occupies are not needed for now, so that they
// stop counting as resident memory. The data stays valid: a later use reads it again. For data that is not mapped it
// does nothing. It is advice: a system that does not take it is not an error.
func (t *Tensor) Drop() {
	if t.mapped && len(t.data) > 0 {
		_ = dropPages(t.data)
	}
}

// checkOverlap reports two tensors that share bytes.
func (p *parser) checkOverlap(tensors []*Tensor) error {
	sorted := slices.Clone(tensors)
	slices.SortStableFunc(sorted, func(a, b *Tensor) int { return cmp.Compare(a.offset, b.offset) })
	for i, t := range sorted[1:] {
		if before := sorted[i]; before.offset+before.size > t.offset {
			return p.fail(ErrOverlap, "tensors %q (bytes %d to %d) and %q (from byte %d)",
				before.Name, before.offset, before.offset+before.size, t.Name, t.offset)
		}
	}
	return nil
}
