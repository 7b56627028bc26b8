package graph

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// planOf builds a small graph on one backend and plans it.
func planOf(t testing.TB, p Params, build func(b *Builder, x Value)) (*Graph, *Plan) {
	t.Helper()
	b := NewBuilder(p)
	build(b, b.Node("x", Embed{matrix("e", 32, 5)}, b.Input(Tokens)))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	onBackend0(t, g)
	return g, NewPlan(g)
}

// Plans of small graphs, whole. Three tokens of 32 features are 384 bytes; the ids are 12 bytes in a buffer of 64.
func TestPlans(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(b *Builder, x Value)
		want  string
	}{
		{"a chain in place", func(b *Builder, x Value) {
			b.Output(b.Node("s", Silu{}, b.Node("n", RMSNorm{vector("w", 32), 1e-6}, x)))
		}, `
buffer 0: backend 0, offset 0, 64 bytes
buffer 1: backend 0, offset 64, 384 bytes
node 0.0: buffer 0, 12 bytes, alive 0-4
node 1.0: buffer 1, 384 bytes, alive 1-2
node 2.0: buffer 1, 384 bytes, alive 2-3, in place of 1.0
node 3.0: buffer 1, 384 bytes, alive 3-4, in place of 2.0
pool [448], live 396, peak 396
`},
		{"a residual outlives what it passes", func(b *Builder, x Value) {
			y := product(b, "a", b.Node("n", RMSNorm{vector("w", 32), 1e-6}, x), 32)
			b.Output(b.Node("sum", Add{}, x, y))
		}, `
buffer 0: backend 0, offset 0, 64 bytes
buffer 1: backend 0, offset 64, 384 bytes
buffer 2: backend 0, offset 448, 384 bytes
buffer 3: backend 0, offset 832, 384 bytes
node 0.0: buffer 0, 12 bytes, alive 0-5
node 1.0: buffer 1, 384 bytes, alive 1-4
node 2.0: buffer 2, 384 bytes, alive 2-3
node 3.0: buffer 3, 384 bytes, alive 3-4
node 4.0: buffer 1, 384 bytes, alive 4-5, in place of 1.0
pool [1216], live 396, peak 1164
`},
		{"buffers serve again", func(b *Builder, x Value) {
			y := product(b, "b", product(b, "a", x, 32), 32) // b takes x's buffer
			b.Output(product(b, "c", y, 32))                 // c takes a's
		}, `
buffer 0: backend 0, offset 0, 64 bytes
buffer 1: backend 0, offset 64, 384 bytes
buffer 2: backend 0, offset 448, 384 bytes
node 0.0: buffer 0, 12 bytes, alive 0-5
node 1.0: buffer 1, 384 bytes, alive 1-2
node 2.0: buffer 2, 384 bytes, alive 2-3
node 3.0: buffer 1, 384 bytes, alive 3-4
node 4.0: buffer 2, 384 bytes, alive 4-5
pool [832], live 396, peak 780
`},
		{"a much larger buffer does not serve a small value", func(b *Builder, x Value) {
			y := product(b, "small", product(b, "large", x, 96), 8) // 1152 bytes die at "small", which reads them
			b.Output(product(b, "out", b.Node("copy", Copy{}, y), 8))
		}, `
buffer 0: backend 0, offset 0, 64 bytes
buffer 1: backend 0, offset 64, 384 bytes
buffer 2: backend 0, offset 448, 1152 bytes
buffer 3: backend 0, offset 1600, 128 bytes
buffer 4: backend 0, offset 1728, 128 bytes
node 0.0: buffer 0, 12 bytes, alive 0-6
node 1.0: buffer 1, 384 bytes, alive 1-2
node 2.0: buffer 2, 1152 bytes, alive 2-3
node 3.0: buffer 3, 96 bytes, alive 3-4
node 4.0: buffer 4, 96 bytes, alive 4-5
node 5.0: buffer 3, 96 bytes, alive 5-6
pool [1856], live 108, peak 1548
`},
		{"views keep their root", func(b *Builder, x Value) {
			lo, hi := b.Node("lo", Slice{0, 0, 16}, x), b.Node("hi", Slice{0, 16, 32}, x)
			y := product(b, "a", lo, 16) // x must not go: hi is read later
			z := b.Node("m", Mul{}, y, hi)
			b.Output(b.Node("turn", Permute{[4]int{1, 0, 2, 3}}, z)) // an output through a view keeps z
		}, `
buffer 0: backend 0, offset 0, 64 bytes
buffer 1: backend 0, offset 64, 384 bytes
buffer 2: backend 0, offset 448, 192 bytes
node 0.0: buffer 0, 12 bytes, alive 0-7
node 1.0: buffer 1, 384 bytes, alive 1-5
node 4.0: buffer 2, 192 bytes, alive 4-5
node 5.0: buffer 2, 192 bytes, alive 5-7, in place of 4.0
pool [640], live 204, peak 588
`},
		{"an output is not worked on in place", func(b *Builder, x Value) {
			b.Output(x)
			b.Output(b.Node("s", Silu{}, x))
		}, `
buffer 0: backend 0, offset 0, 64 bytes
buffer 1: backend 0, offset 64, 384 bytes
buffer 2: backend 0, offset 448, 384 bytes
node 0.0: buffer 0, 12 bytes, alive 0-3
node 1.0: buffer 1, 384 bytes, alive 1-3
node 2.0: buffer 2, 384 bytes, alive 2-3
pool [832], live 780, peak 780
`},
		{"two outputs take two inputs", func(b *Builder, x Value) {
			y := product(b, "a", x, 32)
			s := b.Node("sum", Add{}, x, y)
			b.Output(s)
			b.Output(b.Node("n", RMSNorm{vector("w", 32), 1e-6}, s))
			b.g.Params.Fuse = RuleAddNorm
		}, `
buffer 0: backend 0, offset 0, 64 bytes
buffer 1: backend 0, offset 64, 384 bytes
buffer 2: backend 0, offset 448, 384 bytes
node 0.0: buffer 0, 12 bytes, alive 0-5
node 1.0: buffer 1, 384 bytes, alive 1-3
node 2.0: buffer 2, 384 bytes, alive 2-3
node 3.0: buffer 1, 384 bytes, alive 3-5, in place of 1.0
node 3.1: buffer 2, 384 bytes, alive 3-5, in place of 2.0
pool [832], live 780, peak 780
`},
		{"a handle has no place", func(b *Builder, x Value) {
			kv := b.Node("store", StoreKV{0}, x, x, b.Input(Cells))
			b.Output(b.Node("attn", Attention{0, 2, 2, 16, 1}, x, kv, b.Input(Positions)))
		}, `
buffer 0: backend 0, offset 0, 64 bytes
buffer 1: backend 0, offset 64, 384 bytes
buffer 2: backend 0, offset 448, 64 bytes
buffer 3: backend 0, offset 512, 64 bytes
buffer 4: backend 0, offset 576, 384 bytes
node 0.0: buffer 0, 12 bytes, alive 0-6
node 1.0: buffer 1, 384 bytes, alive 1-5
node 2.0: buffer 2, 12 bytes, alive 2-6
node 4.0: buffer 3, 12 bytes, alive 4-6
node 5.0: buffer 4, 384 bytes, alive 5-6
pool [960], live 420, peak 804
`},
	} {
		g, p := planOf(t, params(3, 3), c.build)
		if g.Params.Fuse == RuleAddNorm {
			Fuse(g, []Target{fake{name: "a", fuses: AllRules}})
			p = NewPlan(g)
		}
		if have := "\n" + p.String(); have != c.want {
			t.Errorf("%s:%s\nwant:%s", c.name, have, c.want)
		}
	}
}

