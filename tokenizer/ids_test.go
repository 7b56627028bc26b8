package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/gguf"
)

// idRules are the rules that have a fixture of ids.
var idRules = []string{"gpt-2", "smollm", "qwen2", "qwen35", "llama-bpe", "tekken", "deepseek-v3"}

// smallVocab returns the vocabulary of the fixtures in dir under a rule, as a
// file would give it.
func smallVocab(t testing.TB, dir, pre string) *vocabData {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "vocab.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Tokens []string `json:"tokens"`
		Types  []int64  `json:"types"`
		Merges []string `json:"merges"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	return &vocabData{
		file: "vocab.json", model: "gpt2", pre: pre, tokens: v.Tokens, types: v.Types, merges: v.Merges,
		bos: -1, eos: -1, eot: -1, eom: -1, unk: -1, pad: -1, fimPad: -1, fimRep: -1, fimSep: -1,
	}
}

// small is the tokenizer of the committed small vocabulary under a rule.
func small(t testing.TB, pre string) *Tokenizer {
	t.Helper()
	tok, err := newTokenizer(smallVocab(t, filepath.Join("testdata", "ids"), pre))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// TestIDs holds whole encodings to the Hugging Face tokenizers library: normal
// form, special tokens, pieces and merges together. MINFER_IDS may name a larger
// corpus made by testdata/gen_ids.py.
func TestIDs(t *testing.T) {
	dir := os.Getenv("MINFER_IDS")
	if dir == "" {
		dir = filepath.Join("testdata", "ids")
	}
	texts := readRows[string](t, filepath.Join(dir, "texts.jsonl"))
	if len(texts) < 50 {
		t.Fatalf("%d texts, want at least 50", len(texts))
	}
	for _, pre := range idRules {
		t.Run(pre, func(t *testing.T) {
			tok, err := newTokenizer(smallVocab(t, dir, pre))
			if err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(dir, pre+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
			if len(lines) != len(texts) {
				t.Fatalf("%d rows for %d texts", len(lines), len(texts))
			}
			rows := make([]goldenRow, len(texts))
			for i, line := range lines {
				rows[i].Text = texts[i]
				for _, f := range strings.Fields(line) {
					id, err := strconv.Atoi(f)
					if err != nil {
						t.Fatal(err)
					}
					rows[i].IDs = append(rows[i].IDs, int32(id))
				}
			}
			checkRows(t, tok, rows)
		})
	}
}

// TestSmolLM2 runs where MINFER_SMOLLM2 names the published GGUF file.
func TestSmolLM2(t *testing.T) {
	path := os.Getenv("MINFER_SMOLLM2")
	if path == "" {
		t.Skip("MINFER_SMOLLM2 does not name SmolLM2-135M-Instruct.Q4_1.gguf")
	}
	fixture := os.Getenv("MINFER_SMOLLM2_ROWS")
	if fixture == "" {
		fixture = filepath.Join("testdata", "smollm2.jsonl")
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	checkRows(t, tok, readRows[goldenRow](t, fixture))
	if got := tok.Encode("!\x04!", false); len(got) != 1 || string(tok.Piece(got[0])) != "!!" {
		t.Errorf("a byte without a token must be dropped before merging: %v", got)
	}
	if id, ok := tok.EOS(); !ok || !tok.IsEOG(id) || tok.Text(id) != "<|im_end|>" {
		t.Errorf("EOS is %d (%q)", id, tok.Text(id))
	}
}
