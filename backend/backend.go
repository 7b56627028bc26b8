// Package backend defines what a device must do to run compiled graphs, and the registry of devices by name.
//
// A Backend is a kind of device that this build knows; Open makes a Device, which owns weights, KV cells and activation
// memory. A Device compiles a planned graph into a Program once, and the Program runs once per step. Compiling resolves
// every buffer, weight and kernel choice; running takes none of these decisions and allocates nothing.
//
// Nothing falls back at run time: a node that a device cannot run is refused when the graph is assigned or compiled.
package backend

import (
	"context"
	"errors"
	"time"

	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/quant"
)

// Errors of choosing and running backends; the wrapped text names the backend and the reason.
var (
	ErrUnknown     = errors.New("unknown backend")                      // no such name
	ErrNotBuilt    = errors.New("backend not compiled into this build") // a known name that this build leaves out
	ErrUnusable    = errors.New("backend not available on this machine")
	ErrUnsupported = errors.New("not supported by this backend") // op, type or shape
	ErrStopped     = errors.New("step stopped")                  // by Batch.Stop
	ErrRun         = errors.New("step failed")                   // a program stopped; the device stays usable
)

// A Backend is a kind of device. Its graph.Target half is its capability record.
type Backend interface {
	graph.Target
	// Priority orders backends for assignment, the highest first. Priorities are fixed numbers: they decide topology.
	Priority() int
	// Usable reports why this machine cannot run the backend, nil if it can.
	Usable() error
	// KVTypes lists the element types of KV cells that its attention reads, the default first.
	KVTypes() []quant.Type
	// Open makes a device.
	Open(Options) (Device, error)
}

// Options configure a Device.
type Options struct {
	Threads        int  // worker threads of a CPU device; 0 for as many as suit the machine
	F32Activations bool // reference path: matrix products do not quantize their input
	Budget         int  // bytes that weights, cells and activations may take together; 0 for no limit
}

// A WeightSource gives the bytes of a model's tensors.
type WeightSource interface {
	// Weight returns the file's bytes of a tensor, row-major. They are read-only and valid until the source is closed.
	Weight(graph.Weight) ([]byte, error)
	// Done says that the device has its own copy and will not read the bytes again.
	Done(graph.Weight)
}

// KVSpec is the shape of the KV cells of a model: one K row and one V row per cell and layer.
type KVSpec struct {
	Layers  int
	KVHeads int
	HeadDim int
	Cells   int
	Type    quant.Type // one of the backend's KVTypes
}

// RowBytes is the size of the K or V row of one cell and layer, as KV's Read and Write move it.
func (s KVSpec) RowBytes() (int, error) { return s.Type.RowBytes(s.KVHeads * s.HeadDim) }

// KV is a device's KV memory. Its cells keep their content until they are written again; which cell holds what is
// package kv's business.
type KV interface {
	Spec() KVSpec
	// Bytes is the memory of all layers.
	Bytes() int
	// Read copies the K and V rows of one layer out of the given cells, in order: KVHeads·HeadDim elements of the spec's
	// type each, little-endian, or blocks as that type lays them out. Write is its exact inverse.
	Read(layer int, cells []int32, k, v []byte) error
	Write(layer int, cells []int32, k, v []byte) error
	// Copy copies whole cells of every layer, in order.
	Copy(moves []CellCopy) error
	// Rotate turns stored K rows by a change of position, in every layer.
	Rotate(turns []CellTurn, rope graph.Rope) error
}

// CellCopy is Len consecutive cells from Src copied to Dst.
type CellCopy struct{ Src, Dst, Len int }

// CellTurn is Len consecutive cells from Cell whose positions change by Delta.
type CellTurn struct{ Cell, Len, Delta int }

// A Device holds the state of one open backend. One goroutine at a time uses it.
type Device interface {
	// Info is a line for people: kernels and threads.
	Info() string
	// OpTimes is where the time of all runs so far went, the largest first; nil unless MINFER_OP_TIMING is set.
	OpTimes() []OpTime
	// Load takes the weights that graphs will name. It reads each tensor once and reports the first that it cannot keep.
	Load(ctx context.Context, weights []graph.Weight, src WeightSource) error
	// WeightBytes is what Load would keep of the weights, without reading them.
	WeightBytes(weights []graph.Weight) (int, error)
	// KVBytes is what NewKV would take.
	KVBytes(KVSpec) (int, error)
	NewKV(KVSpec) (KV, error)
	// ScratchBytes is the memory that a program of the graph would need beyond its plan.
	ScratchBytes(*graph.Graph, KVSpec) int
	// Stream reads all loaded matrices once and does nothing else with them: the most that a step can hope for.
	Stream() (bytes int, took time.Duration, err error)
	// Compile makes a program of an assigned, fused and planned graph whose nodes are all this device's.
	Compile(g *graph.Graph, plan *graph.Plan, kv KV) (Program, error)
	Close() error
}

// A Program is a compiled graph.
type Program interface {
	// Run computes one step. The result has one row of logits per entry of batch.OutRows, in order; it lies in the
	// device's memory and is valid until the next Run of any program of the device.
	Run(batch *Batch) (Logits, error)
}

// Logits are rows of vocabulary size, contiguous.
type Logits struct {
	Data  []float32
	Vocab int
}

// Row is the logits of output row i.
func (l Logits) Row(i int) []float32 { return l.Data[i*l.Vocab : (i+1)*l.Vocab] }

// A Batch is the data of one step: its rows, and which of them belong together. Lengths match the Params of the program
// that runs it.
type Batch struct {
	Tokens    []int32  // token id of each row
	Positions []int32  // position of each row in its sequence
	Cells     []int32  // KV cell that each row is stored to
	OutRows   []int32  // rows whose logits are wanted, ascending
	Seqs      []SeqRun // the rows, in order, by sequence
	// Stop, unless it is nil, is asked now and then while the step runs, from any goroutine. Where it reports true Run ends
	// early with ErrStopped; what the cells of the batch's rows hold is undefined then.
	Stop func() bool
}

// A SeqRun is the rows of one sequence in a batch: consecutive rows at consecutive positions.
type SeqRun struct {
	Row, Rows int
	// Cells is the cell of every position of the sequence up to that of its last row. The batch only reads it.
	Cells []int32
}

// An OpTime is the time of one kind of step.
type OpTime struct {
	Op    string // the kind of node, or of the nodes that run as one, joined by "+"
	Calls int
	Time  time.Duration
}
