package minfer_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/model"
	"github.com/minfer-go/minfer/quant"
)

var update = flag.Bool("update", false, "write docs/support.md anew")

// supportTypes is one past the largest tensor type that the table looks at.
const supportTypes = 64

// docs/support.md says what the code says.
func TestSupportTable(t *testing.T) {
	backends, err := backend.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := supportTable(backends)
	path := filepath.Join("docs", "support.md")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is stale: go test -run SupportTable . -update writes it\n%s", path, firstDifference(string(have), want))
	}
}

func firstDifference(have, want string) string {
	h, w := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range min(len(h), len(w)) {
		if h[i] != w[i] {
			return fmt.Sprintf("line %d is %q, should be %q", i+1, h[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, should be %d", len(h), len(w))
}

// shapes of the weights that the table asks about: every block type fits them.
const supportIn, supportOut = 256, 32

// opsOf lists every op with a weight of the given type in all places that take a matrix, or in all that take a vector.
func opsOf(t quant.Type) (matrices, vectors []graph.Op) {
	m := graph.Weight{Name: "m", Type: t, In: supportIn, Out: supportOut}
	v := graph.Weight{Name: "v", Type: t, In: supportIn, Out: 1}
	matrices = []graph.Op{
		graph.Embed{W: m}, graph.MatMul{W: m}, graph.MultiMatMul{Ws: [4]graph.Weight{m, m}, N: 2}, graph.GateUp{Gate: m, Up: m},
	}
	vectors = []graph.Op{
		graph.RMSNorm{W: v},
		graph.HeadNorm{W: v},
		graph.Bias{W: v},
		graph.AddRMSNorm{W: v},
		graph.RoPE{Rope: graph.Rope{Factors: v}},
		graph.QKVStore{BiasQ: v, BiasK: v, BiasV: v, NormQ: v, NormK: v, Rope: graph.Rope{Factors: v}},
	}
	return matrices, vectors
}

// runs reports whether a backend runs an op.
func runs(b backend.Backend, op graph.Op) bool {
	return b.Supports(&graph.Graph{Nodes: []graph.Node{{Name: "n", Op: op}}}, 0) == nil
}

func mark(ok bool) string {
	if ok {
		return "yes"
	}
	return "–"
}

// table writes a Markdown table.
func table(b *strings.Builder, head []string, rows [][]string) {
	line := func(cells []string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	b.WriteString("\n")
}

func supportTable(backends []backend.Backend) string {
	var b strings.Builder
	b.WriteString("# What runs where\n\nWritten by a test from what the backends of this build say of themselves " +
		"(`go test -run SupportTable . -update`); the test fails when it is stale.\n\n")
	fmt.Fprintf(&b, "Architectures: %s.\n\n", strings.Join(model.Architectures(), ", "))
	var names, kv, rules []string
	for _, d := range backends {
		names = append(names, d.Name())
		var types []string
		for _, t := range d.KVTypes() {
			types = append(types, strings.ToLower(t.String()))
		}
		kv, rules = append(kv, strings.Join(types, ", ")), append(rules, strings.ReplaceAll(d.Fuses().String(), ",", ", "))
	}
	head := func(first string) []string { return append([]string{first}, names...) }
	table(&b, head("backend"), [][]string{append([]string{"KV cells, the default first"}, kv...), append([]string{"rewrite rules"}, rules...)})

	weighted := map[string]bool{}
	matrices, vectors := opsOf(quant.F32)
	for _, op := range append(matrices, vectors...) {
		weighted[op.Kind()] = true
	}
	b.WriteString("## Ops without weights\n\n")
	var rows [][]string
	for _, op := range graph.AllOps() {
		if _, leaf := op.(graph.Input); leaf || weighted[op.Kind()] {
			continue
		}
		row := []string{"`" + op.Kind() + "`"}
		for _, d := range backends {
			row = append(row, mark(runs(d, op)))
		}
		rows = append(rows, row)
	}
	table(&b, head("op"), rows)

	for _, part := range []struct {
		title string
		ops   func(t quant.Type) []graph.Op
	}{
		{"Types of matrices", func(t quant.Type) []graph.Op { m, _ := opsOf(t); return m }},
		{"Types of vectors (norms, biases, rotation factors)", func(t quant.Type) []graph.Op { _, v := opsOf(t); return v }},
	} {
		fmt.Fprintf(&b, "## %s\n\nTypes that no backend runs are left out.\n\n", part.title)
		for _, d := range backends {
			columns := []string{d.Name()}
			for _, op := range part.ops(quant.F32) {
				columns = append(columns, "`"+op.Kind()+"`")
			}
			var rows [][]string
			for t := range quant.Type(supportTypes) {
				row, any := []string{t.String()}, false
				for _, op := range part.ops(t) {
					ok := runs(d, op)
					any = any || ok
					row = append(row, mark(ok))
				}
				if any {
					rows = append(rows, row)
				}
			}
			table(&b, columns, rows)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// The table is of every op.
func TestSupportTableIsWhole(t *testing.T) {
	backends, err := backend.Select(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := supportTable(backends)
	for _, op := range graph.AllOps() {
		if op.Kind() != "input" && !strings.Contains(text, "`"+op.Kind()+"`") {
			t.Errorf("the table lacks %s", op.Kind())
		}
	}
}
