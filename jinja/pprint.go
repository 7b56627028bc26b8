package jinja

import (
	"sort"
	"strings"
)

// pprintWidth is the width that Python's pprint wraps at.
const pprintWidth = 80

// pprint is pprint.pformat(v). The text belongs to the template only where all
// of it does.
func pprint(vm *machine, v Value) Value {
	p := &printer{vm: vm, own: toRepr(vm, v).allOwn()}
	p.format(v, 0, 0, 0)
	return vm.made(newText(p.b.String(), p.own))
}

type printer struct {
	vm  *machine
	b   strings.Builder
	own bool
}

// repr is repr() with the keys of dicts sorted.
func (p *printer) repr(v Value, depth int) string {
	if depth > MaxValueDepth {
		limitError("pprint", "a value nested more than %d deep", MaxValueDepth)
	}
	p.vm.step(1)
	join := func(open, end string, items []Value) string {
		parts := make([]string, len(items))
		n := 0
		for i, x := range items {
			parts[i] = p.repr(x, depth+1)
			n += len(parts[i])
			p.vm.fits(n)
		}
		p.vm.charge(n)
		return open + strings.Join(parts, ", ") + end
	}
	switch v.kind {
	case kList:
		return join("[", "]", v.items())
	case kTuple:
		if len(v.tuple()) == 1 {
			return join("(", ",)", v.tuple())
		}
		return join("(", ")", v.tuple())
	case kDict:
		d := v.dict()
		parts := make([]string, d.len())
		n := 0
		for i, k := range sortedKeys(p.vm, d) {
			parts[i] = p.repr(d.keys[k], depth+1) + ": " + p.repr(d.vals[k], depth+1)
			n += len(parts[i])
			p.vm.fits(n)
		}
		p.vm.charge(n)
		return "{" + strings.Join(parts, ", ") + "}"
	}
	s := toRepr(p.vm, v).s
	p.vm.scan(len(s))
	return s
}

// sortedKeys orders the keys of a dict; those of different types by type.
func sortedKeys(vm *machine, d *dict) []int {
	idx := make([]int, d.len())
	for i := range idx {
		idx[i] = i
	}
	sort.SliceStable(idx, func(i, j int) bool {
		vm.step(1)
		a, b := d.keys[idx[i]], d.keys[idx[j]]
		if a.isNumber() && b.isNumber() || a.kind == kStr && b.kind == kStr {
			return order(vm, "<", a, b, 0)
		}
		return typeName(a) < typeName(b)
	})
	return idx
}

func (p *printer) newline(indent int) {
	p.vm.fits(p.b.Len() + indent)
	p.vm.charge(indent)
	p.b.WriteString(",\n" + strings.Repeat(" ", indent))
}

// format writes v, which begins at column indent and has allowance characters
// after it.
func (p *printer) format(v Value, indent, allowance, level int) {
	rep := p.repr(v, level)
	if newText(rep, true).length() <= pprintWidth-indent-allowance {
		p.b.WriteString(rep)
		return
	}
	level++
	switch v.kind {
	case kDict:
		d := v.dict()
		p.b.WriteByte('{')
		for i, k := range sortedKeys(p.vm, d) {
			if i > 0 {
				p.newline(indent + 1)
			}
			key := p.repr(d.keys[k], level)
			p.b.WriteString(key + ": ")
			room := 1
			if i == d.len()-1 {
				room = allowance + 1
			}
			p.format(d.vals[k], indent+1+newText(key, true).length()+2, room, level)
		}
		p.b.WriteByte('}')
	case kList, kTuple:
		open, end := "[", "]"
		if v.kind == kTuple {
			open, end = "(", ")"
			if len(v.seq()) == 1 {
				end = ",)"
			}
		}
		p.b.WriteString(open)
		for i, x := range v.seq() {
			if i > 0 {
				p.newline(indent + 1)
			}
			room := 1
			if i == len(v.seq())-1 {
				room = allowance + len(end)
			}
			p.format(x, indent+1, room, level)
		}
		p.b.WriteString(end)
	case kStr:
		p.str(v.text(), indent, allowance, level)
	default:
		p.b.WriteString(rep)
	}
}

// str writes a long string as several literals.
func (p *printer) str(t *text, indent, allowance, level int) {
	if level == 1 {
		indent++
		allowance++
	}
	width := pprintWidth - indent
	size := func(s string) int { return reprText(newText(s, true)).length() }
	p.vm.scan(16 * len(t.s))
	var chunks []string
	lines := splitLines(p.vm, unsafeText(t), true)
	for i, l := range lines {
		last := i == len(lines)-1
		room := width
		if last {
			room -= allowance
		}
		if size(l.s) <= room {
			chunks = append(chunks, quote(l.s))
			continue
		}
		room = width
		current := ""
		for rest := l.s; rest != ""; {
			n := wordAndSpace(rest)
			part := rest[:n]
			rest = rest[n:]
			if last && rest == "" {
				room -= allowance
			}
			p.vm.charge(16 * (len(current) + len(part)))
			if size(current+part) > room {
				if current != "" {
					chunks = append(chunks, quote(current))
				}
				current = part
			} else {
				current += part
			}
		}
		if current != "" {
			chunks = append(chunks, quote(current))
		}
	}
	if len(chunks) == 1 {
		p.b.WriteString(quote(t.s))
		return
	}
	sep := "\n" + strings.Repeat(" ", indent)
	p.vm.fits(p.b.Len() + len(t.s) + len(chunks)*len(sep))
	p.vm.charge(len(chunks) * len(sep))
	s := strings.Join(chunks, sep)
	if level == 1 {
		s = "(" + s + ")"
	}
	p.b.WriteString(s)
}

// wordAndSpace is the length of a word and the white space behind it.
func wordAndSpace(s string) int {
	i := strings.IndexFunc(s, isSpace)
	if i < 0 {
		return len(s)
	}
	j := strings.IndexFunc(s[i:], func(r rune) bool { return !isSpace(r) })
	if j < 0 {
		return len(s)
	}
	return i + j
}
