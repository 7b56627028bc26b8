package sample

import (
	"fmt"
	"unicode/utf8"
)

// Limits of stop strings.
const (
	// MaxStops bounds the number of stop strings.
	MaxStops = 256
	// MaxStopBytes bounds their total length.
	MaxStopBytes = 1 << 16
)

// Stopper finds the first stop string in a text that arrives in pieces. It
// holds back the longest end of the text that could begin a stop string, so
// nothing of a stop string is ever emitted. Which stop string is found, and what
// is emitted in total, does not depend on how the text is cut into pieces: the
// one that is complete first wins, and of several that end at the same byte the
// longest.
//
// It is an Aho–Corasick automaton over bytes. Stop strings are valid UTF-8, so
// what is emitted never ends within a character that was pushed whole.
type Stopper struct {
	stops []string
	nodes []stopNode
	next  map[uint64]int32 // node<<8 | byte → node
	state int32
	held  []byte // the last depth(state) bytes of the text
	found int    // index into stops, -1 before
}

type stopNode struct {
	depth int32 // bytes from the root
	fail  int32 // node of the longest proper suffix that is in the trie
	match int32 // longest stop string that is a suffix here, or -1
}

// NewStopper returns a Stopper for the given strings; none is fine. Errors wrap
// ErrConfig: a string is empty or not UTF-8, or there are too many.
func NewStopper(stops []string) (*Stopper, error) {
	if len(stops) > MaxStops {
		return nil, fmt.Errorf("%w: %d stop strings: allowed is at most %d", ErrConfig, len(stops), MaxStops)
	}
	p := &Stopper{nodes: []stopNode{{match: -1}}, found: -1}
	total := 0
	for i, stop := range stops {
		switch {
		case stop == "":
			return nil, fmt.Errorf("%w: stop string %d is empty", ErrConfig, i)
		case !utf8.ValidString(stop):
			return nil, fmt.Errorf("%w: stop string %q is not UTF-8", ErrConfig, stop)
		}
		if total += len(stop); total > MaxStopBytes {
			return nil, fmt.Errorf("%w: stop strings of more than %d bytes together", ErrConfig, MaxStopBytes)
		}
		p.stops = append(p.stops, stop)
	}
	p.build()
	return p, nil
}

func (p *Stopper) build() {
	p.next = make(map[uint64]int32)
	// Insert level by level: when a node is made, every shorter one exists, so
	// its fail link can be followed to.
	at := make([]int32, len(p.stops))
	for depth, more := 0, true; more; depth++ {
		more = false
		for i, stop := range p.stops {
			if depth >= len(stop) {
				continue
			}
			more = true
			at[i] = p.child(at[i], stop[depth])
			if n := &p.nodes[at[i]]; depth == len(stop)-1 && n.match < 0 {
				n.match = int32(i)
			}
		}
	}
	for i := range p.nodes { // shorter nodes first
		if n := &p.nodes[i]; n.match < 0 {
			n.match = p.nodes[n.fail].match
		}
	}
}

func (p *Stopper) child(from int32, b byte) int32 {
	k := uint64(from)<<8 | uint64(b)
	if to, ok := p.next[k]; ok {
		return to
	}
	n := stopNode{depth: p.nodes[from].depth + 1, match: -1}
	if from != 0 {
		n.fail = p.step(p.nodes[from].fail, b)
	}
	to := int32(len(p.nodes))
	p.nodes = append(p.nodes, n)
	p.next[k] = to
	return to
}

// step follows the automaton from node on b.
func (p *Stopper) step(node int32, b byte) int32 {
	for {
		if to, ok := p.next[uint64(node)<<8|uint64(b)]; ok {
			return to
		}
		if node == 0 {
			return 0
		}
		node = p.nodes[node].fail
	}
}

// Push adds text and returns what can be emitted. Once a stop string is complete
// it returns what came before it and true; from then on "" and true.
func (p *Stopper) Push(text string) (emit string, stopped bool) {
	if p.found >= 0 {
		return "", true
	}
	if len(p.stops) == 0 {
		return text, false
	}
	state := p.state
	for i := range len(text) {
		state = p.step(state, text[i])
		if m := p.nodes[state].match; m >= 0 {
			p.found = int(m)
			emit = p.cut(text[:i+1], len(p.stops[m]))
			p.state, p.held = 0, p.held[:0]
			return emit, true
		}
	}
	p.state = state
	hold := int(p.nodes[state].depth)
	emit = p.cut(text, hold)
	if hold <= len(text) {
		p.held = append(p.held[:0], text[len(text)-hold:]...)
	} else {
		p.held = append(p.held, text...)
		p.held = append(p.held[:0], p.held[len(p.held)-hold:]...)
	}
	return emit, false
}

// cut returns held and text without the last n bytes.
func (p *Stopper) cut(text string, n int) string {
	if n <= len(text) {
		if len(p.held) == 0 {
			return text[:len(text)-n]
		}
		return string(p.held) + text[:len(text)-n]
	}
	return string(p.held[:len(p.held)+len(text)-n])
}

// Flush returns the text held back, at the end of the text; "" after a stop.
func (p *Stopper) Flush() string {
	text := string(p.held)
	p.state, p.held = 0, p.held[:0]
	return text
}

// Found returns the stop string that ended the text.
func (p *Stopper) Found() (string, bool) {
	if p.found < 0 {
		return "", false
	}
	return p.stops[p.found], true
}

// Reset makes p ready for another text.
func (p *Stopper) Reset() {
	p.state, p.held, p.found = 0, p.held[:0], -1
}
