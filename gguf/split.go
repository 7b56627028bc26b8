package gguf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
)

// A split model is a set of files NAME-00001-of-00003.gguf, each a GGUF file of its own with some of the tensors. Each
// has the keys split.no (from 0), split.count and split.tensors.count (of all parts together); the first has the other
// metadata.

var partName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})\.gguf$`)

// PartPath returns the path of part no (from 0) of count parts of a split model: PREFIX-00001-of-00003.gguf.
func PartPath(prefix string, no, count int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", prefix, no+1, count)
}

// parsePartPath is the inverse of PartPath.
func parsePartPath(path string) (prefix string, no, count int, ok bool) {
	dir, base := filepath.Split(path)
	m := partName.FindStringSubmatch(base)
	if m == nil {
		return "", 0, 0, false
	}
	no, _ = strconv.Atoi(m[2]) // five digits
	count, _ = strconv.Atoi(m[3])
	return dir + m[1], no - 1, count, true
}

// splitInfo is what a part says about its place. A file without the keys is the only part.
type splitInfo struct {
	no, count int
	tensors   int64 // of all parts; −1: not said
}

func (p *part) fail(sentinel error, format string, args ...any) error {
	return (&parser{name: p.name}).fail(sentinel, format, args...)
}

// split reads and checks the split keys.
func (p *part) split() (splitInfo, error) {
	info := splitInfo{count: 1, tensors: -1}
	count, has, err := p.splitKey(splitCountKey)
	if err != nil {
		return info, err
	}
	if has {
		if count == 0 {
			return info, p.fail(ErrSplit, "key %q is 0", splitCountKey)
		}
		if count > MaxParts {
			return info, p.fail(ErrLimit, "key %q is %d, at most %d", splitCountKey, count, MaxParts)
		}
		info.count = int(count)
	}
	no, has, err := p.splitKey(splitNoKey)
	if err != nil {
		return info, err
	}
	if !has && info.count > 1 {
		return info, p.fail(ErrSplit, "one of %d parts, but key %q is missing", info.count, splitNoKey)
	}
	if has && no >= int64(info.count) {
		return info, p.fail(ErrSplit, "key %q is %d, but there are %d parts", splitNoKey, no, info.count)
	}
	info.no = int(no)
	total, has, err := p.splitKey(splitTensorsKey)
	if err != nil {
		return info, err
	}
	if !has && info.count > 1 {
		return info, p.fail(ErrSplit, "one of %d parts, but key %q is missing", info.count, splitTensorsKey)
	}
	if has {
		info.tensors = total
	}
	return info, nil
}

// splitKey returns the integer at one of the split keys, 0 if the key is missing.
func (p *part) splitKey(key string) (value int64, has bool, err error) {
	i, has := p.keys[key]
	if !has {
		return 0, false, nil
	}
	v := p.entries[i].value
	n, ok := v.Int()
	if !ok || n < 0 {
		return 0, true, p.fail(ErrSplit, "key %q is %s", key, v)
	}
	return n, true, nil
}

// checkPart holds part p, found as part no of what first says, to the first part.
func (p *part) checkPart(first *part, want splitInfo, no int) error {
	got, err := p.split()
	switch {
	case err != nil:
		return err
	case got.count != want.count:
		return p.fail(ErrSplit, "key %q is %d, but %d in %s", splitCountKey, got.count, want.count, first.name)
	case got.no != no:
		return p.fail(ErrSplit, "key %q is %d in the place of part %d", splitNoKey, got.no, no)
	case got.tensors != want.tensors:
		return p.fail(ErrSplit, "key %q is %d, but %d in %s", splitTensorsKey, got.tensors, want.tensors, first.name)
	}
	for _, e := range p.entries {
		if partOwn(e.key) {
			continue
		}
		if i, ok := first.keys[e.key]; ok && first.entries[i].value != e.value {
			return p.fail(ErrSplit, "key %q is %s, but %s in %s: not of the same model",
				e.key, e.value, first.entries[i].value, first.name)
		}
	}
	return nil
}

// partOwn reports whether a key describes only the part it stands in.
func partOwn(key string) bool { return key == splitNoKey || key == alignmentKey }

// merge makes one index of parsed and checked parts. The caller adds the mappings.
func merge(parts []*part) (*File, error) {
	first := parts[0]
	f := &File{
		name: first.name, version: first.version,
		entries: first.entries, keys: first.keys,
		byName: make(map[string]*Tensor),
	}
	for i, p := range parts {
		f.parts = append(f.parts, p.name)
		if i > 0 {
			for _, e := range p.entries {
				if _, ok := f.keys[e.key]; !ok && !partOwn(e.key) {
					f.keys[e.key] = len(f.entries)
					f.entries = append(f.entries, e)
				}
			}
		}
		for _, t := range p.tensors {
			if other, ok := f.byName[t.Name]; ok {
				return nil, p.fail(ErrDuplicateTensor, "tensor %q, also in %s", t.Name, parts[other.part].name)
			}
			t.part = i
			f.byName[t.Name] = t
			f.tensors = append(f.tensors, t)
		}
	}
	return f, nil
}
