package jinja

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// text is an immutable string with the owner of each byte. Where runs is nil
// all of it has the owner own; else runs covers s, in order, with alternating
// owners.
type text struct {
	s    string
	n    int // code points, or -1 when not yet counted
	own  bool
	safe bool // Markup: HTML that needs no more escaping
	runs []run
}

// run is a stretch of text with one owner; it ends before byte end.
type run struct {
	end int
	own bool // owned by the template
}

func newText(s string, own bool) *text { return &text{s: s, n: -1, own: own} }

// length counts the code points.
func (t *text) length() int {
	if t.n < 0 {
		t.n = utf8.RuneCountInString(t.s)
	}
	return t.n
}

func (t *text) ascii() bool { return t.length() == len(t.s) }

// allOwn says whether the template owns every byte.
func (t *text) allOwn() bool { return t.runs == nil && t.own }

// ownAt says who owns byte i; past the end it is who owns the last byte.
func (t *text) ownAt(i int) bool {
	if t.runs == nil {
		return t.own
	}
	return t.runs[min(t.runAt(i), len(t.runs)-1)].own
}

// runAt is the run that byte i is in.
func (t *text) runAt(i int) int {
	return sort.Search(len(t.runs), func(k int) bool { return i < t.runs[k].end })
}

// sub is the bytes [i, j).
func (t *text) sub(i, j int) *text {
	if i >= j {
		return &text{own: t.runs == nil && t.own, safe: t.safe}
	}
	if i == 0 && j == len(t.s) {
		return t
	}
	if t.runs == nil {
		n := -1
		if t.n == len(t.s) {
			n = j - i
		}
		return &text{s: t.s[i:j], n: n, own: t.own, safe: t.safe}
	}
	var b builder
	b.addSub(t, i, j)
	r := b.text()
	r.safe = t.safe
	return r
}

// offset is the byte offset of code point i, 0 <= i <= length.
func (t *text) offset(i int) int {
	if t.ascii() {
		return i
	}
	o := 0
	for ; i > 0; i-- {
		_, w := utf8.DecodeRuneInString(t.s[o:])
		o += w
	}
	return o
}

// points is the code points [i, j).
func (t *text) points(i, j int) *text {
	if i >= j {
		return t.sub(0, 0)
	}
	o := t.offset(i)
	if t.ascii() {
		return t.sub(o, j)
	}
	e := o
	for k := i; k < j; k++ {
		_, w := utf8.DecodeRuneInString(t.s[e:])
		e += w
	}
	return t.sub(o, e)
}

// index is the code point at byte offset o.
func (t *text) index(o int) int {
	if t.ascii() {
		return o
	}
	return utf8.RuneCountInString(t.s[:o])
}

// mapRunes rewrites each code point; what replaces one keeps its owner. f
// appends the replacement of the rune at byte i to dst.
func (t *text) mapRunes(f func(dst []byte, i int, r rune) []byte) *text {
	var b builder
	b.buf = make([]byte, 0, len(t.s))
	if t.runs == nil {
		for i, r := range t.s {
			b.buf = f(b.buf, i, r)
		}
		return &text{s: string(b.buf), n: -1, own: t.own, safe: t.safe}
	}
	k := 0
	for i, r := range t.s {
		for k < len(t.runs)-1 && i >= t.runs[k].end {
			k++
		}
		b.buf = f(b.buf, i, r)
		b.mark(t.runs[k].own)
	}
	r := b.text()
	r.safe = t.safe
	return r
}

// repeat is n copies.
func (t *text) repeat(n int) *text {
	if n <= 0 || t.s == "" {
		return &text{own: t.own, safe: t.safe}
	}
	if t.runs == nil {
		return &text{s: strings.Repeat(t.s, n), n: -1, own: t.own, safe: t.safe}
	}
	var b builder
	for range n {
		b.addText(t)
	}
	r := b.text()
	r.safe = t.safe
	return r
}

// builder puts together text of both owners.
type builder struct {
	buf  []byte
	runs []run
}

// mark gives what was appended to buf since the last mark to an owner.
func (b *builder) mark(own bool) {
	n := len(b.runs)
	if n > 0 {
		last := &b.runs[n-1]
		if last.end == len(b.buf) {
			return
		}
		if last.own == own {
			last.end = len(b.buf)
			return
		}
	} else if len(b.buf) == 0 {
		return
	}
	b.runs = append(b.runs, run{len(b.buf), own})
}

func (b *builder) add(s string, own bool) {
	b.buf = append(b.buf, s...)
	b.mark(own)
}

func (b *builder) addText(t *text) {
	if t.runs == nil {
		b.add(t.s, t.own)
		return
	}
	b.addSub(t, 0, len(t.s))
}

func (b *builder) addSub(t *text, i, j int) {
	if t.runs == nil {
		b.add(t.s[i:j], t.own)
		return
	}
	for k := t.runAt(i); i < j; k++ {
		e := min(t.runs[k].end, j)
		b.add(t.s[i:e], t.runs[k].own)
		i = e
	}
}

// text is what was built; the builder must not be used afterwards. Text of no
// bytes belongs to the template.
func (b *builder) text() *text {
	switch len(b.runs) {
	case 0:
		return &text{own: true}
	case 1:
		return &text{s: string(b.buf), n: -1, own: b.runs[0].own}
	}
	return &text{s: string(b.buf), n: -1, runs: b.runs}
}

func concat(a, b *text) *text {
	if a.s == "" && !b.safe {
		return b
	}
	if b.s == "" && !a.safe {
		return a
	}
	if a.runs == nil && b.runs == nil && a.own == b.own {
		return &text{s: a.s + b.s, n: -1, own: a.own}
	}
	var x builder
	x.buf = make([]byte, 0, len(a.s)+len(b.s))
	x.addText(a)
	x.addText(b)
	return x.text()
}
