package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// suiteCase is a group of testdata/suite, the public JSON Schema Test Suite for draft 2020-12 (its
// licence lies beside it).
type suiteCase struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}

	file string // where it was read from
}

// readGroups returns the groups of files like those of testdata/suite.
func readGroups(t *testing.T, pattern string) []suiteCase {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
	var all []suiteCase
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []suiteCase
		if err := json.Unmarshal(src, &groups); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range groups {
			groups[i].file = file
		}
		all = append(all, groups...)
	}
	return all
}

// orders returns texts of a JSON value: compact with the members of its objects in several orders (as
// written, reversed, and rotated), indented, and with everything beyond ASCII escaped.
func orders(t testing.TB, data []byte) [][]byte {
	t.Helper()
	v, err := parseJSON(data)
	if err != nil {
		var b bytes.Buffer
		if err := json.Compact(&b, data); err != nil {
			t.Fatal(err)
		}
		return [][]byte{b.Bytes()}
	}
	var out [][]byte
	for _, order := range []func(n int) []int{
		func(n int) []int { return rotation(n, 0) },
		func(n int) []int { r := rotation(n, 0); slices.Reverse(r); return r },
		func(n int) []int { return rotation(n, 1) },
	} {
		out = append(out, appendJSON(nil, v, order))
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, out[0], "", "  "); err != nil {
		t.Fatal(err)
	}
	var ascii []byte
	for _, r := range string(out[1]) {
		if r < 0x80 {
			ascii = append(ascii, byte(r))
		} else {
			ascii = append(ascii, strings.Trim(quoteJSON(string(r), true), `"`)...)
		}
	}
	return append(out, indented.Bytes(), ascii)
}

func rotation(n, k int) []int {
	var out []int
	for i := range n {
		out = append(out, (i+k)%n)
	}
	return out
}

func appendJSON(b []byte, v *jsonValue, order func(int) []int) []byte {
	switch v.kind {
	case jsonNull:
		return append(b, "null"...)
	case jsonTrue:
		return append(b, "true"...)
	case jsonFalse:
		return append(b, "false"...)
	case jsonNumber:
		return append(b, v.text...)
	case jsonString:
		return append(b, quoteJSON(v.text, false)...)
	case jsonArray:
		b = append(b, '[')
		for i, item := range v.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendJSON(b, item, order)
		}
		return append(b, ']')
	}
	b = append(b, '{')
	for n, i := range order(len(v.items)) {
		if n > 0 {
			b = append(b, ',')
		}
		b = append(b, quoteJSON(v.names[i], false)...)
		b = append(b, ':')
		b = appendJSON(b, v.items[i], order)
	}
	return append(b, '}')
}

// narrowed are the cases of the suite that are valid and not accepted: the language that is generated is
// smaller there, as docs/grammar.md says. Keys are file and a part of the descriptions.
var narrowed = map[string][]string{
	"bignum.json":         {"bignum is a"},                      // more than MaxDigits digits
	"float-overflow.json": {"overflow handling"},                // an exponent under multipleOf
	"time.json":           {"leap second, "},                    // a leap second away from UTC
	"date-time.json":      {"leap second, with minus offset"},   // the same
	"format.json":         {"is only an annotation by default"}, // formats are asserted here
}

// supported is the number of groups per file that compile, and of those that are refused by name.
var supported = map[string][2]int{
	"additionalProperties":    {9, 0},
	"allOf":                   {12, 0},
	"anchor":                  {4, 0},
	"anyOf":                   {8, 0},
	"bignum":                  {7, 0},
	"boolean_schema":          {2, 0},
	"const":                   {15, 0},
	"contains":                {7, 0},
	"content":                 {4, 0},
	"default":                 {3, 0},
	"defs":                    {0, 1},
	"dependentRequired":       {4, 0},
	"dependentSchemas":        {4, 0},
	"dynamicRef":              {1, 19},
	"ecmascript-regex":        {20, 0},
	"enum":                    {14, 0},
	"exclusiveMaximum":        {1, 0},
	"exclusiveMinimum":        {1, 0},
	"float-overflow":          {1, 0},
	"format":                  {10, 9},
	"if-then-else":            {10, 0},
	"infinite-loop-detection": {1, 0},
	"items":                   {10, 0},
	"maxContains":             {4, 0},
	"maxItems":                {2, 0},
	"maxLength":               {2, 0},
	"maxProperties":           {3, 0},
	"maximum":                 {2, 0},
	"minContains":             {8, 0},
	"minItems":                {2, 0},
	"minLength":               {2, 0},
	"minProperties":           {2, 0},
	"minimum":                 {2, 0},
	"multipleOf":              {4, 1},
	"non-bmp-regex":           {2, 0},
	"not":                     {8, 1},
	"oneOf":                   {11, 0},
	"pattern":                 {2, 0},
	"patternProperties":       {5, 0},
	"prefixItems":             {4, 0},
	"properties":              {6, 0},
	"propertyNames":           {6, 0},
	"ref":                     {34, 1},
	"refRemote":               {0, 15},
	"required":                {5, 0},
	"type":                    {11, 0},
	"unevaluatedItems":        {18, 9},
	"unevaluatedProperties":   {30, 11},
	"uniqueItems":             {3, 3},
	"vocabulary":              {0, 2},
	"format/date-time":        {1, 0},
	"format/date":             {1, 0},
	"format/duration":         {1, 0},
	"format/email":            {1, 0},
	"format/hostname":         {1, 0},
	"format/ipv4":             {1, 0},
	"format/ipv6":             {1, 0},
	"format/json-pointer":     {1, 0},
	"format/time":             {1, 0},
	"format/uuid":             {1, 0},
}

// TestSuite holds FromJSONSchema to the suite: what compiles accepts and rejects as it says, in several
// orders of members; and it counts what compiles.
func TestSuite(t *testing.T) {
	files, err := filepath.Glob("testdata/suite/*.json")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/suite/format/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, more...) {
		count := [2]int{}
		for _, group := range readGroups(t, file) {
			if runGroup(t, filepath.Base(file), group) {
				count[0]++
			} else {
				count[1]++
			}
		}
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/suite/"), ".json")
		if count != supported[name] {
			t.Errorf("%q: {%d, %d}, // groups supported and refused; want %v", name, count[0], count[1], supported[name])
		}
	}
}

// runGroup checks one group and reports whether its schema is supported.
func runGroup(t *testing.T, file string, group suiteCase) bool {
	g, err := FromJSONSchema(group.Schema)
	if errors.Is(err, ErrEmpty) {
		for _, test := range group.Tests {
			if test.Valid {
				t.Errorf("%s: %s: %v, but %s is valid", file, group.Description, err, test.Data)
			}
		}
		return true
	}
	if err != nil {
		if !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %s: %v", file, group.Description, err)
		}
		return false
	}
	for _, test := range group.Tests {
		if slices.ContainsFunc(narrowed[file], func(part string) bool { return strings.Contains(test.Description, part) }) {
			continue
		}
		for _, text := range orders(t, test.Data) {
			if got := g.Match(text); got != test.Valid {
				t.Errorf("%s: %s: %s: %s: %v, want %v\nschema %s", file, group.Description, test.Description, text, got, test.Valid, group.Schema)
			}
		}
	}
	return true
}
