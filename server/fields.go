package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/minfer-go/minfer/chat"
)

// A setter takes the value of one field of a request.
type setter[T any] func(into *T, value json.RawMessage) error

// fields is an endpoint's table of known fields.
type fields[T any] map[string]setter[T]

// decode reads a JSON object by the table. Fields that it does not have are refused; null counts as absent.
func (f fields[T]) decode(body []byte, into *T) error {
	var o chat.Object
	if err := strict(body, &o); err != nil {
		return badRequest("the body is no JSON object: %v", err)
	}
	return f.object(o, into, "")
}

// object reads an object that stands under a path in the body.
func (f fields[T]) object(o chat.Object, into *T, path string) error {
	for _, field := range o {
		name := path + field.Key
		set, ok := f[field.Key]
		if !ok {
			return &apiError{status: 400, kind: "invalid_request_error", code: "unknown_parameter", param: name, message: fmt.Sprintf("unknown field %q", name)}
		}
		if string(field.Value) == "null" {
			continue
		}
		if err := set(into, field.Value); err != nil {
			return named(err, name)
		}
	}
	return nil
}

// named makes an error about a field's value one that names the field.
func named(err error, name string) error {
	var have *apiError
	if errors.As(err, &have) {
		if have.param == "" {
			have.param, have.message = name, name+": "+have.message
		}
		return have
	}
	return badField(name, "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// with joins tables.
func (f fields[T]) with(others ...fields[T]) fields[T] {
	all := fields[T]{}
	for _, t := range append([]fields[T]{f}, others...) {
		for name, set := range t {
			all[name] = set
		}
	}
	return all
}

// within turns a table for a part of a request into one for the whole.
func within[T, P any](part func(*T) *P, f fields[P]) fields[T] {
	all := fields[T]{}
	for name, set := range f {
		all[name] = func(into *T, value json.RawMessage) error { return set(part(into), value) }
	}
	return all
}

// value takes a field of a plain type.
func value[T, V any](at func(*T) *V) setter[T] {
	return func(into *T, value json.RawMessage) error { return strict(value, at(into)) }
}

// pointer takes a field whose absence matters.
func pointer[T, V any](at func(*T) **V) setter[T] {
	return func(into *T, value json.RawMessage) error {
		v := new(V)
		*at(into) = v
		return strict(value, v)
	}
}

// only takes a field that makes no difference at the given JSON values and cannot be honoured at others.
func only[T any](why string, values ...string) setter[T] {
	return func(_ *T, value json.RawMessage) error {
		var b bytes.Buffer
		if err := json.Compact(&b, value); err != nil {
			return err
		}
		if slices.Contains(values, b.String()) {
			return nil
		}
		return errors.New(why)
	}
}

// strict is json.Unmarshal that refuses unknown fields and anything after the value.
func strict(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			where := ""
			if wrong.Field != "" {
				where = wrong.Field + ": "
			}
			return fmt.Errorf("%sit is a JSON %s, not %s", where, wrong.Value, kindName(wrong.Type.Kind().String()))
		}
		if errors.Is(err, io.EOF) {
			return errors.New("it is empty")
		}
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the value")
	}
	return nil
}

// kindName is what people call a Go kind.
func kindName(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"):
		return "an integer"
	case strings.HasPrefix(kind, "uint"):
		return "an integer that is not negative"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "bool":
		return "a boolean"
	case kind == "slice":
		return "a list"
	case kind == "struct" || kind == "map":
		return "an object"
	}
	return "a " + kind
}
