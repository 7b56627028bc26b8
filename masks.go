package minfer

import (
	"sync"

	"github.com/minfer-go/minfer/grammar"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// masks binds grammars to the model's vocabulary. The vocabulary is prepared when the first grammar comes; what was
// computed for the last grammar is kept for the next request with it.
type masks struct {
	mu      sync.Mutex
	vocab   *grammar.Vocab
	last    *grammar.Grammar
	matcher *grammar.Matcher
}

// start is the mask of a new reply.
func (m *masks) start(g *grammar.Grammar, t *tokenizer.Tokenizer) sample.Mask {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.vocab == nil {
		pieces := make([][]byte, t.VocabSize())
		for id := range pieces {
			pieces[id] = t.Piece(int32(id))
		}
		m.vocab = grammar.NewVocab(pieces, t.IsEOG)
	}
	if m.last != g {
		m.last, m.matcher = g, g.Bind(m.vocab)
	}
	return m.matcher.Start()
}
