package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exported is a decoder as it runs, fused, with the first layer's feed-forward on another backend.
func exported(t testing.TB, p Params) (*Graph, Exported) {
	d := small()
	d.bias, d.norms = true, true
	g := d.mustBuild(t, p)
	targets := []Target{fake{name: "cpu", fuses: AllRules}, fake{name: "cuda", fuses: AllRules}}
	for i := range g.Nodes {
		if strings.HasPrefix(g.Nodes[i].Name, "blk.0.ffn") {
			g.Nodes[i].Backend = 1
		}
	}
	Fuse(g, targets)
	mustCheck(t, g)
	return g, Export(g, "a \"model\" named\nθ", targets)
}

// The JSON has the published fields and no others, and they say what the graph is.
func TestExportJSON(t *testing.T) {
	g, e := exported(t, params(5, 2))
	var out bytes.Buffer
	if err := e.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var raw map[string]any
	if err := json.Unmarshal(out.Bytes(), &raw); err != nil {
		t.Fatal(err)
	}
	mustHave(t, raw, "format", "version", "model", "kind", "inputs", "outputs", "nodes")
	if raw["format"] != "minfer-graph" || raw["version"] != 1.0 || raw["model"] != "a \"model\" named\nθ" || raw["kind"] != "prefill" {
		t.Errorf("head %v %v %v %v", raw["format"], raw["version"], raw["model"], raw["kind"])
	}
	nodes := raw["nodes"].([]any)
	live := 0
	for i := range g.Nodes {
		if !g.Nodes[i].Dead {
			live++
		}
	}
	if len(nodes) != live {
		t.Fatalf("%d nodes, %d are live", len(nodes), live)
	}
	seen := map[int]bool{}
	backends := map[string]bool{}
	for _, n := range nodes {
		n := n.(map[string]any)
		mustHave(t, n, "id", "name", "op", "detail", "shape", "dtype", "backend", "src", "meta")
		id := int(n["id"].(float64))
		node := &g.Nodes[id]
		if node.Dead || n["name"] != node.Name || n["op"] != node.Op.Kind() || n["dtype"] != node.Out[0].Type.String() {
			t.Errorf("node %d is %v", id, n)
		}
		if have := fmt.Sprint(n["shape"]); have != fmt.Sprint(node.Out[0].Shape) {
			t.Errorf("node %d has shape %s, want %v", id, have, node.Out[0].Shape)
		}
		src := n["src"].([]any)
		if len(src) != len(node.In) {
			t.Errorf("node %d has sources %v, want %v", id, src, node.In)
		}
		for k, s := range src { // sources come before their reader, so that a page can draw in one go
			if from := int(s.(float64)); !seen[from] || from != node.In[k].Node {
				t.Errorf("node %d reads %d, which comes later or is not there", id, from)
			}
		}
		if _, ok := n["meta"].(map[string]any); !ok {
			t.Errorf("node %d has meta %v", id, n["meta"])
		}
		backends[n["backend"].(string)] = true
		seen[id] = true
	}
	if !backends["cpu"] || !backends["cuda"] || len(backends) != 2 {
		t.Errorf("backends %v", backends)
	}
	for _, v := range raw["outputs"].([]any) {
		if !seen[int(v.(float64))] {
			t.Errorf("output %v is no node", v)
		}
	}
	inputs := raw["inputs"].([]any)
	if len(inputs) != 4 {
		t.Errorf("inputs %v, want tokens, positions, cells and out_rows", inputs)
	}
	for _, v := range inputs {
		if g.Nodes[int(v.(float64))].Op.Kind() != "input" {
			t.Errorf("input %v is %s", v, g.Describe(int(v.(float64))))
		}
	}
	_, e = exported(t, params(1, 1))
	if e.Kind != "decode" {
		t.Errorf("one token is a %s", e.Kind)
	}
}

func mustHave(t testing.TB, m map[string]any, keys ...string) {
	t.Helper()
	var have []string
	for k := range m {
		have = append(have, k)
	}
	slices.Sort(have)
	slices.Sort(keys)
	if !slices.Equal(have, keys) {
		t.Fatalf("fields %v, want %v", have, keys)
	}
}

