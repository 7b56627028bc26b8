package jinja

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// formatInt is str() of an integer; Python refuses the very long ones.
func formatInt(v Value) string {
	if v.kind != kBig {
		return strconv.FormatInt(v.int(), 10)
	}
	b, s := v.ref.(*big.Int), ""
	if b.BitLen() <= 4*maxIntDigits { // else certainly too long
		s = b.String()
	}
	if s == "" || len(strings.TrimPrefix(s, "-")) > maxIntDigits {
		valueError("Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	return s
}

// formatFloat is repr() of a float: the shortest digits that read back the same,
// with an exponent below 1e-4 and from 1e16 on.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// parseFloat reads decimal digits; too large gives an infinity.
func parseFloat(s string) (float64, bool) {
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

// asciiDigits replaces the decimal digits of every script by ASCII ones and
// strips white space, as int() and float() do.
func asciiDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return r
		}
		if d := digitValue(r); d >= 0 {
			return '0' + rune(d)
		}
		if isSpace(r) {
			return ' '
		}
		return r
	}, strings.TrimFunc(s, isSpace))
}

// underscores removes single underscores between digits; ok is false where one
// stands elsewhere.
func underscores(s string) (string, bool) {
	if !strings.Contains(s, "_") {
		return s, true
	}
	for i := range len(s) {
		if s[i] == '_' && (i == 0 || i == len(s)-1 || !isAlnum(s[i-1]) || !isAlnum(s[i+1])) {
			return s, false
		}
	}
	return strings.ReplaceAll(s, "_", ""), true
}

