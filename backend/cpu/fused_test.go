package cpu

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/simd"
	"github.com/minfer-go/minfer/internal/testmodel"
	"github.com/minfer-go/minfer/model"
	"github.com/minfer-go/minfer/quant"
)

// A modelRig is a rig that holds a whole model.
type modelRig struct {
	*rig
	model model.Model
}

func newModelRig(t testing.TB, set *simd.Set, o backend.Options, c testmodel.Config, kv quant.Type, cells int) *modelRig {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	k := m.Config()
	r := newRig(t, set, o, backend.KVSpec{Layers: k.Layers, KVHeads: k.KVHeads, HeadDim: k.HeadDim, Cells: cells, Type: kv})
	for _, w := range m.Weights() {
		tensor, _ := f.Tensor(w.Name)
		r.weights[w.Name] = tensor.Data()
	}
	if err := r.d.Load(context.Background(), m.Weights(), r.weights); err != nil {
		t.Fatal(err)
	}
	return &modelRig{r, m}
}

// graph builds the graph of a step under the given rules.
func (r *modelRig) graph(n, outputs int, rules graph.Rules) *graph.Graph {
	r.t.Helper()
	p := r.params(n, outputs)
	p.Fuse = rules
	g, err := r.model.Build(p)
	if err != nil {
		r.t.Fatal(err)
	}
	return g
}

// story is three steps: a prompt of two sequences, a chunk of one with the last row asked for, and a token of each.
func (r *modelRig) story() []*backend.Batch {
	vocab := r.model.Config().Vocab
	id := func() int32 { return int32(r.rng.IntN(vocab)) }
	cell := func(i int) int32 { return int32((i*7 + 3) % r.spec.Cells) }
	next := 0
	lens := map[int]int{}
	cells := map[int][]int32{}
	step := func(rows map[int]int, all bool) *backend.Batch {
		b := &backend.Batch{}
		for s := range 2 {
			n := rows[s]
			if n == 0 {
				continue
			}
			first := len(b.Tokens)
			for range n {
				b.Tokens, b.Positions, b.Cells = append(b.Tokens, id()), append(b.Positions, int32(lens[s])), append(b.Cells, cell(next))
				cells[s] = append(cells[s], cell(next))
				next++
				lens[s]++
			}
			for i := range n {
				if all || i == n-1 {
					b.OutRows = append(b.OutRows, int32(first+i))
				}
			}
			b.Seqs = append(b.Seqs, backend.SeqRun{Row: first, Rows: n, Cells: append([]int32(nil), cells[s]...)})
		}
		return b
	}
	return []*backend.Batch{step(map[int]int{0: 11, 1: 5}, true), step(map[int]int{0: 13}, false), step(map[int]int{0: 1, 1: 1}, true)}
}

// tell runs a story under the given rules and returns all logits.
func (r *modelRig) tell(story []*backend.Batch, rules graph.Rules) []float32 {
	r.t.Helper()
	var all []float32
	for _, b := range story {
		g := r.graph(len(b.Tokens), len(b.OutRows), rules)
		l, err := r.program(g).Run(b)
		if err != nil {
			r.t.Fatal(err)
		}
		all = append(all, l.Data...)
	}
	return all
}

// fusedConfigs are models in which every rule has something to do: biases, head norms, and types of several forms mixed.
func fusedConfigs() []testmodel.Config {
	mixed := testmodel.Default("qwen2")
	mixed.Type = quant.Q4_K
	mixed.Types = map[string]quant.Type{
		"blk.0.attn_v.weight": quant.F16, "blk.1.attn_k.weight": quant.Q6_K, "blk.0.ffn_up.weight": quant.Q5_0, "blk.1.ffn_down.weight": quant.Q8_0,
	}
	apart := testmodel.Default("qwen3") // gate and up want their input in different forms, so that they do not fuse
	apart.Type = quant.Q8_0
	apart.Types = map[string]quant.Type{"blk.0.ffn_up.weight": quant.BF16, "blk.1.ffn_gate.weight": quant.F32, "blk.1.attn_q.weight": quant.F16}
	all := []testmodel.Config{mixed, apart}
	for _, arch := range []string{"qwen2", "qwen3", "llama"} {
		for _, typ := range []quant.Type{quant.F32, quant.Q4_0} {
			c := testmodel.Default(arch)
			c.Type, c.RopeFreqs = typ, arch == "llama"
			all = append(all, c)
		}
	}
	return all
}

