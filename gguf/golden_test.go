package gguf

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// sharedDir returns the directory of shared reference data, or skips.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared") // beside the repository
	}
	if _, err := os.Stat(filepath.Join(dir, "golden")); err != nil {
		t.Skipf("no reference data: %v (set MINFER_SHARED)", err)
	}
	return dir
}

func TestGoldenModels(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(sharedDir(t), "golden", "models", "*.gguf"))
	must(t, err)
	if len(paths) == 0 {
		t.Fatal("no models")
	}
	for _, path := range paths {
		f, err := Open(path)
		must(t, err)
		_, typeName, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".gguf"), "-")
		_, typeName, _ = strings.Cut(typeName, "-")
		want, err := quant.ParseType(typeName)
		must(t, err)
		// Every matrix has the type that the file is named for; vectors are F32.
		matrices := 0
		for _, x := range f.Tensors() {
			if len(x.Shape) == 1 && x.Type != quant.F32 || len(x.Shape) == 2 && x.Type != want {
				t.Errorf("%s: tensor %s is %s%v", path, x.Name, x.Type, x.Shape)
			}
			if len(x.Shape) == 2 {
				matrices++
			}
		}
		embedding, ok := f.Tensor("token_embd.weight")
		if !ok || !slices.Equal(embedding.Shape, []int{256, 512}) || matrices < 14 {
			t.Errorf("%s: %d matrices, embedding %v", path, matrices, embedding)
		}
		arch, err := f.String("general.architecture")
		must(t, err)
		if n, err := f.Uint(arch + ".block_count"); n != 2 || err != nil {
			t.Errorf("%s: %d blocks, %v", path, n, err)
		}
		must(t, f.Close())
	}
}

func TestGoldenVocabularies(t *testing.T) {
	for name, want := range map[string]int{"qwen2.5-vocab.gguf": 151665, "qwen3-vocab.gguf": 151669} {
		f, err := Open(filepath.Join(sharedDir(t), "golden", "vocab", name))
		must(t, err)
		tokens, err := f.Strings("tokenizer.ggml.tokens")
		must(t, err)
		kinds, err := f.Ints("tokenizer.ggml.token_type")
		must(t, err)
		merges, err := f.Strings("tokenizer.ggml.merges")
		must(t, err)
		if len(tokens) != want || len(kinds) != want || len(merges) != 151387 || tokens[0] != "!" || merges[2] != "i n" {
			t.Errorf("%s: %d tokens, %d kinds, %d merges", name, len(tokens), len(kinds), len(merges))
		}
		if bos, err := f.Uint("tokenizer.ggml.bos_token_id"); bos != 151643 || err != nil || tokens[bos] != "<|endoftext|>" {
			t.Errorf("%s: BOS %d, %v", name, bos, err)
		}
		must(t, f.Close())
	}
}
