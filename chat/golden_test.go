package chat_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/tokenizer"
)

// clock is the time at which the reference data was made.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// goldenDir is the folder of the reference data; the test skips without it.
func goldenDir(t testing.TB, sub string) string {
	t.Helper()
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	dir = filepath.Join(dir, "golden", sub)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the reference data is absent: %v", err)
	}
	return dir
}

// A vocabulary is a file without weights and its tokenizer.
type vocabulary struct {
	file   *gguf.File
	tokens *tokenizer.Tokenizer
}

var vocabularies sync.Map // by file name; they are dear to load

func openVocabulary(t testing.TB, name string) vocabulary {
	t.Helper()
	if v, ok := vocabularies.Load(name); ok {
		return v.(vocabulary)
	}
	f, err := gguf.Open(filepath.Join(goldenDir(t, "vocab"), name))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(f)
	if err != nil {
		t.Fatal(err)
	}
	v := vocabulary{f, tok}
	vocabularies.Store(name, v)
	return v
}

type row struct {
	Case   string          `json:"case"`
	Input  json.RawMessage `json:"input"`
	Output *string         `json:"output"`
	Error  string          `json:"error"`
}

func readRows(t testing.TB, path string) []row {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var rows []row
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var r row
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		rows = append(rows, r)
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

// requestOf reads a row's input as a request, the way a server reads a body. Special tokens stay those of the row.
func requestOf(t *testing.T, input json.RawMessage) chat.Request {
	t.Helper()
	var o chat.Object
	if err := json.Unmarshal(input, &o); err != nil {
		t.Fatal(err)
	}
	var r chat.Request
	for _, f := range o {
		var err error
		switch f.Key {
		case "messages":
			err = json.Unmarshal(f.Value, &r.Messages)
		case "tools":
			err = json.Unmarshal(f.Value, &r.Tools)
		case "documents":
			err = json.Unmarshal(f.Value, &r.Documents)
		case "add_generation_prompt":
			r.NoReply = string(f.Value) == "false"
		default:
			r.Variables.Set(f.Key, f.Value)
		}
		if err != nil {
			t.Fatalf("%s: %v", f.Key, err)
		}
	}
	return r
}

// goldenTemplates calls test for every published template.
func goldenTemplates(t *testing.T, test func(t *testing.T, name, text string, rows []row)) {
	files, err := filepath.Glob(filepath.Join(goldenDir(t, "chat"), "*.jinja"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".jinja")
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			rows := readRows(t, strings.TrimSuffix(f, ".jinja")+".jsonl")
			if len(rows) == 0 {
				t.Fatal("no rows")
			}
			test(t, name, string(text), rows)
		})
	}
}

// TestGoldenText renders every row twice: the JSON as it is, and as a request of typed messages.
func TestGoldenText(t *testing.T) {
	v := openVocabulary(t, "qwen3-vocab.gguf")
	goldenTemplates(t, func(t *testing.T, name, text string, rows []row) {
		c, err := chat.New(v.file, v.tokens, chat.WithTemplate(name, text), chat.WithClock(clock))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			have, err := c.RenderJSON(context.Background(), r.Input)
			checkRow(t, r, have, err)
			p, err := c.Prompt(context.Background(), requestOf(t, r.Input))
			if p == nil {
				p = &chat.Prompt{}
			}
			checkRow(t, r, p.Text, err)
		}
	})
}

func checkRow(t *testing.T, r row, have string, err error) {
	t.Helper()
	switch {
	case r.Output == nil && err == nil:
		t.Errorf("%s: %q, want the error %s", r.Case, have, r.Error)
	case r.Output != nil && err != nil:
		t.Errorf("%s: %v", r.Case, err)
	case r.Output != nil && have != *r.Output:
		t.Errorf("%s:\n have %q\n want %q", r.Case, have, *r.Output)
	}
}

// TestGoldenTokens: as no message of the rows holds a control token of these vocabularies, the ids are those of the whole
// text with control tokens recognised everywhere.
func TestGoldenTokens(t *testing.T) {
	for _, name := range []string{"qwen2.5-vocab.gguf", "qwen3-vocab.gguf"} {
		v := openVocabulary(t, name)
		goldenTemplates(t, func(t *testing.T, name, text string, rows []row) {
			c, err := chat.New(v.file, v.tokens, chat.WithTemplate(name, text), chat.WithClock(clock))
			if err != nil {
				t.Fatal(err)
			}
			compared := 0
			for _, r := range rows {
				if r.Output == nil {
					continue
				}
				request := requestOf(t, r.Input)
				for _, key := range []string{"bos_token", "eos_token"} { // data where a request sets them; the model's own are not
					request.Variables = slices.DeleteFunc(request.Variables, func(f chat.Field) bool { return f.Key == key })
				}
				p, err := c.Prompt(context.Background(), request)
				if err != nil {
					t.Errorf("%s: %v", r.Case, err)
					continue
				}
				if want := v.tokens.Encode(p.Text, true); !slices.Equal(p.Tokens, want) {
					t.Errorf("%s: %q\n have %v\n want %v", r.Case, p.Text, p.Tokens, want)
				}
				compared++
			}
			if compared == 0 {
				t.Error("no row was compared")
			}
		})
	}
}
