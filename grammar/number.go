package grammar

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// tri says how many of the texts with an exponent belong to a set of numbers.
type tri uint8

const (
	expNone tri = iota
	expSome     // an unknown part: such texts are not produced
	expAll
)

// numSet is a set of JSON number texts. Texts without an exponent are those that plain accepts: exact
// decimal arithmetic on up to MaxDigits digits on either side of the point. Texts with an exponent are
// in it either all or not at all.
type numSet struct {
	plain *dfa
	exp   tri
}

func (n *numSet) empty() bool { return n == nil || n.plain.empty() && n.exp != expAll }

func mustPattern(src string) *dfa {
	d, err := patternDFA(src)
	if err != nil {
		panic(err) // a constant
	}
	return d
}

// The numbers without bounds: all decimals, those whose value is an integer, those of them without a fraction, and the
// texts with an exponent.
var (
	allPlain = sync.OnceValue(func() *dfa {
		return mustPattern(fmt.Sprintf(`^-?(0|[1-9][0-9]{0,%d})(\.[0-9]{1,%d})?$`, MaxDigits-1, MaxDigits))
	})
	allIntegers = sync.OnceValue(func() *dfa {
		return mustPattern(fmt.Sprintf(`^-?(0|[1-9][0-9]{0,%d})(\.0{1,%d})?$`, MaxDigits-1, MaxDigits))
	})
	wholeIntegers = sync.OnceValue(func() *dfa {
		return mustPattern(fmt.Sprintf(`^-?(0|[1-9][0-9]{0,%d})$`, MaxDigits-1))
	})
	allExponents = sync.OnceValue(func() *dfa {
		return mustPattern(fmt.Sprintf(`^-?(0|[1-9][0-9]{0,%d})(\.[0-9]{1,%d})?[eE][-+]?[0-9]{1,3}$`, MaxDigits-1, MaxDigits))
	})
)

func allNumbers() *numSet { return &numSet{allPlain(), expAll} }

func intersectNum(a, b *numSet) (*numSet, error) {
	if a == nil || b == nil {
		return nil, nil
	}
	switch all := *allNumbers(); {
	case *a == *b || *b == all:
		return a, nil
	case *a == all:
		return b, nil
	}
	d, err := intersectDFA(a.plain, b.plain)
	if err != nil {
		return nil, err
	}
	return (&numSet{d, min(a.exp, b.exp)}).orNil(), nil
}

func unionNum(a, b *numSet) (*numSet, error) {
	if a == nil || b == nil {
		if a == nil {
			return b, nil
		}
		return a, nil
	}
	if *a == *b {
		return a, nil
	}
	d, err := unionDFA(a.plain, b.plain)
	if err != nil {
		return nil, err
	}
	return &numSet{d, max(a.exp, b.exp)}, nil
}

func complementNum(a *numSet) (*numSet, error) {
	if a == nil {
		return allNumbers(), nil
	}
	if *a == *allNumbers() {
		return nil, nil
	}
	d, err := subtractDFA(allPlain(), a.plain)
	if err != nil {
		return nil, err
	}
	return (&numSet{d, expAll - a.exp}).orNil(), nil
}

// orNil returns nil for the empty set; a set of which only an unknown part is left is kept.
func (n *numSet) orNil() *numSet {
	if n.plain.empty() && n.exp == expNone {
		return nil
	}
	return n
}

// written returns the automaton of the texts that a model may write: those of texts, but 4 alone and not 4.0 where every
// number of the set is an integer. Programs that read an integer often refuse the second form.
func (n *numSet) written() (*dfa, error) {
	if n.plain == allIntegers() && n.exp != expAll {
		return wholeIntegers(), nil
	}
	fractions, err := subtractDFA(n.plain, allIntegers())
	if err != nil || n.exp == expAll || !fractions.empty() {
		return n.texts()
	}
	return intersectDFA(n.plain, wholeIntegers())
}

// texts returns the automaton of the texts that belong to the set.
func (n *numSet) texts() (*dfa, error) {
	if n.exp != expAll {
		return n.plain, nil
	}
	return unionDFA(n.plain, allExponents())
}

// decimal is an exact decimal number: sign, digits before the point (no leading zero, "" for zero) and
// digits after it (no trailing zero).
type decimal struct {
	neg        bool
	whole, fra string
}

// maxExponent bounds the exponent of a number in a schema, so that writing it out stays small.
const maxExponent = 400

// parseDecimal reads a JSON number exactly.
func parseDecimal(s string) (decimal, error) {
	d := decimal{}
	t := s
	if strings.HasPrefix(t, "-") {
		d.neg, t = true, t[1:]
	}
	exp := 0
	if i := strings.IndexAny(t, "eE"); i >= 0 {
		e, err := strconv.Atoi(strings.TrimPrefix(t[i+1:], "+"))
		if err != nil || e > maxExponent || e < -maxExponent {
			return d, fmt.Errorf("number %s: exponent beyond ±%d: %w", s, maxExponent, ErrLimit)
		}
		exp, t = e, t[:i]
	}
	whole, fra, _ := strings.Cut(t, ".")
	if exp > 0 {
		fra += strings.Repeat("0", max(0, exp-len(fra)))
		whole, fra = whole+fra[:exp], fra[exp:]
	} else if exp < 0 {
		whole = strings.Repeat("0", max(0, -exp-len(whole))) + whole
		cut := len(whole) + exp
		whole, fra = whole[:cut], whole[cut:]+fra
	}
	d.whole, d.fra = strings.TrimLeft(whole, "0"), strings.TrimRight(fra, "0")
	if d.whole == "" && d.fra == "" {
		d.neg = false
	}
	return d, nil
}

// text returns the shortest decimal text of d.
func (d decimal) text() string {
	s := d.whole
	if s == "" {
		s = "0"
	}
	if d.fra != "" {
		s += "." + d.fra
	}
	if d.neg {
		s = "-" + s
	}
	return s
}

// decimalClasses groups the bytes of decimal texts: other bytes, each digit, '.', '-'.
func decimalClasses() (class [256]uint8, nc int) {
	for c := range 10 {
		class['0'+c] = uint8(1 + c)
	}
	class['.'], class['-'] = 11, 12
	return class, 13
}

// cmpState is where the comparison of a decimal text with a bound stands: the text has a sign, n digits
// before the point and, if point, f after it; cmp compares its digits with as many of the bound's.
type cmpState struct {
	neg, point bool
	n, f       int
	cmp        int
}

// compareDFA returns the decimal texts whose value v makes keep(sign of v-bound) true.
func compareDFA(bound decimal, keep func(sign int) bool) (*dfa, error) {
	class, nc := decimalClasses()
	whole := bound.whole
	if whole == "" {
		whole = "0" // as JSON writes it
	}
	wholeCmp := func(s cmpState) int {
		switch {
		case s.n < len(whole):
			return -1
		case s.n > len(whole):
			return 1
		}
		return s.cmp
	}
	next := func(s cmpState, b byte) (cmpState, bool) {
		switch {
		case b == '-':
			ok := s == cmpState{}
			s.neg = true
			return s, ok
		case b == '.':
			ok := s.n > 0 && !s.point
			return cmpState{neg: s.neg, point: true, cmp: wholeCmp(s)}, ok
		case b < '0' || b > '9':
			return s, false
		case s.point:
			digit := byte('0')
			if s.f < len(bound.fra) {
				digit = bound.fra[s.f]
				s.f++
			}
			if s.cmp == 0 {
				s.cmp = int(b) - int(digit)
			}
		default:
			if s.cmp == 0 && s.n < len(whole) {
				s.cmp = int(b) - int(whole[s.n])
			}
			s.n = min(s.n+1, len(whole)+1)
		}
		s.cmp = max(-1, min(1, s.cmp))
		if s.point && s.cmp != 0 {
			s.f = 0
		}
		return s, true
	}
	accept := func(s cmpState) bool {
		cmp := s.cmp
		if !s.point {
			cmp = wholeCmp(s)
		}
		if cmp == 0 && s.f < len(bound.fra) {
			cmp = -1
		}
		switch {
		case s.neg && bound.neg:
			cmp = -cmp
		case s.neg && (cmp != 0 || bound.whole != "" || bound.fra != ""):
			cmp = -1
		case !s.neg && bound.neg:
			cmp = 1
		}
		return keep(cmp)
	}
	d, err := buildDFA(class, nc, cmpState{}, next, accept)
	if err != nil {
		return nil, err
	}
	return intersectDFA(d, allPlain())
}

// mulState is the residue of the digits read so far, less their last zeros (at most the modulus's own).
type mulState struct {
	point bool
	zero  bool // all digits so far are zero
	r, z  int
	f     int // digits after the point, up to the modulus's own
}

// multipleDFA returns the decimal texts whose value is a multiple of m, which must be positive.
func multipleDFA(m decimal) (*dfa, error) {
	digits, k := strings.TrimLeft(m.whole+m.fra, "0"), len(m.fra)
	base := digits
	if k == 0 {
		base = strings.TrimRight(digits, "0")
	}
	zeros := len(digits) - len(base)
	mod, err := strconv.Atoi(base)
	if err != nil || mod > MaxDFA {
		return nil, fmt.Errorf("multipleOf %s: modulus needs over %d states: %w (MaxDFA)", m.text(), MaxDFA, ErrLimit)
	}
	pow := make([]int, max(zeros+2, k+1)) // powers of ten by the modulus
	pow[0] = 1 % mod
	for i := 1; i < len(pow); i++ {
		pow[i] = pow[i-1] * 10 % mod
	}
	class, nc := decimalClasses()
	next := func(s mulState, b byte) (mulState, bool) {
		switch {
		case b == '-':
			return s, true // allPlain has it only in front
		case b == '.':
			ok := !s.point && (k > 0 || s.zero || s.z == zeros && s.r == 0)
			s.point = true
			return s, ok
		case b < '0' || b > '9':
			return s, false
		}
		d := int(b - '0')
		s.zero = s.zero && d == 0
		if s.point {
			if s.f == k {
				return s, d == 0
			}
			s.f++
			s.r = (s.r*10 + d) % mod
			return s, true
		}
		switch {
		case d != 0:
			s.r, s.z = (s.r*pow[s.z+1]+d)%mod, 0
		case s.z < zeros:
			s.z++
		default:
			s.r = s.r * 10 % mod
		}
		return s, true
	}
	accept := func(s mulState) bool {
		return s.zero || s.z == zeros && s.r*pow[k-s.f]%mod == 0
	}
	d, err := buildDFA(class, nc, mulState{zero: true}, next, accept)
	if err != nil {
		return nil, err
	}
	return intersectDFA(d, allPlain())
}

// isZero reports whether d is 0.
func (d decimal) isZero() bool { return d.whole == "" && d.fra == "" }
