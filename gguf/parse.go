package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/minfer-go/minfer/quant"
)

// Least bytes that one key with its value, and one tensor's record, take: they bound the counts by the file's size.
const (
	leastKeyBytes    = 8 + 1 + 4 + 1
	leastTensorBytes = 8 + 1 + 4 + 8 + 4 + 8
)

// parser walks the header of one part. Every read is checked against what is left.
type parser struct {
	name string // for errors
	data []byte
	pos  int // of the next byte, at most len(data)
}

// part is one parsed file.
type part struct {
	name      string
	version   uint32
	entries   []entry
	keys      map[string]int // index in entries
	tensors   []*Tensor
	alignment uint64
}

type entry struct {
	key   string
	value Value
}

func (p *parser) fail(sentinel error, format string, args ...any) error {
	return fmt.Errorf("gguf: %s: %s: %w", p.name, fmt.Sprintf(format, args...), sentinel)
}

func (p *parser) left() uint64 { return uint64(len(p.data) - p.pos) }

func (p *parser) u32() (uint32, bool) {
	if p.left() < 4 {
		return 0, false
	}
	x := binary.LittleEndian.Uint32(p.data[p.pos:])
	p.pos += 4
	return x, true
}

func (p *parser) u64() (uint64, bool) {
	if p.left() < 8 {
		return 0, false
	}
	x := binary.LittleEndian.Uint64(p.data[p.pos:])
	p.pos += 8
	return x, true
}

// skip moves over n bytes.
func (p *parser) skip(n uint64) bool {
	if n > p.left() {
		return false
	}
	p.pos += int(n) // at most what is left
	return true
}

// parse reads the header of a part whose bytes are data, and binds the tensors to their bytes in it.
func parse(name string, data []byte) (*part, error) {
	p := &parser{name: name, data: data}
	f := &part{name: name, alignment: defaultAlignment}
	if !bytes.HasPrefix(data, []byte(magic)) {
		if len(data) < len(magic) && bytes.HasPrefix([]byte(magic), data) {
			return nil, p.fail(ErrTruncated, "%d bytes", len(data))
		}
		return nil, p.fail(ErrMagic, "begins with %q", data[:min(len(data), len(magic))])
	}
	p.pos = len(magic)
	version, okV := p.u32()
	if okV && version != 2 && version != 3 {
		if version&0xffff == 0 && version != 0 {
			return nil, p.fail(ErrVersion, "version %d, big-endian", version>>24)
		}
		return nil, p.fail(ErrVersion, "version %d", version)
	}
	f.version = version
	nTensors, okT := p.u64()
	nKeys, okK := p.u64()
	if !okV || !okT || !okK {
		return nil, p.fail(ErrTruncated, "header")
	}
	if nKeys > MaxKeys {
		return nil, p.fail(ErrLimit, "%d metadata keys, at most %d", nKeys, MaxKeys)
	}
	if nTensors > MaxTensors {
		return nil, p.fail(ErrLimit, "%d tensors, at most %d", nTensors, MaxTensors)
	}
	if left := p.left(); nKeys*leastKeyBytes+nTensors*leastTensorBytes > left {
		return nil, p.fail(ErrTruncated, "%d keys and %d tensors in %d bytes", nKeys, nTensors, left)
	}
	if err := p.metadata(f, int(nKeys)); err != nil {
		return nil, err
	}
	if err := p.alignment(f); err != nil {
		return nil, err
	}
	return f, p.tensors(f, int(nTensors))
}

