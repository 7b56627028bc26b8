package graph

// A Cache keeps the compiled form P of the most recently used Params. It is not safe for concurrent use.
type Cache[P any] struct {
	limit   int
	clock   int
	entries map[Params]*cached[P]
}

type cached[P any] struct {
	program P
	used    int // clock at the last use
}

// NewCache holds at most limit programs; beyond that the least recently used one goes.
func NewCache[P any](limit int) *Cache[P] {
	return &Cache[P]{limit: limit, entries: map[Params]*cached[P]{}}
}

// Get returns the program of p, making it with compile at the first use. A failed compile leaves the cache as it was.
func (c *Cache[P]) Get(p Params, compile func(Params) (P, error)) (P, error) {
	c.clock++
	if e, ok := c.entries[p]; ok {
		e.used = c.clock
		return e.program, nil
	}
	program, err := compile(p)
	if err != nil {
		return program, err
	}
	if len(c.entries) >= c.limit {
		c.evict()
	}
	c.entries[p] = &cached[P]{program, c.clock}
	return program, nil
}

func (c *Cache[P]) evict() {
	var oldest Params
	at := c.clock + 1
	for p, e := range c.entries {
		if e.used < at {
			oldest, at = p, e.used
		}
	}
	delete(c.entries, oldest)
}

// Len is the number of programs held.
func (c *Cache[P]) Len() int { return len(c.entries) }
