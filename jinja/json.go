package jinja

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// FromJSON reads one JSON value. Objects keep the order of their keys; a key
// given twice keeps its first place and takes its last value; numbers without a
// fraction or exponent are integers. Everything belongs to the data. The
// numbers NaN, Infinity and -Infinity are refused. The error wraps ErrData.
func FromJSON(b []byte) (v Value, err error) {
	defer catch("json", func() int { return 0 }, &err)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	v, err = readJSON(dec, 0)
	if err != nil {
		return Value{}, fmt.Errorf("json: %w: %w", ErrData, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Value{}, fmt.Errorf("json: %w: text after the value", ErrData)
	}
	return v, nil
}

func readJSON(dec *json.Decoder, depth int) (Value, error) {
	if depth > MaxValueDepth {
		return Value{}, fmt.Errorf("%w: nested more than %d deep", ErrLimit, MaxValueDepth)
	}
	tok, err := dec.Token()
	if err != nil {
		return Value{}, err
	}
	switch t := tok.(type) {
	case nil:
		return None(), nil
	case bool:
		return Bool(t), nil
	case string:
		return String(t), nil
	case json.Number:
		return jsonNumber(string(t))
	case json.Delim:
		if t == '[' {
			items := []Value{}
			for dec.More() {
				v, err := readJSON(dec, depth+1)
				if err != nil {
					return Value{}, err
				}
				items = append(items, v)
			}
			_, err := dec.Token()
			return List(items...), err
		}
		d := newDict(4)
		for dec.More() {
			k, err := dec.Token()
			if err != nil {
				return Value{}, err
			}
			key, ok := k.(string)
			if !ok {
				return Value{}, fmt.Errorf("a key that is no string")
			}
			v, err := readJSON(dec, depth+1)
			if err != nil {
				return Value{}, err
			}
			d.set(String(key), v)
		}
		_, err := dec.Token()
		return dictVal(d).withData(true), err
	}
	return Value{}, fmt.Errorf("unexpected token %v", tok)
}

func jsonNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := parseFloat(s)
		return Float(f), nil
	}
	if len(s) > maxIntDigits {
		return Value{}, fmt.Errorf("%w: an integer of %d digits; the limit is %d", ErrLimit, len(s), maxIntDigits)
	}
	b, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return Value{}, fmt.Errorf("bad number %q", s)
	}
	return bigVal(b).withData(true), nil
}

func cleanUTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// jsonStyle is the arguments of tojson that shape the text.
type jsonStyle struct {
	ascii     bool
	indent    *text // nil: one line
	item, key *text // separators
	sortKeys  bool
}

// encodeJSON writes v as Python's json.dumps does. What comes of the data
// belongs to it, the punctuation of a container too.
func encodeJSON(vm *machine, b *builder, v Value, st *jsonStyle, depth int) {
	vm.step(valueSteps)
	vm.fits(len(b.buf))
	if depth > MaxValueDepth {
		limitError("tojson", "a value nested more than %d deep", MaxValueDepth)
	}
	mine := !v.data
	switch v.kind {
	case kNone:
		b.add("null", mine)
	case kBool:
		b.add(map[bool]string{true: "true", false: "false"}[v.num == 1], mine)
	case kInt, kBig:
		chargeBig(vm, v)
		b.add(formatInt(v), mine)
	case kFloat:
		b.add(jsonFloat(v.float()), mine)
	case kStr:
		vm.scan(len(v.text().s))
		b.addText(jsonString(v.text(), st.ascii))
	case kList, kTuple:
		items := v.seq()
		if len(items) == 0 {
			b.add("[]", mine)
			return
		}
		b.add("[", mine)
		for i, x := range items {
			if i > 0 {
				vm.charge(len(st.item.s))
				b.add(st.item.s, mine && st.item.allOwn())
			}
			jsonBreak(vm, b, st, depth+1, mine)
			encodeJSON(vm, b, x, st, depth+1)
		}
		jsonBreak(vm, b, st, depth, mine)
		b.add("]", mine)
	case kDict:
		d := v.dict()
		if d.len() == 0 {
			b.add("{}", mine)
			return
		}
		order := make([]int, d.len())
		for i := range order {
			order[i] = i
		}
		if st.sortKeys {
			sortBy(vm, order, d.keys, false)
		}
		b.add("{", mine)
		for n, i := range order {
			vm.charge(len(st.item.s) + len(st.key.s))
			if n > 0 {
				b.add(st.item.s, mine && st.item.allOwn())
			}
			jsonBreak(vm, b, st, depth+1, mine)
			b.addText(jsonString(jsonKey(vm, d.keys[i]), st.ascii))
			b.add(st.key.s, mine && st.key.allOwn())
			encodeJSON(vm, b, d.vals[i], st, depth+1)
		}
		jsonBreak(vm, b, st, depth, mine)
		b.add("}", mine)
	default:
		typeError("Object of type %s is not JSON serializable", typeName(v))
	}
}

func jsonBreak(vm *machine, b *builder, st *jsonStyle, depth int, mine bool) {
	if st.indent == nil {
		return
	}
	mine = mine && st.indent.allOwn()
	b.add("\n", mine)
	vm.charge(depth * len(st.indent.s))
	vm.fits(len(b.buf) + depth*len(st.indent.s))
	for range depth {
		b.add(st.indent.s, mine)
	}
}

func jsonKey(vm *machine, k Value) *text {
	chargeBig(vm, k)
	switch k.kind {
	case kStr:
		vm.scan(len(k.text().s))
		return k.text()
	case kNone:
		return newText("null", !k.data)
	case kBool:
		if k.num == 1 {
			return newText("true", !k.data)
		}
		return newText("false", !k.data)
	case kInt, kBig:
		return newText(formatInt(k), !k.data)
	case kFloat:
		return newText(jsonFloat(k.float()), !k.data)
	}
	typeError("keys must be str, int, float, bool or None, not %s", typeName(k))
	return nil
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return formatFloat(f)
}

const hexDigits = "0123456789abcdef"

func jsonString(t *text, ascii bool) *text {
	q := t.mapRunes(func(dst []byte, _ int, r rune) []byte {
		switch r {
		case '"', '\\':
			return append(dst, '\\', byte(r))
		case '\n':
			return append(dst, '\\', 'n')
		case '\r':
			return append(dst, '\\', 'r')
		case '\t':
			return append(dst, '\\', 't')
		case '\b':
			return append(dst, '\\', 'b')
		case '\f':
			return append(dst, '\\', 'f')
		}
		if r < 0x20 || ascii && r > 0x7e {
			if r > 0xffff {
				r -= 0x10000
				dst = appendHex(append(dst, '\\', 'u'), 0xd800+(r>>10), 4)
				r = 0xdc00 + r&0x3ff
			}
			return appendHex(append(dst, '\\', 'u'), r, 4)
		}
		return utf8.AppendRune(dst, r)
	})
	var b builder
	b.add(`"`, t.ownAt(0))
	b.addText(q)
	b.add(`"`, t.ownAt(len(t.s)))
	return b.text()
}

func appendHex(dst []byte, r rune, digits int) []byte {
	for i := digits - 1; i >= 0; i-- {
		dst = append(dst, hexDigits[r>>(4*i)&15])
	}
	return dst
}
