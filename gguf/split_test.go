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

	"github.com/minfer-go/minfer/quant"
)

// splitPart describes one part for saveSplit.
type splitPart struct {
	no, count, total any // uint16, uint16, int32 as written by others; nil: no such key
	more             []entry
	tensors          []string
}

func splitKeys(p splitPart) (entries []entry) {
	for _, e := range []struct {
		key   string
		value any
	}{{splitNoKey, p.no}, {splitCountKey, p.count}, {splitTensorsKey, p.total}} {
		switch v := e.value.(type) {
		case int:
			entries = append(entries, entry{e.key, ValueOf(uint16(v))})
		case int32:
			entries = append(entries, entry{e.key, ValueOf(v)})
		case string:
			entries = append(entries, entry{e.key, ValueOf(v)})
		}
	}
	return entries
}

// threeParts is a whole model in three parts: five tensors, one part with another alignment, metadata in the first.
func threeParts() []splitPart {
	return []splitPart{
		{0, 3, int32(5), []entry{{"general.architecture", ValueOf("test")}, {"tokens", ArrayOf([]string{"a", "b"})}}, []string{"t0", "t1"}},
		{1, 3, int32(5), []entry{{alignmentKey, ValueOf(uint32(256))}, {"late", ValueOf(true)}}, []string{"t2", "t3"}},
		{2, 3, int32(5), []entry{{"general.architecture", ValueOf("test")}}, []string{"t4"}},
	}
}

// saveSplit writes the parts to dir and returns their paths. Tensor tN holds 24 bytes of value N.
func saveSplit(t *testing.T, dir string, parts []splitPart) []string {
	t.Helper()
	paths := make([]string, len(parts))
	for i, p := range parts {
		var out bytes.Buffer
		w := NewWriter("part", &out)
		for _, e := range append(p.more, splitKeys(p)...) {
			must(t, w.Set(e.key, e.value))
		}
		for _, name := range p.tensors {
			must(t, w.AddTensor(name, quant.I8, []int{24}))
		}
		for _, name := range p.tensors {
			must(t, w.WriteTensor(name, bytes.Repeat([]byte(name[1:]), 24)))
		}
		must(t, w.Close())
		paths[i] = save(t, PartPath(filepath.Join(dir, "model-q4"), i, len(parts)), out.Bytes())
	}
	return paths
}

func TestOpenSplitFromAnyPart(t *testing.T) {
	paths := saveSplit(t, t.TempDir(), threeParts())
	for i, path := range paths {
		f, err := Open(path)
		must(t, err)
		if f.Name() != path || !slices.Equal(f.Parts(), paths) {
			t.Errorf("name %s, parts %s", f.Name(), f.Parts())
		}
		want := []string{"general.architecture", "tokens", splitNoKey, splitCountKey, splitTensorsKey, "late"}
		if got := f.Keys(); !slices.Equal(got, want) {
			t.Errorf("keys %q, want %q", got, want)
		}
		if no, err := f.Uint(splitNoKey); no != 0 || err != nil {
			t.Errorf("split.no is %d, %v", no, err)
		}
		for n, x := range f.Tensors() {
			name := fmt.Sprintf("t%d", n)
			if x.Name != name || !bytes.Equal(x.Data(), bytes.Repeat([]byte(name[1:]), 24)) || x.Part() != []int{0, 0, 1, 1, 2}[n] {
				t.Errorf("tensor %d: %s in part %d: %q", n, x.Name, x.Part(), x.Data())
			}
			if same, ok := f.Tensor(name); !ok || same != x {
				t.Errorf("tensor %s is not found", name)
			}
		}
		must(t, f.Close())

		single, err := Open(path, SinglePart())
		must(t, err)
		if got, want := len(single.Tensors()), len(threeParts()[i].tensors); got != want {
			t.Errorf("part %d alone has %d tensors, want %d", i, got, want)
		}
		must(t, single.Close())
	}
}

