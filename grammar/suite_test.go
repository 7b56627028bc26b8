package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
}

// orders returns compact texts of a JSON value with the members of its objects in several orders:
// as written, reversed, and rotated.
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
	return out
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

// TestSuite holds FromJSONSchema to the suite and counts, per file, the groups that are supported.
func TestSuite(t *testing.T) {
	files, err := filepath.Glob("testdata/suite/*.json")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/suite/format/*.json")
	if err != nil {
		t.Fatal(err)
	}
	var report strings.Builder
	for _, file := range append(files, more...) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []suiteCase
		if err := json.Unmarshal(src, &groups); err != nil {
			t.Fatal(err)
		}
		supported := 0
		for _, group := range groups {
			g, err := FromJSONSchema(group.Schema)
			if err != nil {
				if errors.Is(err, ErrEmpty) && !slices.ContainsFunc(group.Tests, func(x struct {
					Description string
					Data        json.RawMessage
					Valid       bool
				}) bool {
					return x.Valid
				}) {
					supported++
					continue
				}
				t.Logf("%s: %s: %v", filepath.Base(file), group.Description, err)
				continue
			}
			supported++
			for _, test := range group.Tests {
				for _, text := range orders(t, test.Data) {
					if got := g.Match(text); got != test.Valid {
						t.Errorf("%s: %s: %s: %s: %v, want %v\nschema %s", filepath.Base(file), group.Description, test.Description, text, got, test.Valid, group.Schema)
					}
				}
			}
		}
		name := strings.TrimPrefix(filepath.ToSlash(file), "testdata/suite/")
		fmt.Fprintf(&report, "%s %d %d\n", strings.TrimSuffix(name, ".json"), supported, len(groups)-supported)
	}
	t.Log("\n" + report.String())
}
