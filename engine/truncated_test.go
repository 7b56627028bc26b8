//go:build unix

package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/internal/builtin"
)

// A file that becomes shorter while it is mapped cannot be read to its end: an error that names the weight.
func TestFileCutShortWhileOpen(t *testing.T) {
	for _, keep := range []int64{0, 1 << 20} {
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, builtin.Tiny(), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := gguf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, keep); err != nil {
			t.Fatal(err)
		}
		_, err = Open(context.Background(), f, Options{})
		if !errors.Is(err, backend.ErrRun) || !strings.Contains(err.Error(), "weight") || strings.Contains(err.Error(), "goroutine") {
			t.Errorf("cut to %d bytes: %v", keep, err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
