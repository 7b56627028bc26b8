package model

import (
	"errors"
	"fmt"
	"math"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
)

// Limits of hyper-parameters, far above any published model; a file beyond them is damaged or hostile.
const (
	MaxLayers  = 1024
	MaxWidth   = 1 << 17 // features of any vector of a token
	MaxHeads   = 1 << 10
	MaxHeadDim = 1 << 10
	MaxContext = 1 << 24
	MaxVocab   = 1 << 22
)

// A reader collects hyper-parameters and every complaint about them.
type reader struct {
	f        *gguf.File
	prefixes []string // tried in order: the architecture's own, then older converters' ones
	errs     []error
}

func (r *reader) complain(format string, a ...any) {
	r.errs = append(r.errs, fmt.Errorf("%w: %s: "+format, append([]any{ErrConfig, r.f.Name()}, a...)...))
}

func (r *reader) err() error { return errors.Join(r.errs...) }

// key is the full name of a hyper-parameter and whether the file has it.
func (r *reader) key(name string) (string, bool) {
	for _, p := range r.prefixes {
		if _, ok := r.f.Value(p + "." + name); ok {
			return p + "." + name, true
		}
	}
	return r.prefixes[0] + "." + name, false
}

// count reads an integer in [1, limit].
func (r *reader) count(name string, limit int) int {
	key, ok := r.key(name)
	if !ok {
		r.complain("%s is missing", key)
		return 1
	}
	return r.countAt(key, limit)
}

func (r *reader) countAt(key string, limit int) int {
	v, err := r.f.Uint(key)
	if err != nil {
		r.complain("%w", err)
		return 1
	}
	if v < 1 || v > uint64(limit) {
		r.complain("%s is %d, must lie in [1, %d]", key, v, limit)
		return 1
	}
	return int(v)
}

// countOr is count for a key that may be absent.
func (r *reader) countOr(name string, limit, otherwise int) int {
	if key, ok := r.key(name); ok {
		return r.countAt(key, limit)
	}
	return otherwise
}

// positive reads a finite number above 0; absent means otherwise, which for a required key is 0.
func (r *reader) positive(name string, otherwise float64) float32 {
	key, ok := r.key(name)
	if !ok {
		if otherwise == 0 {
			r.complain("%s is missing", key)
			return 1
		}
		return float32(otherwise)
	}
	v, err := r.f.Float(key)
	if err != nil {
		r.complain("%w", err)
		return 1
	}
	if !(v > 0) || math.IsInf(v, 0) {
		r.complain("%s is %g, must be positive and finite", key, v)
		return 1
	}
	return float32(v)
}

// text reads a string; absent is empty.
func (r *reader) text(name string) string {
	key, ok := r.key(name)
	if !ok {
		return ""
	}
	s, err := r.f.String(key)
	if err != nil {
		r.complain("%w", err)
	}
	return s
}

// readConfig reads the hyper-parameters that dense decoders share. Callers add prefixes for converters that wrote
// another architecture's, and set the style of RoPE.
func readConfig(f *gguf.File, arch string, style graph.RopeStyle, fallback ...string) (Config, error) {
	r := &reader{f: f, prefixes: append([]string{arch}, fallback...)}
	c := Config{
		Arch:    arch,
		Context: r.count("context_length", MaxContext),
		Layers:  r.count("block_count", MaxLayers),
		Width:   r.count("embedding_length", MaxWidth),
		Heads:   r.count("attention.head_count", MaxHeads),
		FFN:     r.count("feed_forward_length", MaxWidth),
		Eps:     r.positive("attention.layer_norm_rms_epsilon", 0),
	}
	if name, ok := f.Value("general.name"); ok {
		c.Name = fmt.Sprint(name)
		if s, err := f.String("general.name"); err == nil {
			c.Name = s
		}
	}
	c.KVHeads = r.countOr("attention.head_count_kv", MaxHeads, c.Heads)
	if _, given := r.key("attention.key_length"); !given && len(r.errs) == 0 && c.Width%c.Heads != 0 {
		r.complain("%s.embedding_length %d is no multiple of attention.head_count %d", arch, c.Width, c.Heads)
	}
	c.HeadDim = r.countOr("attention.key_length", MaxHeadDim, max(1, c.Width/c.Heads))
	if v := r.countOr("attention.value_length", MaxHeadDim, c.HeadDim); v != c.HeadDim {
		r.complain("%s.attention.value_length %d differs from key_length %d, which no supported model does", arch, v, c.HeadDim)
	}
	if c.Heads%c.KVHeads != 0 {
		r.complain("%s.attention.head_count %d is no multiple of head_count_kv %d", arch, c.Heads, c.KVHeads)
	}
	if c.Heads*c.HeadDim > MaxWidth {
		r.complain("%d heads of %d features are more than %d", c.Heads, c.HeadDim, MaxWidth)
	}
	if experts, ok := r.key("expert_count"); ok {
		if n, err := f.Uint(experts); err != nil || n > 0 {
			r.complain("%s is %d: mixtures of experts are not supported", experts, n)
		}
	}
	c.Rope = r.rope(c, style)
	if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Shape) == 2 {
		if c.Vocab = t.Shape[1]; c.Vocab > MaxVocab {
			r.complain("token_embd.weight has %d rows, the limit is %d", c.Vocab, MaxVocab)
		}
	}
	return c, r.err()
}

// rope reads the rotary embedding and its scaling.
func (r *reader) rope(c Config, style graph.RopeStyle) graph.Rope {
	rope := graph.Rope{
		HeadDim: c.HeadDim, Style: style,
		Rot:  r.countOr("rope.dimension_count", MaxHeadDim, c.HeadDim),
		Base: r.positive("rope.freq_base", 10000),
	}
	if rope.Rot > c.HeadDim || rope.Rot%2 != 0 {
		r.complain("%s.rope.dimension_count %d must be even and at most the head dimension %d", c.Arch, rope.Rot, c.HeadDim)
	}
	switch kind := r.text("rope.scaling.type"); kind {
	case "", "none":
		if _, old := r.key("rope.scale_linear"); old {
			rope.Scaling = graph.RopeScaling{Kind: "linear", Factor: r.positive("rope.scale_linear", 0)}
		}
	case "linear":
		rope.Scaling = graph.RopeScaling{Kind: kind, Factor: r.positive("rope.scaling.factor", 0)}
	case "yarn":
		rope.Scaling = graph.RopeScaling{
			Kind: kind, Factor: r.positive("rope.scaling.factor", 0),
			Original:  r.countOr("rope.scaling.original_context_length", MaxContext, c.Context),
			Attention: r.positive("rope.scaling.attn_factor", 1),
			BetaFast:  r.positive("rope.scaling.yarn_beta_fast", 32),
			BetaSlow:  r.positive("rope.scaling.yarn_beta_slow", 1),
		}
	default:
		r.complain("rope.scaling.type '%s' is not supported; supported are none, linear, yarn", kind)
	}
	return rope
}
