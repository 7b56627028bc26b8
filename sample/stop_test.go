package sample

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func newStopper(t tb, stops ...string) *Stopper {
	t.Helper()
	p, err := NewStopper(stops)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStopper(t *testing.T) {
	for _, c := range []struct {
		stops  []string
		pieces []string
		emits  []string // one per piece, then Flush
		found  string
	}{
		{nil, []string{"a", "b"}, []string{"a", "b", ""}, ""},
		{[]string{"END"}, []string{"hello ", "wor", "ld"}, []string{"hello ", "wor", "ld", ""}, ""},
		{[]string{"END"}, []string{"aEN", "D more"}, []string{"a", "", ""}, "END"},
		{[]string{"END"}, []string{"aEN", "Eb"}, []string{"a", "ENEb", ""}, ""},
		{[]string{"END"}, []string{"aE", "N"}, []string{"a", "", "EN"}, ""},
		{[]string{"END"}, []string{"E", "N", "D"}, []string{"", "", "", ""}, "END"},
		{[]string{"aab"}, []string{"aaa", "ab"}, []string{"a", "a", ""}, "aab"},
		{[]string{"\n\n"}, []string{"x\n", "y\n", "\nz"}, []string{"x", "\ny", "", ""}, "\n\n"},
		{[]string{"abc", "b"}, []string{"abc"}, []string{"a", ""}, "b"},
		{[]string{"abcd", "bc"}, []string{"ab", "cd"}, []string{"", "a", ""}, "bc"},
		{[]string{"bc", "abc"}, []string{"xabc"}, []string{"x", ""}, "abc"},
		{[]string{"é!"}, []string{"café", "?"}, []string{"caf", "é?", ""}, ""},
		{[]string{"x"}, []string{"", "ax", "more"}, []string{"", "a", "", ""}, "x"},
	} {
		p := newStopper(t, c.stops...)
		for round := range 2 {
			for i, piece := range c.pieces {
				emit, _ := p.Push(piece)
				if emit != c.emits[i] {
					t.Errorf("%q, round %d: piece %d emits %q, want %q", c.stops, round, i, emit, c.emits[i])
				}
			}
			if rest := p.Flush(); rest != c.emits[len(c.pieces)] {
				t.Errorf("%q: Flush gives %q, want %q", c.stops, rest, c.emits[len(c.pieces)])
			}
			if found, ok := p.Found(); found != c.found || ok != (c.found != "") {
				t.Errorf("%q: found %q, want %q", c.stops, found, c.found)
			}
			p.Reset()
		}
	}
}

func TestStopperRefusals(t *testing.T) {
	many := make([]string, MaxStops+1)
	for i := range many {
		many[i] = "s"
	}
	for what, stops := range map[string][]string{
		"empty": {"a", ""},
		"UTF-8": {"a\xff"},
		"many":  many,
		"long":  {strings.Repeat("a", MaxStopBytes), "b"},
	} {
		if _, err := NewStopper(stops); !errors.Is(err, ErrConfig) {
			t.Errorf("%s: %v", what, err)
		}
	}
	newStopper(t, many[:MaxStops]...)
	newStopper(t, strings.Repeat("a", MaxStopBytes))
}

// The definition: the stop string complete at the earliest byte, the longest of
// several; before it everything is emitted. While streaming, what is held back is
// the longest end of the text that begins a stop string.
func checkStops(t tb, stops, pieces []string) {
	t.Helper()
	text := strings.Join(pieces, "")
	want, found := text, ""
scan:
	for end := 1; end <= len(text); end++ {
		for _, s := range stops {
			if strings.HasSuffix(text[:end], s) && len(s) > len(found) {
				found, want = s, text[:end-len(s)]
			}
		}
		if found != "" {
			break scan
		}
	}
	p := newStopper(t, stops...)
	emitted, pushed := "", ""
	stopped := false
	for _, piece := range pieces {
		emit, stop := p.Push(piece)
		if stopped && (emit != "" || !stop) {
			t.Fatal("text after the stop")
		}
		emitted, stopped = emitted+emit, stop
		pushed += piece
		if !stopped {
			held := ""
			for i := range len(pushed) + 1 {
				for _, s := range stops {
					if held == "" && strings.HasPrefix(s, pushed[i:]) {
						held = pushed[i:]
					}
				}
			}
			if emitted+held != pushed {
				t.Fatal("stops", stops, "pieces", pieces, "held back", pushed[len(emitted):], "want", held)
			}
		}
	}
	emitted += p.Flush()
	if got, ok := p.Found(); emitted != want || got != found || ok != stopped {
		t.Fatal("stops", stops, "pieces", pieces, "emitted", emitted, "found", got, "want", want, found)
	}
}

func TestStopperAgainstDefinition(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 1, 5, -1)
	piece := rapid.StringOfN(rapid.RuneFrom([]rune("abé")), 0, 5, -1)
	rapid.Check(t, func(t *rapid.T) {
		checkStops(t, rapid.SliceOfN(word, 0, 4).Draw(t, "stops"), rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces"))
	})
}

func FuzzStopper(f *testing.F) {
	f.Add("END", "N", "xEN", "D")
	f.Add("aab", "ab", "aa", "aab")
	f.Fuzz(func(t *testing.T, s1, s2, p1, p2 string) {
		if _, err := NewStopper([]string{s1, s2}); err != nil || len(p1)+len(p2) > 200 {
			return
		}
		checkStops(t, []string{s1, s2}, []string{p1, p2})
	})
}
