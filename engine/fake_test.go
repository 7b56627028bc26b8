package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/backend/cpu"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/sample"
)

// A fake is a device without arithmetic: the logits of a row follow from the tokens that its sequence's cells hold, so
// that a cell that is wrong, shared wrongly or stale shows in the output. It is usable only by name, while a test opens an
// engine with it.
type fake struct{ cpu.Backend }

func init() { backend.Register(fake{}) }

func (fake) Name() string  { return "fake" }
func (fake) Priority() int { return 201 }
func (fake) Usable() error {
	if recording.on {
		return nil
	}
	return errors.New("no test runs on it")
}

func (fake) Open(backend.Options) (backend.Device, error) {
	faked = &fakeDevice{}
	return faked, nil
}

// faked is the device of the last engine that was opened with a fake; recording's lock guards it.
var faked *fakeDevice

type fakeDevice struct {
	vocab  int
	spec   backend.KVSpec
	cells  []fakeCell
	steps  int
	logits []float32
	step   func(b *backend.Batch) error // called before each step, on the loop; nil for none
	copied func()                       // called before cells are copied
	bad    []string
}

// A fakeCell is what a cell was last written with.
type fakeCell struct {
	token int32
	hash  uint64 // of all tokens up to this one
}

func (d *fakeDevice) complain(format string, a ...any) {
	if len(d.bad) < 10 {
		d.bad = append(d.bad, fmt.Sprintf(format, a...))
	}
}

func (*fakeDevice) Info() string                                                     { return "fake" }
func (*fakeDevice) OpTimes() []backend.OpTime                                        { return nil }
func (*fakeDevice) Load(context.Context, []graph.Weight, backend.WeightSource) error { return nil }
func (*fakeDevice) WeightBytes([]graph.Weight) (int, error)                          { return 0, nil }

func (*fakeDevice) KVBytes(s backend.KVSpec) (int, error)         { return 16 * s.Cells, nil }
func (*fakeDevice) ScratchBytes(*graph.Graph, backend.KVSpec) int { return 0 }
func (*fakeDevice) Stream() (int, time.Duration, error)           { return 0, 0, nil }
func (*fakeDevice) Close() error                                  { return nil }

func (d *fakeDevice) NewKV(s backend.KVSpec) (backend.KV, error) {
	d.spec, d.cells = s, make([]fakeCell, s.Cells)
	return fakeKV{d}, nil
}

func (d *fakeDevice) Compile(*graph.Graph, *graph.Plan, backend.KV) (backend.Program, error) {
	return fakeProgram{d}, nil
}

type fakeKV struct{ d *fakeDevice }

func (k fakeKV) Spec() backend.KVSpec { return k.d.spec }
func (k fakeKV) Bytes() int           { return 16 * len(k.d.cells) }

func (k fakeKV) Read(_ int, cells []int32, ks, vs []byte) error {
	row := len(ks) / max(1, len(cells))
	for i, c := range cells {
		binary.LittleEndian.PutUint32(ks[i*row:], uint32(k.d.cells[c].token))
		binary.LittleEndian.PutUint64(vs[i*row:], k.d.cells[c].hash)
	}
	return nil
}

func (k fakeKV) Write(_ int, cells []int32, ks, vs []byte) error {
	row := len(ks) / max(1, len(cells))
	for i, c := range cells {
		k.d.cells[c] = fakeCell{int32(binary.LittleEndian.Uint32(ks[i*row:])), binary.LittleEndian.Uint64(vs[i*row:])}
	}
	return nil
}

func (k fakeKV) Copy(moves []backend.CellCopy) error {
	if k.d.copied != nil {
		k.d.copied()
	}
	for _, m := range moves {
		copy(k.d.cells[m.Dst:m.Dst+m.Len], k.d.cells[m.Src:m.Src+m.Len])
	}
	return nil
}

func (k fakeKV) Rotate([]backend.CellTurn, graph.Rope) error {
	return errors.New("a fake cannot rotate")
}

type fakeProgram struct{ d *fakeDevice }

func (p fakeProgram) Run(b *backend.Batch) (backend.Logits, error) {
	d := p.d
	if d.step != nil {
		if err := d.step(b); err != nil {
			return backend.Logits{}, err
		}
	}
	d.steps++
	writes := map[int32]bool{}
	for _, c := range b.Cells {
		if writes[c] {
			d.complain("cell %d is written twice in a step", c)
		}
		writes[c] = true
	}
	rows := make([]uint64, len(b.Tokens))
	for _, s := range b.Seqs {
		old := len(s.Cells) - s.Rows
		hash := uint64(0)
		for i, c := range s.Cells[:old] {
			if writes[c] {
				d.complain("cell %d is written and read in a step", c)
			}
			if hash = mix(hash, d.cells[c].token); hash != d.cells[c].hash {
				d.complain("position %d of a sequence has the cell %d of another", i, c)
			}
		}
		for i := range s.Rows {
			row := s.Row + i
			if int(b.Positions[row]) != old+i || b.Cells[row] != s.Cells[old+i] {
				d.complain("row %d has position %d and cell %d", row, b.Positions[row], b.Cells[row])
			}
			hash = mix(hash, b.Tokens[row])
			d.cells[b.Cells[row]] = fakeCell{b.Tokens[row], hash}
			rows[row] = hash
		}
	}
	n := len(b.OutRows) * d.vocab
	d.logits = slices.Grow(d.logits[:0], n)[:n]
	for i, row := range b.OutRows {
		fakeLogits(d.logits[i*d.vocab:(i+1)*d.vocab], rows[row])
	}
	return backend.Logits{Data: d.logits, Vocab: d.vocab}, nil
}

// mix continues the hash of a list of tokens by one (splitmix64).
func mix(hash uint64, token int32) uint64 {
	z := hash + uint64(uint32(token))*0x9e3779b97f4a7c15 + 0x2545f4914f6cdd1d
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fakeLogits are those after tokens of a hash: a few ids are likely.
func fakeLogits(row []float32, hash uint64) {
	for i := range row {
		row[i] = -4
	}
	for i := range 8 {
		hash = mix(hash, int32(i))
		row[hash%uint64(len(row))] = 4 + float32(i)/8
	}
}

// fakeReply is what a request gets from a fake, worked out without an engine.
func fakeReply(t testing.TB, r Request, vocab, context int) []int32 {
	t.Helper()
	sampler, err := sample.New(r.Sampling, vocab)
	if err != nil {
		t.Fatal(err)
	}
	hash := uint64(0)
	for _, id := range r.Prompt {
		sampler.Accept(id)
		hash = mix(hash, id)
	}
	logits := make([]float32, vocab)
	var ids []int32
	for n := len(r.Prompt); len(ids) != r.MaxTokens && n <= context; n++ {
		fakeLogits(logits, hash)
		id, err := sampler.Sample(logits, nil)
		if err != nil {
			t.Fatal(err)
		}
		sampler.Accept(id)
		hash = mix(hash, id)
		ids = append(ids, id)
	}
	return ids
}

// openFake opens an engine on a fake that ends with the test.
func openFake(t testing.TB, o Options) (*Engine, *fakeDevice) {
	t.Helper()
	recording.Lock()
	defer recording.Unlock()
	recording.on = true
	defer func() { recording.on = false }()
	o.Backends = []string{"fake"}
	e, err := Open(context.Background(), tiny(t), o)
	if err != nil {
		t.Fatal(err)
	}
	d := faked
	d.vocab = e.Model().Config().Vocab
	t.Cleanup(func() {
		mustClose(t, e)
		for _, what := range d.bad {
			t.Error(what)
		}
	})
	return e, d
}