func isAlnum(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// floatOf is float(str).
func floatOf(s string) (float64, bool) {
	s = strings.ToLower(asciiDigits(s))
	switch strings.TrimLeft(s, "+-") {
	case "inf", "infinity", "nan":
		if len(s) > 0 && len(strings.TrimLeft(s[1:], "+-")) == len(s)-1 {
			return parseFloat(s)
		}
		return 0, false
	}
	if strings.ContainsAny(s, "xpn") || strings.Contains(s, "i") {
		return 0, false
	}
	for i := 1; i < len(s)-1; i++ {
		if s[i] == '_' && (!isDigit(s[i-1]) || !isDigit(s[i+1])) {
			return 0, false
		}
	}
	s, ok := underscores(s)
	if !ok {
		return 0, false
	}
	return parseFloat(s)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// intOf is int(str, base). Python refuses very long decimal texts.
func intOf(s string, base int) (Value, bool) {
	if base != 0 && (base < 2 || base > 36) {
		return Value{}, false
	}
	s = asciiDigits(s)
	neg := strings.HasPrefix(s, "-")
	if neg || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	prefixed := false
	if len(s) > 1 && s[0] == '0' {
		b := map[byte]int{'x': 16, 'o': 8, 'b': 2}[s[1]|0x20]
		if b != 0 && (base == 0 || base == b) {
			base, s, prefixed = b, s[2:], true
			s = strings.TrimPrefix(s, "_")
		}
	}
	s, ok := underscores(s)
	if !ok || s == "" || s[0] == '-' || s[0] == '+' {
		return Value{}, false
	}
	if base == 0 {
		base = 10
		if s[0] == '0' && !prefixed && strings.Trim(s, "0") != "" {
			return Value{}, false
		}
	}
	if base&(base-1) != 0 && len(s) > maxIntDigits {
		return Value{}, false
	}
	if len(s) > MaxIntBits {
		limitError("int", "an integer of %d digits", len(s))
	}
	b, ok := new(big.Int).SetString(strings.ToLower(s), base)
	if !ok {
		return Value{}, false
	}
	if neg {
		b.Neg(b)
	}
	return bigVal(b), true
}

// toFloat is an int, bool or float as a float.
func toFloat(v Value) float64 {
	switch v.kind {
	case kFloat:
		return v.float()
	case kBig:
		f, _ := new(big.Float).SetInt(v.big()).Float64()
		if math.IsInf(f, 0) {
			overflowError("int too large to convert to float")
		}
		return f
	}
	return float64(v.int())
}

// truncFloat is int(float).
func truncFloat(f float64) Value {
	if math.IsNaN(f) {
		valueError("cannot convert float NaN to integer")
	}
	if math.IsInf(f, 0) {
		overflowError("cannot convert float infinity to integer")
	}
	b, _ := big.NewFloat(f).Int(nil)
	return bigVal(b)
}

// arith is a binary operator on two numbers.
func arith(op string, a, b Value) Value {
	if a.kind == kFloat || b.kind == kFloat {
		return floatArith(op, toFloat(a), toFloat(b))
	}
	if a.kind != kBig && b.kind != kBig {
		if r, ok := smallArith(op, a.int(), b.int()); ok {
			return int64Val(r)
		}
	}
	x, y, z := a.big(), b.big(), new(big.Int)
	switch op {
	case "+":
		return bigVal(z.Add(x, y))
	case "-":
		return bigVal(z.Sub(x, y))
	case "*":
		if x.BitLen()+y.BitLen() > MaxIntBits+1 {
			limitError("*", "an integer of more than %d bits", MaxIntBits)
		}
		return bigVal(z.Mul(x, y))
	case "/":
		return intDivide(x, y)
	case "//", "%":
		if y.Sign() == 0 {
			raise(ErrRuntime, "ZeroDivisionError", "integer division or modulo by zero")
		}
		m := new(big.Int)
		z.QuoRem(x, y, m)
		if m.Sign() != 0 && (m.Sign() < 0) != (y.Sign() < 0) {
			z.Sub(z, big.NewInt(1))
			m.Add(m, y)
		}
		if op == "%" {
			return bigVal(m)
		}
		return bigVal(z)
	}
	return intPower(x, y)
}

// smallArith does what fits an int64.
func smallArith(op string, a, b int64) (int64, bool) {
	switch op {
	case "+":
		r := a + b
		return r, (r > a) == (b > 0)
	case "-":
		r := a - b
		return r, (r < a) == (b > 0)
	case "*":
		if a == 0 || b == 0 {
			return 0, true
		}
		r := a * b
		return r, r/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
	case "//", "%":
		if b == 0 || b == -1 {
			return 0, false
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q, m = q-1, m+b
		}
		if op == "%" {
			return m, true
		}
		return q, true
	}
	return 0, false
}

func intDivide(x, y *big.Int) Value {
	if y.Sign() == 0 {
		raise(ErrRuntime, "ZeroDivisionError", "division by zero")
	}
	if x.Sign() == 0 {
		return floatVal(math.Copysign(0, float64(y.Sign())))
	}
	f, _ := new(big.Rat).SetFrac(x, y).Float64()
	if math.IsInf(f, 0) {
		overflowError("integer division result too large for a float")
	}
	return floatVal(f)
}

func intPower(x, y *big.Int) Value {
	if y.Sign() < 0 {
		if x.Sign() == 0 {
			raise(ErrRuntime, "ZeroDivisionError", "0.0 cannot be raised to a negative power")
		}
		return floatArith("**", toFloat(bigVal(new(big.Int).Set(x))), toFloat(bigVal(new(big.Int).Set(y))))
	}
	if x.BitLen() > 1 {
		if !y.IsInt64() || y.Int64() > MaxIntBits || int64(x.BitLen()-1)*y.Int64() > MaxIntBits {
			limitError("**", "an integer of more than %d bits", MaxIntBits)
		}
	} else if x.Sign() < 0 { // -1
		return int64Val(1 - 2*int64(y.Bit(0)))
	} else if y.Sign() == 0 {
		return int64Val(1)
	} else { // 0 or 1
		return bigVal(x)
	}
	return bigVal(new(big.Int).Exp(x, y, nil))
}

func floatArith(op string, x, y float64) Value {
	switch op {
	case "+":
		return floatVal(x + y)
	case "-":
		return floatVal(x - y)
	case "*":
		return floatVal(x * y)
	case "**":
		if x == 0 && y < 0 {
			raise(ErrRuntime, "ZeroDivisionError", "0.0 cannot be raised to a negative power")
		}
		if x < 0 && y != math.Trunc(y) && !math.IsInf(x, 0) {
			raise(ErrUnsupported, "**", "a complex number")
		}
		r := pow(x, y)
		if math.IsInf(r, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
			overflowError("(34, 'Numerical result out of range')")
		}
		return floatVal(r)
	}
	if y == 0 {
		raise(ErrRuntime, "ZeroDivisionError", "float division by zero")
	}
	if op == "/" {
		return floatVal(x / y)
	}
	m := math.Mod(x, y)
	if m != 0 && (m < 0) != (y < 0) {
		m += y
	} else if m == 0 {
		m = math.Copysign(0, y)
	}
	if op == "%" {
		return floatVal(m)
	}
	q := (x - m) / y
	if q == 0 {
		return floatVal(math.Copysign(0, x/y))
	}
	f := math.Floor(q)
	if q-f > 0.5 {
		f++
	}
	return floatVal(f)
}

// powPrec is the precision that pow computes with: enough for the error that
// the power multiplies by up to 2^53 to stay below the last bit.
const powPrec = 320

// pow is x**y rounded correctly, as C libraries all but always do and math.Pow
// does not.
func pow(x, y float64) float64 {
	r := math.Pow(x, y)
	if math.IsNaN(r) || math.IsInf(r, 0) || r == 0 || r == 1 || math.IsInf(x, 0) || math.IsInf(y, 0) || x == 0 || y == 0 {
		return r
	}
	// y is m/2^k: take k roots and the power m.
	mant, exp := math.Frexp(y)
	m, k := int64(math.Abs(mant)*(1<<53)), 53-exp
	for m&1 == 0 {
		m >>= 1
		k--
	}
	if k < -10 || k > 100 {
		return r
	}
	b := new(big.Float).SetPrec(powPrec).SetFloat64(math.Abs(x))
	for ; k > 0; k-- {
		b.Sqrt(b)
	}
	m <<= -k
	z := new(big.Float).SetPrec(powPrec).SetInt64(1)
	for ; m > 0; m >>= 1 {
		if m&1 == 1 {
			z.Mul(z, b)
		}
		if m > 1 {
			b.Mul(b, b)
		}
	}
	if y < 0 {
		z.Quo(big.NewFloat(1), z)
	}
	f, _ := z.Float64()
	return math.Copysign(f, r)
}

// compareNumbers is -1, 0 or 1, and 2 where one is NaN.
func compareNumbers(a, b Value) int {
	if a.kind != kFloat && b.kind != kFloat {
		if a.kind != kBig && b.kind != kBig {
			x, y := a.int(), b.int()
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		}
		return a.big().Cmp(b.big())
	}
	if a.kind == kFloat && b.kind == kFloat {
		return compareFloats(a.float(), b.float())
	}
	if a.kind == kFloat {
		r := compareNumbers(b, a)
		if r == 2 {
			return 2
		}
		return -r
	}
	f := b.float()
	if math.IsNaN(f) {
		return 2
	}
	if math.IsInf(f, 0) {
		return compareFloats(0, f)
	}
	return new(big.Float).SetPrec(MaxIntBits + 64).SetInt(a.big()).Cmp(big.NewFloat(f))
}

func compareFloats(x, y float64) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	}
	return 2
}
