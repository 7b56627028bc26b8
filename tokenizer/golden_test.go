package tokenizer

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/minfer-go/minfer/gguf"
)

// shared returns the path of a file of reference data, or skips the test.
func shared(t testing.TB, name string) string {
	t.Helper()
	root := os.Getenv("MINFER_SHARED")
	if root == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			up := filepath.Dir(dir)
			if up == dir {
				t.Skip("no module root above the test")
			}
			dir = up
		}
		root = filepath.Join(dir, "..", "shared")
	}
	path := filepath.Join(root, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("reference data is absent: %v (set MINFER_SHARED)", err)
	}
	return path
}

// open loads the tokenizer of a GGUF file.
func open(t testing.TB, path string) *Tokenizer {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// goldenRow is a text and the ids that a reference tokenizer gives for it.
type goldenRow struct {
	Text string  `json:"text"`
	IDs  []int32 `json:"ids"`
}

func readRows[T any](t testing.TB, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []T
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var r T
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatalf("%s: row %d: %v", path, len(rows)+1, err)
		}
		rows = append(rows, r)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func checkRows(t *testing.T, tok *Tokenizer, rows []goldenRow) {
	t.Helper()
	bad := 0
	for i, r := range rows {
		if got := tok.Encode(r.Text, true); !slices.Equal(got, r.IDs) {
			if bad++; bad <= 5 {
				t.Errorf("row %d %q:\n got %v\nwant %v", i+1, r.Text, got, r.IDs)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d rows differ", bad, len(rows))
	}
}

func TestGoldenQwen(t *testing.T) {
	for _, name := range []string{"qwen2.5", "qwen3"} {
		t.Run(name, func(t *testing.T) {
			rows := readRows[goldenRow](t, shared(t, "golden/tokenizer/"+name+".jsonl"))
			if len(rows) < 400 {
				t.Fatalf("%d rows, want at least 400", len(rows))
			}
			checkRows(t, open(t, shared(t, "golden/vocab/"+name+"-vocab.gguf")), rows)
		})
	}
}

func TestGoldenTiny(t *testing.T) {
	rows := readRows[goldenRow](t, shared(t, "golden/tiny.jsonl"))
	if len(rows) == 0 {
		t.Fatal("no rows")
	}
	checkRows(t, open(t, shared(t, "model/tiny-f32.gguf")), rows)
}

func BenchmarkLoad(b *testing.B) {
	f, err := gguf.Open(shared(b, "golden/vocab/qwen3-vocab.gguf"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	tok := open(b, shared(b, "golden/vocab/qwen3-vocab.gguf"))
	for _, name := range []string{"english", "code", "mixed"} {
		text := benchText(name)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			dst := make([]int32, 0, len(text))
			for b.Loop() {
				dst = tok.Append(dst[:0], text, false)
			}
		})
	}
}
