package server

import (
	"encoding/json"
	"net/http"
	"strings"
)

// tokenizeRequest is the body of /tokenize.
type tokenizeRequest struct {
	content       string
	special       bool
	parse, pieces bool
}

var tokenizeFields = fields[tokenizeRequest]{
	"content":       value(func(r *tokenizeRequest) *string { return &r.content }),
	"add_special":   value(func(r *tokenizeRequest) *bool { return &r.special }),
	"parse_special": value(func(r *tokenizeRequest) *bool { return &r.parse }),
	"with_pieces":   value(func(r *tokenizeRequest) *bool { return &r.pieces }),
}

// tokenize answers /tokenize.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) error {
	q := tokenizeRequest{parse: true}
	if err := decode(s, w, r, tokenizeFields, &q); err != nil {
		return err
	}
	ids := []int32{}
	if bos, ok := s.model.Tokens.BOS(); ok && q.special && s.model.Tokens.AddBOS() {
		ids = append(ids, bos)
	}
	ids = s.model.Tokens.Append(ids, q.content, q.parse)
	if !q.pieces {
		writeJSON(w, http.StatusOK, map[string]any{"tokens": ids})
		return nil
	}
	type piece struct {
		ID    int32 `json:"id"`
		Piece any   `json:"piece"` // a text, or a list of bytes that are none
	}
	list := make([]piece, len(ids))
	for i, id := range ids {
		b := s.model.Tokens.PieceSpecial(id)
		list[i] = piece{id, string(b)}
		if strings.ToValidUTF8(string(b), "") != string(b) {
			bytes := make([]int, len(b))
			for j, c := range b {
				bytes[j] = int(c)
			}
			list[i].Piece = bytes
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"tokens": list})
	return nil
}

type detokenizeRequest struct{ tokens []int32 }

// detokenize answers /detokenize. Control tokens are shown by their text.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) error {
	var q detokenizeRequest
	table := fields[detokenizeRequest]{"tokens": value(func(r *detokenizeRequest) *[]int32 { return &r.tokens })}
	if err := decode(s, w, r, table, &q); err != nil {
		return err
	}
	for i, id := range q.tokens {
		if id < 0 || int(id) >= s.model.Tokens.VocabSize() {
			return badField("tokens", "id %d at %d is outside the vocabulary of %d", id, i, s.model.Tokens.VocabSize())
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"content": s.show(q.tokens)})
	return nil
}

// applyTemplate answers /apply-template: the prompt of a chat request, which is not run.
func (s *Server) applyTemplate(w http.ResponseWriter, r *http.Request) error {
	var q chatRequest
	if err := decode(s, w, r, chatFields, &q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	t, err := s.task(r.Context(), &q.conversation)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"prompt": s.show(t.prompt), "tokens": rawIDs(t.prompt)})
	return nil
}

// rawIDs writes ids as a list even where there are none.
func rawIDs(ids []int32) json.RawMessage {
	b, err := json.Marshal(append([]int32{}, ids...))
	if err != nil {
		return json.RawMessage("[]")
	}
	return b
}

// show is the text of ids, control tokens included.
func (s *Server) show(ids []int32) string {
	d := s.model.Tokens.NewSpecialDecoder()
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(d.Push(id))
	}
	text.WriteString(d.Flush())
	return text.String()
}
