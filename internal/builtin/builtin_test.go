package builtin

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// maxBytes bounds what the model adds to every program that links it.
const maxBytes = 4 << 20

func TestTiny(t *testing.T) {
	b := Tiny()
	if len(b) > maxBytes {
		t.Errorf("%d bytes, the limit is %d", len(b), maxBytes)
	}
	if !bytes.HasPrefix(b, []byte("GGUF\x03\x00\x00\x00")) {
		t.Errorf("begins with %q", b[:8])
	}
	if &b[0] != &Tiny()[0] {
		t.Error("every call copies the file")
	}
}

// TestTinyIsCurrent: the embedded file is the published one, where that is at hand.
func TestTinyIsCurrent(t *testing.T) {
	dir := os.Getenv("MINFER_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	want, err := os.ReadFile(filepath.Join(dir, "model", "tiny-q8_0.gguf"))
	if err != nil {
		t.Skipf("no reference data: %v (set MINFER_SHARED)", err)
	}
	if !bytes.Equal(Tiny(), want) {
		t.Error("differs from tiny-q8_0.gguf")
	}
}
