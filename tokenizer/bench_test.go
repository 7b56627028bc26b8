package tokenizer

import "strings"

// benchText returns about 250 KB of text of a kind.
func benchText(kind string) string {
	var unit string
	switch kind {
	case "english":
		unit = `The harbour lay quiet under a low grey sky, and the fishermen, who had been out since before dawn, were
mending their nets along the quay. "You'll not see a better catch this year," said old Matthews; he didn't look up.
Nobody answered him at first. In 1987 the cannery had employed 412 people; by the autumn of 2003 there were fewer than
thirty, most of whom remembered the lighthouse-keeper's daughter and her peculiar collection of barometers. She'd kept
them in the upstairs hallway, each one labelled in a careful hand, and on stormy evenings the whole house ticked.

`
	case "code":
		unit = `func (s *Server) handleRequest(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost || r.ContentLength > 1<<20 {
		return fmt.Errorf("bad request: %s %d", r.Method, r.ContentLength)
	}
	for i, item := range s.items[:len(s.items)-1] {
		if item.ID == "" { continue } // skip the empty ones
		s.cache[item.ID] = append(s.cache[item.ID], entry{index: i, at: time.Now().UnixNano()})
	}
	return json.NewEncoder(w).Encode(map[string]any{"ok": true, "n": len(s.items)})
}

`
	default:
		unit = `Größe und Maß, naïve café, 日本語のテキストを分割する。 Привет, мир! مرحبا بالعالم नमस्ते दुनिया
👩‍👩‍👧‍👦 3.14159 ≈ π; x² + y² = r²  한국어 문장입니다. Việt Nam đất nước tôi.
`
	}
	return strings.Repeat(unit, 250_000/len(unit)+1)
}
