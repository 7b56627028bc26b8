package grammar

import "fmt"

// Grammar is a compiled language of byte strings. It is safe for concurrent use.
type Grammar struct {
	a      *automaton
	source string
	schema *compiler // nil for GBNF
}

// Match reports whether text as a whole belongs to the language.
func (g *Grammar) Match(text []byte) bool { return g.Check(text) == nil }

// Check is [Grammar.Match] with the reason: nil for a match, or an error that wraps [ErrRejected] and
// names the first byte that cannot continue any text of the language, or the missing end.
func (g *Grammar) Check(text []byte) error {
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	p := g.a.begin()
	for i, b := range text {
		if p = g.a.step(p, b); p.dead() {
			return p.rejection(fmt.Errorf("grammar: byte %q at offset %d: %w", b, i, ErrRejected))
		}
	}
	if !p.complete {
		return p.rejection(fmt.Errorf("grammar: text ends at offset %d before it is complete: %w", len(text), ErrRejected))
	}
	return nil
}

// rejection adds the limit that ended the parses, if one did.
func (p *position) rejection(err error) error {
	if p.limit != nil {
		return fmt.Errorf("%w: %w", err, p.limit)
	}
	return err
}
