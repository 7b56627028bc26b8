package cpu

import (
	"errors"
	"fmt"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/team"
)

// A Program is a compiled graph: steps over resolved memory. It implements backend.Program.
type Program struct {
	device *Device
	params graph.Params
	kv     *kvMemory
	steps  []team.Step
	labels []string     // of each step before clocks were put between them
	ropes  []*ropeTable // whose tables must cover a step's positions
	vocab  int          // rows of the embedding table: the bound of token ids
	logits view
	batch  *backend.Batch
}

// Run computes one step.
func (p *Program) Run(b *backend.Batch) (backend.Logits, error) {
	if err := p.check(b); err != nil {
		return backend.Logits{}, err
	}
	p.batch = b
	for _, t := range p.ropes {
		for _, s := range b.Seqs {
			t.cover(len(s.Cells) - 1)
		}
	}
	err := p.device.team.RunUntil(p.steps, b.Stop)
	p.batch = nil
	if errors.Is(err, team.ErrStopped) {
		return backend.Logits{}, fmt.Errorf("%w: %w", backend.ErrStopped, err)
	}
	if err != nil {
		return backend.Logits{}, fmt.Errorf("%w: %w", backend.ErrRun, err)
	}
	if p.params.Outputs == 0 {
		return backend.Logits{}, nil
	}
	return backend.Logits{Data: p.logits.data[:p.logits.n*p.logits.d], Vocab: p.logits.d}, nil
}

// check verifies that a batch fits the program, so that steps need not look.
func (p *Program) check(b *backend.Batch) error {
	n := p.params.Tokens
	if len(b.Tokens) != n || len(b.Positions) != n || len(b.Cells) != n || len(b.OutRows) != p.params.Outputs {
		return fmt.Errorf("%w: batch of %d tokens, %d positions, %d cells, %d outputs for a program of %d tokens, %d outputs",
			backend.ErrRun, len(b.Tokens), len(b.Positions), len(b.Cells), len(b.OutRows), n, p.params.Outputs)
	}
	for i, id := range b.Tokens {
		if id < 0 || int(id) >= p.vocab {
			return fmt.Errorf("%w: token id %d of row %d is outside the vocabulary of %d", backend.ErrRun, id, i, p.vocab)
		}
		if c := b.Cells[i]; c < 0 || int(c) >= p.kv.spec.Cells {
			return fmt.Errorf("%w: cell %d of row %d is outside the arena of %d", backend.ErrRun, c, i, p.kv.spec.Cells)
		}
	}
	for i, r := range b.OutRows {
		if r < 0 || int(r) >= n {
			return fmt.Errorf("%w: output %d asks for row %d of %d", backend.ErrRun, i, r, n)
		}
	}
	row := 0
	for i, s := range b.Seqs {
		if s.Row != row || s.Rows < 1 || s.Rows > n-row || len(s.Cells) < s.Rows || len(s.Cells) > p.kv.spec.Cells {
			return fmt.Errorf("%w: sequence %d has rows [%d, %d) and %d positions, expected rows from %d", backend.ErrRun, i, s.Row, s.Row+s.Rows, len(s.Cells), row)
		}
		for pos, c := range s.Cells {
			if c < 0 || int(c) >= p.kv.spec.Cells {
				return fmt.Errorf("%w: cell %d of position %d of sequence %d is outside the arena of %d", backend.ErrRun, c, pos, i, p.kv.spec.Cells)
			}
		}
		for r := range s.Rows {
			if pos := len(s.Cells) - s.Rows + r; int(b.Positions[row+r]) != pos || s.Cells[pos] != b.Cells[row+r] {
				return fmt.Errorf("%w: row %d has position %d in cell %d, its sequence says %d in cell %d", backend.ErrRun, row+r,
					b.Positions[row+r], b.Cells[row+r], pos, s.Cells[pos])
			}
		}
		row += s.Rows
	}
	if row != n {
		return fmt.Errorf("%w: sequences cover %d of %d rows", backend.ErrRun, row, n)
	}
	return nil
}

// A view is a matrix of n rows of d features in the pool, pitch apart.
type view struct {
	data        []float32
	d, n, pitch int
	buffer      int // index in the plan, to see who shares memory
	offset      int // of the view within it, in elements
}

// row is the features of token i.
func (v *view) row(i int) []float32 {
	at := i * v.pitch
	return v.data[at : at+v.d : at+v.d]
}

// A rowStep runs a chain of functions on each row: work in which a row depends on itself alone, so that a row can go
// through the whole chain without waiting for the others.
type rowStep struct {
	rows, per int // rows, and rows a task
	chain     []func(row int)
	touched   []view // memory that the chain reads and writes
}

func (s *rowStep) Tasks() int { return (s.rows + s.per - 1) / s.per }

func (s *rowStep) Do(_ *team.Worker, task int) {
	for r := task * s.per; r < min((task+1)*s.per, s.rows); r++ {
		for _, f := range s.chain {
			f(r)
		}
	}
}

// admits reports whether an op over the given views may join the chain: no view may share a buffer with one of the
// chain under another pitch or offset, for then one row's memory would be another row's, and rows run in any order.
func (s *rowStep) admits(rows int, views []view) bool {
	if s == nil || s.rows != rows {
		return false
	}
	for _, v := range views {
		for _, t := range s.touched {
			if v.buffer == t.buffer && (v.pitch != t.pitch || v.offset/v.pitch != t.offset/t.pitch) {
				return false
			}
		}
	}
	return true
}
