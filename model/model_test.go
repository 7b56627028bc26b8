package model_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/internal/testmodel"
	"github.com/minfer-go/minfer/model"
	"github.com/minfer-go/minfer/quant"
)

var archs = []string{"llama", "qwen2", "qwen3"}

func load(t testing.TB, c testmodel.Config) (model.Model, error) {
	t.Helper()
	f, err := c.File()
	if err != nil {
		t.Fatal(err)
	}
	return model.Load(f)
}

func mustLoad(t testing.TB, c testmodel.Config) model.Model {
	t.Helper()
	m, err := load(t, c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mustRefuse checks that an error wraps want and names all parts.
func mustRefuse(t testing.TB, what string, err, want error, parts ...string) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %q lacks %q", what, err, part)
		}
	}
}

func u32(n int) gguf.Value { return gguf.ValueOf(uint32(n)) }

func TestArchitectures(t *testing.T) {
	if have := model.Architectures(); !slices.Equal(have, archs) {
		t.Errorf("architectures %v, want %v", have, archs)
	}
	c := testmodel.Default("qwen2")
	c.Arch, c.Prefix = "mamba", "qwen2"
	_, err := load(t, c)
	mustRefuse(t, "an unknown architecture", err, model.ErrArchitecture, "testmodel.gguf", "'mamba'", "llama, qwen2, qwen3")
	c.Arch = "QWEN2"
	_, err = load(t, c)
	mustRefuse(t, "an architecture in capitals", err, model.ErrArchitecture, "'QWEN2'")
	c = testmodel.Default("qwen2")
	c.DropKeys = []string{"general.architecture"}
	_, err = load(t, c)
	mustRefuse(t, "no architecture", err, model.ErrArchitecture, "general.architecture")
	if !errors.Is(err, gguf.ErrMissingKey) {
		t.Errorf("no architecture: %v does not wrap the missing key", err)
	}
	c.DropKeys, c.Keys = nil, map[string]gguf.Value{"general.architecture": u32(7)}
	_, err = load(t, c)
	mustRefuse(t, "an architecture that is a number", err, model.ErrArchitecture, "general.architecture")
	defer func() {
		if recover() == nil {
			t.Error("an architecture was registered twice")
		}
	}()
	model.Register(model.Architecture{Name: "llama"})
}

func TestConfig(t *testing.T) {
	for _, arch := range archs {
		c := testmodel.Default(arch)
		c.RopeFreqs = arch == "llama"
		have := *mustLoad(t, c).Config()
		style := graph.RopeNeoX
		if arch == "llama" {
			style = graph.RopeNorm
		}
		want := model.Config{
			Arch: arch, Name: "test " + arch, Vocab: 96, Context: 512, Layers: 2, Width: 256, Heads: 4, KVHeads: 2, HeadDim: 64, FFN: 256, Eps: 1e-6,
			Rope: graph.Rope{HeadDim: 64, Rot: 64, Style: style, Base: 10000},
		}
		if c.RopeFreqs { // whoever turns stored keys needs them too
			want.Rope.Factors = graph.Weight{Name: "rope_freqs.weight", Type: quant.F32, In: 32, Out: 1}
		}
		if have != want {
			t.Errorf("%s: %+v\nwant %+v", arch, have, want)
		}
	}
}

// What a file may leave out, and what then holds.
func TestConfigDefaults(t *testing.T) {
	c := testmodel.Default("llama")
	c.KVHeads = 4
	c.DropKeys = []string{"llama.attention.head_count_kv", "llama.attention.key_length", "llama.rope.freq_base", "general.name"}
	have := mustLoad(t, c).Config()
	if have.KVHeads != 4 || have.HeadDim != 64 || have.Rope.Base != 10000 || have.Name != "" {
		t.Errorf("%+v", have)
	}
	// Older converters wrote qwen2 files with llama's keys.
	c = testmodel.Default("qwen2")
	c.Prefix = "llama"
	if have := mustLoad(t, c).Config(); have.Layers != 2 || have.Arch != "qwen2" {
		t.Errorf("with llama's keys: %+v", have)
	}
	c = testmodel.Default("qwen3")
	c.Prefix = "llama"
	_, err := load(t, c)
	mustRefuse(t, "qwen3 with llama's keys", err, model.ErrConfig, "qwen3.block_count is missing")
	// Any integer type serves.
	c = testmodel.Default("qwen3")
	c.Keys = map[string]gguf.Value{"qwen3.block_count": gguf.ValueOf(int64(2)), "qwen3.context_length": gguf.ValueOf(uint8(99)), "qwen3.expert_count": u32(0)}
	if have := mustLoad(t, c).Config(); have.Layers != 2 || have.Context != 99 {
		t.Errorf("with other integer types: %+v", have)
	}
}

