package server

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocs: docs/server.md names every endpoint, every field of every table and every family of the metrics.
func TestDocs(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "server.md"))
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for path, fields := range fieldNames() {
		if !strings.Contains(page, path) {
			t.Errorf("docs/server.md does not name %s", path)
		}
		for _, name := range fields {
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("docs/server.md does not name %s of %s", name, path)
			}
		}
	}
	for name := range ollamaOptions {
		if !strings.Contains(page, "`"+name+"`") && !strings.Contains("penalize_newline main_gpu numa use_mmap use_mlock low_vram f16_kv vocab_only", name) {
			t.Errorf("docs/server.md does not name the option %s", name)
		}
	}
	for _, name := range families {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/server.md does not name the family %s", name)
		}
	}
}

// curlLine matches the requests that the documentation shows.
var curlLine = regexp.MustCompile(`(?s)curl -sN? localhost:8080(\S+)(?: -d '(.*?)')?\n`)

// TestDocsRun: every request that docs/server.md shows is answered.
func TestDocsRun(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "docs", "server.md"))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t)
	shown := curlLine.FindAllStringSubmatch(string(b), -1)
	if len(shown) < 15 || len(shown) != strings.Count(string(b), "curl -s") {
		t.Errorf("%d requests were found", len(shown))
	}
	for _, m := range shown {
		method := http.MethodGet
		if m[2] != "" {
			method = http.MethodPost
		}
		if status, _, body := r.do(method, m[1], m[2]); status != http.StatusOK || body == "" {
			t.Errorf("%s %s %s: %d %s", method, m[1], m[2], status, body)
		}
	}
}
