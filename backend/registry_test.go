package backend

import (
	"errors"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/quant"
)

// A fake is a backend that a test registers.
type fake struct {
	name     string
	priority int
	broken   error
}

func (f fake) Name() string                   { return f.name }
func (f fake) Priority() int                  { return f.priority }
func (f fake) Usable() error                  { return f.broken }
func (fake) Supports(*graph.Graph, int) error { return nil }
func (fake) Fuses() graph.Rules               { return 0 }
func (fake) KVTypes() []quant.Type            { return []quant.Type{quant.F32} }
func (f fake) Open(Options) (Device, error)   { return nil, f.broken }
func cpu() fake                               { return fake{name: "cpu", priority: 100} }
func named(name string, priority int) fake    { return fake{name: name, priority: priority} }
func unusable(name string, why error) fake    { return fake{name, 300, why} }

// with makes the given backends the only registered ones until the test ends.
func with(t *testing.T, bs ...Backend) {
	t.Helper()
	mu.Lock()
	before := registered
	registered = map[string]Backend{}
	mu.Unlock()
	t.Cleanup(func() {
		mu.Lock()
		registered = before
		mu.Unlock()
	})
	for _, b := range bs {
		Register(b)
	}
}

func text(bs []Backend) string {
	var names []string
	for _, b := range bs {
		names = append(names, b.Name())
	}
	return strings.Join(names, " ")
}

var errNoDriver = errors.New("libcuda.so.1 is not there")

func TestSelect(t *testing.T) {
	gpu := named("cuda", 200)
	for _, c := range []struct {
		name       string
		registered []Backend
		fence      []string
		want       string
	}{
		{"no fence", []Backend{cpu(), gpu}, nil, "cuda cpu"},
		{"no fence, in any order", []Backend{gpu, cpu()}, nil, "cuda cpu"},
		{"one name", []Backend{cpu(), gpu, named("metal", 300)}, []string{"cuda"}, "cuda cpu"},
		{"cpu takes part always", []Backend{cpu(), gpu}, []string{"cpu"}, "cpu"},
		{"names in any case, with spaces", []Backend{cpu(), gpu, named("metal", 300)}, []string{" CUDA", "Metal "}, "metal cuda cpu"},
		{"a name twice", []Backend{cpu(), gpu}, []string{"cuda", "CUDA"}, "cuda cpu"},
		{"empty names", []Backend{cpu(), gpu}, []string{"cuda", "", " "}, "cuda cpu"},
		{"order comes from priorities, not from the fence", []Backend{cpu(), gpu, named("metal", 300)}, []string{"cpu", "cuda", "metal"}, "metal cuda cpu"},
		{"equal priorities go by name", []Backend{cpu(), named("b", 200), named("a", 200)}, nil, "a b cpu"},
		{"without a fence what cannot be used stays out", []Backend{cpu(), unusable("cuda", errNoDriver)}, nil, "cpu"},
		{"a broken backend that nobody named", []Backend{cpu(), gpu, unusable("metal", errNoDriver)}, []string{"cuda"}, "cuda cpu"},
		{"a backend of another build's name", []Backend{cpu(), named("npu", 150)}, []string{"npu"}, "npu cpu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			with(t, c.registered...)
			for range 10 { // no dependence on the order of a map
				have, err := Select(c.fence)
				if err != nil || text(have) != c.want {
					t.Fatalf("selected %q, %v; want %q", text(have), err, c.want)
				}
			}
		})
	}
}

// A name is refused in three different ways, and each says what to do about it.
func TestSelectRefusals(t *testing.T) {
	with(t, cpu(), unusable("cuda", errNoDriver))
	for _, c := range []struct {
		name  string
		fence []string
		want  error
		parts []string
	}{
		{"unknown", []string{"Vulkan"}, ErrUnknown, []string{"'Vulkan'", "cpu, metal, cuda"}},
		{"not in this build", []string{"metal"}, ErrNotBuilt, []string{"'metal'", "this build has: cpu, cuda"}},
		{"not usable here", []string{"cuda"}, ErrUnusable, []string{"'cuda'", errNoDriver.Error()}},
		{"the second name", []string{"cpu", "METAL"}, ErrNotBuilt, []string{"'metal'"}},
	} {
		have, err := Select(c.fence)
		if have != nil {
			t.Errorf("%s: selected %q", c.name, text(have))
		}
		var is []error // exactly one of the three
		for _, sentinel := range []error{ErrUnknown, ErrNotBuilt, ErrUnusable} {
			if errors.Is(err, sentinel) {
				is = append(is, sentinel)
			}
		}
		if len(is) != 1 || !errors.Is(is[0], c.want) {
			t.Errorf("%s: %v is %v, want %v alone", c.name, err, is, c.want)
		}
		for _, part := range c.parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v lacks %q", c.name, err, part)
			}
		}
	}
	if _, err := Select([]string{"cuda"}); !errors.Is(err, errNoDriver) {
		t.Errorf("%v does not wrap the reason", err)
	}
	with(t)
	if _, err := Select(nil); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("a build without backends: %v", err)
	}
	with(t, unusable("cpu", errNoDriver))
	if bs, err := Select(nil); err == nil {
		t.Errorf("nothing is usable, selected %q", text(bs))
	}
}

func TestRegisterTwicePanics(t *testing.T) {
	with(t, cpu())
	defer func() {
		if recover() == nil {
			t.Error("a second backend of one name was accepted")
		}
	}()
	Register(cpu())
}

func TestLogitsRow(t *testing.T) {
	l := Logits{Data: []float32{1, 2, 3, 4, 5, 6}, Vocab: 3}
	if r := l.Row(1); len(r) != 3 || r[0] != 4 || r[2] != 6 {
		t.Errorf("row 1 is %v", r)
	}
}