// Every hyper-parameter is checked: presence, type, and both ends of its range.
func TestBadHyperParameters(t *testing.T) {
	type keys = map[string]gguf.Value
	f := func(x float64) gguf.Value { return gguf.ValueOf(float32(x)) }
	for _, key := range []string{
		"context_length", "block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.layer_norm_rms_epsilon",
	} {
		c := testmodel.Default("qwen2")
		c.DropKeys = []string{"qwen2." + key}
		_, err := load(t, c)
		mustRefuse(t, "without "+key, err, model.ErrConfig, "qwen2."+key+" is missing", "testmodel.gguf")
		c = testmodel.Default("qwen2")
		c.Keys = keys{"qwen2." + key: gguf.ValueOf("many")}
		_, err = load(t, c)
		mustRefuse(t, "text as "+key, err, model.ErrConfig, "qwen2."+key)
	}
	for _, c := range []struct {
		key   string
		limit int
	}{
		{"context_length", model.MaxContext},
		{"block_count", model.MaxLayers},
		{"embedding_length", model.MaxWidth},
		{"feed_forward_length", model.MaxWidth},
		{"attention.head_count", model.MaxHeads},
		{"attention.head_count_kv", model.MaxHeads},
		{"attention.key_length", model.MaxHeadDim},
		{"attention.value_length", model.MaxHeadDim},
		{"rope.dimension_count", model.MaxHeadDim},
	} {
		key := "qwen2." + c.key
		for _, v := range []gguf.Value{u32(0), u32(c.limit + 1), gguf.ValueOf(uint64(math.MaxUint64))} {
			m := testmodel.Default("qwen2")
			m.Keys = keys{key: v}
			_, err := load(t, m)
			mustRefuse(t, key+" of "+v.String(), err, model.ErrConfig, key, fmt.Sprintf("must lie in [1, %d]", c.limit))
		}
		m := testmodel.Default("qwen2")
		m.Keys = keys{key: gguf.ValueOf(int32(-1))}
		_, err := load(t, m)
		mustRefuse(t, key+" of -1", err, model.ErrConfig, key)
		m.Keys = keys{key: u32(c.limit)} // at the limit it is no complaint of range, whatever else it does not fit
		if _, err := load(t, m); err != nil && strings.Contains(err.Error(), "must lie in") {
			t.Errorf("%s at its limit: %v", key, err)
		}
	}
	for _, key := range []string{"attention.layer_norm_rms_epsilon", "rope.freq_base"} {
		for _, x := range []float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1)} {
			c := testmodel.Default("qwen2")
			c.Keys = keys{"qwen2." + key: f(x)}
			_, err := load(t, c)
			mustRefuse(t, fmt.Sprint(key, " of ", x), err, model.ErrConfig, "qwen2."+key, "must be positive and finite")
		}
	}
	for _, c := range []struct {
		name  string
		keys  keys
		drop  string
		parts []string
	}{
		{"heads that do not share KV heads", keys{"qwen2.attention.head_count_kv": u32(3)}, "", []string{"head_count 4 is no multiple of head_count_kv 3"}},
		{"a width of no whole heads", keys{"qwen2.attention.head_count": u32(6), "qwen2.attention.head_count_kv": u32(2)}, "qwen2.attention.key_length", []string{"embedding_length 256 is no multiple of attention.head_count 6"}},
		{"values of another width", keys{"qwen2.attention.value_length": u32(32)}, "", []string{"value_length 32 differs from key_length 64"}},
		{"heads wider than any vector", keys{"qwen2.attention.head_count": u32(1024), "qwen2.attention.key_length": u32(256)}, "", []string{"1024 heads of 256 features"}},
		{"experts", keys{"qwen2.expert_count": u32(8)}, "", []string{"expert_count is 8", "not supported"}},
		{"experts as text", keys{"qwen2.expert_count": gguf.ValueOf("eight")}, "", []string{"expert_count"}},
		{"an odd rotation", keys{"qwen2.rope.dimension_count": u32(63)}, "", []string{"rope.dimension_count 63 must be even"}},
		{"a rotation of more than a head", keys{"qwen2.rope.dimension_count": u32(66)}, "", []string{"rope.dimension_count 66", "head dimension 64"}},
		{"an unknown scaling", keys{"qwen2.rope.scaling.type": gguf.ValueOf("longrope")}, "", []string{"'longrope' is not supported", "none, linear, yarn"}},
		{"a scaling that is a number", keys{"qwen2.rope.scaling.type": u32(1)}, "", []string{"rope.scaling.type"}},
		{"linear without a factor", keys{"qwen2.rope.scaling.type": gguf.ValueOf("linear")}, "", []string{"rope.scaling.factor is missing"}},
		{"yarn without a factor", keys{"qwen2.rope.scaling.type": gguf.ValueOf("yarn")}, "", []string{"rope.scaling.factor is missing"}},
		{"yarn with a bad factor", keys{"qwen2.rope.scaling.type": gguf.ValueOf("yarn"), "qwen2.rope.scaling.factor": f(-2)}, "", []string{"rope.scaling.factor is -2"}},
		{"yarn with a bad context", keys{
			"qwen2.rope.scaling.type": gguf.ValueOf("yarn"), "qwen2.rope.scaling.factor": f(2), "qwen2.rope.scaling.original_context_length": u32(0),
		}, "", []string{"original_context_length is 0"}},
	} {
		m := testmodel.Default("qwen2")
		m.Keys = c.keys
		if c.drop != "" {
			m.DropKeys = []string{c.drop}
		}
		_, err := load(t, m)
		mustRefuse(t, c.name, err, model.ErrConfig, c.parts...)
	}
	// Several at once are told at once.
	m := testmodel.Default("qwen2")
	m.DropKeys = []string{"qwen2.block_count", "qwen2.context_length"}
	m.Keys = keys{"qwen2.rope.freq_base": f(0)}
	_, err := load(t, m)
	mustRefuse(t, "three at once", err, model.ErrConfig, "block_count is missing", "context_length is missing", "freq_base is 0")
}