// Under any set of rules a model gives the same bits.
func TestFusedEqualsUnfused(t *testing.T) {
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		for i, c := range fusedConfigs() {
			r := newModelRig(t, set, backend.Options{Threads: 2, F32Activations: i%3 == 2}, c, []quant.Type{quant.F32, quant.F16}[i%2], 131)
			story := r.story()
			plain := r.tell(story, 0)
			sets := []graph.Rules{graph.AllRules}
			for rule := graph.Rules(1); rule <= graph.AllRules && !testing.Short(); rule <<= 1 {
				sets = append(sets, rule, graph.AllRules&^rule)
			}
			for _, rules := range sets {
				fused := r.tell(story, rules)
				for k := range plain {
					if math.Float32bits(plain[k]) != math.Float32bits(fused[k]) {
						t.Fatalf("%s of %s: with rules %s logit %d is %g, without any %g", c.Arch, c.Type, rules, k, fused[k], plain[k])
					}
				}
			}
		}
	})
}

// Each rule fires in one of the models above, so that the test above says something of it.
func TestRulesFireInModels(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range fusedConfigs() {
		r := newModelRig(t, simd.Best(), backend.Options{Threads: 1}, c, quant.F32, 131)
		g := r.graph(9, 9, graph.AllRules)
		if err := graph.Assign(g, []graph.Target{Backend{}}); err != nil {
			t.Fatal(err)
		}
		for _, f := range graph.Fuse(g, []graph.Target{Backend{}}) {
			seen[f.Rule] = true
		}
	}
	for rule := graph.Rules(1); rule <= graph.AllRules; rule <<= 1 {
		if !seen[rule.String()] {
			t.Errorf("no model makes %s fire", rule)
		}
	}
}

// Whole models agree with the reference: every architecture, all rules on and off, on the path that does not quantize.
func TestModelsAgainstReference(t *testing.T) {
	if testing.Short() {
		t.Skip("the reference is slow")
	}
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		for _, c := range fusedConfigs() {
			for _, rules := range []graph.Rules{0, graph.AllRules} {
				r := newModelRig(t, set, backend.Options{Threads: 2, F32Activations: true}, c, quant.F32, 131)
				for i, b := range r.story() {
					g := r.graph(len(b.Tokens), len(b.OutRows), rules)
					have, want := r.run(g, b)
					mustBeClose(t, fmt.Sprintf("%s of %s, rules %s, step %d", c.Arch, c.Type, rules, i), have, want, 1e-5)
				}
			}
		}
	})
}

// A token's logits are the same bits whatever the number of workers and the rows beside it, in long sequences too, where
// attention has several chunks and more rows than are split among workers.
func TestRowsDoNotTouchEachOther(t *testing.T) {
	onEachSet(t, func(t *testing.T, set *simd.Set) {
		c := testmodel.Default("qwen3")
		c.Type, c.Layers, c.Context = quant.Q8_0, 1, 2048
		n, cells := 570, 701 // two chunks of positions
		if testing.Short() {
			n, cells = 70, 101
		}
		var want []float32
		for _, threads := range []int{1, 2, 3, 8} {
			r := newModelRig(t, set, backend.Options{Threads: threads}, c, quant.F16, cells)
			b := r.single(n)
			for i := range b.Cells {
				b.Tokens[i] = int32(i * 31 % c.Vocab)
			}
			b.OutRows = b.OutRows[n-20:]
			whole, err := r.program(r.graph(n, 20, graph.AllRules)).Run(b)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = append(want, whole.Data...)
			}
			mustEqual(t, fmt.Sprintf("%d threads, at once", threads), whole.Data, want)
			at := n - 20
			for _, rows := range []int{1, 7, 9, 3} { // the last twenty again, in steps
				step := &backend.Batch{
					Tokens: b.Tokens[at : at+rows], Positions: b.Positions[at : at+rows], Cells: b.Cells[at : at+rows],
					Seqs: []backend.SeqRun{{Rows: rows, Cells: b.Cells[:at+rows]}},
				}
				for i := range rows {
					step.OutRows = append(step.OutRows, int32(i))
				}
				l, err := r.program(r.graph(rows, rows, graph.AllRules)).Run(step)
				if err != nil {
					t.Fatal(err)
				}
				from := (at - (n - 20)) * l.Vocab
				mustEqual(t, fmt.Sprintf("%d threads, %d rows from %d", threads, rows, at), l.Data, want[from:from+len(l.Data)])
				at += rows
			}
		}
	})
}

func mustEqual(t testing.TB, what string, have, want []float32) {
	t.Helper()
	if len(have) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(have), len(want))
	}
	for i := range want {
		if math.Float32bits(have[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: number %d is %g, want %g to the bit", what, i, have[i], want[i])
		}
	}
}