// metadata reads n keys and values into f. They share one copy of the section.
func (p *parser) metadata(f *part, n int) error {
	type span struct{ key, keyEnd, value, end int }
	spans := make([]span, n)
	types := make([]ValueType, n)
	start := p.pos
	for i := range spans {
		length, ok := p.u64()
		switch {
		case !ok:
			return p.fail(ErrTruncated, "metadata key %d of %d", i+1, n)
		case length == 0:
			return p.fail(ErrKey, "metadata key %d of %d is empty", i+1, n)
		case length > MaxKeyLen:
			return p.fail(ErrLimit, "metadata key %d of %d has %d bytes, at most %d", i+1, n, length, MaxKeyLen)
		}
		s := span{key: p.pos}
		if !p.skip(length) {
			return p.fail(ErrTruncated, "metadata key %d of %d", i+1, n)
		}
		s.keyEnd = p.pos
		typ, ok := p.u32()
		key := keyName(p.data[s.key:s.keyEnd])
		if !ok {
			return p.fail(ErrTruncated, "key %s", key)
		}
		s.value, types[i] = p.pos, ValueType(typ)
		if err := p.value(key, types[i], 1); err != nil {
			return err
		}
		s.end = p.pos
		spans[i] = s
	}
	section := string(p.data[start:p.pos])
	f.entries = make([]entry, n)
	f.keys = make(map[string]int, n)
	for i, s := range spans {
		key := section[s.key-start : s.keyEnd-start]
		if _, ok := f.keys[key]; ok {
			return p.fail(ErrDuplicateKey, "key %s", keyName([]byte(key)))
		}
		f.keys[key] = i
		f.entries[i] = entry{key, Value{types[i], section[s.value-start : s.end-start]}}
	}
	return nil
}

// keyName quotes a key or name for errors, shortened.
type keyName []byte

func (k keyName) String() string {
	const shown = 100
	if len(k) > shown {
		return fmt.Sprintf("%q…", []byte(k[:shown]))
	}
	return fmt.Sprintf("%q", []byte(k))
}

// value moves over one value and checks that it is whole. depth counts the arrays around it, itself included.
func (p *parser) value(key keyName, t ValueType, depth int) error {
	switch {
	case !t.known():
		return p.fail(ErrValueType, "key %s: type number %d", key, uint32(t))
	case t == TypeArray:
		return p.array(key, depth)
	case t == TypeString:
		return p.strings(key, 1)
	}
	return p.numbers(key, t, 1)
}

// strings moves over n strings.
func (p *parser) strings(key keyName, n uint64) error {
	for range n {
		length, ok := p.u64()
		if ok && length > MaxStringLen {
			return p.fail(ErrLimit, "key %s: a string of %d bytes, at most %d", key, length, MaxStringLen)
		}
		if !ok || !p.skip(length) {
			return p.fail(ErrTruncated, "key %s: string", key)
		}
	}
	return nil
}

// numbers moves over n values of a type of fixed size; n is within MaxArrayLen.
func (p *parser) numbers(key keyName, t ValueType, n uint64) error {
	start := p.pos
	if !p.skip(n * uint64(t.size())) {
		return p.fail(ErrTruncated, "key %s: %d × %s", key, n, t)
	}
	if t != TypeBool {
		return nil
	}
	for _, b := range p.data[start:p.pos] {
		if b > 1 {
			return p.fail(ErrValueType, "key %s: a bool of value %d", key, b)
		}
	}
	return nil
}

