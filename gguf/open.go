package gguf

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
)

// Option changes how [Open] works.
type Option func(*options)

type options struct {
	single   bool
	inMemory bool
}

// SinglePart opens just the given file, even where it is a part of a split model.
func SinglePart() Option { return func(o *options) { o.single = true } }

// InMemory reads the file into memory instead of mapping it: for file systems that change under the reader.
func InMemory() Option { return func(o *options) { o.inMemory = true } }

// source is the content of one file. release, if not nil, unmaps it.
type source struct {
	data    []byte
	release func() error
}

// Open opens a GGUF file, or all parts of a split model if path is one of them. On systems without memory mapping it
// reads the files into memory.
func Open(path string, opts ...Option) (*File, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	set := &openSet{options: o}
	f, err := set.open(path)
	if err != nil {
		return nil, errors.Join(err, set.close())
	}
	f.name = path
	for _, s := range set.sources {
		if s.release != nil {
			f.release = append(f.release, s.release)
		}
	}
	return f, nil
}

// openSet holds the files that are open while a model is being put together.
type openSet struct {
	options
	sources []source
}

func (s *openSet) close() error {
	var errs []error
	for _, src := range s.sources {
		if src.release != nil {
			errs = append(errs, src.release())
		}
	}
	return errors.Join(errs...)
}

func (s *openSet) open(path string) (*File, error) {
	given, err := s.part(path)
	if err != nil {
		return nil, err
	}
	if s.single {
		return merge([]*part{given})
	}
	info, err := given.split()
	if err != nil {
		return nil, err
	}
	if info.count == 1 {
		return merge([]*part{given})
	}
	prefix, no, count, ok := parsePartPath(path)
	if !ok || no != info.no || count != info.count {
		return nil, given.fail(ErrSplit, "part %d of %d must be named like %q",
			info.no+1, info.count, PartPath("NAME", info.no, info.count))
	}
	parts := make([]*part, info.count)
	parts[info.no] = given
	var total int64
	for i := range parts {
		if parts[i] == nil {
			parts[i], err = s.part(PartPath(prefix, i, info.count))
			if errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("gguf: %s: part %d of %d is missing: %w: %w", path, i+1, info.count, ErrSplit, err)
			}
			if err != nil {
				return nil, err
			}
		}
		if err := parts[i].checkPart(parts[0], info, i); err != nil {
			return nil, err
		}
		total += int64(len(parts[i].tensors))
	}
	if total != info.tensors {
		return nil, given.fail(ErrSplit, "the parts have %d tensors, but key %q is %d", total, splitTensorsKey, info.tensors)
	}
	return merge(parts)
}

// part opens and parses one file.
func (s *openSet) part(path string) (*part, error) {
	src, err := openSource(path, s.inMemory)
	if err != nil {
		return nil, err
	}
	s.sources = append(s.sources, src)
	p, err := parse(path, src.data)
	if err != nil {
		return nil, err
	}
	for _, t := range p.tensors {
		t.mapped = src.release != nil
	}
	return p, nil
}

func openSource(path string, inMemory bool) (source, error) {
	// Asked before opening, which would wait at a pipe.
	info, err := os.Stat(path)
	if err != nil {
		return source{}, fmt.Errorf("gguf: %w", err)
	}
	if !info.Mode().IsRegular() {
		return source{}, fmt.Errorf("gguf: %s: %w", path, ErrNotRegular)
	}
	file, err := os.Open(path)
	if err != nil {
		return source{}, fmt.Errorf("gguf: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read; a mapping outlives it
	if info, err = file.Stat(); err != nil {
		return source{}, fmt.Errorf("gguf: %w", err)
	}
	size := info.Size()
	if size > math.MaxInt {
		return source{}, fmt.Errorf("gguf: %s: %d bytes do not fit this system's address space: %w", path, size, ErrLimit)
	}
	if size == 0 {
		return source{}, fmt.Errorf("gguf: %s: empty: %w", path, ErrTruncated)
	}
	if inMemory || !canMap {
		data := make([]byte, size)
		if _, err := io.ReadFull(file, data); err != nil {
			return source{}, fmt.Errorf("gguf: %s: read: %w", path, err)
		}
		return source{data: data}, nil
	}
	src, err := mapFile(file, int(size))
	if err != nil {
		return source{}, fmt.Errorf("gguf: %s: map: %w", path, err)
	}
	return src, nil
}
