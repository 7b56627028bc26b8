package grammar

import "fmt"

// Grammar is a compiled language of byte strings. It is safe for concurrent use.
type Grammar struct {
	a      *automaton // of the texts that are generated
	all    *automaton // of the texts that match; nil until it is needed; under the lock of a
	source string
	schema *compiler // nil for GBNF
}

// Match reports whether text as a whole belongs to the language.
func (g *Grammar) Match(text []byte) bool { return g.Check(text) == nil }

// Check is [Grammar.Match] with the reason: nil for a match, or an error that wraps [ErrRejected] and
// names the first byte that cannot continue any text of the language, or the missing end. Under a schema an integer may
// also be written 4.0, as JSON Schema has it; a [Matcher] lets a model write 4 alone.
func (g *Grammar) Check(text []byte) error {
	g.a.mu.Lock()
	defer g.a.mu.Unlock()
	a, err := g.matching()
	if err != nil {
		return err
	}
	p := a.begin()
	for i, b := range text {
		if p = a.step(p, b); p.dead() {
			return p.rejection(fmt.Errorf("grammar: byte %q at offset %d: %w", b, i, ErrRejected))
		}
	}
	if !p.complete {
		return p.rejection(fmt.Errorf("grammar: text ends at offset %d before it is complete: %w", len(text), ErrRejected))
	}
	return nil
}

// matching returns the automaton of the texts that match. The caller holds the lock of g.a, which guards both automata.
func (g *Grammar) matching() (*automaton, error) {
	switch {
	case g.all != nil:
	case g.schema == nil || !g.schema.m.narrows():
		g.all = g.a
	default:
		m, err := g.schema.machine((*numSet).texts)
		if err != nil {
			return nil, fmt.Errorf("grammar: JSON Schema: %w", err)
		}
		g.all = m.a
	}
	return g.all, nil
}

// narrows reports whether some number of the schema has texts that are not generated.
func (m *machine) narrows() bool {
	for id, d := range m.numbers {
		if n := m.c.terms[id].shape.num; n.exp != expAll && n.plain != m.dfas[d] {
			return true
		}
	}
	return false
}

// rejection adds the limit that ended the parses, if one did.
func (p *position) rejection(err error) error {
	if p.limit != nil {
		return fmt.Errorf("%w: %w", err, p.limit)
	}
	return err
}
