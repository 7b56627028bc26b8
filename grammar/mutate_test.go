package grammar

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
)

// decode parses a JSON text with its numbers as they are written.
func decode(text []byte) (v any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// names returns the names of an object in order.
func names[V any](o map[string]V) []string { return slices.Sorted(maps.Keys(o)) }

// sites counts the values in v, itself included.
func sites(v any) int {
	n := 1
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n += sites(x)
		}
	case object:
		for _, k := range names(v) {
			n += sites(v[k])
		}
	}
	return n
}

// mutate returns a copy of v that differs in one place: a value a little more or less, a character, item or
// member more or less, a name misspelt, a value of another kind. Valid values so become values that are just valid, or
// just not.
func mutate(rng *rand.Rand, v any) any {
	return mutateAt(rng, v, rng.IntN(sites(v)))
}

func mutateAt(rng *rand.Rand, v any, at int) any {
	if at == 0 {
		return mutateHere(rng, v)
	}
	at--
	switch v := v.(type) {
	case []any:
		out := slices.Clone(v)
		for i, x := range out {
			n := sites(x)
			if at < n {
				out[i] = mutateAt(rng, x, at)
				break
			}
			at -= n
		}
		return out
	case object:
		out := object{}
		for _, k := range names(v) {
			n := sites(v[k])
			out[k] = v[k]
			if at >= 0 && at < n {
				out[k] = mutateAt(rng, v[k], at)
			}
			at -= n
		}
		return out
	}
	return v
}

// otherKinds are values that often are of the wrong kind.
var otherKinds = []any{nil, true, false, json.Number("0"), json.Number("1.5"), "", "a", []any{}, object{}}

func mutateHere(rng *rand.Rand, v any) any {
	if rng.IntN(6) == 0 {
		return otherKinds[rng.IntN(len(otherKinds))]
	}
	switch v := v.(type) {
	case bool:
		return !v
	case json.Number:
		return mutateNumber(rng, v)
	case string:
		return mutateString(rng, v)
	case []any:
		return mutateArray(rng, v)
	case object:
		return mutateObject(rng, v)
	}
	return v
}

// mutateNumber adds a little to a number that is written without an exponent, or scales it.
func mutateNumber(rng *rand.Rand, v json.Number) any {
	x, ok := new(big.Rat).SetString(v.String())
	if !ok || strings.ContainsAny(v.String(), "eE") || len(v) > 12 {
		return v
	}
	steps := []string{"1", "-1", "0.5", "-0.5", "0.01", "-0.01", "0.001", "10", "-10"}
	step, _ := new(big.Rat).SetString(steps[rng.IntN(len(steps))])
	switch rng.IntN(6) {
	case 0:
		x.Neg(x)
	case 1:
		x.Mul(x, big.NewRat(2, 1))
	default:
		x.Add(x, step)
	}
	text := x.FloatString(12)
	return json.Number(strings.TrimSuffix(strings.TrimRight(text, "0"), "."))
}

func mutateString(rng *rand.Rand, s string) any {
	chars := []rune(s)
	alphabet := []rune("aZ09 -_.:@/T\n\"\\é漢😀")
	c := alphabet[rng.IntN(len(alphabet))]
	i := rng.IntN(len(chars) + 1)
	switch k := rng.IntN(4); {
	case k == 0 || i == len(chars):
		chars = slices.Insert(chars, i, c)
	case k == 1:
		chars = slices.Delete(chars, i, i+1)
	case k == 2 && chars[i] < 0x7F:
		chars[i]++
	default:
		chars[i] = c
	}
	return string(chars)
}

func mutateArray(rng *rand.Rand, v []any) any {
	out := slices.Clone(v)
	i := rng.IntN(len(v) + 1)
	switch k := rng.IntN(4); {
	case len(v) == 0:
		return []any{otherKinds[rng.IntN(len(otherKinds))]}
	case k == 0:
		return slices.Insert(out, i, otherKinds[rng.IntN(len(otherKinds))])
	case k == 1:
		return slices.Insert(out, i, v[rng.IntN(len(v))])
	case i == len(v) || k == 2:
		return out[:len(out)-1]
	}
	return slices.Delete(out, i, i+1)
}

func mutateObject(rng *rand.Rand, v object) any {
	out := object{}
	for k, x := range v {
		out[k] = x
	}
	list := names(v)
	if len(list) == 0 || rng.IntN(4) == 0 {
		out[someNames[rng.IntN(len(someNames))]] = otherKinds[rng.IntN(len(otherKinds))]
		return out
	}
	k := list[rng.IntN(len(list))]
	delete(out, k)
	if rng.IntN(2) == 0 {
		if name, ok := mutateString(rng, k).(string); ok {
			out[name] = v[k]
		}
	}
	return out
}
