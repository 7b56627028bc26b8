package server

import (
	"unicode/utf8"

	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/tokenizer"
)

// promptScores gives the tokens of a prompt their log probabilities, each under what stands before it. The engine calls add;
// tokens may be read when the engine has gone past the prompt.
type promptScores struct {
	prompt []int32
	top    int // alternatives of each token
	text   *tokenizer.Decoder
	scorer sample.Scorer
	tokens []scored
	at     int // characters
}

// newPromptScores returns nil if the task does not show its prompt.
func (s *Server) newPromptScores(t *task) *promptScores {
	if !t.shown {
		return nil
	}
	p := &promptScores{prompt: t.prompt, top: *t.logprobs, text: s.model.Tokens.NewSpecialDecoder()}
	p.put(scored{id: t.prompt[0], bare: true})
	return p
}

func (p *promptScores) put(t scored) {
	t.prompt, t.at = true, p.at
	p.at += utf8.RuneCountInString(p.text.Push(t.id))
	p.tokens = append(p.tokens, t)
}

// add takes the logits at a position, which are about the token after it.
func (p *promptScores) add(pos int, logits []float32) {
	if pos+1 >= len(p.prompt) {
		return
	}
	t := scored{id: p.prompt[pos+1]}
	var err error
	if t.top, t.logprob, err = p.scorer.Score(nil, logits, p.top, t.id); err != nil {
		panic(err) // ends the request alone, as a failure of the model
	}
	p.put(t)
}
