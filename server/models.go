package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// modelInfo is a model in OpenAI's form.
func (s *Server) modelInfo() map[string]any {
	c := s.model.Engine.Model().Config()
	return map[string]any{
		"id": s.model.Name, "object": "model", "created": s.started.Unix(), "owned_by": "minfer", "aliases": append([]string{}, s.options.Aliases...),
		"meta": map[string]any{
			"architecture": c.Arch, "n_vocab": c.Vocab, "n_ctx": s.model.Engine.Context(), "n_ctx_train": c.Context, "n_embd": c.Width,
			"n_layer": c.Layers, "n_params": s.parameters(), "size": s.bytes(), "n_slots": s.model.Engine.Sequences(),
		},
	}
}

// parameters is the number of weights.
func (s *Server) parameters() int {
	n := 0
	for _, t := range s.model.File.Tensors() {
		n += t.Elements()
	}
	return n
}

// bytes is the size of the weights in the file.
func (s *Server) bytes() int {
	n := 0
	for _, t := range s.model.File.Tensors() {
		size := 1
		for _, d := range t.Shape {
			size *= d
		}
		if b, err := t.Type.RowBytes(size); err == nil {
			n += b
		}
	}
	return n
}

// noQuery refuses parameters in the address of endpoints that take none.
func noQuery(r *http.Request) error { return knownQuery(r, r.URL.Query()) }

// knownQuery refuses the parameters that are left of those in the address.
func knownQuery(r *http.Request, q url.Values) error {
	names := make([]string, 0, len(q))
	for name := range q {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return badField(clip(names[0]), "unknown parameter of %s", r.URL.Path)
}

// listModels answers /v1/models.
func (s *Server) listModels(w http.ResponseWriter, r *http.Request) error {
	if asAnthropic(r) {
		return s.listAnthropicModels(w, r)
	}
	if err := noQuery(r); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": []any{s.modelInfo()}})
	return nil
}

// getModel answers /v1/models/NAME.
func (s *Server) getModel(w http.ResponseWriter, r *http.Request) error {
	if err := s.wants(strings.TrimSpace(r.PathValue("model"))); err != nil {
		return err
	}
	if err := noQuery(r); err != nil {
		return err
	}
	if asAnthropic(r) {
		writeJSON(w, http.StatusOK, s.anthropicModel())
		return nil
	}
	writeJSON(w, http.StatusOK, s.modelInfo())
	return nil
}

// anthropicModel is a model in Anthropic's form.
func (s *Server) anthropicModel() map[string]any {
	return map[string]any{"type": "model", "id": s.model.Name, "display_name": s.model.Name, "created_at": s.started.UTC().Format("2006-01-02T15:04:05Z")}
}

// maxModelsLimit is the most models that Anthropic's API lists at once.
const maxModelsLimit = 1000

// listAnthropicModels is the list in Anthropic's form. Nothing comes before or after the one model.
func (s *Server) listAnthropicModels(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	beside := false
	for _, name := range []string{"after_id", "before_id"} {
		if id := q.Get(name); id != "" {
			if err := s.wants(id); err != nil {
				return badField(name, "there is no model %q", clip(id))
			}
			beside = true
		}
		q.Del(name)
	}
	if limit := q.Get("limit"); limit != "" {
		if n, err := strconv.Atoi(limit); err != nil || n < 1 || n > maxModelsLimit {
			return badField("limit", "%q is no number in [1, %d]", clip(limit), maxModelsLimit)
		}
	}
	q.Del("limit")
	if err := knownQuery(r, q); err != nil {
		return err
	}
	list := map[string]any{"data": []any{}, "has_more": false, "first_id": nil, "last_id": nil}
	if !beside {
		list["data"], list["first_id"], list["last_id"] = []any{s.anthropicModel()}, s.model.Name, s.model.Name
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

// health answers /health.
func (s *Server) health(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	c := s.model.Engine.Counters()
	status, word := http.StatusOK, "ok"
	if s.draining.Load() {
		status, word = http.StatusServiceUnavailable, "draining"
	}
	answer := map[string]any{
		"status": word, "slots": s.model.Engine.Sequences(), "slots_idle": max(0, s.model.Engine.Sequences()-c.Running), "queued": c.Queued,
	}
	if err := s.model.Engine.Err(); err != nil && status == http.StatusOK {
		status, answer["status"], answer["error"] = http.StatusServiceUnavailable, "failed", firstLine(err)
	}
	writeJSON(w, status, answer)
	return nil
}

// firstLine is an error's text without the stack that may follow.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
