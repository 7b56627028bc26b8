package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/minfer-go/minfer/quant"
)

// Errors of the [Writer], beside those that a reader would give for the same file.
var (
	// ErrOrder says that a method was called out of turn, or that a tensor got too few or too many bytes.
	ErrOrder = errors.New("written out of order")
)

// Writer writes a GGUF file of version 3 as a stream. Use it in this order: [Writer.Set] for each metadata key,
// [Writer.AddTensor] for each tensor, then the bytes of each tensor in the same order by [Writer.Tensor] or
// [Writer.WriteTensor], and [Writer.Close]. Keys and tensors keep the order in which they were given.
//
// What the reader would refuse is refused with the same error. A write that fails leaves an incomplete file: every
// later call returns the same error. Nothing is buffered but the header.
type Writer struct {
	name      string // for errors
	out       io.Writer
	entries   []entry
	keys      map[string]struct{}
	infos     []tensorInfo
	names     map[string]struct{}
	alignment uint64
	started   bool
	closed    bool
	next      int    // index in infos of the tensor to be written next
	left      uint64 // bytes that the tensor before it still lacks
	err       error  // of out
}

type tensorInfo struct {
	name  string
	typ   quant.Type
	shape []uint64
	size  uint64
}

// NewWriter returns a Writer to out. name stands for the file in errors.
func NewWriter(name string, out io.Writer) *Writer {
	return &Writer{
		name: name, out: out, alignment: defaultAlignment,
		keys: make(map[string]struct{}), names: make(map[string]struct{}),
	}
}

func (w *Writer) fail(sentinel error, format string, args ...any) error {
	return (&parser{name: w.name}).fail(sentinel, format, args...)
}

// Set adds a metadata key. The key general.alignment also sets the alignment of the tensor data, which is 32 without it.
func (w *Writer) Set(key string, v Value) error {
	if w.started {
		return w.fail(ErrOrder, "key %s set after tensor data", keyName(key))
	}
	switch {
	case key == "":
		return w.fail(ErrKey, "empty metadata key")
	case len(key) > MaxKeyLen:
		return w.fail(ErrLimit, "a metadata key of %d bytes, at most %d", len(key), MaxKeyLen)
	case len(w.entries) == MaxKeys:
		return w.fail(ErrLimit, "more than %d metadata keys", MaxKeys)
	case v == Value{}:
		return w.fail(ErrValueType, "key %s has no value", keyName(key))
	}
	if _, ok := w.keys[key]; ok {
		return w.fail(ErrDuplicateKey, "key %s", keyName(key))
	}
	check := parser{name: w.name, data: []byte(v.raw)}
	if err := check.value(keyName(key), v.typ, 1); err != nil {
		return err
	}
	if key == alignmentKey {
		alignment, err := checkAlignment(v)
		if err != nil {
			return w.fail(err, "key %q: %s", key, v)
		}
		w.alignment = alignment
	}
	w.keys[key] = struct{}{}
	w.entries = append(w.entries, entry{key, v})
	return nil
}

// AddTensor declares a tensor. shape has the fastest-running dimension first, as in [Tensor].
func (w *Writer) AddTensor(name string, t quant.Type, shape []int) error {
	switch {
	case w.started:
		return w.fail(ErrOrder, "tensor %q declared after tensor data", name)
	case name == "":
		return w.fail(ErrTensorName, "empty tensor name")
	case len(name) > MaxNameLen:
		return w.fail(ErrLimit, "tensor %s: a name of %d bytes, at most %d", keyName(name), len(name), MaxNameLen)
	case len(w.infos) == MaxTensors:
		return w.fail(ErrLimit, "more than %d tensors", MaxTensors)
	case len(shape) > MaxDims:
		return w.fail(ErrLimit, "tensor %q: %d dimensions, at most %d", name, len(shape), MaxDims)
	}
	if _, ok := w.names[name]; ok {
		return w.fail(ErrDuplicateTensor, "tensor %q", name)
	}
	dims := make([]uint64, len(shape))
	for i, d := range shape {
		dims[i] = uint64(max(d, 0)) // not negative; zero is refused below
	}
	size, err := tensorBytes(t, dims)
	if err != nil {
		return w.fail(err, "tensor %q: %s%v", name, t, shape)
	}
	w.names[name] = struct{}{}
	w.infos = append(w.infos, tensorInfo{name, t, dims, size})
	return nil
}

