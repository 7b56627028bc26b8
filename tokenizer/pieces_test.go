package tokenizer

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// pieceRules maps each fixture of testdata/pieces to the rules that must cut
// as it says.
var pieceRules = map[string][]string{
	"gpt-2": {
		"gpt-2", "phi-2", "mpt", "olmo", "jais", "gigachat", "a.x-4.0", "mellum", "exaone4", "trillion", "granite-docling",
	},
	"smollm": {"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b", "mellum2"},
	"qwen2": {
		"qwen2", "deepseek-r1-qwen", "megrez", "kormo", "f2llmv2", "stablelm2", "hunyuan", "solar-open", "grok-2",
	},
	"bailingmoe": {"bailingmoe", "bailingmoe2", "llada-moe"},
	"qwen35":     {"qwen35"},
	"seed-coder": {"seed-coder"},
	"llama-bpe": {
		"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano",
		"dbrx", "smaug-bpe", "glm4", "chatglm-bpe",
	},
	"minicpm5":       {"minicpm5"},
	"jais-2":         {"jais-2"},
	"gpt-4o":         {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
	"tekken":         {"tekken"},
	"kimi-k2":        {"kimi-k2"},
	"exaone-moe":     {"exaone-moe"},
	"youtu":          {"youtu"},
	"tiny_aya":       {"tiny_aya", "cohere2moe"},
	"longcat":        {"longcat"},
	"superbpe":       {"superbpe"},
	"laguna":         {"laguna"},
	"spark2_5":       {"spark2_5"},
	"ufakzeka":       {"ufakzeka"},
	"k2-horizon":     {"k2-horizon"},
	"deepseek-v3":    {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"},
	"deepseek-llm":   {"deepseek-llm"},
	"deepseek-coder": {"deepseek-coder"},
	"falcon":         {"falcon"},
	"default":        {"default"},
	"bloom":          {"bloom", "poro-chat", "gpt3-finnish"},
	"viking":         {"viking"},
}

// TestPieces holds every rule to the published pattern, as regular expression
// engines cut a corpus. MINFER_PIECES may name a larger corpus made by
// testdata/gen_pieces.py.
func TestPieces(t *testing.T) {
	initClasses()
	dir := os.Getenv("MINFER_PIECES")
	if dir == "" {
		dir = filepath.Join("testdata", "pieces")
	}
	texts := readRows[string](t, filepath.Join(dir, "texts.jsonl"))
	if len(texts) < 300 {
		t.Fatalf("%d texts, want at least 300", len(texts))
	}
	tested := map[string]bool{}
	for fixture, names := range pieceRules {
		data, err := os.ReadFile(filepath.Join(dir, fixture+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
		if len(want) != len(texts) {
			t.Fatalf("%s: %d rows for %d texts", fixture, len(want), len(texts))
		}
		for _, name := range names {
			tested[name] = true
			r, ok := rules[name]
			if !ok {
				t.Errorf("%s: no such rule", name)
				continue
			}
			t.Run(name, func(t *testing.T) {
				var sp splitter
				bad := 0
				for i, text := range texts {
					got := lengths(sp.split(r.stages, text))
					if got != want[i] {
						if bad++; bad <= 5 {
							t.Errorf("text %d %q:\n got %s\nwant %s", i, text, got, want[i])
						}
					}
				}
				if bad > 0 {
					t.Errorf("%d of %d texts differ", bad, len(texts))
				}
			})
		}
	}
	for _, name := range Rules() {
		if !tested[name] {
			t.Errorf("rule %q has no fixture", name)
		}
	}
}

func lengths(ends []int) string {
	var b strings.Builder
	start := 0
	for i, end := range ends {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(end - start))
		start = end
	}
	return b.String()
}
