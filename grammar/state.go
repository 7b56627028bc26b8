package grammar

import "fmt"

// State is the position of one run in a grammar. It is not safe for concurrent use; States of one
// Matcher are independent of each other.
type State struct {
	m *Matcher
	p *position
	n int  // bytes accepted
	e bool // an end-of-generation token was accepted
}

// Start returns a State before the first byte.
func (m *Matcher) Start() *State {
	m.g.a.mu.Lock()
	defer m.g.a.mu.Unlock()
	return &State{m: m, p: m.g.a.begin()}
}

// Clone returns an independent copy of the position.
func (s *State) Clone() *State {
	c := *s
	return &c
}

// after returns the position after b, dead if b is not allowed. The automaton must be locked.
func (s *State) after(b []byte) *position {
	p := s.p
	for _, c := range b {
		if p = s.m.g.a.step(p, c); p.dead() {
			break
		}
	}
	return p
}

// Allowed reports whether token id may come next.
func (s *State) Allowed(id int32) bool {
	v := s.m.v
	if id < 0 || int(id) >= len(v.pieces) || s.e {
		return false
	}
	if v.isEOG[id] {
		return s.p.complete
	}
	if len(v.pieces[id]) == 0 {
		return false
	}
	s.m.g.a.mu.Lock()
	defer s.m.g.a.mu.Unlock()
	return !s.after(v.pieces[id]).dead()
}

// Accept moves past token id. A token that is not allowed leaves the position as it was and gives an
// error that wraps [ErrRejected] and tells how many of the token's bytes could have followed.
func (s *State) Accept(id int32) error {
	v := s.m.v
	switch {
	case id < 0 || int(id) >= len(v.pieces):
		return fmt.Errorf("grammar: token %d outside the vocabulary of %d: %w", id, len(v.pieces), ErrRejected)
	case s.e:
		return fmt.Errorf("grammar: token %d after the end of generation: %w", id, ErrRejected)
	case v.isEOG[id]:
		if !s.p.complete {
			return fmt.Errorf("grammar: end-of-generation token %d before the text is complete: %w", id, ErrRejected)
		}
		s.e = true
		return nil
	case len(v.pieces[id]) == 0:
		return fmt.Errorf("grammar: token %d has no text: %w", id, ErrRejected)
	}
	if err := s.AcceptBytes(v.pieces[id]); err != nil {
		return fmt.Errorf("grammar: token %d: %w", id, err)
	}
	return nil
}

// AcceptBytes moves past b, or leaves the position as it was and gives an error that wraps
// [ErrRejected] and names the longest part of b that could have followed.
func (s *State) AcceptBytes(b []byte) error {
	a := s.m.g.a
	a.mu.Lock()
	defer a.mu.Unlock()
	p := s.p
	for i, c := range b {
		if p = a.step(p, c); p.dead() {
			return p.rejection(fmt.Errorf("bytes %q: only %q could follow: %w", b, b[:i], ErrRejected))
		}
	}
	s.p = p
	s.n += len(b)
	return nil
}

// Mask returns the set of allowed tokens. It is shared: the caller must not change it.
func (s *State) Mask() Bitset {
	if s.e {
		return s.m.newSet()
	}
	s.m.g.a.mu.Lock()
	defer s.m.g.a.mu.Unlock()
	return s.m.mask(s.p)
}

// Apply sets the logits of tokens that may not come next to -Inf, logits past the vocabulary
// included, and reports whether any token is left.
func (s *State) Apply(logits []float32) bool { return s.Mask().forbid(logits) }

// Complete reports whether the text so far belongs to the language, so that generation may end.
func (s *State) Complete() bool { return s.p.complete }

// Bytes returns the number of bytes accepted so far.
func (s *State) Bytes() int { return s.n }

// maxForced bounds the length of one answer of Forced.
const maxForced = 256

// Forced returns the bytes that must come next, as far as there is no choice: nil where the text may
// end or go on in more than one way. They may be tokenized and accepted without asking the model.
func (s *State) Forced() []byte {
	a := s.m.g.a
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []byte
	for p := s.p; len(out) < maxForced && !p.complete && !s.e; {
		b, ok := a.only(p)
		if !ok {
			break
		}
		if p = a.step(p, b); p.dead() {
			break
		}
		out = append(out, b)
	}
	return out
}

// only returns the one byte that all transitions of p share, if they do.
func (a *automaton) only(p *position) (byte, bool) {
	var b byte
	found := false
	for _, c := range p.configs {
		for _, e := range a.nodes[c.node].edges {
			if e.lo != e.hi || found && e.lo != b {
				return 0, false
			}
			b, found = e.lo, true
		}
	}
	return b, found
}