// Every op's fields are in meta: weights by name, absent ones left out, numbers as they are.
func TestExportMeta(t *testing.T) {
	for _, c := range legality {
		if c.err != "" {
			continue
		}
		g := &Graph{Nodes: []Node{{Name: "n", Op: c.op, Out: c.out, Backend: Unassigned}}}
		e := Export(g, "m", nil)
		var out bytes.Buffer
		if err := errors.Join(e.WriteJSON(&out), e.WriteDOT(&bytes.Buffer{})); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		text := out.String()
		for _, w := range WeightsOf(c.op) {
			if !strings.Contains(text, fmt.Sprintf("%q", w.Name)) {
				t.Errorf("%s: meta %v lacks weight %s", c.name, e.Nodes[0].Meta, w.Name)
			}
			if !strings.Contains(e.Nodes[0].Detail, w.Type.String()) {
				t.Errorf("%s: detail %q lacks the type of %s", c.name, e.Nodes[0].Detail, w.Name)
			}
		}
		if e.Nodes[0].Backend != "" {
			t.Errorf("%s: unassigned, yet on %q", c.name, e.Nodes[0].Backend)
		}
	}
	g, e := exported(t, params(5, 5))
	for _, n := range e.Nodes {
		switch op := g.Nodes[n.ID].Op.(type) {
		case MultiMatMul:
			if ws, ok := n.Meta["Ws"].([]string); !ok || len(ws) != op.N {
				t.Errorf("meta of products: %v", n.Meta)
			}
		case Attention:
			if n.Meta["Heads"] != 4 || n.Meta["KVHeads"] != 2 || n.Meta["HeadDim"] != 16 {
				t.Errorf("meta of attention: %v", n.Meta)
			}
		case RMSNorm:
			if n.Meta["Eps"] != float32(1e-6) {
				t.Errorf("meta of a norm: %v", n.Meta)
			}
		}
	}
}

// The DOT is a digraph of one statement a line: nodes with their label and colour, edges between nodes that are there.
func TestExportDOT(t *testing.T) {
	_, e := exported(t, params(5, 2))
	e.Nodes[1].Backend, e.Nodes[2].Backend, e.Nodes[3].Backend = "", "metal", "npu"
	var out bytes.Buffer
	if err := e.WriteDOT(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
	if !strings.HasPrefix(lines[0], "digraph \"") || !strings.HasSuffix(lines[0], "{") || lines[len(lines)-1] != "}" {
		t.Fatalf("first and last line %q, %q", lines[0], lines[len(lines)-1])
	}
	text := `"(?:[^"\\\n]|\\.)*"`
	node := regexp.MustCompile(`^  n(\d+) \[label=(` + text + `), fillcolor=(\w+), peripheries=([12])\];$`)
	edge := regexp.MustCompile(`^  n(\d+) -> n(\d+);$`)
	frame := regexp.MustCompile(`^  (rankdir=TB|node \[shape=box, style=filled, fontname=` + text + `\]);$`)
	declared, edges := map[string]bool{}, 0
	colour := map[string]string{}
	double := 0
	for _, line := range lines[1 : len(lines)-1] {
		if m := node.FindStringSubmatch(line); m != nil {
			declared[m[1]] = true
			colour[m[1]] = m[3]
			if m[4] == "2" {
				double++
			}
		} else if m := edge.FindStringSubmatch(line); m != nil {
			edges++
			if !declared[m[1]] || !declared[m[2]] {
				t.Errorf("%q joins a node that is not declared before", line)
			}
		} else if !frame.MatchString(line) {
			t.Errorf("malformed line %q", line)
		}
	}
	want := 0
	for _, n := range e.Nodes {
		want += len(n.Src)
		expect := map[string]string{"": "white", "cpu": "lightyellow", "cuda": "lightgreen", "metal": "lightblue", "npu": "lightgrey"}[n.Backend]
		if have := colour[fmt.Sprint(n.ID)]; have != expect {
			t.Errorf("node %d on %q is %s, want %s", n.ID, n.Backend, have, expect)
		}
	}
	if len(declared) != len(e.Nodes) || edges != want {
		t.Errorf("%d nodes and %d edges, want %d and %d", len(declared), edges, len(e.Nodes), want)
	}
	if double != 5 { // four inputs and the logits
		t.Errorf("%d nodes have a double border, want 5", double)
	}
	if dot, err := exec.LookPath("dot"); err == nil {
		cmd := exec.Command(dot, "-Tcanon")
		cmd.Stdin = &out
		if msg, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("Graphviz refuses it: %v: %s", err, msg)
		}
	}
}

// A failing writer's error comes back.
func TestExportWriteErrors(t *testing.T) {
	_, e := exported(t, params(2, 2))
	if err := e.WriteDOT(failing{}); !errors.Is(err, errFake) {
		t.Errorf("DOT: %v", err)
	}
	if err := e.WriteJSON(failing{}); !errors.Is(err, errFake) {
		t.Errorf("JSON: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFake }
