package jinja

import (
	"math"
	"strconv"
	"strings"
)

// formatSpec is a format specification of format(), or the flags of a percent
// conversion.
type formatSpec struct {
	fill  string // one character, or empty
	align byte   // < > ^ = or 0
	sign  byte   // + - space or 0
	noNeg bool   // z
	alt   bool
	zero  bool
	width int
	group byte // , _ or 0
	prec  int  // -1: none
	typ   byte // 0: none
}

// parseSpec reads a format specification.
func parseSpec(s, typeName string) formatSpec {
	sp := formatSpec{prec: -1}
	isAlign := func(s string) bool { return s != "" && strings.IndexByte("<>^=", s[0]) >= 0 }
	if s != "" {
		if w := runeLen(s[0]); isAlign(s[w:]) {
			sp.fill, sp.align, s = s[:w], s[w], s[w+1:]
		} else if isAlign(s) {
			sp.align, s = s[0], s[1:]
		}
	}
	next := func(set string) byte {
		if s != "" && strings.IndexByte(set, s[0]) >= 0 {
			c := s[0]
			s = s[1:]
			return c
		}
		return 0
	}
	number := func() int {
		n := -1
		for s != "" && isDigit(s[0]) {
			n = max(n, 0)*10 + int(s[0]-'0')
			s = s[1:]
			if n > math.MaxInt32 {
				valueError("Too many decimal digits in format string")
			}
		}
		return n
	}
	sp.sign = next("+- ")
	sp.noNeg = next("z") != 0
	sp.alt = next("#") != 0
	if sp.fill == "" && next("0") != 0 {
		sp.zero = true
	}
	sp.width = max(number(), 0)
	if sp.group = next(",_"); sp.group != 0 && next(",_") != 0 {
		valueError("Cannot specify both ',' and '_'.")
	}
	if next(".") != 0 {
		if sp.prec = number(); sp.prec < 0 {
			valueError("Format specifier missing precision")
		}
	}
	if len(s) > 1 && runeLen(s[0]) < len(s) {
		valueError("Invalid format specifier for object of type '%s'", typeName)
	}
	if s != "" {
		if s[0] >= 0x80 {
			valueError("Unknown format code for object of type '%s'", typeName)
		}
		sp.typ = s[0]
	}
	return sp
}

// fit pads a text to the width of a spec. def is the alignment by default.
func (sp *formatSpec) fit(vm *machine, t *text, def byte, mine bool) *text {
	n := sp.width - t.length()
	if n <= 0 {
		return t
	}
	fill, align := sp.fill, sp.align
	if fill == "" {
		fill = " "
		if sp.zero {
			fill = "0"
		}
	}
	if align == 0 {
		align = def
	}
	left := n
	switch align {
	case '<':
		left = 0
	case '^':
		left = n / 2
	}
	return pad(vm, t, newText(fill, mine), left, n-left).text()
}

// formatNumber formats a sign and digits, with a prefix such as 0x between.
func (sp *formatSpec) formatNumber(vm *machine, neg bool, prefix, digits string) string {
	vm.fits(sp.width)
	sign := ""
	switch {
	case neg:
		sign = "-"
	case sp.sign == '+' || sp.sign == ' ':
		sign = string(sp.sign)
	}
	n := 0
	for n < len(digits) && isAlnum(digits[n]) && (sp.isHex() || isDigit(digits[n])) {
		n++
	}
	head, tail := digits[:n], digits[n:]
	fill, align := sp.fill, sp.align
	if sp.zero {
		fill = "0"
		if align == 0 {
			align = '='
		}
	}
	used := len(sign) + len(prefix) + len(tail)
	if sp.group != 0 && head != "" {
		per := 3
		if sp.isHex() || sp.typ == 'o' || sp.typ == 'b' {
			per = 4
		}
		if fill == "0" && align == '=' {
			// The zeros that fill the width are grouped too.
			n := len(head)
			for used+n+(n-1)/per < sp.width {
				n++
			}
			vm.charge(n)
			head = strings.Repeat("0", n-len(head)) + head
		}
		head = grouped(head, per, sp.group)
	}
	body := head + tail
	if align == '=' {
		if pad := sp.width - len(sign) - len(prefix) - len(body); pad > 0 {
			if fill == "" {
				fill = " "
			}
			return sign + prefix + strings.Repeat(fill, pad) + body
		}
	}
	return sign + prefix + body
}

func (sp *formatSpec) isHex() bool { return sp.typ == 'x' || sp.typ == 'X' }

func grouped(s string, per int, sep byte) string {
	var b []byte
	for i := range len(s) {
		if i > 0 && (len(s)-i)%per == 0 {
			b = append(b, sep)
		}
		b = append(b, s[i])
	}
	return string(b)
}

// floatDigits formats |f| with a type of e f g % or 0, which is repr.
func floatDigits(f float64, typ byte, prec int, alt bool) string {
	f = math.Abs(f)
	lower := typ | 0x20
	if typ == 0 || typ == '%' {
		lower = typ
	}
	s := ""
	switch {
	case math.IsNaN(f):
		s = "nan"
	case math.IsInf(f, 0):
		s = "inf"
	case lower == 'f':
		s = strconv.FormatFloat(f, 'f', prec, 64)
	case lower == 'e':
		s = strconv.FormatFloat(f, 'e', prec, 64)
	case lower == '%':
		s = strconv.FormatFloat(f*100, 'f', prec, 64)
	case lower == 0 && prec < 0:
		s = formatFloat(f)
	default:
		s = generalFloat(f, max(prec, 1), lower == 0, alt)
	}
	if alt && !strings.Contains(s, ".") && isDigit(s[0]) {
		if i := strings.IndexByte(s, 'e'); i >= 0 {
			s = s[:i] + "." + s[i:]
		} else {
			s += "."
		}
	}
	if lower == '%' {
		s += "%"
	} else if typ >= 'A' && typ <= 'Z' {
		s = strings.ToUpper(s)
	}
	return s
}

// generalFloat is the format g with p significant digits; dot0 asks for a digit
// behind the point, and keep for the zeros at the end.
func generalFloat(f float64, p int, dot0, keep bool) string {
	e := strconv.FormatFloat(f, 'e', p-1, 64)
	mant, exps, _ := strings.Cut(e, "e")
	exp, _ := strconv.Atoi(exps)
	limit := p
	if dot0 {
		limit--
	}
	trim := func(s string) string {
		if !keep && strings.Contains(s, ".") {
			s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		return s
	}
	if exp < -4 || exp >= limit {
		return trim(mant) + "e" + exps
	}
	s := trim(strconv.FormatFloat(f, 'f', max(p-1-exp, 0), 64))
	if dot0 && !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// formatValue is format(v, spec). mine says whether the spec belongs to the
// template.
func formatValue(vm *machine, v Value, spec string, mine bool) *text {
	if spec == "" {
		return toText(vm, v)
	}
	switch v.kind {
	case kStr:
		return formatStr(vm, v.text(), spec, mine)
	case kBool, kInt, kBig:
		return formatIntSpec(vm, v, spec, mine)
	case kFloat:
		sp := parseSpec(spec, "float")
		return formatFloatSpec(vm, v, &sp, mine)
	}
	typeError("unsupported format string passed to %s.__format__", typeName(v))
	return nil
}

func formatStr(vm *machine, t *text, spec string, mine bool) *text {
	sp := parseSpec(spec, "str")
	switch {
	case sp.typ != 0 && sp.typ != 's':
		valueError("Unknown format code '%c' for object of type 'str'", sp.typ)
	case sp.sign != 0:
		valueError("Sign not allowed in string format specifier")
	case sp.noNeg:
		valueError("Negative zero coercion (z) not allowed in format specifier with string")
	case sp.alt:
		valueError("Alternate form (#) not allowed in string format specifier")
	case sp.align == '=':
		valueError("'=' alignment not allowed in string format specifier")
	case sp.group != 0:
		valueError("Cannot specify '%c' with 's'.", sp.group)
	}
	vm.charge(len(t.s)) // counted, and counted to
	if sp.prec >= 0 && sp.prec < t.length() {
		t = t.points(0, sp.prec)
	}
	return sp.fit(vm, t, '<', mine)
}

func formatIntSpec(vm *machine, v Value, spec string, mine bool) *text {
	sp := parseSpec(spec, typeName(v))
	mine = mine && !v.data
	switch sp.typ {
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		return formatFloatSpec(vm, floatVal(toFloat(v)).withData(v.data), &sp, mine)
	case 0, 'd', 'n', 'b', 'o', 'x', 'X', 'c':
	default:
		valueError("Unknown format code '%c' for object of type '%s'", sp.typ, typeName(v))
	}
	if sp.prec >= 0 {
		valueError("Precision not allowed in integer format specifier")
	}
	if sp.noNeg {
		valueError("Negative zero coercion (z) not allowed in format specifier with integer")
	}
	if sp.typ == 'c' {
		if sp.group != 0 {
			valueError("Cannot specify '%c' with 'c'.", sp.group)
		}
		if sp.sign != 0 {
			valueError("Sign not allowed with integer format specifier 'c'")
		}
		if sp.alt {
			valueError("Alternate form (#) not allowed with integer format specifier 'c'")
		}
		return sp.fit(vm, newText(string(runeOf(v)), mine), '>', mine)
	}
	if sp.group == ',' && strings.IndexByte("boxX", sp.typ) >= 0 && sp.typ != 0 || sp.group != 0 && sp.typ == 'n' {
		valueError("Cannot specify '%c' with '%c'.", sp.group, sp.typ)
	}
	chargeBig(vm, v)
	neg, prefix, digits := intDigits(v, sp.typ)
	if !sp.alt {
		prefix = ""
	}
	return sp.fit(vm, newText(sp.formatNumber(vm, neg, prefix, digits), mine), '>', mine)
}

// intDigits is the sign, the prefix and the digits of an integer.
func intDigits(v Value, typ byte) (neg bool, prefix, digits string) {
	base := map[byte]int{'b': 2, 'o': 8, 'x': 16, 'X': 16}[typ]
	if base == 0 {
		digits = formatInt(bigOrInt(v))
	} else {
		digits = v.big().Text(base)
		prefix = "0" + string(typ)
	}
	neg = digits[0] == '-'
	digits = strings.TrimPrefix(digits, "-")
	if typ == 'X' {
		digits = strings.ToUpper(digits)
	}
	return neg, prefix, digits
}

func bigOrInt(v Value) Value {
	if v.kind == kBool {
		v.kind = kInt
	}
	return v
}

func runeOf(v Value) rune {
	if v.kind == kBig || v.int() < 0 || v.int() > 0x10ffff {
		overflowError("%%c arg not in range(0x110000)")
	}
	if v.int() >= 0xd800 && v.int() < 0xe000 {
		raise(ErrUnsupported, "%c", "a surrogate")
	}
	return rune(v.int())
}

// floatSteps is what the digits of a float cost at least.
const floatSteps = 50

func formatFloatSpec(vm *machine, v Value, sp *formatSpec, mine bool) *text {
	mine = mine && !v.data
	typ := sp.typ
	switch typ {
	case 0, 'e', 'E', 'f', 'F', 'g', 'G', '%':
	case 'n':
		if sp.group != 0 {
			valueError("Cannot specify '%c' with 'n'.", sp.group)
		}
		typ = 'g'
	default:
		valueError("Unknown format code '%c' for object of type 'float'", typ)
	}
	prec := sp.prec
	vm.fits(prec)
	if prec < 0 && typ != 0 {
		prec = 6
	}
	f := v.float()
	vm.step(floatSteps + max(prec, 0)/2)
	digits := floatDigits(f, typ, prec, sp.alt)
	neg := math.Signbit(f) && !math.IsNaN(f)
	if sp.noNeg && neg && strings.Trim(strings.TrimRight(digits, "%"), "0.") == "" {
		neg = false
	}
	return sp.fit(vm, newText(sp.formatNumber(vm, neg, "", digits), mine), '>', mine)
}
