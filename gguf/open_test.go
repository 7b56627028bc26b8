package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minfer-go/minfer/quant"
)

func save(t testing.TB, path string, b []byte) string {
	t.Helper()
	must(t, os.WriteFile(path, b, 0o600))
	return path
}

func TestOpen(t *testing.T) {
	b := sample(t, 3)
	path := save(t, filepath.Join(t.TempDir(), "model.gguf"), b)
	for name, opts := range map[string][]Option{"mapped": nil, "in memory": {InMemory()}, "single": {SinglePart()}} {
		t.Run(name, func(t *testing.T) {
			f, err := Open(path, opts...)
			must(t, err)
			if f.Name() != path || !slices.Equal(f.Parts(), []string{path}) {
				t.Errorf("name %s, parts %s", f.Name(), f.Parts())
			}
			tensors := f.Tensors()
			for _, x := range tensors {
				at := int(x.Offset())
				x.Drop()
				if !bytes.Equal(x.Data(), b[at:at+x.Size()]) {
					t.Errorf("tensor %s has other bytes", x.Name)
				}
			}
			strings, err := f.Strings("arr.str")
			must(t, err)
			must(t, f.Close())
			must(t, f.Close())
			if strings[0] != "a" || f.Keys()[0] != "u8" || tensors[0].Name != "a.weight" || tensors[0].Data() != nil {
				t.Error("after Close")
			}
			tensors[0].Drop()
		})
	}
}

func TestOpenRefusals(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, path string
		want       error
	}{
		{"missing", filepath.Join(dir, "missing.gguf"), fs.ErrNotExist},
		{"directory", dir, ErrNotRegular},
		{"empty", save(t, filepath.Join(dir, "empty.gguf"), nil), ErrTruncated},
		{"text", save(t, filepath.Join(dir, "text.gguf"), []byte("hello\n")), ErrMagic},
		{"cut", save(t, filepath.Join(dir, "cut.gguf"), sample(t, 3)[:1000]), ErrTruncated},
	} {
		for _, opts := range [][]Option{nil, {InMemory()}} {
			f, err := Open(c.path, opts...)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("%s: %v, %v; want %v naming the path", c.name, f, err, c.want)
			}
		}
	}
}

// A large file opens in the time of its header.
func TestOpenLargeFile(t *testing.T) {
	const mib = 1 << 20
	r := header(3, 2, 1).set("tokens", ArrayOf(slices.Repeat([]string{"token"}, 150_000)))
	r.tensor("a", quant.F32, 0, 16*mib).tensor("b", quant.F32, 256*mib, 64*mib).data(32, 0)
	path := save(t, filepath.Join(t.TempDir(), "large.gguf"), r.Bytes())
	must(t, os.Truncate(path, int64(r.Len())+512*mib)) // a hole
	begin := time.Now()
	f, err := Open(path)
	took := time.Since(begin)
	must(t, err)
	defer f.Close()
	if took > 2*time.Second { // milliseconds, with room for a busy machine; reading the data would be noticed below
		t.Errorf("took %v", took)
	}
	if got := residentBytes(t, path); got > 16*mib {
		t.Errorf("%d bytes of the mapping are resident", got)
	}
	a, _ := f.Tensor("a")
	sum := 0
	for i := 0; i < a.Size(); i += 4096 {
		sum += int(a.Data()[i])
	}
	if got := residentBytes(t, path); got >= 0 && got < 50*mib {
		t.Errorf("after reading a tensor %d bytes are resident: the test sees nothing", got)
	}
	a.Drop()
	if got := residentBytes(t, path); got > 16*mib || sum != 0 {
		t.Errorf("after Drop %d bytes are resident; sum %d", got, sum)
	}
}

// residentBytes returns how much of the mapping of path is resident, −1 where the system does not say.
func residentBytes(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return -1
	}
	total, here := 0, false
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if strings.Contains(fields[0], "-") {
			here = strings.HasSuffix(strings.TrimSpace(line), path)
		}
		if here && fields[0] == "Rss:" {
			var kib int
			if _, err := fmt.Sscan(fields[1], &kib); err != nil {
				t.Fatal(err)
			}
			total += kib << 10
		}
	}
	return total
}

func BenchmarkOpenVocabulary(b *testing.B) {
	r := header(3, 0, 2).set("tokens", ArrayOf(slices.Repeat([]string{"token"}, 150_000)))
	r.set("merges", ArrayOf(slices.Repeat([]string{"tok en"}, 150_000)))
	path := save(b, filepath.Join(b.TempDir(), "vocab.gguf"), r.Bytes())
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := f.Strings("tokens"); err != nil {
			b.Fatal(err)
		}
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
