package backend

import (
	"fmt"
	"sort"
	"strings"
	"sync"
)

// known are the names that any build of minfer understands; those without a registered backend are refused as not built.
var known = []string{"cpu", "metal", "cuda"}

// The fallback, which takes part whatever names are given.
const fallback = "cpu"

var (
	mu         sync.Mutex
	registered = map[string]Backend{}
)

// Register adds a backend under its name; packages of backends call it when they are initialised. A second backend of one
// name is a mistake of the build and panics.
func Register(b Backend) {
	mu.Lock()
	defer mu.Unlock()
	if registered[b.Name()] != nil {
		panic("backend: " + b.Name() + " registered twice")
	}
	registered[b.Name()] = b
}

// Select returns the backends that take part in a run, the highest priority first. A fence without names lets every
// usable backend take part; otherwise those named do, without regard to case, and cpu always does. A name is refused as
// unknown, as not in this build, or as not usable on this machine.
func Select(fence []string) ([]Backend, error) {
	mu.Lock()
	defer mu.Unlock()
	names, fenced := map[string]bool{fallback: true}, false
	for _, n := range fence {
		name := strings.ToLower(strings.TrimSpace(n))
		if name == "" {
			continue
		}
		if registered[name] == nil {
			for _, k := range known {
				if k == name {
					return nil, fmt.Errorf("%w: backend '%s' is known, this build has: %s", ErrNotBuilt, name, strings.Join(built(), ", "))
				}
			}
			return nil, fmt.Errorf("%w '%s'; known backends are: %s", ErrUnknown, n, strings.Join(known, ", "))
		}
		if err := registered[name].Usable(); err != nil {
			return nil, fmt.Errorf("%w: backend '%s': %w", ErrUnusable, name, err)
		}
		names[name], fenced = true, true
	}
	var selected []Backend
	for name, b := range registered {
		if (names[name] || !fenced) && b.Usable() == nil {
			selected = append(selected, b)
		}
	}
	if len(selected) == 0 {
		return nil, fmt.Errorf("%w: none of: %s", ErrNotBuilt, strings.Join(built(), ", "))
	}
	sort.Slice(selected, func(i, j int) bool {
		a, b := selected[i], selected[j]
		return a.Priority() > b.Priority() || a.Priority() == b.Priority() && a.Name() < b.Name()
	})
	return selected, nil
}

// built lists the registered names in order.
func built() []string {
	var names []string
	for name := range registered {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
