package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// An Object is a JSON object that keeps the order of its keys.
type Object []Field

// A Field is a key of an Object with its value as JSON.
type Field struct {
	Key   string
	Value json.RawMessage
}

// errNoObject is wrapped where JSON should be an object.
var errNoObject = errors.New("not a JSON object")

// UnmarshalJSON reads an object. A key that stands twice keeps its first place and takes its last value.
func (o *Object) UnmarshalJSON(b []byte) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	t, err := dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return errNoObject
	}
	*o = Object{}
	places := map[string]int{} // so that many keys take no time
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name, ok := key.(string)
		if !ok {
			return fmt.Errorf("%w: key %v", errNoObject, key)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if i, ok := places[name]; ok {
			(*o)[i].Value = value
			continue
		}
		places[name] = len(*o)
		*o = append(*o, Field{name, value})
	}
	_, err = dec.Token()
	return err
}

// MarshalJSON writes the keys in their order.
func (o Object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range o {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := marshal(f.Key)
		if err != nil {
			return nil, err
		}
		value := f.Value
		if len(value) == 0 {
			value = json.RawMessage("null")
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// Get returns the value of a key.
func (o Object) Get(key string) (json.RawMessage, bool) {
	i := slices.IndexFunc(o, func(f Field) bool { return f.Key == key })
	if i < 0 {
		return nil, false
	}
	return o[i].Value, true
}

// Set replaces the value of a key, or appends the key.
func (o *Object) Set(key string, value json.RawMessage) {
	i := slices.IndexFunc(*o, func(f Field) bool { return f.Key == key })
	if i < 0 {
		*o = append(*o, Field{key, value})
		return
	}
	(*o)[i].Value = value
}

// add marshals a value and appends it.
func (o *Object) add(key string, value any) error {
	b, err := marshal(value)
	if err != nil {
		return err
	}
	*o = append(*o, Field{key, b})
	return nil
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// isNull reports whether JSON is absent or null.
func isNull(b json.RawMessage) bool { return len(b) == 0 || string(b) == "null" }
