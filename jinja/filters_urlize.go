package jinja

import (
	"regexp"
	"sort"
	"strings"
	"sync"
)

// wordClass is \w without the brackets, as Go spells it.
const wordClass = `\p{L}\p{N}_`

// linkPattern finds what urlize makes a link of.
var linkPattern = sync.OnceValue(func() *regexp.Regexp {
	const w = wordClass
	return regexp.MustCompile(`(?i)^(?:` +
		`(?:https?://|www\.)(?:[` + w + `%-]+\.)*(?:[a-z]{2,63}|xn--[` + w + `%]{2,59})` +
		`|(?:[` + w + `%-]{2,63}\.)+(?:com|net|int|edu|gov|org|info|mil)` +
		`|https?://(?:\p{Nd}{1,3}(?:\.\p{Nd}{1,3}){3}|\[(?:[\p{Nd}a-f]{0,4}:){2}(?:[\p{Nd}a-f]{0,4}:?){1,6}\])` +
		`)(?::\p{Nd}{1,5})?(?:[/?#]\S*)?$`)
})

var mailPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\S+@[` + wordClass + `][` + wordClass + `.-]*\.[` + wordClass + `]+$`)
})

var schemePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[` + wordClass + `.+-]{2,}:/{0,2}$`)
})

// urlize makes links of the addresses in a text.
func urlize(vm *machine, a []Value) Value {
	t := escapeHTML(vm, a[0])
	limit := -1
	if a[1].kind != kNone {
		limit = argIndex("urlize", a[1])
	}
	mine := t.allOwn()
	optional := func(v Value) string {
		if !truth(v) {
			return ""
		}
		x := argText("urlize", v)
		vm.scan(8 * len(x.s))
		mine = mine && x.allOwn()
		return x.s
	}
	rels := set("noopener")
	for _, r := range strings.Fields(optional(a[4])) {
		rels[r] = true
	}
	if truth(a[2]) {
		rels["nofollow"] = true
	}
	var names []string
	for r := range rels {
		names = append(names, r)
	}
	sort.Strings(names)
	l := linker{limit: limit, attrs: ` rel="` + escapeHTML(vm, own(strings.Join(names, " "))).s + `"`}
	if s := optional(a[3]); s != "" {
		l.attrs += ` target="` + escapeHTML(vm, own(s)).s + `"`
	}
	if a[5].kind != kNone {
		for _, v := range toItems(vm, a[5]) {
			s := argText("urlize", v)
			vm.scan(16 * len(s.s))
			mine = mine && s.allOwn()
			if !schemePattern().MatchString(s.s) {
				filterArgError("%s is not a valid URI scheme prefix.", quote(s.s))
			}
			l.schemes = append(l.schemes, s.s)
		}
	}
	vm.scan(16 * len(t.s))
	var b strings.Builder
	s := t.s
	for s != "" {
		i := strings.IndexFunc(s, isSpace)
		if i == 0 {
			i = strings.IndexFunc(s, func(r rune) bool { return !isSpace(r) })
			if i < 0 {
				i = len(s)
			}
			b.WriteString(s[:i])
		} else {
			if i < 0 {
				i = len(s)
			}
			l.word(&b, s[:i])
		}
		vm.fits(b.Len())
		vm.step(1)
		s = s[i:]
	}
	r := newText(b.String(), mine)
	r.safe = vm.escape
	return vm.made(r)
}

type linker struct {
	limit   int
	attrs   string
	schemes []string
}

func (l *linker) trimmed(s string) string {
	if t := newText(s, true); l.limit >= 0 && t.length() > l.limit {
		return t.points(0, l.limit).s + "..."
	}
	return s
}

var (
	linkHeads = []string{"(", "<", "&lt;"}
	linkTails = []string{")", ">", ".", ",", "\n", "&gt;"}
)

// word links one word, without the punctuation around it.
func (l *linker) word(b *strings.Builder, word string) {
	middle := word
	for again := true; again; {
		again = false
		for _, h := range linkHeads {
			if strings.HasPrefix(middle, h) {
				middle, again = middle[len(h):], true
			}
		}
	}
	head := word[:len(word)-len(middle)]
	end := len(middle)
	for again := true; again; {
		again = false
		for _, t := range linkTails {
			if strings.HasSuffix(middle[:end], t) {
				end, again = end-len(t), true
			}
		}
	}
	middle, tail := middle[:end], middle[end:]
	for _, p := range [][2]string{{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}} {
		open := strings.Count(middle, p[0])
		if open <= strings.Count(middle, p[1]) {
			continue
		}
		for n := min(open, strings.Count(tail, p[1])); n > 0; n-- {
			i := strings.Index(tail, p[1]) + len(p[1])
			middle, tail = middle+tail[:i], tail[i:]
		}
	}
	b.WriteString(head)
	b.WriteString(l.link(middle))
	b.WriteString(tail)
}

func (l *linker) link(s string) string {
	switch {
	case linkPattern().MatchString(s):
		to := s
		if !strings.HasPrefix(s, "https://") && !strings.HasPrefix(s, "http://") {
			to = "https://" + s
		}
		return `<a href="` + to + `"` + l.attrs + `>` + l.trimmed(s) + `</a>`
	case strings.HasPrefix(s, "mailto:") && mailPattern().MatchString(s[7:]):
		return `<a href="` + s + `">` + s[7:] + `</a>`
	case strings.Contains(s, "@") && !strings.HasPrefix(s, "www.") && !strings.HasPrefix(s, "@") &&
		!strings.Contains(s, ":") && mailPattern().MatchString(s):
		return `<a href="mailto:` + s + `">` + s + `</a>`
	}
	for _, p := range l.schemes {
		if s != p && strings.HasPrefix(s, p) {
			s = `<a href="` + s + `"` + l.attrs + `>` + s + `</a>`
		}
	}
	return s
}