func TestRopeScaling(t *testing.T) {
	f := func(x float64) gguf.Value { return gguf.ValueOf(float32(x)) }
	for _, c := range []struct {
		keys map[string]gguf.Value
		want graph.RopeScaling
	}{
		{map[string]gguf.Value{"qwen2.rope.scaling.type": gguf.ValueOf("none")}, graph.RopeScaling{}},
		{
			map[string]gguf.Value{"qwen2.rope.scaling.type": gguf.ValueOf("linear"), "qwen2.rope.scaling.factor": f(4)},
			graph.RopeScaling{Kind: "linear", Factor: 4},
		},
		{map[string]gguf.Value{"qwen2.rope.scale_linear": f(2)}, graph.RopeScaling{Kind: "linear", Factor: 2}},
		{
			map[string]gguf.Value{"qwen2.rope.scaling.type": gguf.ValueOf("yarn"), "qwen2.rope.scaling.factor": f(4)},
			graph.RopeScaling{Kind: "yarn", Factor: 4, Original: 512, Attention: 1, BetaFast: 32, BetaSlow: 1},
		},
		{
			map[string]gguf.Value{
				"qwen2.rope.scaling.type": gguf.ValueOf("yarn"), "qwen2.rope.scaling.factor": f(4), "qwen2.rope.scaling.original_context_length": u32(128),
				"qwen2.rope.scaling.attn_factor": f(0.5), "qwen2.rope.scaling.yarn_beta_fast": f(16), "qwen2.rope.scaling.yarn_beta_slow": f(2),
			},
			graph.RopeScaling{Kind: "yarn", Factor: 4, Original: 128, Attention: 0.5, BetaFast: 16, BetaSlow: 2},
		},
	} {
		m := testmodel.Default("qwen2")
		m.Keys = c.keys
		if have := mustLoad(t, m).Config().Rope.Scaling; have != c.want {
			t.Errorf("%v: %+v, want %+v", c.keys, have, c.want)
		}
	}
}

