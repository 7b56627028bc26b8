package graph

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Exported is the JSON form of a graph, as the visualiser and trace files hold it.
type Exported struct {
	Format  string         `json:"format"`  // "minfer-graph"
	Version int            `json:"version"` // 1
	Model   string         `json:"model"`
	Kind    string         `json:"kind"` // "prefill" or "decode"
	Inputs  []int          `json:"inputs"`
	Outputs []int          `json:"outputs"`
	Nodes   []ExportedNode `json:"nodes"`
}

// ExportedNode is one live node.
type ExportedNode struct {
	ID      int            `json:"id"`
	Name    string         `json:"name"`
	Op      string         `json:"op"`
	Detail  string         `json:"detail"`
	Shape   [4]int         `json:"shape"` // of the first output
	DType   string         `json:"dtype"`
	Backend string         `json:"backend"`
	Src     []int          `json:"src"`
	Meta    map[string]any `json:"meta"` // the op's fields
}

// Export describes a graph as it runs: assigned and fused, without the nodes that passes replaced.
func Export(g *Graph, model string, targets []Target) Exported {
	e := Exported{Format: "minfer-graph", Version: 1, Model: model, Kind: g.Params.Phase.String(), Inputs: []int{}, Outputs: []int{}}
	for _, v := range g.Outputs {
		e.Outputs = append(e.Outputs, v.Node)
	}
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Dead {
			continue
		}
		if _, leaf := n.Op.(Input); leaf {
			e.Inputs = append(e.Inputs, i)
		}
		node := ExportedNode{
			ID: i, Name: n.Name, Op: n.Op.Kind(), Detail: detail(n.Op), Shape: n.Out[0].Shape, DType: n.Out[0].Type.String(),
			Src: []int{}, Meta: fields(n.Op),
		}
		if n.Backend >= 0 && n.Backend < len(targets) {
			node.Backend = targets[n.Backend].Name()
		}
		for _, v := range n.In {
			node.Src = append(node.Src, v.Node)
		}
		e.Nodes = append(e.Nodes, node)
	}
	return e
}

// WriteJSON writes the JSON form, indented.
func (e Exported) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(e)
}

// fill is the colour of a backend's nodes in DOT.
var fill = map[string]string{"cpu": "lightyellow", "cuda": "lightgreen", "metal": "lightblue", "": "white"}

// WriteDOT writes a Graphviz digraph: nodes coloured by backend, inputs and outputs with a double border.
func (e Exported) WriteDOT(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %q {\n  rankdir=TB;\n  node [shape=box, style=filled, fontname=\"monospace\"];\n", e.Model+" "+e.Kind)
	border := map[int]bool{}
	for _, i := range append(append([]int{}, e.Inputs...), e.Outputs...) {
		border[i] = true
	}
	for _, n := range e.Nodes {
		label := fmt.Sprintf("%s\n%s %s\n%s%v", n.Name, n.Op, n.Detail, n.DType, dims(n.Shape))
		peripheries := 1
		if border[n.ID] {
			peripheries = 2
		}
		colour, ok := fill[n.Backend]
		if !ok {
			colour = "lightgrey"
		}
		fmt.Fprintf(&b, "  n%d [label=%q, fillcolor=%s, peripheries=%d];\n", n.ID, label, colour, peripheries)
		for _, src := range n.Src {
			fmt.Fprintf(&b, "  n%d -> n%d;\n", src, n.ID)
		}
	}
	b.WriteString("}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// detail is a short text of what distinguishes a node: its weights' types.
func detail(op Op) string {
	var parts []string
	for _, w := range WeightsOf(op) {
		parts = append(parts, w.Type.String())
	}
	return strings.Join(parts, "+")
}

// fields lists an op's exported fields by name; absent weights are left out.
func fields(op Op) map[string]any {
	m := map[string]any{}
	v := reflect.ValueOf(op)
	for i := range v.NumField() {
		f := v.Field(i).Interface()
		if w, ok := f.(Weight); ok {
			if w.Present() {
				m[v.Type().Field(i).Name] = w.Name
			}
			continue
		}
		if op, ok := op.(MultiMatMul); ok && v.Type().Field(i).Name == "Ws" {
			var names []string
			for _, w := range op.Ws[:op.N] {
				names = append(names, w.Name)
			}
			f = names
		}
		m[v.Type().Field(i).Name] = f
	}
	return m
}