func (p *parser) array(key keyName, depth int) error {
	if depth > MaxDepth {
		return p.fail(ErrLimit, "key %s: arrays nested more than %d deep", key, MaxDepth)
	}
	elem, okE := p.u32()
	n, okN := p.u64()
	t := ValueType(elem)
	switch {
	case !okE || !okN:
		return p.fail(ErrTruncated, "key %s: array", key)
	case !t.known():
		return p.fail(ErrValueType, "key %s: array of type number %d", key, elem)
	case n > MaxArrayLen:
		return p.fail(ErrLimit, "key %s: an array of %d elements, at most %d", key, n, MaxArrayLen)
	case t.size() > 0:
		return p.numbers(key, t, n)
	case t == TypeString:
		return p.strings(key, n)
	}
	for range n {
		if err := p.value(key, t, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// alignment takes the alignment of the part's tensor data from its metadata.
func (p *parser) alignment(f *part) error {
	i, ok := f.keys[alignmentKey]
	if !ok {
		return nil
	}
	alignment, err := checkAlignment(f.entries[i].value)
	if err != nil {
		return p.fail(err, "key %q: %s", alignmentKey, f.entries[i].value)
	}
	f.alignment = alignment
	return nil
}

// checkAlignment returns the alignment that v asks for, or ErrAlignment.
func checkAlignment(v Value) (uint64, error) {
	a, ok := v.Uint()
	if !ok || a < MinAlignment || a > MaxAlignment || a&(a-1) != 0 {
		return 0, ErrAlignment
	}
	return a, nil
}

// tensors reads n tensor records into f and binds them to their bytes.
func (p *parser) tensors(f *part, n int) error {
	f.tensors = make([]*Tensor, n)
	seen := make(map[string]struct{}, n)
	for i := range f.tensors {
		t, err := p.tensor(i, n)
		if err != nil {
			return err
		}
		if _, ok := seen[t.Name]; ok {
			return p.fail(ErrDuplicateTensor, "tensor %q", t.Name)
		}
		seen[t.Name] = struct{}{}
		f.tensors[i] = t
	}
	if n == 0 {
		return nil
	}
	start := alignUp(uint64(p.pos), f.alignment)
	if err := p.bind(f, start); err != nil {
		return err
	}
	return p.checkOverlap(f.tensors)
}

// tensor reads record i of n. Its offset is still relative to the data section.
func (p *parser) tensor(i, n int) (*Tensor, error) {
	length, ok := p.u64()
	switch {
	case !ok:
		return nil, p.fail(ErrTruncated, "tensor %d of %d", i+1, n)
	case length == 0:
		return nil, p.fail(ErrTensorName, "tensor %d of %d has an empty name", i+1, n)
	case length > MaxNameLen:
		return nil, p.fail(ErrLimit, "tensor %d of %d: a name of %d bytes, at most %d", i+1, n, length, MaxNameLen)
	}
	at := p.pos
	if !p.skip(length) {
		return nil, p.fail(ErrTruncated, "tensor %d of %d", i+1, n)
	}
	t := &Tensor{Name: string(p.data[at:p.pos])}
	nDims, ok := p.u32()
	if !ok {
		return nil, p.fail(ErrTruncated, "tensor %q", t.Name)
	}
	if nDims > MaxDims {
		return nil, p.fail(ErrLimit, "tensor %q: %d dimensions, at most %d", t.Name, nDims, MaxDims)
	}
	var dims [MaxDims]uint64
	for d := range dims[:nDims] {
		if dims[d], ok = p.u64(); !ok {
			return nil, p.fail(ErrTruncated, "tensor %q", t.Name)
		}
	}
	typ, okType := p.u32()
	offset, okOffset := p.u64()
	if !okType || !okOffset {
		return nil, p.fail(ErrTruncated, "tensor %q", t.Name)
	}
	t.Type, t.offset = quant.Type(typ), offset
	size, err := tensorBytes(t.Type, dims[:nDims])
	if err != nil {
		return nil, p.fail(err, "tensor %q: %s%v", t.Name, t.Type, dims[:nDims])
	}
	t.size = size
	t.Shape = make([]int, nDims)
	for d := range t.Shape {
		t.Shape[d] = int(dims[d]) // tensorBytes has checked the product
	}
	return t, nil
}

// tensorBytes returns the bytes of a tensor, or the sentinel that says why there can be none of this type and shape.
func tensorBytes(t quant.Type, dims []uint64) (uint64, error) {
	if t.BlockLen() == 0 {
		return 0, ErrTensorType
	}
	if len(dims) == 0 {
		return 0, ErrTensorShape
	}
	elements := uint64(1)
	for _, d := range dims {
		switch {
		case d == 0:
			return 0, ErrTensorShape
		case d > MaxElements/elements || d > math.MaxInt/elements:
			return 0, ErrLimit
		}
		elements *= d
	}
	blockLen, blockBytes := uint64(t.BlockLen()), uint64(t.BlockBytes())
	if dims[0]%blockLen != 0 {
		return 0, ErrTensorShape
	}
	return elements / blockLen * blockBytes, nil
}

// bind gives each tensor its bytes, which must lie within the data section at start.
func (p *parser) bind(f *part, start uint64) error {
	end := uint64(len(p.data))
	for _, t := range f.tensors {
		switch {
		case t.offset%f.alignment != 0:
			return p.fail(ErrTensorOffset, "tensor %q: offset %d is no multiple of %d", t.Name, t.offset, f.alignment)
		case start > end || t.offset > end-start || t.size > end-start-t.offset:
			return p.fail(ErrTruncated, "tensor %q: %d bytes at offset %d of the data, which begins at byte %d of %d",
				t.Name, t.size, t.offset, start, end)
		}
		t.offset += start
		t.data = p.data[t.offset : t.offset+t.size : t.offset+t.size]
	}
	return nil
}