// Everything that is wrong with a file's tensors is in one message.
func TestBadTensors(t *testing.T) {
	c := testmodel.Default("qwen3")
	c.DropTensors = []string{"blk.0.attn_k.weight", "blk.1.ffn_norm.weight"}
	c.Shapes = map[string][]int{"blk.0.ffn_up.weight": {256, 255}, "blk.1.attn_norm.weight": {128}, "output_norm.weight": {256, 2}}
	c.Types = map[string]quant.Type{"blk.0.attn_norm.weight": quant.Q8_0, "blk.1.attn_v.weight": quant.I32, "blk.1.attn_q.weight": quant.TQ1_0}
	c.Extra = []testmodel.Tensor{{Name: "blk.0.attn_q.bias", Type: quant.F32, Shape: []int{256}}, {Name: "blk.2.attn_q.weight", Type: quant.F32, Shape: []int{256, 256}}, {Name: "vision.proj", Type: quant.F32, Shape: []int{4}}}
	_, err := load(t, c)
	mustRefuse(t, "many at once", err, model.ErrTensors, "testmodel.gguf",
		"missing: blk.0.attn_k.weight, blk.1.ffn_norm.weight",
		"blk.0.ffn_up.weight is [256 255], must be [256 256]", "blk.1.attn_norm.weight is [128], must be [256]", "output_norm.weight is [256 2], must be [256]",
		"vector blk.0.attn_norm.weight is Q8_0", "blk.1.attn_v.weight is I32", "blk.1.attn_q.weight is TQ1_0",
		"unexpected: blk.0.attn_q.bias, blk.2.attn_q.weight, vision.proj",
	)
	if strings.Count(err.Error(), "\n") > 0 {
		t.Errorf("%q is more than one line", err)
	}
}

// Each tensor of each architecture is demanded, and its shape is.
func TestEveryTensorIsChecked(t *testing.T) {
	for _, arch := range archs {
		c := testmodel.Default(arch)
		c.Layers, c.RopeFreqs = 1, arch == "llama"
		for _, tensor := range c.Tensors() {
			if tensor.Name != "output.weight" && tensor.Name != "rope_freqs.weight" { // these may be absent
				m := c
				m.DropTensors = []string{tensor.Name}
				_, err := load(t, m)
				want := "missing: " + tensor.Name
				if tensor.Name == "token_embd.weight" { // the vocabulary is counted by it
					want = "token_embd.weight"
				}
				mustRefuse(t, arch+" without "+tensor.Name, err, model.ErrTensors, want)
			}
			m := c
			shape := slices.Clone(tensor.Shape)
			shape[0]--
			m.Shapes = map[string][]int{tensor.Name: shape}
			_, err := load(t, m)
			mustRefuse(t, arch+" with another "+tensor.Name, err, model.ErrTensors, tensor.Name+" is ")
		}
	}
}

// A long list is cut, with how much was cut.
func TestManyMissingTensors(t *testing.T) {
	c := testmodel.Default("qwen2")
	c.Keys = map[string]gguf.Value{"qwen2.block_count": u32(model.MaxLayers)}
	_, err := load(t, c)
	mustRefuse(t, "the largest number of layers", err, model.ErrTensors, "blk.2.attn_norm.weight", fmt.Sprintf("and %d more", (model.MaxLayers-2)*12-40))
	if len(err.Error()) > 1<<13 {
		t.Errorf("the message has %d bytes", len(err.Error()))
	}
}

// An absent output matrix is the embedding table, and is loaded once.
func TestTiedOutput(t *testing.T) {
	for _, arch := range archs {
		c := testmodel.Default(arch)
		plain := mustLoad(t, c)
		c.Tied = true
		tied := mustLoad(t, c)
		if have, want := len(tied.Weights()), len(plain.Weights())-1; have != want {
			t.Errorf("%s: %d weights when tied, want %d", arch, have, want)
		}
		seen := map[string]bool{}
		for _, w := range tied.Weights() {
			if seen[w.Name] {
				t.Errorf("%s: %s is listed twice", arch, w.Name)
			}
			seen[w.Name] = true
		}
		g, err := tied.Build(graph.Params{Tokens: 1, Outputs: 1, Cells: 8})
		if err != nil {
			t.Fatal(err)
		}
		last := g.Nodes[g.Outputs[0].Node]
		if op, ok := last.Op.(graph.MatMul); !ok || op.W.Name != "token_embd.weight" {
			t.Errorf("%s: the logits come from %+v", arch, last.Op)
		}
	}
}

