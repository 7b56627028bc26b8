package graph

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
)

// A Target is what passes need to know of a backend.
type Target interface {
	// Name is the backend's registered name.
	Name() string
	// Supports reports why the backend cannot run a node; nil means that it can.
	Supports(g *Graph, node int) error
	// Fuses is the set of rewrite rules whose result the backend runs.
	Fuses() Rules
}

// The costs that Assign weighs: a node on a backend one rank below the best counts rankCost, a change of backend
// between consecutive nodes counts crossCost. A crossing costs a copy and a wait, about what several small nodes cost.
const (
	rankCost  = 1
	crossCost = 4
)

// Assign chooses a target for every live node: the choice over the whole order of nodes with the lowest sum of rank and
// crossing costs, ties going to the target listed first. Targets are in priority order. A layer's StoreKV and Attention
// stay together, since its cells live on one device; views follow their input. A node that no target runs is an error
// that says why each refused.
func Assign(g *Graph, targets []Target) error {
	if len(targets) == 0 {
		return fmt.Errorf("%w: no backend participates", ErrAssign)
	}
	kvHome, err := placeLayers(g, targets)
	if err != nil {
		return err
	}
	const never = math.MaxInt / 4
	cost := make([]int, len(targets))        // cheapest way to have the nodes so far end on target t
	choice := make([][]int, 0, len(g.Nodes)) // choice[k][t]: target of the node before, given t for node k
	order := make([]int, 0, len(g.Nodes))    // the nodes that take part
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Dead || isView(n.Op) {
			continue
		}
		next := make([]int, len(targets))
		from := make([]int, len(targets))
		var refusals []error
		for t, target := range targets {
			own := rankCost * t
			if _, leaf := n.Op.(Input); leaf {
				own = 0
			} else if why := target.Supports(g, i); why != nil {
				refusals = append(refusals, fmt.Errorf("%s: %w", target.Name(), why))
				own = never
			} else if layer, ok := kvLayer(n.Op); ok && kvHome[layer] != t {
				own = never
			}
			best := t
			for p := range targets {
				if step(cost, p, t) < step(cost, best, t) {
					best = p
				}
			}
			from[t] = best
			next[t] = min(never, step(cost, best, t)+own)
		}
		if len(refusals) == len(targets) {
			return fmt.Errorf("%w: %s: %w", ErrAssign, g.Describe(i), errors.Join(refusals...))
		}
		cost, choice, order = next, append(choice, from), append(order, i)
	}
	at := 0
	for t := range cost {
		if cost[t] < cost[at] {
			at = t
		}
	}
	for k := len(order) - 1; k >= 0; k-- {
		g.Nodes[order[k]].Backend = at
		at = choice[k][at]
	}
	for i := range g.Nodes {
		if n := &g.Nodes[i]; !n.Dead && isView(n.Op) {
			n.Backend = g.Nodes[g.Root(n.In[0]).Node].Backend
		}
	}
	return nil
}

// step is the cost of having been on target p and going on on target t.
func step(cost []int, p, t int) int {
	if p == t {
		return cost[p]
	}
	return cost[p] + crossCost
}

// kvLayer is the layer whose cells an op touches.
func kvLayer(op Op) (layer int, ok bool) {
	switch o := op.(type) {
	case StoreKV:
		return o.Layer, true
	case Attention:
		return o.Layer, true
	case QKVStore:
		return o.Layer, true
	}
	return 0, false
}

// placeLayers gives each layer's cells to the first target that runs all nodes that touch them.
func placeLayers(g *Graph, targets []Target) (map[int]int, error) {
	able := map[int][]error{} // layer → per target, the first refusal
	for i := range g.Nodes {
		layer, ok := kvLayer(g.Nodes[i].Op)
		if !ok || g.Nodes[i].Dead {
			continue
		}
		if able[layer] == nil {
			able[layer] = make([]error, len(targets))
		}
		for t, target := range targets {
			if able[layer][t] == nil {
				if why := target.Supports(g, i); why != nil {
					able[layer][t] = fmt.Errorf("%s: %s: %w", target.Name(), g.Describe(i), why)
				}
			}
		}
	}
	home := map[int]int{}
	for _, layer := range slices.Sorted(maps.Keys(able)) {
		why := able[layer]
		home[layer] = -1
		for t := range targets {
			if why[t] == nil {
				home[layer] = t
				break
			}
		}
		if home[layer] < 0 {
			return nil, fmt.Errorf("%w: the KV cells of layer %d: %w", ErrAssign, layer, errors.Join(why...))
		}
	}
	return home, nil
}

// A Split is a run of consecutive nodes on one backend.
type Split struct {
	Backend  int
	From, To int     // node range [From, To)
	In       []Value // values of other splits that its nodes read, in first-use order
}

// Splits cuts an assigned graph at every change of backend. Dead nodes and views cut nothing.
func Splits(g *Graph) []Split {
	var splits []Split
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if n.Dead || isView(n.Op) {
			continue
		}
		if k := len(splits); k == 0 || splits[k-1].Backend != n.Backend {
			splits = append(splits, Split{Backend: n.Backend, From: i})
		}
		s := &splits[len(splits)-1]
		s.To = i + 1
		for _, v := range n.In {
			if v = g.Root(v); v.Node < s.From && !contains(s.In, v) {
				s.In = append(s.In, v)
			}
		}
	}
	return splits
}

func contains(vs []Value, v Value) bool {
	for _, have := range vs {
		if have == v {
			return true
		}
	}
	return false
}
