package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/backend/cpu"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/builtin"
	"github.com/minfer-go/minfer/sample"
)

// A recorder is the CPU backend that watches what the engine asks of it. It is usable only by name, while a test opens
// an engine with it.
type recorder struct{ cpu.Backend }

var recording struct {
	sync.Mutex
	on   bool
	last *recordedDevice
}

func init() { backend.Register(recorder{}) }

func (recorder) Name() string  { return "recorder" }
func (recorder) Priority() int { return 200 }
func (recorder) Usable() error {
	if recording.on {
		return nil
	}
	return errors.New("no test records")
}

func (r recorder) Open(o backend.Options) (backend.Device, error) {
	d, err := r.Backend.Open(o)
	recording.last = &recordedDevice{Device: d, tokens: map[int32]int32{}, rows: map[string]uint64{}}
	return recording.last, err
}

// A recordedDevice knows which token lies in which cell, and so, for every row whose logits were asked for, the tokens
// that led to it. One row may be computed many times; it must have the same bits each time.
type recordedDevice struct {
	backend.Device
	tokens   map[int32]int32   // cell → token
	rows     map[string]uint64 // history → hash of the logits' bits
	programs int
	steps    int
	loads    int
	most     int // sequences in a step
	bad      []string
}

func (d *recordedDevice) complain(format string, a ...any) {
	if len(d.bad) < 10 {
		d.bad = append(d.bad, fmt.Sprintf(format, a...))
	}
}

func (d *recordedDevice) Load(ctx context.Context, ws []graph.Weight, src backend.WeightSource) error {
	d.loads++
	return d.Device.Load(ctx, ws, src)
}

func (d *recordedDevice) Compile(g *graph.Graph, p *graph.Plan, kv backend.KV) (backend.Program, error) {
	d.programs++
	if r, ok := kv.(recordedKV); ok {
		kv = r.KV
	}
	program, err := d.Device.Compile(g, p, kv)
	return &recordedProgram{program, d, g.Params.Hidden}, err
}

func (d *recordedDevice) NewKV(s backend.KVSpec) (backend.KV, error) {
	kv, err := d.Device.NewKV(s)
	return recordedKV{kv, d}, err
}

// A recordedKV knows which tokens are copied.
type recordedKV struct {
	backend.KV
	d *recordedDevice
}

func (r recordedKV) Copy(moves []backend.CellCopy) error {
	for _, m := range moves {
		for i := range m.Len {
			r.d.tokens[int32(m.Dst+i)] = r.d.tokens[int32(m.Src+i)]
		}
	}
	return r.KV.Copy(moves)
}

type recordedProgram struct {
	backend.Program
	d      *recordedDevice
	hidden bool
}

func (p *recordedProgram) Run(b *backend.Batch) (backend.Logits, error) {
	d := p.d
	d.steps++
	d.most = max(d.most, len(b.Seqs))
	owner := map[int32]int{} // cells written in this step
	for i, s := range b.Seqs {
		for _, c := range s.Cells[len(s.Cells)-s.Rows:] {
			if _, twice := owner[c]; twice {
				d.complain("cell %d is written twice in a step", c)
			}
			owner[c] = i
		}
	}
	for i, s := range b.Seqs {
		for _, c := range s.Cells {
			if o, ok := owner[c]; ok && o != i {
				d.complain("cell %d is written for sequence %d and read by %d", c, o, i)
			}
		}
	}
	for i, c := range b.Cells {
		d.tokens[c] = b.Tokens[i]
	}
	logits, err := p.Program.Run(b)
	if err != nil || p.hidden {
		return logits, err
	}
	for k, row := range b.OutRows {
		for _, s := range b.Seqs {
			if int(row) >= s.Row && int(row) < s.Row+s.Rows {
				var history []int32
				for _, c := range s.Cells[:int(b.Positions[row])+1] {
					history = append(history, d.tokens[c])
				}
				d.saw(history, logits.Row(k))
			}
		}
	}
	return logits, nil
}

func (d *recordedDevice) saw(history []int32, logits []float32) {
	key, hash := keyOf(history), hashOf(logits)
	if before, ok := d.rows[key]; ok && before != hash {
		d.complain("the logits after %d tokens %v changed their bits", len(history), history)
	}
	d.rows[key] = hash
}

func keyOf(ids []int32) string {
	b := make([]byte, 0, 4*len(ids))
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return string(b)
}

func hashOf(x []float32) uint64 {
	h := fnv.New64a()
	var b [4]byte
	for _, v := range x {
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(v))
		_, _ = h.Write(b[:])
	}
	return h.Sum64()
}

// openRecorded opens an engine on a recorder.
func openRecorded(t testing.TB, f *gguf.File, o Options) (*Engine, *recordedDevice) {
	t.Helper()
	e, d, err := tryRecorded(f, o)
	if err != nil {
		t.Fatal(err)
	}
	return e, d
}

func tryRecorded(f *gguf.File, o Options) (*Engine, *recordedDevice, error) {
	recording.Lock()
	defer recording.Unlock()
	recording.on, recording.last = true, nil
	defer func() { recording.on = false }()
	o.Backends = []string{"recorder"}
	e, err := Open(context.Background(), f, o)
	return e, recording.last, err
}

// tiny is the built-in model.
func tiny(t testing.TB) *gguf.File {
	t.Helper()
	f, err := gguf.FromBytes("tiny", builtin.Tiny())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// open opens an engine that ends with the test.
func open(t testing.TB, f *gguf.File, o Options) *Engine {
	t.Helper()
	e, err := Open(context.Background(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mustClose(t, e) })
	return e
}

// mustClose closes an engine and waits no longer than it may take.
func mustClose(t testing.TB, e *Engine) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- e.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("close: %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the engine does not close")
	}
}

func greedy() sample.Config {
	c := sample.Neutral()
	c.Temperature = 0
	return c
}

// A result is all that a job gave.
type result struct {
	ids    []int32
	reason Reason
	stats  Stats
	err    error
}

// collect reads a job to its end.
func collect(j *Job) result {
	var r result
	for {
		t, ok := j.Next()
		if !ok {
			break
		}
		r.ids = append(r.ids, t.ID)
	}
	r.reason, r.stats, r.err = j.Result()
	return r
}

// mustRun submits a request and reads it to its end.
func mustRun(t testing.TB, e *Engine, r Request) result {
	t.Helper()
	j, err := e.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	got := collect(j)
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got
}

// within fails the test if f takes longer than a minute, which no step of these models does.
func within[T any](t testing.TB, what string, f func() T) T {
	t.Helper()
	done := make(chan T, 1)
	go func() { done <- f() }()
	select {
	case v := <-done:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("%s: still waiting after a minute", what)
		panic("unreachable")
	}
}

func mustIDs(t testing.TB, what string, have, want []int32) {
	t.Helper()
	if !slices.Equal(have, want) {
		t.Errorf("%s: %v\nwant %v", what, have, want)
	}
}
