package hub

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/minfer-go/minfer/internal/builtin"
)

// cache makes an empty cache directory and returns it; files are written below it by their names with slashes.
func cache(t *testing.T, files map[string]string) string {
	t.Helper()
	base := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", base)
	dir := filepath.Join(base, "minfer", "models")
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCacheDir(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", filepath.Join("a", "b"))
	if have, err := CacheDir(); err != nil || have != filepath.Join("a", "b", "minfer", "models") {
		t.Errorf("with XDG_CACHE_HOME: %q, %v", have, err)
	}
	home := map[string]string{"windows": "USERPROFILE", "plan9": "home"}[runtime.GOOS]
	if home == "" {
		home = "HOME"
	}
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv(home, filepath.Join("h"))
	if have, err := CacheDir(); err != nil || have != filepath.Join("h", ".cache", "minfer", "models") {
		t.Errorf("with %s: %q, %v", home, have, err)
	}
	t.Setenv(home, "")
	if have, err := CacheDir(); err == nil {
		t.Errorf("without a home: %q", have)
	}
	if _, err := List(); err == nil {
		t.Error("List without a home succeeded")
	}
	if _, err := Resolve("no-such-file"); err == nil {
		t.Error("Resolve without a home succeeded")
	}
}

func TestList(t *testing.T) {
	dir := cache(t, map[string]string{
		"b.gguf": "12345", "A/a.GGUF": "1", "A/note.txt": "x", "A/big-00002-of-00003.gguf": "22", "A/big-00001-of-00003.gguf": "1",
		"A/big-00003-of-00003.gguf": "333", "odd-0001-of-0002.gguf": "4444",
	})
	have, err := List()
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	want := []Entry{
		{"A/a", at("A/a.GGUF"), 1, 1},
		{"A/big", at("A/big-00001-of-00003.gguf"), 3, 6},
		{"b", at("b.gguf"), 1, 5},
		{"odd-0001-of-0002", at("odd-0001-of-0002.gguf"), 1, 4},
	}
	if d := cmp.Diff(want, have); d != "" {
		t.Error(d)
	}
}

func TestListEmpty(t *testing.T) {
	cache(t, nil)
	if have, err := List(); err != nil || len(have) != 0 {
		t.Errorf("a cache that does not exist: %v, %v", have, err)
	}
}

// TestListLinks: other tools keep models as links to files with names of their own; a link to nothing is no model.
func TestListLinks(t *testing.T) {
	dir := cache(t, map[string]string{"x/blob": "123456"})
	if err := os.Symlink(filepath.Join("x", "blob"), filepath.Join(dir, "linked.gguf")); err != nil {
		t.Skipf("this system makes no links: %v", err)
	}
	if err := os.Symlink(filepath.Join("x", "gone"), filepath.Join(dir, "dangling.gguf")); err != nil {
		t.Fatal(err)
	}
	have, err := List()
	if err != nil || len(have) != 1 || have[0].Name != "linked" || have[0].Bytes != 6 {
		t.Errorf("%+v, %v", have, err)
	}
}

func TestListUnreadable(t *testing.T) {
	dir := cache(t, map[string]string{"a/b.gguf": "1"})
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "a", "b.gguf")) // a file where a directory should be
	if runtime.GOOS == "windows" {
		t.Skip("this system reports that as absent")
	}
	if _, err := List(); err == nil {
		t.Error("no error")
	}
}

func TestResolve(t *testing.T) {
	dir := cache(t, map[string]string{
		"org/Model-Q4.gguf": "1", "org/sub/twin.gguf": "2", "other/twin.gguf": "3", "twin.gguf": "4", "org/one.gguf": "5", "x/one.gguf": "6",
		"org/big-00001-of-00002.gguf": "7", "org/big-00002-of-00002.gguf": "8",
	})
	here := filepath.Join(t.TempDir(), "twin.gguf")
	if err := os.WriteFile(here, []byte("9"), 0o644); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, c := range []struct {
		name, want string
		fault      string // in the error, where there is one
	}{
		{here, here, ""},
		{"org/Model-Q4", at("org/Model-Q4.gguf"), ""},
		{"ORG/model-q4.gguf", at("org/Model-Q4.gguf"), ""},
		{"model-q4", at("org/Model-Q4.gguf"), ""},
		{"twin", at("twin.gguf"), ""}, // a whole name, though others end in it
		{"sub/twin", at("org/sub/twin.gguf"), ""},
		{"big", at("org/big-00001-of-00002.gguf"), ""},
		{"one", "", "org/one, x/one"},
		{"odel-q4", "", "neither a file"},
		{"", "", "neither a file"},
		{dir, "", "neither a file"}, // a directory
		{"../models/twin", "", "neither a file"},
	} {
		have, err := Resolve(c.name)
		if c.fault == "" {
			if err != nil || have != c.want {
				t.Errorf("%q: %q, %v, want %q", c.name, have, err, c.want)
			}
			continue
		}
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%q: %q, %v, want an error that says %q", c.name, have, err, c.fault)
		}
	}
}

func TestOpen(t *testing.T) {
	cache(t, map[string]string{"copy.gguf": string(builtin.Tiny()), "broken.gguf": "GGUF"})
	for _, name := range []string{builtin.Name, "copy"} {
		f, err := Open(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if arch, err := f.String("general.architecture"); err != nil || arch != "qwen3" {
			t.Errorf("%s: architecture %q, %v", name, arch, err)
		}
		if err := f.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open("broken"); err == nil || !strings.Contains(err.Error(), "broken.gguf") {
		t.Errorf("a broken file: %v", err)
	}
	if _, err := Open("nowhere"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown name: %v", err)
	}
}