// Tensor begins the data of the given tensor, which must be the one declared next. The returned writer takes exactly
// the bytes of the tensor, in as many writes as wanted: more is [ErrOrder], and so is less once the next tensor is
// begun or the Writer is closed.
func (w *Writer) Tensor(name string) (io.Writer, error) {
	if err := w.finishTensor(); err != nil {
		return nil, err
	}
	if w.next == len(w.infos) || w.infos[w.next].name != name {
		expected := "no tensor is"
		if w.next < len(w.infos) {
			expected = fmt.Sprintf("tensor %q is", w.infos[w.next].name)
		}
		return nil, w.fail(ErrOrder, "tensor %s is begun where %s next", keyName(name), expected)
	}
	if err := w.start(); err != nil {
		return nil, err
	}
	w.left = w.infos[w.next].size
	w.next++
	return &tensorWriter{w, w.next}, nil
}

// WriteTensor writes all data of the given tensor, which must be the one declared next.
func (w *Writer) WriteTensor(name string, data []byte) error {
	t, err := w.Tensor(name)
	if err != nil {
		return err
	}
	if uint64(len(data)) != w.left {
		return w.fail(ErrOrder, "tensor %q: %d bytes given for %d", name, len(data), w.left)
	}
	_, err = t.Write(data)
	return err
}

// Close completes the file: all tensors must have been written. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.closed {
		return nil
	}
	if err := w.finishTensor(); err != nil {
		return err
	}
	if w.next < len(w.infos) {
		return w.fail(ErrOrder, "closed before tensor %q was written", w.infos[w.next].name)
	}
	if err := w.start(); err != nil {
		return err
	}
	w.closed = true
	return nil
}

// finishTensor checks that nothing is missing of the tensor begun last.
func (w *Writer) finishTensor() error {
	switch {
	case w.err != nil:
		return w.err
	case w.closed:
		return w.fail(ErrOrder, "already closed")
	case w.left > 0:
		return w.fail(ErrOrder, "tensor %q lacks %d bytes", w.infos[w.next-1].name, w.left)
	}
	return nil
}

// tensorWriter takes the bytes of one tensor. It is stale once the Writer has moved past turn.
type tensorWriter struct {
	w    *Writer
	turn int
}

func (t *tensorWriter) Write(b []byte) (int, error) {
	w := t.w
	switch {
	case w.err != nil:
		return 0, w.err
	case t.turn != w.next || w.closed || uint64(len(b)) > w.left:
		return 0, w.fail(ErrOrder, "tensor %q: more bytes than it has", w.infos[t.turn-1].name)
	}
	if len(b) == 0 {
		return 0, nil
	}
	n, err := w.write(b)
	w.left -= uint64(n)
	if err == nil && w.left == 0 {
		size := w.infos[t.turn-1].size
		err = w.pad(alignUp(size, w.alignment) - size)
	}
	return n, err
}

// start writes the header, once.
func (w *Writer) start() error {
	if w.started {
		return nil
	}
	w.started = true
	h := []byte(magic)
	h = binary.LittleEndian.AppendUint32(h, versionWritten)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(w.infos)))
	h = binary.LittleEndian.AppendUint64(h, uint64(len(w.entries)))
	for _, e := range w.entries {
		h = appendElement(h, e.key)
		h = binary.LittleEndian.AppendUint32(h, uint32(e.value.typ))
		h = append(h, e.value.raw...)
	}
	var offset uint64
	for _, t := range w.infos {
		h = appendElement(h, t.name)
		h = binary.LittleEndian.AppendUint32(h, uint32(len(t.shape)))
		for _, d := range t.shape {
			h = binary.LittleEndian.AppendUint64(h, d)
		}
		h = binary.LittleEndian.AppendUint32(h, uint32(t.typ))
		h = binary.LittleEndian.AppendUint64(h, offset)
		offset = alignUp(offset+t.size, w.alignment)
	}
	if _, err := w.write(h); err != nil {
		return err
	}
	n := uint64(len(h))
	return w.pad(alignUp(n, w.alignment) - n)
}

// pad writes n zero bytes, less than MaxAlignment.
func (w *Writer) pad(n uint64) error {
	if n == 0 {
		return nil
	}
	_, err := w.write(make([]byte, n))
	return err
}

// write passes b on and keeps a failure.
func (w *Writer) write(b []byte) (int, error) {
	n, err := w.out.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("gguf: %s: write: %w", w.name, err)
	}
	return n, w.err
}
