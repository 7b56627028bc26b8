package jinja

import (
	"math/rand/v2"
	"time"
)

// The default limits and the fixed ones.
const (
	// MaxSourceBytes is the default size of a template.
	MaxSourceBytes = 1 << 20
	// MaxDepth is the default nesting of statements and, apart, of expressions.
	MaxDepth = 200
	// MaxSteps is the default work of one rendering: about one step per node
	// evaluated, per element gone through, per 16 bytes of text copied or compared
	// and per two bytes gone through by character; more for what is kept in new
	// lists and dicts.
	MaxSteps = 10_000_000
	// MaxCallDepth is the default nesting of calls of macros, callers, blocks
	// and recursive loops.
	MaxCallDepth = 200
	// MaxOutputBytes is the default size of what is rendered.
	MaxOutputBytes = 16 << 20
	// MaxTextBytes is the default size of one string value.
	MaxTextBytes = 16 << 20
	// MaxItems is the default length of one list, tuple or dict.
	MaxItems = 1 << 18
	// MaxIntBits is the size of an integer.
	MaxIntBits = 1 << 16
	// MaxValueDepth is how deep a value may nest to be printed, compared,
	// encoded or read from JSON.
	MaxValueDepth = 500
	// MaxRange is the longest range, a rule of the sandbox.
	MaxRange = 100_000
	// maxKeyBytes is the size of what tells one tuple from another as a key.
	maxKeyBytes = 1 << 14
	// maxIntDigits is the most digits that Python converts to or from text.
	maxIntDigits = 4300
)

// Limits bounds what a template may cost. A zero field means the default.
type Limits struct {
	SourceBytes int
	Depth       int
	Steps       int64
	CallDepth   int
	OutputBytes int
	TextBytes   int
	Items       int
}

func (l Limits) filled() Limits {
	if l.SourceBytes == 0 {
		l.SourceBytes = MaxSourceBytes
	}
	if l.Depth == 0 {
		l.Depth = MaxDepth
	}
	if l.Steps == 0 {
		l.Steps = MaxSteps
	}
	if l.CallDepth == 0 {
		l.CallDepth = MaxCallDepth
	}
	if l.OutputBytes == 0 {
		l.OutputBytes = MaxOutputBytes
	}
	if l.TextBytes == 0 {
		l.TextBytes = MaxTextBytes
	}
	if l.Items == 0 {
		l.Items = MaxItems
	}
	return l
}

type config struct {
	limits      Limits
	now         func() time.Time
	seed        uint64
	keepNewline bool
	noTrim      bool
	noLstrip    bool
}

// Option changes how Parse sets up a template.
type Option func(*config)

// WithLimits sets the limits; zero fields keep their defaults.
func WithLimits(l Limits) Option { return func(c *config) { c.limits = l } }

// WithClock sets the clock that strftime_now reads; the default is time.Now.
func WithClock(now func() time.Time) Option { return func(c *config) { c.now = now } }

// WithSeed sets the seed of the random filter. Each rendering starts from it
// again, so that equal input gives equal output; the default is 0.
func WithSeed(seed uint64) Option { return func(c *config) { c.seed = seed } }

// WithKeepTrailingNewline keeps a single newline at the end of the source,
// which is dropped by default.
func WithKeepTrailingNewline() Option { return func(c *config) { c.keepNewline = true } }

// WithoutTrimBlocks keeps the newline after a block tag, which is dropped by
// default.
func WithoutTrimBlocks() Option { return func(c *config) { c.noTrim = true } }

// WithoutLstripBlocks keeps the white space between the start of a line and a
// block tag, which is dropped by default.
func WithoutLstripBlocks() Option { return func(c *config) { c.noLstrip = true } }

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }
