package chat

import (
	"slices"

	"github.com/minfer-go/minfer/tokenizer"
)

// controls finds the control tokens of a vocabulary in a text.
type controls struct {
	ids     map[string]int32
	lengths [256][]int // of the texts that begin with a byte, longest first
}

func newControls(t *tokenizer.Tokenizer) controls {
	c := controls{ids: map[string]int32{}}
	for id := range int32(t.VocabSize()) {
		text := t.Text(id)
		if text == "" || !t.IsControl(id) {
			continue
		}
		if _, ok := c.ids[text]; !ok {
			c.ids[text] = id
		}
		l := &c.lengths[text[0]]
		if !slices.Contains(*l, len(text)) {
			*l = append(*l, len(text))
		}
	}
	for _, l := range c.lengths {
		slices.SortFunc(l, func(a, b int) int { return b - a })
	}
	return c
}

// find returns where the first control token of a text lies, the longest of those that begin there. end is 0 if there is
// none.
func (c *controls) find(text string) (start, end int, id int32) {
	for i := range len(text) {
		for _, n := range c.lengths[text[i]] {
			if n > len(text)-i {
				continue
			}
			if id, ok := c.ids[text[i:i+n]]; ok {
				return i, i + n, id
			}
		}
	}
	return 0, 0, -1
}
