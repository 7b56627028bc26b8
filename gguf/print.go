package gguf

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What [Value.String] shows of long values.
const (
	shownElements = 8
	shownBytes    = 80
)

// String returns the value for a person to read, long strings and arrays shortened: see [Value.Summary].
func (v Value) String() string { return v.Summary(shownElements, shownBytes) }

// Summary returns the value for a person to read, on one line. Of an array it shows the first elements and the count,
// as in [1, 2, 3, … 151665 in all]; of a string about the first bytes, quoted and with control characters escaped, and
// the length, as in "once upon"… (1204 bytes). Nothing is shortened where elements or bytes are negative.
func (v Value) Summary(elements, bytes int) string {
	var b strings.Builder
	v.summarize(&b, elements, bytes)
	return b.String()
}

func (v Value) summarize(b *strings.Builder, elements, bytes int) {
	if s, ok := v.Text(); ok {
		summarizeText(b, s, bytes)
		return
	}
	if _, ok := v.Elem(); !ok {
		b.WriteString(v.scalar())
		return
	}
	b.WriteByte('[')
	i := 0
	for elem := range v.All() {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == elements {
			fmt.Fprintf(b, "… %d in all", v.Len())
			break
		}
		elem.summarize(b, elements, bytes)
		i++
	}
	b.WriteByte(']')
}

func summarizeText(b *strings.Builder, s string, bytes int) {
	if bytes < 0 || len(s) <= bytes {
		b.WriteString(strconv.Quote(s))
		return
	}
	cut := bytes
	for cut > 0 && bytes-cut < utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	fmt.Fprintf(b, "%s… (%d bytes)", strconv.Quote(s[:cut]), len(s))
}

// scalar returns a number or bool as text.
func (v Value) scalar() string {
	switch x := v.Any().(type) {
	case nil:
		return "nothing"
	case float32:
		return strconv.FormatFloat(float64(x), 'g', -1, 32)
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64)
	default:
		return fmt.Sprint(x)
	}
}
