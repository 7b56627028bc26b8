package grammar

// partition is a set of states divided into blocks, for Hopcroft's algorithm. Block b holds
// elems[start[b]:end[b]]; its marked states come first, up to mid[b].
type partition struct {
	elems, loc, block []int32 // loc is the inverse of elems; block[s] is the block of state s
	start, mid, end   []int32
}

func newPartition(n int, first func(s int32) bool) *partition {
	p := &partition{elems: make([]int32, 0, n), loc: make([]int32, n), block: make([]int32, n)}
	for _, want := range []bool{true, false} {
		from := int32(len(p.elems))
		for s := range int32(n) {
			if first(s) == want {
				p.loc[s] = int32(len(p.elems))
				p.block[s] = int32(len(p.start))
				p.elems = append(p.elems, s)
			}
		}
		if to := int32(len(p.elems)); to > from {
			p.start, p.mid, p.end = append(p.start, from), append(p.mid, from), append(p.end, to)
		}
	}
	return p
}

// mark moves s into the marked part of its block and reports whether it is the first there.
func (p *partition) mark(s int32) (first bool) {
	b := p.block[s]
	i, j := p.loc[s], p.mid[b]
	if i < j {
		return false
	}
	t := p.elems[j]
	p.elems[i], p.elems[j] = t, s
	p.loc[s], p.loc[t] = j, i
	p.mid[b]++
	return j == p.start[b]
}

// split makes the marked part of b a new block, or returns -1 if that is all of it.
func (p *partition) split(b int32) int32 {
	if p.mid[b] == p.end[b] {
		p.mid[b] = p.start[b]
		return -1
	}
	n := int32(len(p.start))
	p.start, p.mid, p.end = append(p.start, p.start[b]), append(p.mid, p.start[b]), append(p.end, p.mid[b])
	p.start[b] = p.mid[b]
	for _, s := range p.elems[p.start[n]:p.end[n]] {
		p.block[s] = n
	}
	return n
}

// minimize returns the smallest equivalent automaton with the dead states merged into state 0
// (Hopcroft 1971: n log n in the number of states).
func (d *dfa) minimize() *dfa {
	n, nc := d.states(), d.nc
	// from[at[to*nc+c]:at[to*nc+c+1]] are the states that class c leads to state to.
	at := make([]int32, n*nc+1)
	for s := range n {
		for c := range nc {
			at[int(d.trans[s*nc+c])*nc+c+1]++
		}
	}
	for i := 1; i < len(at); i++ {
		at[i] += at[i-1]
	}
	from := make([]int32, n*nc)
	fill := append([]int32(nil), at...)
	for s := range n {
		for c := range nc {
			k := int(d.trans[s*nc+c])*nc + c
			from[fill[k]] = int32(s)
			fill[k]++
		}
	}
	p := newPartition(n, func(s int32) bool { return d.accept[s] })
	type splitter struct {
		block int32
		class int
	}
	var work []splitter
	waiting := make([]bool, n*nc) // by block and class; there are at most n blocks
	add := func(b int32, c int) {
		if k := int(b)*nc + c; !waiting[k] {
			waiting[k] = true
			work = append(work, splitter{b, c})
		}
	}
	for b := range p.start {
		for c := range nc {
			add(int32(b), c)
		}
	}
	var pred, touched []int32
	for len(work) > 0 {
		w := work[len(work)-1]
		work = work[:len(work)-1]
		waiting[int(w.block)*nc+w.class] = false
		pred, touched = pred[:0], touched[:0]
		for _, s := range p.elems[p.start[w.block]:p.end[w.block]] {
			k := int(s)*nc + w.class
			pred = append(pred, from[at[k]:at[k+1]]...)
		}
		for _, s := range pred {
			if p.mark(s) {
				touched = append(touched, p.block[s])
			}
		}
		for _, b := range touched {
			m := p.split(b)
			if m < 0 {
				continue
			}
			small := m
			if p.end[b]-p.start[b] < p.end[m]-p.start[m] {
				small = b
			}
			for c := range nc {
				if waiting[int(b)*nc+c] {
					add(m, c)
				} else {
					add(small, c)
				}
			}
		}
	}
	return d.merge(p)
}

// merge returns the automaton whose states are the blocks of p, numbered by their first states. All
// dead states are in the block of state 0.
func (d *dfa) merge(p *partition) *dfa {
	id := make([]int32, len(p.start))
	for i := range id {
		id[i] = -1
	}
	m := &dfa{class: d.class, nc: d.nc}
	for s := range d.states() {
		b := p.block[s]
		if id[b] >= 0 {
			continue
		}
		id[b] = int32(len(m.accept))
		m.accept = append(m.accept, d.accept[s])
		for c := range d.nc {
			m.trans = append(m.trans, p.block[d.trans[s*d.nc+c]])
		}
	}
	for i, b := range m.trans {
		m.trans[i] = id[b]
	}
	m.start = id[p.block[d.start]]
	return m
}
