package chat

import (
	"strings"

	"github.com/minfer-go/minfer/jinja"
	"github.com/minfer-go/minfer/tokenizer"
)

// A Prompt is a rendered conversation.
type Prompt struct {
	Text   string  // as the template gives it
	Tokens []int32 // the ids to evaluate: those of Text, after a beginning-of-sequence token if the model wants one that Text lacks
	// Thinking: the prompt ends within a block of reasoning, which the reply goes on with.
	Thinking bool

	parts  []part
	tokens *tokenizer.Tokenizer
}

// A part is a control token, or the plain text between two.
type part struct {
	text    string // empty for a token that the text does not show
	ids     []int32
	control bool
}

// Raw is a prompt without a template: text in which control tokens are recognised.
func (c *Format) Raw(text string) *Prompt {
	return c.encode([]jinja.Segment{{Text: text, Trusted: true}})
}

// encode makes a prompt of rendered text. Control tokens are found within stretches that the template owns.
func (c *Format) encode(segments []jinja.Segment) *Prompt {
	p := &Prompt{tokens: c.tokens}
	var plain, whole strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			text := plain.String()
			p.parts = append(p.parts, part{text: text, ids: c.tokens.Encode(text, false)})
			plain.Reset()
		}
	}
	for _, s := range segments {
		whole.WriteString(s.Text)
		text := s.Text
		for s.Trusted {
			start, end, id := c.controls.find(text)
			if end == 0 {
				break
			}
			plain.WriteString(text[:start])
			flush()
			p.parts = append(p.parts, part{text: text[start:end], ids: []int32{id}, control: true})
			text = text[end:]
		}
		plain.WriteString(text)
	}
	flush()
	if bos, ok := c.tokens.BOS(); ok && c.tokens.AddBOS() && (len(p.parts) == 0 || p.parts[0].ids[0] != bos) {
		p.parts = append([]part{{ids: []int32{bos}, control: true}}, p.parts...)
	}
	p.Text = whole.String()
	p.Thinking = thinkingAtEnd(segments)
	p.Tokens = p.from(nil, 0)
	return p
}

// from appends the ids of all parts from one on.
func (p *Prompt) from(dst []int32, at int) []int32 {
	for _, part := range p.parts[at:] {
		dst = append(dst, part.ids...)
	}
	return dst
}

// walk compares tokens with the prompt from a part on. It returns how many agree, up to the last border between parts,
// and the part that begins there. whole: all the tokens agree, the last of them perhaps within that part.
func (p *Prompt) walk(held []int32, at int) (n, next int, whole bool) {
	next = at
	for next < len(p.parts) {
		length, ok := p.parts[next].match(held[n:], p.tokens)
		if !ok {
			return n, next, n+length == len(held)
		}
		n += length
		next++
	}
	return n, next, n == len(held)
}

// match reports whether tokens begin with those of a part, or with others of the same text, and how many they are.
// Otherwise it returns how many of the part's own ids they begin with.
func (x *part) match(held []int32, t *tokenizer.Tokenizer) (n int, ok bool) {
	for n < len(x.ids) && n < len(held) && held[n] == x.ids[n] {
		n++
	}
	if n == len(x.ids) {
		return n, true
	}
	if x.control {
		return n, false
	}
	text := x.text
	for i, id := range held {
		piece := t.Piece(id)
		if len(piece) == 0 || !strings.HasPrefix(text, string(piece)) {
			return n, false
		}
		if text = text[len(piece):]; text == "" {
			return i + 1, true
		}
	}
	return n, false
}

// Resume returns the ids to evaluate in place of Tokens where a cache holds the tokens of an earlier prompt and its reply:
// as many of those as the prompt still agrees with, and then what the prompt has beyond. Both agree where they have the
// same ids, or the same text between the same control tokens. So a reply that the prompt repeats keeps the ids that were
// sampled, and only what follows it has to be evaluated.
func (p *Prompt) Resume(held []int32) []int32 {
	n, next, _ := p.walk(held, 0)
	if n <= common(held, p.Tokens) {
		return p.Tokens
	}
	return p.from(append(make([]int32, 0, n+len(p.Tokens)), held[:n]...), next)
}

// Shift finds the tokens [from, to) of a cache without which the rest of it is a beginning of the prompt: those of turns
// that the prompt leaves out. rest is what Resume gives once they are gone. ok is false if there is no such stretch,
// because the template writes what follows it in another way.
func (p *Prompt) Shift(held []int32) (from, to int, rest []int32, ok bool) {
	from, next, whole := p.walk(held, 0)
	if whole {
		return len(held), len(held), p.Resume(held), true
	}
	for to = from + 1; to < len(held); to++ {
		if n, after, whole := p.walk(held[to:], next); whole && n > 0 {
			rest = append(append(make([]int32, 0, len(p.Tokens)), held[:from]...), held[to:to+n]...)
			return from, to, p.from(rest, after), true
		}
	}
	return 0, 0, nil, false
}

// common is the length of the common beginning of two token lists.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
