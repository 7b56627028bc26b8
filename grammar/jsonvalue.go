package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// jsonKind is the kind of a jsonValue.
type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonFalse
	jsonTrue
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

// jsonValue is a parsed JSON value that keeps the order of members and the text of numbers.
type jsonValue struct {
	kind  jsonKind
	text  string // of a string: its value; of a number: its text
	items []*jsonValue
	names []string // of an object: the names of items
	index map[string]*jsonValue
}

func (v *jsonValue) get(name string) *jsonValue { return v.index[name] }

// parseJSON reads one JSON value; repeated names in an object are refused.
func parseJSON(src []byte) (*jsonValue, error) {
	if len(src) > MaxSource {
		return nil, fmt.Errorf("JSON of %d bytes, limit %d: %w (MaxSource)", len(src), MaxSource, ErrLimit)
	}
	if i := firstInvalidUTF8(string(src)); i >= 0 {
		return nil, fmt.Errorf("JSON is not UTF-8 at offset %d: %w", i, ErrSyntax)
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.UseNumber()
	v, err := decodeValue(dec, 0)
	if err == nil {
		if _, err2 := dec.Token(); !errors.Is(err2, io.EOF) {
			err = errors.New("text after the value")
		}
	}
	if err != nil && !errors.Is(err, ErrLimit) {
		return nil, fmt.Errorf("JSON at offset %d: %w: %w", dec.InputOffset(), err, ErrSyntax)
	}
	return v, err
}

func decodeValue(dec *json.Decoder, depth int) (*jsonValue, error) {
	if depth > MaxNesting {
		return nil, fmt.Errorf("JSON nests deeper than %d: %w (MaxNesting)", MaxNesting, ErrLimit)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case nil:
		return &jsonValue{kind: jsonNull}, nil
	case bool:
		if t {
			return &jsonValue{kind: jsonTrue}, nil
		}
		return &jsonValue{kind: jsonFalse}, nil
	case json.Number:
		return &jsonValue{kind: jsonNumber, text: t.String()}, nil
	case string:
		return &jsonValue{kind: jsonString, text: t}, nil
	case json.Delim:
		v := &jsonValue{kind: jsonArray}
		if t == '{' {
			v.kind, v.index = jsonObject, map[string]*jsonValue{}
		}
		for dec.More() {
			if v.kind == jsonObject {
				name, err := dec.Token()
				if err != nil {
					return nil, err
				}
				v.names = append(v.names, name.(string))
			}
			item, err := decodeValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
			if v.kind == jsonObject {
				name := v.names[len(v.names)-1]
				if v.index[name] != nil {
					return nil, fmt.Errorf("name %s is repeated", shown(name))
				}
				v.index[name] = item
			}
		}
		_, err := dec.Token()
		return v, err
	}
	return nil, fmt.Errorf("unexpected token %v", tok)
}

// pointer follows a JSON pointer such as /$defs/a~1b/0; each part is percent-decoded by the caller.
func (v *jsonValue) pointer(path string) *jsonValue {
	if path == "" {
		return v
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch v.kind {
		case jsonObject:
			v = v.get(part)
		case jsonArray:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(v.items) {
				return nil
			}
			v = v.items[i]
		default:
			return nil
		}
		if v == nil {
			return nil
		}
	}
	return v
}

// quoteJSON returns the JSON text of a string: the short escapes where JSON has them, \u00XX for other
// control characters; with ascii, \uXXXX for everything beyond ASCII.
func quoteJSON(s string, ascii bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20:
			if c := shortEscapes[r]; c != 0 {
				b.WriteByte('\\')
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "\\u%04x", r)
			}
		case r >= 0x10000 && ascii:
			fmt.Fprintf(&b, "\\u%04x\\u%04x", 0xD800+(r-0x10000)>>10, 0xDC00+(r-0x10000)&0x3FF)
		case r >= 0x7F && ascii:
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// shortEscapes maps control characters to the letter of their JSON escape.
var shortEscapes = map[rune]byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// spellings returns the JSON texts by which a given string is accepted.
func spellings(s string) []string {
	raw, ascii := quoteJSON(s, false), quoteJSON(s, true)
	if raw == ascii {
		return []string{raw}
	}
	return []string{raw, ascii}
}
