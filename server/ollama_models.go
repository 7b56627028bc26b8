package server

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"
)

// ollamaDetails describes the model.
func (s *Server) ollamaDetails() map[string]any {
	c := s.model.Engine.Model().Config()
	return map[string]any{
		"parent_model": "", "format": "gguf", "family": c.Arch, "families": []string{c.Arch}, "parameter_size": parameterSize(s.parameters()),
		"quantization_level": s.quantization(),
	}
}

// parameterSize is a number of weights as people write it.
func parameterSize(n int) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1fB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fK", float64(n)/1e3)
}

// quantization is the type that most weights have.
func (s *Server) quantization() string {
	counts, best, most := map[string]int{}, "", -1
	for _, t := range s.model.File.Tensors() {
		name := t.Type.String()
		if counts[name] += t.Elements(); counts[name] > most {
			best, most = name, counts[name]
		}
	}
	return best
}

// digest names the file's content by what tells files apart without reading them whole: names, types and shapes.
func (s *Server) digest() string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", s.model.Name)
	for _, t := range s.model.File.Tensors() {
		fmt.Fprintf(h, "%s %s %v\n", t.Name, t.Type, t.Shape)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ollamaTags answers /api/tags.
func (s *Server) ollamaTags(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	name := s.model.Name
	if !strings.Contains(name, ":") {
		name += ":latest"
	}
	writeJSON(w, http.StatusOK, map[string]any{"models": []any{map[string]any{
		"name": name, "model": name, "modified_at": s.started.UTC().Format(time.RFC3339Nano), "size": s.bytes(), "digest": s.digest(), "details": s.ollamaDetails(),
	}}})
	return nil
}

// showRequest is the body of /api/show.
type showRequest struct {
	model, name string
	verbose     bool
}

var showFields = fields[showRequest]{
	"model":   value(func(r *showRequest) *string { return &r.model }),
	"name":    value(func(r *showRequest) *string { return &r.name }),
	"verbose": value(func(r *showRequest) *bool { return &r.verbose }),
}

// longList is how long a list of metadata may be that is shown without verbose.
const longList = 16

// ollamaShow answers /api/show.
func (s *Server) ollamaShow(w http.ResponseWriter, r *http.Request) error {
	var q showRequest
	if err := decode(s, w, r, showFields, &q); err != nil {
		return err
	}
	if q.model == "" {
		q.model = q.name
	}
	if err := s.wants(q.model); err != nil {
		return err
	}
	info := map[string]any{"general.parameter_count": s.parameters()}
	for _, key := range s.model.File.Keys() {
		if key == "tokenizer.chat_template" {
			continue
		}
		info[key] = s.metadata(key, q.verbose)
	}
	capabilities := []string{"completion"}
	template := s.model.Format.Source()
	if s.model.Format.TakesTools() {
		capabilities = append(capabilities, "tools")
	}
	if s.reasons() {
		capabilities = append(capabilities, "thinking")
	}
	license, _ := s.model.File.String("general.license") // many have none
	writeJSON(w, http.StatusOK, map[string]any{
		"modelfile": "", "parameters": fmt.Sprintf("num_ctx %d\ntemperature %g", s.model.Engine.Context(), s.options.Sampling.Temperature),
		"template": template, "license": license, "details": s.ollamaDetails(), "model_info": info, "capabilities": capabilities,
		"modified_at": s.started.UTC().Format(time.RFC3339Nano),
	})
	return nil
}

// reasons reports whether the model's template knows reasoning.
func (s *Server) reasons() bool {
	template := s.model.Format.Source()
	return strings.Contains(template, thinkOpen) || strings.Contains(template, "enable_thinking") || strings.Contains(template, "reasoning_effort")
}

// metadata is a value of the file as JSON; long lists are null unless wanted.
func (s *Server) metadata(key string, verbose bool) any {
	f := s.model.File
	if v, err := f.String(key); err == nil {
		return v
	}
	if v, err := f.Bool(key); err == nil {
		return v
	}
	if v, err := f.Int(key); err == nil {
		return v
	}
	if v, err := f.Uint(key); err == nil {
		return v
	}
	if v, err := f.Float(key); err == nil {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Sprint(v)
		}
		return v
	}
	for _, list := range []func(string) (any, int, error){
		func(k string) (any, int, error) { l, err := f.Strings(k); return l, len(l), err },
		func(k string) (any, int, error) { l, err := f.Ints(k); return l, len(l), err },
		func(k string) (any, int, error) { l, err := f.Floats(k); return l, len(l), err },
	} {
		if l, n, err := list(key); err == nil {
			if n > longList && !verbose {
				return json.RawMessage("null")
			}
			return l
		}
	}
	return json.RawMessage("null")
}

// ollamaVersions answers /api/version.
func (s *Server) ollamaVersions(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"version": ollamaVersion, "minfer": s.options.Version})
	return nil
}