func TestSplitRefusals(t *testing.T) {
	// change edits the parts before they are saved, after the files.
	type damage struct {
		change func(parts []splitPart)
		after  func(paths []string) error
	}
	for name, c := range map[string]struct {
		damage
		want error
		says string
	}{
		"missing part": {damage{after: func(p []string) error { return os.Remove(p[1]) }}, ErrSplit, "part 2 of 3 is missing"},
		"part twice": {damage{after: func(p []string) error {
			b, err := os.ReadFile(p[1])
			return errors.Join(err, os.WriteFile(p[2], b, 0o600))
		}}, ErrSplit, "00003-of-00003"},
		"other count":  {damage{change: func(p []splitPart) { p[1].count = 4 }}, ErrSplit, "00002-of-00003"},
		"other total":  {damage{change: func(p []splitPart) { p[1].total = int32(6) }}, ErrSplit, "00002-of-00003"},
		"wrong total":  {damage{change: func(p []splitPart) { p[0].total, p[1].total, p[2].total = int32(6), int32(6), int32(6) }}, ErrSplit, "5 tensors"},
		"no total":     {damage{change: func(p []splitPart) { p[1].total = nil }}, ErrSplit, splitTensorsKey},
		"no number":    {damage{change: func(p []splitPart) { p[1].no = nil }}, ErrSplit, splitNoKey},
		"not a part":   {damage{change: func(p []splitPart) { p[1].no, p[1].count, p[1].total = nil, nil, nil }}, ErrSplit, splitCountKey},
		"number":       {damage{change: func(p []splitPart) { p[1].no = 3 }}, ErrSplit, "split.no"},
		"text":         {damage{change: func(p []splitPart) { p[1].count = "3" }}, ErrSplit, `"split.count" is "3"`},
		"negative":     {damage{change: func(p []splitPart) { p[1].total = int32(-1) }}, ErrSplit, `"split.tensors.count" is -1`},
		"zero":         {damage{change: func(p []splitPart) { p[1].count = 0 }}, ErrSplit, `"split.count" is 0`},
		"same tensor":  {damage{change: func(p []splitPart) { p[2].tensors = []string{"t1"} }}, ErrDuplicateTensor, `"t1"`},
		"other model":  {damage{change: func(p []splitPart) { p[2].more[0].value = ValueOf("other") }}, ErrSplit, `"other"`},
		"damaged part": {damage{after: func(p []string) error { return os.Truncate(p[1], 300) }}, ErrTruncated, "00002-of-00003"},
	} {
		t.Run(name, func(t *testing.T) {
			parts := threeParts()
			if c.change != nil {
				c.change(parts)
			}
			paths := saveSplit(t, t.TempDir(), parts)
			if c.after != nil {
				must(t, c.after(paths))
			}
			for _, path := range []string{paths[0], paths[2]} {
				if name == "part twice" && path == paths[2] {
					continue // its name is wrong then: below
				}
				f, err := Open(path)
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("from %s: %v, %v; want %v saying %s", filepath.Base(path), f, err, c.want, c.says)
				}
			}
		})
	}
}

func TestSplitNames(t *testing.T) {
	dir := t.TempDir()
	paths := saveSplit(t, dir, threeParts())
	for _, name := range []string{"model.gguf", "model-q4-1-of-3.gguf", "model-q4-00001-of-00004.gguf", "model-q4-00003-of-00003.gguf"} {
		renamed := filepath.Join(t.TempDir(), name)
		must(t, os.Link(paths[0], renamed))
		f, err := Open(renamed)
		if !errors.Is(err, ErrSplit) || !strings.Contains(err.Error(), "NAME-00001-of-00003.gguf") {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	must(t, os.Remove(paths[2]))
	if _, err := Open(paths[0]); !errors.Is(err, ErrSplit) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing part: %v", err)
	}
}

// One part of one may have any name; the limit of parts is checked before a file is looked for.
func TestSplitCounts(t *testing.T) {
	for _, c := range []struct {
		count int
		want  error
		says  string
	}{
		{1, nil, ""},
		{MaxParts, ErrSplit, "NAME-00001-of-01024.gguf"},
		{MaxParts + 1, ErrLimit, "1025"},
	} {
		b := write(t, splitKeys(splitPart{no: 0, count: c.count, total: int32(0)}), nil)
		f, err := Open(save(t, filepath.Join(t.TempDir(), "any.gguf"), b))
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d parts: %v, want %v", c.count, err, c.want)
		}
		if err == nil {
			must(t, f.Close())
		}
	}
}
