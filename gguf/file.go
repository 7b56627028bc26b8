package gguf

import (
	"errors"
	"fmt"
	"slices"
)

// File is an open GGUF model: one file, or all the parts of a split one.
type File struct {
	name    string
	version uint32
	parts   []string
	entries []entry
	keys    map[string]int // index in entries
	tensors []*Tensor
	byName  map[string]*Tensor
	release []func() error // one for each mapping
}

// FromBytes reads a model that is already in memory, such as an embedded one. name is used in errors. The slice is
// kept: it must not be changed while the file or its tensors are in use. A part of a split model is refused with
// [ErrSplit], since its other parts cannot be found.
func FromBytes(name string, b []byte) (*File, error) {
	p, err := parse(name, b)
	if err != nil {
		return nil, err
	}
	split, err := p.split()
	if err != nil {
		return nil, err
	}
	if split.count > 1 {
		return nil, p.fail(ErrSplit, "part %d of %d, but only its bytes are given", split.no+1, split.count)
	}
	return merge([]*part{p})
}

// Close unmaps the file. Tensor data must not be used any more; metadata stays valid. Closing again does nothing.
func (f *File) Close() error {
	var errs []error
	for _, t := range f.tensors {
		t.data = nil
	}
	for _, release := range f.release {
		if err := release(); err != nil {
			errs = append(errs, fmt.Errorf("gguf: %s: close: %w", f.name, err))
		}
	}
	f.release = nil
	return errors.Join(errs...)
}

// Name returns the path that was opened, or the name given to [FromBytes].
func (f *File) Name() string { return f.name }

// Version returns the format version of the (first) file, 2 or 3.
func (f *File) Version() int { return int(f.version) }

// Parts returns the paths of the files that make up the model, in order: one unless the model is split.
func (f *File) Parts() []string { return slices.Clone(f.parts) }

// Keys returns the metadata keys in file order. Keys that only later parts have follow those of the first.
func (f *File) Keys() []string {
	keys := make([]string, len(f.entries))
	for i, e := range f.entries {
		keys[i] = e.key
	}
	return keys
}

// Tensors returns all tensors in file order, part after part. The slice is the caller's.
func (f *File) Tensors() []*Tensor { return slices.Clone(f.tensors) }

// Tensor returns the tensor of the given name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	t, ok := f.byName[name]
	return t, ok
}

// Value returns a metadata value of any type.
func (f *File) Value(key string) (Value, bool) {
	i, ok := f.keys[key]
	if !ok {
		return Value{}, false
	}
	return f.entries[i].value, true
}

// get returns the value of key as get reads it. The error, [ErrMissingKey] or [ErrKeyType], names file, key and value.
func get[T any](f *File, key, wanted string, read func(Value) (T, bool)) (T, error) {
	var zero T
	v, ok := f.Value(key)
	if !ok {
		return zero, fmt.Errorf("gguf: %s: key %q: %w", f.name, key, ErrMissingKey)
	}
	x, ok := read(v)
	if !ok {
		typ := v.Type().String()
		if elem, ok := v.Elem(); ok {
			typ += " of " + elem.String()
		}
		return zero, fmt.Errorf("gguf: %s: key %q is %s %s, not %s: %w", f.name, key, typ, v, wanted, ErrKeyType)
	}
	return x, nil
}

// String returns the string at key. This and the getters below fail with [ErrMissingKey] or [ErrKeyType].
func (f *File) String(key string) (string, error) { return get(f, key, "a string", Value.Text) }

// Uint returns the integer at key, of any width, which must not be negative.
func (f *File) Uint(key string) (uint64, error) {
	return get(f, key, "an integer that is not negative", Value.Uint)
}

// Int returns the integer at key, of any width, which must fit an int64.
func (f *File) Int(key string) (int64, error) { return get(f, key, "an int64", Value.Int) }

// Float returns the floating-point number at key.
func (f *File) Float(key string) (float64, error) {
	return get(f, key, "a floating-point number", Value.Float)
}

// Bool returns the bool at key.
func (f *File) Bool(key string) (bool, error) { return get(f, key, "a bool", Value.Bool) }

// Strings returns the array of strings at key.
func (f *File) Strings(key string) ([]string, error) {
	return get(f, key, "an array of strings", Value.Strings)
}

// Ints returns the array of integers at key, of any width that fits an int64.
func (f *File) Ints(key string) ([]int64, error) { return get(f, key, "an array of int64", Value.Ints) }

// Floats returns the array of floating-point numbers at key.
func (f *File) Floats(key string) ([]float64, error) {
	return get(f, key, "an array of floating-point numbers", Value.Floats)
}

// Bools returns the array of bools at key.
func (f *File) Bools(key string) ([]bool, error) {
	return get(f, key, "an array of bools", Value.Bools)
}
