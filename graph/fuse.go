package graph

import "os"

// Rules is a set of rewrite rules.
type Rules uint32

// The rewrite rules, in the order in which Fuse tries them.
const (
	RuleSwiGLU   Rules = 1 << iota // Mul(Silu(gate), up) → SwiGLU
	RuleFFN                        // SwiGLU of two products of one input → GateUp
	RuleRope                       // biases, RoPE of Q and K and the KV store → QKVStore
	RuleNormRope                   // the same with per-head norms of Q and K (qwen3)
	RuleQKV                        // products of one input → MultiMatMul
	RuleAddNorm                    // residual Add and the RMSNorm of its sum → AddRMSNorm
	allRules     = 1<<iota - 1
)

// AllRules is the set of every rule.
const AllRules Rules = allRules

// A rule's name in reports, its off switch, and the rewrite: apply tries to fire at node i and reports whether it did.
type rule struct {
	bit   Rules
	name  string
	env   string
	apply func(f *fuser, i int) bool
}

var rules = []rule{
	{RuleSwiGLU, "swiglu", "MINFER_NO_FUSE_SWIGLU", fuseSwiGLU},
	{RuleFFN, "ffn", "MINFER_NO_FUSE_FFN", fuseFFN},
	{RuleRope, "rope", "MINFER_NO_FUSE_ROPE", func(f *fuser, i int) bool { return fuseStore(f, i, false) }},
	{RuleNormRope, "norm_rope", "MINFER_NO_FUSE_NORM_ROPE", func(f *fuser, i int) bool { return fuseStore(f, i, true) }},
	{RuleQKV, "qkv", "MINFER_NO_FUSE_QKV", fuseQKV},
	{RuleAddNorm, "add_norm", "MINFER_NO_FUSE_ADD_NORM", fuseAddNorm},
}

// RulesFromEnv is every rule but those that a MINFER_NO_FUSE_* variable switches off.
func RulesFromEnv() Rules {
	on := AllRules
	for _, r := range rules {
		if os.Getenv(r.env) != "" {
			on &^= r.bit
		}
	}
	return on
}

// String lists the names of the set.
func (s Rules) String() string {
	names := ""
	for _, r := range rules {
		if s&r.bit != 0 {
			if names != "" {
				names += ","
			}
			names += r.name
		}
	}
	return names
}

// A Firing says that a rule rewrote the node at which it ended.
type Firing struct {
	Rule string
	Node int // the fused node
}

// Fuse rewrites an assigned graph by the rules in g.Params.Fuse that the backend of every node involved says it runs,
// where it runs the very node that comes out, and reports what fired where. Replaced nodes stay, marked Dead, so that values keep their numbers. Within one backend
// a fused graph computes the same bits as the unfused one.
func Fuse(g *Graph, targets []Target) []Firing {
	f := &fuser{g: g, targets: targets}
	f.count()
	var fired []Firing
	for _, r := range rules {
		if g.Params.Fuse&r.bit == 0 {
			continue
		}
		for i := range g.Nodes {
			if n := &g.Nodes[i]; n.Dead || n.Backend < 0 || targets[n.Backend].Fuses()&r.bit == 0 {
				continue
			}
			if r.apply(f, i) {
				fired = append(fired, Firing{r.name, f.last})
				f.count()
			}
		}
	}
	return fired
}

// A fuser holds a graph under rewriting and how often each node's first output is read.
type fuser struct {
	g       *Graph
	targets []Target
	uses    []int // reads of any output of a node by live nodes or as a graph output
	last    int   // node that the latest rewrite made
}

func (f *fuser) count() {
	f.uses = make([]int, len(f.g.Nodes))
	for i := range f.g.Nodes {
		if f.g.Nodes[i].Dead {
			continue
		}
		for _, v := range f.g.Nodes[i].In {
			f.uses[v.Node]++
		}
	}
	for _, v := range f.g.Outputs {
		f.uses[v.Node]++
	}
}

// inner returns the node that makes v if only its reader needs it and it runs on backend b: it may vanish into a fused node.
func (f *fuser) inner(v Value, b int) (*Node, bool) {
	n := &f.g.Nodes[v.Node]
	return n, f.uses[v.Node] == 1 && n.Backend == b && !n.Dead
}

// replace turns node i into op over in; dead nodes vanish. Its outputs come from the legality table. It reports whether
// the backend runs the fused node; otherwise nothing changes.
func (f *fuser) replace(i int, op Op, in []Value, dead ...int) bool {
	n := &f.g.Nodes[i]
	tensors := make([]Tensor, len(in))
	for k, v := range in {
		tensors[k] = f.g.Tensor(v)
	}
	out, err := infer(op, tensors)
	if err != nil {
		panic("graph: a rewrite rule made an illegal node: " + err.Error()) // a rule's own mistake; Check in tests finds it
	}
	before := *n
	n.Op, n.In, n.Out = op, in, out
	if f.targets[n.Backend].Supports(f.g, i) != nil {
		*n = before
		return false
	}
	for _, d := range dead {
		f.g.Nodes[d].Dead = true
	}
	f.last = i
	return true
}

// rewire makes every reader of from read to instead.
func (f *fuser) rewire(from, to Value) {
	for i := range f.g.Nodes {
		for k, v := range f.g.Nodes[i].In {
			if v == from {
				f.g.Nodes[i].In[k] = to
			}
		}
	}
	for k, v := range f.g.Outputs {
		if v == from {
			f.g.Outputs[k] = to
		}
	}
}

// readBefore reports whether a live node before position i reads v.
func (f *fuser) readBefore(v Value, i int) bool {
	for k := v.Node + 1; k < i; k++ {
		if !f.g.Nodes[k].Dead && contains(f.g.Nodes[k].In, v) {
			return true
		}
	}
	return contains(f.g.Outputs, v)
}
