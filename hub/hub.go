// Package hub finds model files by name: the built-in model, a path, or a file of the cache.
package hub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/internal/builtin"
)

// ErrNotFound says that a name is neither a file nor in the cache.
var ErrNotFound = errors.New("no such model")

// splitPart matches the name of a part of a split model.
var splitPart = regexp.MustCompile(`^(.+)-\d{5}-of-\d{5}$`)

// CacheDir is where downloaded models live: $XDG_CACHE_HOME/minfer/models, or ~/.cache/minfer/models.
func CacheDir() (string, error) {
	base := os.Getenv("XDG_CACHE_HOME")
	if base == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("the cache directory: %w", err)
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "minfer", "models"), nil
}

// An Entry is a model file of the cache.
type Entry struct {
	Name  string // relative to the cache directory, without .gguf, with slashes; a model can be named by it
	Path  string // of its first part
	Parts int
	Bytes int64 // of all parts
}

// List returns the models of the cache by name. A cache directory that does not exist holds none.
func List() ([]Entry, error) {
	dir, err := CacheDir()
	if err != nil {
		return nil, err
	}
	byName := map[string]*Entry{}
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !strings.EqualFold(filepath.Ext(path), ".gguf") {
			return err
		}
		info, err := os.Stat(path) // follows the links that other tools' caches are made of
		if err != nil {
			return nil //nolint:nilerr // a dangling link is no model
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.ToSlash(rel), filepath.Ext(rel))
		if part := splitPart.FindStringSubmatch(name); part != nil {
			name = part[1]
		}
		e := byName[name]
		if e == nil {
			e = &Entry{Name: name, Path: path}
			byName[name] = e
		}
		e.Parts++
		e.Bytes += info.Size()
		e.Path = min(e.Path, path)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the cache directory: %w", err)
	}
	var entries []Entry
	for _, e := range byName {
		entries = append(entries, *e)
	}
	sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
	return entries, nil
}

// Resolve returns the path of a model's file: name itself if it is a file, else the cached model of that name. The last
// element of a cached name is enough where it is unique; case does not matter, nor a trailing ".gguf".
func Resolve(name string) (string, error) {
	if info, err := os.Stat(name); err == nil && !info.IsDir() {
		return name, nil
	}
	entries, err := List()
	if err != nil {
		return "", err
	}
	want := strings.ToLower(strings.TrimSuffix(name, ".gguf"))
	var found []Entry
	for _, e := range entries {
		have := strings.ToLower(e.Name)
		if have == want {
			return e.Path, nil
		}
		if strings.HasSuffix(have, "/"+want) {
			found = append(found, e)
		}
	}
	switch len(found) {
	case 1:
		return found[0].Path, nil
	case 0:
		return "", fmt.Errorf("%w: '%s' is neither a file, nor in the cache (minfer list), nor the built-in '%s'", ErrNotFound, name, builtin.Name)
	}
	var names []string
	for _, e := range found {
		names = append(names, e.Name)
	}
	return "", fmt.Errorf("%w: '%s' could be any of %s", ErrNotFound, name, strings.Join(names, ", "))
}

// Open opens a model by name: "tiny" is the built-in model, anything else is resolved.
func Open(name string) (*gguf.File, error) {
	if name == builtin.Name {
		return gguf.FromBytes(builtin.Name, builtin.Tiny())
	}
	path, err := Resolve(name)
	if err != nil {
		return nil, err
	}
	return gguf.Open(path)
}