// Each backend has a pool of its own, and buffers do not move between them.
func TestPlanOfTwoBackends(t *testing.T) {
	b := NewBuilder(params(3, 3))
	x := b.Node("x", Embed{matrix("e", 32, 5)}, b.Input(Tokens))
	y := product(b, "a", x, 32)
	b.Output(product(b, "c", b.Node("s", Silu{}, y), 32))
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	for i, at := range []int{0, 0, 0, 1, 1} {
		g.Nodes[i].Backend = at
	}
	want := `buffer 0: backend 0, offset 0, 64 bytes
buffer 1: backend 0, offset 64, 384 bytes
buffer 2: backend 0, offset 448, 384 bytes
buffer 3: backend 1, offset 0, 384 bytes
buffer 4: backend 1, offset 384, 384 bytes
node 0.0: buffer 0, 12 bytes, alive 0-5
node 1.0: buffer 1, 384 bytes, alive 1-2
node 2.0: buffer 2, 384 bytes, alive 2-3
node 3.0: buffer 3, 384 bytes, alive 3-4
node 4.0: buffer 4, 384 bytes, alive 4-5
pool [832 768], live 396, peak 780
`
	if have := NewPlan(g).String(); have != want {
		t.Errorf("%s\nwant\n%s", have, want)
	}
}

