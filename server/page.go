package server

import (
	"embed"
	"net/http"
)

//go:embed page
var pageFiles embed.FS

// pageTypes are the files of the chat page.
var pageTypes = map[string]string{
	"index.html": "text/html; charset=utf-8",
	"chat.css":   "text/css; charset=utf-8",
	"chat.js":    "text/javascript; charset=utf-8",
}

// pagePolicy lets the page load its own files and call its own server, nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// servePage answers / and /page/FILE.
func servePage(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("file")
	if name == "" {
		name = "index.html"
	}
	kind, ok := pageTypes[name]
	if !ok {
		return &apiError{status: http.StatusNotFound, kind: "invalid_request_error", code: "unknown_url", message: "the page has no such file"}
	}
	b, err := pageFiles.ReadFile("page/" + name)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(b) // a browser that is gone
	return nil
}
