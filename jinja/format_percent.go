package jinja

import (
	"math"
	"strings"
	"unicode/utf8"
)

// percent is t % v, printf-style formatting.
func percent(vm *machine, t *text, v Value) Value {
	p := &percentState{vm: vm, t: t, single: v, left: 1}
	switch v.kind {
	case kTuple:
		p.items, p.left = v.tuple(), len(v.tuple())
	case kDict, kList, kRange, kUndef:
		p.mapping = v
	}
	vm.charge(len(t.s))
	s := t.s
	for i := 0; i < len(s); {
		j := strings.IndexByte(s[i:], '%')
		if j < 0 {
			p.b.addSub(t, i, len(s))
			break
		}
		vm.step(valueSteps)
		p.b.addSub(t, i, i+j)
		i = p.conversion(i + j + 1)
		vm.fits(len(p.b.buf))
	}
	if p.left > 0 && p.mapping.missing() {
		typeError("not all arguments converted during string formatting")
	}
	r := p.b.text()
	r.safe = t.safe
	return vm.made(r)
}

type percentState struct {
	vm      *machine
	t       *text
	b       builder
	items   []Value // of a tuple
	single  Value
	mapping Value
	left    int // arguments not yet used
	used    int
}

func (p *percentState) next() Value {
	if p.left == 0 {
		typeError("not enough arguments for format string")
	}
	p.left--
	if p.items == nil {
		return p.single
	}
	p.used++
	return p.items[p.used-1]
}

// conversion formats the conversion whose text begins at byte i, behind the
// percent sign, and returns its end.
func (p *percentState) conversion(i int) int {
	s := p.t.s
	more := func() {
		if i >= len(s) {
			valueError("incomplete format")
		}
	}
	more()
	if s[i] == '%' {
		p.b.add("%", p.t.ownAt(i))
		return i + 1
	}
	if s[i] == '(' {
		depth, start := 1, i+1
		for i++; i < len(s) && depth > 0; i++ {
			switch s[i] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		if p.mapping.missing() {
			typeError("format requires a mapping")
		}
		if depth > 0 {
			valueError("incomplete format key")
		}
		// As in Python, the value becomes the one argument that is left: for this
		// conversion, or for its width.
		p.single, p.left = subscript(p.vm, p.mapping, strVal(p.t.sub(start, i-1))), 1
	}
	sp := formatSpec{prec: -1}
	for ; ; i++ {
		more()
		switch s[i] {
		case '-':
			sp.align = '<'
			continue
		case '+':
			sp.sign = '+'
			continue
		case ' ':
			if sp.sign == 0 {
				sp.sign = ' '
			}
			continue
		case '#':
			sp.alt = true
			continue
		case '0':
			sp.zero = true
			continue
		}
		break
	}
	number := func() int {
		if s[i] == '*' {
			v := p.next()
			if !v.isInt() {
				typeError("* wants int")
			}
			i++
			more()
			return argSize("%", v)
		}
		n := 0
		for isDigit(s[i]) {
			if n = n*10 + int(s[i]-'0'); n > math.MaxInt32 {
				valueError("width too big")
			}
			i++
			more()
		}
		return n
	}
	if sp.width = number(); sp.width < 0 {
		sp.align, sp.width = '<', -sp.width
	}
	if s[i] == '.' {
		i++
		more()
		sp.prec = max(number(), 0)
	}
	if strings.IndexByte("hlL", s[i]) >= 0 {
		i++
		more()
	}
	mine := p.t.ownAt(i)
	arg := p.next()
	sp.typ = s[i]
	p.vm.fits(sp.width)
	p.vm.fits(sp.prec)
	p.b.addText(p.convert(&sp, arg, mine))
	return i + 1
}

// subscript is v[k] without the attributes that getItem tries next.
func subscript(vm *machine, v, k Value) Value {
	use(v)
	if v.kind != kDict {
		typeError("indices must be integers or slices, not str")
	}
	if x := v.dict().get(mustHash(vm.key(k))); !x.missing() {
		return x
	}
	raise(ErrRuntime, "KeyError", "%s", shortRepr(k))
	return none
}

func (p *percentState) convert(sp *formatSpec, v Value, mine bool) *text {
	zero := sp.zero
	if sp.align == '<' {
		sp.zero = false
	}
	switch sp.typ {
	case 's', 'r', 'a':
		var t *text
		switch {
		case sp.typ == 's' && p.t.safe:
			t = escapeHTML(p.vm, v)
		case sp.typ == 's':
			t = toText(p.vm, v)
		case sp.typ == 'r':
			t = toRepr(p.vm, v)
		default:
			t = toRepr(p.vm, v)
			p.vm.scan(len(t.s))
			t = asciiText(t)
		}
		p.vm.charge(len(t.s)) // counted, and counted to
		if sp.prec >= 0 && sp.prec < t.length() {
			t = t.points(0, sp.prec)
		}
		sp.zero = false
		return sp.fit(p.vm, t, '>', mine)
	case 'd', 'i', 'u', 'o', 'x', 'X':
		return p.integer(sp, v, mine)
	case 'e', 'E', 'f', 'F', 'g', 'G':
		if !v.isNumber() {
			typeError("must be real number, not %s", typeName(v))
		}
		sp.zero = zero && sp.align != '<'
		if sp.prec < 0 {
			sp.prec = 6
		}
		return formatFloatSpec(p.vm, floatVal(toFloat(v)).withData(v.data), sp, mine)
	case 'c':
		sp.zero = false
		switch {
		case v.isInt():
			return sp.fit(p.vm, newText(string(runeOf(v)), mine && !v.data), '>', mine)
		case v.kind == kStr && v.text().length() == 1:
			return sp.fit(p.vm, v.text(), '>', mine)
		}
		typeError("%%c requires int or char")
	}
	valueError("unsupported format character '%c' (0x%x)", sp.typ, sp.typ)
	return nil
}

func (p *percentState) integer(sp *formatSpec, v Value, mine bool) *text {
	switch {
	case v.kind == kFloat && strings.IndexByte("oxX", sp.typ) < 0:
		v = truncFloat(v.float()).withData(v.data)
	case !v.isInt():
		typeError("%%%c format: a real number is required, not %s", sp.typ, typeName(v))
	}
	mine = mine && !v.data
	chargeBig(p.vm, v)
	neg, prefix, digits := intDigits(v, sp.typ)
	if !sp.alt {
		prefix = ""
	}
	if len(digits) < sp.prec {
		digits = strings.Repeat("0", sp.prec-len(digits)) + digits
	}
	return sp.fit(p.vm, newText(sp.formatNumber(p.vm, neg, prefix, digits), mine), '>', mine)
}

// asciiText escapes what is not ASCII, as ascii() does.
func asciiText(t *text) *text {
	return t.mapRunes(func(dst []byte, _ int, r rune) []byte {
		switch {
		case r < 0x80:
			return append(dst, byte(r))
		case r < 0x100:
			return appendHex(append(dst, '\\', 'x'), r, 2)
		case r < 0x10000:
			return appendHex(append(dst, '\\', 'u'), r, 4)
		case r <= utf8.MaxRune:
			return appendHex(append(dst, '\\', 'U'), r, 8)
		}
		return dst
	})
}
