package jinja_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minfer-go/minfer/jinja"
)

// clock is the time at which the reference data was made.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// goldenDir is the folder of the reference data; the test skips without it.
func goldenDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			if filepath.Dir(root) == root {
				t.Fatal("no go.mod above the test")
			}
			root = filepath.Dir(root)
		}
		dir = filepath.Join(root, "..", "shared")
	}
	dir = filepath.Join(dir, "golden", "chat")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the reference data is absent: %v", err)
	}
	return dir
}

type row struct {
	Case     string          `json:"case"`
	Shared   string          `json:"shared"`
	Template string          `json:"template"`
	Context  json.RawMessage `json:"context"`
	Input    json.RawMessage `json:"input"`
	Output   *string         `json:"output"`
	Error    string          `json:"error"`
}

func readRows(t testing.TB, path string) []row {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var rows []row
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		var r row
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		rows = append(rows, r)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func render(src string, data []byte) (string, error) {
	t, err := jinja.Parse("test", src, jinja.WithClock(clock))
	if err != nil {
		return "", err
	}
	v, err := jinja.FromJSON(data)
	if err != nil {
		return "", err
	}
	return t.Render(context.Background(), v)
}

// check compares a rendering with a row of the reference.
func check(t *testing.T, r row, got string, err error) {
	t.Helper()
	switch {
	case errors.Is(err, jinja.ErrInternal):
		t.Errorf("%q: %v", r.Template, err)
	case r.Output == nil && err == nil:
		t.Errorf("%s %q\n got %q\nwant the error %s", r.Case, r.Template, got, r.Error)
	case r.Output != nil && err != nil:
		t.Errorf("%s %q\n got %v\nwant %q", r.Case, r.Template, err, *r.Output)
	case r.Output != nil && got != *r.Output:
		t.Errorf("%s %q\n got %q\nwant %q", r.Case, r.Template, got, *r.Output)
	}
}

func TestGoldenTemplates(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(goldenDir(t), "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			src, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			rows := readRows(t, strings.TrimSuffix(f, ".jinja")+".jsonl")
			if len(rows) == 0 {
				t.Fatal("no rows")
			}
			for _, r := range rows {
				got, err := render(string(src), r.Input)
				check(t, r, got, err)
			}
		})
	}
}

func TestGoldenSnippets(t *testing.T) {
	for _, r := range readRows(t, filepath.Join(goldenDir(t), "snippets.jsonl")) {
		got, err := render(r.Template, r.Context)
		check(t, r, got, err)
	}
}

// TestRows holds the engine to testdata/rows.jsonl, which gen_rows.py makes with
// Python's Jinja2.
func TestRows(t *testing.T) {
	shared := map[string]json.RawMessage{}
	n := 0
	for _, r := range readRows(t, filepath.Join("testdata", "rows.jsonl")) {
		if r.Template == "" && r.Context != nil && r.Case == "" {
			shared[r.Shared] = r.Context
			continue
		}
		if r.Shared != "" {
			r.Context = shared[r.Shared]
		}
		n++
		got, err := render(r.Template, r.Context)
		check(t, r, got, err)
	}
	if n < 500 {
		t.Fatalf("only %d rows", n)
	}
}
