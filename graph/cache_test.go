package graph

import (
	"errors"
	"testing"
)

func TestCacheCompilesOnce(t *testing.T) {
	c := NewCache[*int](4)
	compiled := 0
	compile := func(p Params) (*int, error) {
		compiled++
		n := p.Tokens
		return &n, nil
	}
	first, err := c.Get(params(3, 1), compile)
	if err != nil || *first != 3 {
		t.Fatalf("%v, %v", first, err)
	}
	again, err := c.Get(params(3, 1), compile)
	if err != nil || again != first || compiled != 1 {
		t.Errorf("the same params gave %p after %p, compiled %d times, error %v", again, first, compiled, err)
	}
	if other, _ := c.Get(params(3, 2), compile); other == first || compiled != 2 || c.Len() != 2 {
		t.Errorf("other params gave the same program; compiled %d times, %d held", compiled, c.Len())
	}
}

// The least recently used program goes.
func TestCacheEvicts(t *testing.T) {
	c := NewCache[int](3)
	compiled := 0
	get := func(tokens int) bool { // whether it was there
		before := compiled
		n, err := c.Get(params(tokens, 0), func(p Params) (int, error) { compiled++; return p.Tokens, nil })
		if err != nil || n != tokens {
			t.Fatalf("program %d, error %v, want %d", n, err, tokens)
		}
		return compiled == before
	}
	for n := 1; n <= 3; n++ {
		get(n)
	}
	if !get(1) { // now 2 is the oldest
		t.Error("1 is not held")
	}
	get(4) // and goes
	if c.Len() != 3 || !get(1) || !get(3) || !get(4) {
		t.Error("the most recently used three are not held")
	}
	if get(2) {
		t.Error("the least recently used program stayed")
	}
	if c.Len() != 3 {
		t.Errorf("%d programs held, the limit is 3", c.Len())
	}
}

// A failed compile changes nothing: nothing is evicted for it, and the next Get tries again.
func TestCacheFailingCompile(t *testing.T) {
	c := NewCache[int](1)
	if _, err := c.Get(params(1, 0), func(Params) (int, error) { return 10, nil }); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if _, err := c.Get(params(2, 0), func(Params) (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if c.Len() != 1 {
		t.Errorf("%d programs held", c.Len())
	}
	if n, err := c.Get(params(1, 0), func(Params) (int, error) { t.Error("evicted by a failure"); return 0, nil }); n != 10 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := c.Get(params(2, 0), func(Params) (int, error) { return 20, nil }); n != 20 || err != nil {
		t.Errorf("after a failure: %d, %v", n, err)
	}
}