func TestPlace(t *testing.T) {
	var x, view, kv Value
	g, p := planOf(t, params(3, 3), func(b *Builder, e Value) {
		x = e
		view = b.Node("v", Slice{0, 4, 8}, x)
		kv = b.Node("store", StoreKV{0}, x, x, b.Input(Cells))
		b.Output(b.Node("attn", Attention{0, 2, 2, 16, 1}, x, kv, b.Input(Positions)))
		b.Output(view)
	})
	own, ok := p.Place(g, x)
	if !ok || own.Bytes != 384 {
		t.Errorf("x lies in %+v, %v", own, ok)
	}
	if of, ok := p.Place(g, view); !ok || of != own {
		t.Errorf("a view lies in %+v, its root in %+v", of, own)
	}
	if of, ok := p.Place(g, kv); ok || of.Offset != NoBuffer {
		t.Errorf("a handle lies in %+v", of)
	}
}

func TestSizeClass(t *testing.T) {
	for bytes, want := range map[int]int{0: 0, 1: 64, 64: 64, 65: 128, 512: 512, 513: 576, 1000: 1024, 1025: 1152, 1 << 20: 1 << 20, 1<<20 + 1: 1<<20 + 1<<17} {
		if have := SizeClass(bytes); have != want {
			t.Errorf("SizeClass(%d) = %d, want %d", bytes, have, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 1<<40).Draw(t, "bytes")
		c := SizeClass(n)
		if c < n || c%Alignment != 0 {
			t.Fatalf("SizeClass(%d) = %d", n, c)
		}
		if n > 8*Alignment && c-n > n/8 {
			t.Fatalf("SizeClass(%d) = %d wastes more than an eighth", n, c)
		}
		if SizeClass(c) != c || SizeClass(n+1) < c {
			t.Fatalf("SizeClass is not a class at %d", n)
		}
	})
}

func TestMemory(t *testing.T) {
	_, p := planOf(t, params(3, 3), func(b *Builder, x Value) { b.Output(product(b, "a", x, 32)) })
	pool := p.Pool[0]
	need := 1000 + 200 + pool
	m, err := p.Memory(0, 1000, 200, 0, 0)
	if err != nil || m.Total() != need || m.Pool != pool || m.Weights != 1000 || m.KV != 200 || m.Headroom != 0 || m.Live != p.Live || m.Peak != p.Peak {
		t.Errorf("without a budget: %+v, %v", m, err)
	}
	if m, err = p.Memory(0, 1000, 200, 0, need); err != nil || m.Headroom != 0 || m.Budget != need {
		t.Errorf("at the budget: %+v, %v", m, err)
	}
	if m, err = p.Memory(0, 1000, 200, 0, need+7); err != nil || m.Headroom != 7 {
		t.Errorf("below the budget: %+v, %v", m, err)
	}
	m, err = p.Memory(0, 1000, 200, 0, need-1)
	if !errors.Is(err, ErrBudget) || m.Headroom != -1 {
		t.Errorf("one byte over: %+v, %v", m, err)
	}
	for _, part := range []string{"1000", "200", "832"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not tell %s", err, part)
		}
	}
	if m, err = p.Memory(3, 1, 2, 0, 0); err != nil || m.Pool != 0 {
		t.Errorf("a backend without nodes: %+v, %v", m, err)
	}
	if p.Peak > math.MaxInt32 {
		t.Error("a small graph has a large peak")
	}
}