// The vocabulary has a limit too; a file that claims more does not get as far as its tensors' data.
func TestVocabularyLimit(t *testing.T) {
	if model.MaxVocab*8 > 1<<30 {
		t.Skip("the file would be too large")
	}
	c := testmodel.Default("qwen2")
	c.Width, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Layers, c.Tied, c.Type = 4, 1, 1, 4, 4, 1, true, quant.F16
	c.Vocab = 2
	if err := func() error { _, err := load(t, c); return err }(); err != nil {
		t.Fatalf("the small model: %v", err)
	}
	if testing.Short() {
		t.Skip("a file of 32 MB")
	}
	c.Vocab = model.MaxVocab + 1
	c.Type = quant.F16
	_, err := load(t, c)
	mustRefuse(t, "one token past the limit", err, model.ErrConfig, "token_embd.weight has 4194305 rows", "4194304")
}

// Graphs of every architecture are legal, before and after fusion, a pure function of the Params, and read exactly the
// weights that the model lists.
func TestGraphs(t *testing.T) {
	for _, arch := range archs {
		c := testmodel.Default(arch)
		c.RopeFreqs = arch == "llama"
		m := mustLoad(t, c)
		for _, p := range []graph.Params{
			{Tokens: 1, Outputs: 1, Phase: graph.Decode}, {Tokens: 5, Outputs: 5}, {Tokens: 5, Outputs: 1}, {Tokens: 5}, {Tokens: 5, Outputs: 2, Hidden: true},
		} {
			p.Cells, p.KVType, p.Fuse = 64, quant.F16, graph.AllRules
			g, err := m.Build(p)
			if err != nil {
				t.Fatalf("%s %+v: %v", arch, p, err)
			}
			again, err := m.Build(p)
			if err != nil || !g.Equal(again) {
				t.Errorf("%s %+v: a second graph is another one (%v)", arch, p, err)
			}
			if err := graph.Check(g); err != nil {
				t.Errorf("%s %+v: %v", arch, p, err)
			}
			if p.Outputs > 0 {
				out := g.Tensor(g.Outputs[0])
				want := [4]int{c.Vocab, p.Outputs, 1, 1}
				if p.Hidden {
					want[0] = c.Width
				}
				if len(g.Outputs) != 1 || out.Shape != want {
					t.Errorf("%s %+v: outputs %v of shape %v, want %v", arch, p, g.Outputs, out.Shape, want)
				}
			}
			if p.Outputs == p.Tokens && fmt.Sprint(sorted(g.Weights())) != fmt.Sprint(sorted(m.Weights())) {
				t.Errorf("%s: the graph reads %v\nthe model lists %v", arch, sorted(g.Weights()), sorted(m.Weights()))
			}
			if p.Outputs == 0 {
				for i := range g.Nodes {
					if n := &g.Nodes[i]; !n.Dead && strings.HasPrefix(n.Name, "blk.1.ffn") {
						t.Errorf("%s: %s runs though nobody asks for its rows", arch, n.Name)
					}
				}
			}
		}
		if _, err := m.Build(graph.Params{Tokens: 0}); !errors.Is(err, graph.ErrIllegal) {
			t.Errorf("%s: a graph of no tokens: %v", arch, err)
		}
	}
}

func sorted(ws []graph.Weight) []string {
	var names []string
	for _, w := range ws {
		names = append(names, w.Name)
	}
	slices.Sort(names)
	return names
}

// llama files may have biases; they are used where they are.
func TestOptionalBiases(t *testing.T) {
	c := testmodel.Default("llama")
	c.Layers = 1
	c.Extra = []testmodel.Tensor{
		{Name: "blk.0.attn_q.bias", Type: quant.F32, Shape: []int{256}}, {Name: "blk.0.attn_output.bias", Type: quant.F32, Shape: []int{256}},
	}
	g, err := mustLoad(t, c).Build(graph.Params{Tokens: 1, Outputs: 1, Cells: 8})
	if err != nil {
		t.Fatal(err)
	}
	biases := 0
	for i := range g.Nodes {
		if g.Nodes[i].Op.Kind() == "bias" {
			biases++
		}
	}
	if biases != 2 {
		t.Errorf("%d biases, want 2", biases)
	}
}
