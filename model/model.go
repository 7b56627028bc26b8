// Package model turns a GGUF file of a known architecture into compute graphs.
//
// An architecture is one small file: its weights as a struct whose tags carry the tensor names and shapes, and a Build
// that reads like the paper. It registers under the name that files carry in general.architecture.
package model

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
)

// Errors of loading a model; the wrapped text names file, key or tensor, and value.
var (
	ErrArchitecture = errors.New("unsupported architecture")
	ErrConfig       = errors.New("bad hyper-parameter")
	ErrTensors      = errors.New("tensors do not fit the architecture")
)

// A Model is a bound file: hyper-parameters, weights by name, and the graph of a step. It holds no tensor data and is
// safe for concurrent use.
type Model interface {
	// Config is the hyper-parameters. The caller must not change them.
	Config() *Config
	// Weights lists every tensor that the model's graphs can name, each once.
	Weights() []graph.Weight
	// Build makes the graph of a step: a pure function of the Params.
	Build(graph.Params) (*graph.Graph, error)
}

// Config holds the hyper-parameters that dense decoders share.
type Config struct {
	Arch    string // general.architecture
	Name    string // general.name, may be empty
	Vocab   int    // rows of the embedding table
	Context int    // trained context length
	Layers  int
	Width   int // features of the residual stream
	Heads   int // query heads
	KVHeads int
	HeadDim int
	FFN     int // features inside the feed-forward
	Eps     float32
	Rope    graph.Rope
}

// An Architecture binds files that carry its name.
type Architecture struct {
	Name string
	Bind func(f *gguf.File) (Model, error)
}

var architectures = map[string]Architecture{}

// Register adds an architecture; its file calls it when the package is initialised.
func Register(a Architecture) {
	if _, twice := architectures[a.Name]; twice {
		panic("model: architecture " + a.Name + " registered twice")
	}
	architectures[a.Name] = a
}

// Architectures lists the registered names in order.
func Architectures() []string {
	var names []string
	for name := range architectures {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Load binds a file to the architecture it names. The names are case-sensitive; an unknown one is refused.
func Load(f *gguf.File) (Model, error) {
	name, err := f.String("general.architecture")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArchitecture, err)
	}
	a, ok := architectures[name]
	if !ok {
		return nil, fmt.Errorf("%w: %s: '%s'; supported: %s", ErrArchitecture, f.Name(), name, strings.Join(Architectures(), ", "))
	}
	return a.Bind(f)
}
