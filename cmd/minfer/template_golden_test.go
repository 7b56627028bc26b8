package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTemplateGolden renders every published template and every construct of the reference data through the command.
func TestTemplateGolden(t *testing.T) {
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "golden", "chat")
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Skipf("the reference data is absent: no *.jsonl in %s, %v", dir, err)
	}
	t.Setenv("MINFER_NOW", "2026-01-02T03:04:05")
	scratch := filepath.Join(t.TempDir(), "t.jinja")
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		type row struct {
			Template, Output *string
			Input, Context   json.RawMessage
		}
		var rows []row
		for text := range bytes.Lines(b) {
			var r row
			if err := json.Unmarshal(text, &r); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			rows = append(rows, r)
		}
		for len(rows) > 0 { // a batch with one template
			template, n := strings.TrimSuffix(file, ".jsonl")+".jinja", len(rows)
			if rows[0].Template != nil {
				template, n = scratch, 1
				if err := os.WriteFile(scratch, []byte(*rows[0].Template), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var in, out bytes.Buffer
			for _, r := range rows[:n] {
				in.Write(append(append(r.Input, r.Context...), '\n'))
			}
			root := newRoot()
			root.SetArgs([]string{"template", "--file", template, "--jsonl"})
			root.SetIn(&in)
			root.SetOut(&out)
			if err := root.Execute(); err != nil {
				t.Fatalf("%s: %v", template, err)
			}
			lines := bufio.NewScanner(&out)
			lines.Buffer(nil, maxLine)
			for i, r := range rows[:n] {
				var have struct{ Output, Error *string }
				if !lines.Scan() || json.Unmarshal(lines.Bytes(), &have) != nil {
					t.Fatalf("%s: row %d: no answer", template, i)
				}
				if (have.Output == nil) != (r.Output == nil) || (have.Error == nil) == (have.Output == nil) || have.Output != nil && *have.Output != *r.Output {
					t.Errorf("%s: row %d: %s", template, i, lines.Text())
				}
			}
			rows = rows[n:]
		}
	}
}
