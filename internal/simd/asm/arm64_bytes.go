package main

import "fmt"

// clear makes a register zero; unlike zero it does not wait for the register's last value.
func (f neon) clear(d int) { f.word(0x4f000400|uint32(d), "movi v%d.4s, #0", d) }

// sdot adds to each word of Rd the product of four signed bytes of Rn with the four of word index of Rm.
func (f neon) sdot(d, n, m, index int) {
	h, l := uint32(index)>>1, uint32(index)&1
	f.word(0x4f80e000|l<<21|uint32(m)<<16|h<<11|uint32(n)<<5|uint32(d), "sdot v%d.4s, v%d.16b, v%d.4b[%d]", d, n, m, index)
}

// shift moves the bits of each byte (16b) or word (4s) left by n, right if n is negative; zeros follow.
func (f neon) shift(arrangement string, d, n, by int) {
	size := map[string]int{"16b": 8, "4s": 32}[arrangement]
	if by == 0 || by >= size || -by > size {
		panic(fmt.Sprintf("asm: shift of %s by %d", arrangement, by))
	}
	if by < 0 {
		f.word(0x6f000400|uint32(2*size+by)<<16|uint32(n)<<5|uint32(d), "ushr v%d.%s, v%d.%s, #%d", d, arrangement, n, arrangement, -by)
		return
	}
	f.word(0x4f005400|uint32(size+by)<<16|uint32(n)<<5|uint32(d), "shl v%d.%s, v%d.%s, #%d", d, arrangement, n, arrangement, by)
}

// shll widens the low (or high) four half words of Rn and shifts them to the upper halves.
func (f neon) shll(high bool, d, n int) {
	if high {
		f.word(0x6e613800|uint32(n)<<5|uint32(d), "shll2 v%d.4s, v%d.8h, #16", d, n)
		return
	}
	f.word(0x2e613800|uint32(n)<<5|uint32(d), "shll v%d.4s, v%d.4h, #16", d, n)
}

// lookup replaces the bytes of Rm, indices below 16, by those of the table Rn.
func (f neon) lookup(d, n, m int) {
	f.word(0x4e000000|uint32(m)<<16|uint32(n)<<5|uint32(d), "tbl v%d.16b, {v%d.16b}, v%d.16b", d, n, m)
}

// upper moves the low half of Rn to the high half of Rd.
func (f neon) upper(d, n int) {
	f.word(0x6e180400|uint32(n)<<5|uint32(d), "ins v%d.d[1], v%d.d[0]", d, n)
}

// lower moves the high half of Rn to the low half of Rd.
func (f neon) lower(d, n int) {
	f.word(0x5e180400|uint32(n)<<5|uint32(d), "mov d%d, v%d.d[1]", d, n)
}

// signedHalf moves the low half word of a vector register, sign extended, to a general register.
func (f neon) signedHalf(reg string, n int) {
	f.word(0x0e022c00|uint32(n)<<5|general(reg), "smov w%d, v%d.h[0]", general(reg), n)
}

// prefetch asks for a line of memory, into the cache of a level.
func (f neon) prefetch(level int, base string, disp int) {
	if disp%8 != 0 || disp < 0 || disp >= 8<<12 {
		panic(fmt.Sprintf("asm: prefetch at %d", disp))
	}
	f.word(0xf9800000|uint32(disp)/8<<10|general(base)<<5|uint32(level-1)<<1, "prfm pldl%dkeep, [x%d, #%d]", level, general(base), disp)
}

// constant fills a register with a word.
func (f neon) constant(d int, word uint32) {
	f.table(f.file.Data32(fmt.Sprintf("four%08x", word), word, word, word, word), "R17")
	f.ldr("q", d, "R17", 0)
}

// storeRows stores the 16 numbers in the registers v to v+3 at base, as many of them as the register rows says.
// It uses both the registers and base up.
func (f neon) storeRows(v int, base, rows string) {
	part, done := f.NewLabel("part"), f.NewLabel("done")
	f.Op("TBZ", "$4", rows, part)
	for q := range quads {
		f.str("q", v+q, base, 16*q)
	}
	f.Op("JMP", done)
	f.Label(part)
	f.bit(3, rows, func() {
		f.str("q", v, base, 0)
		f.str("q", v+1, base, 16)
		f.mov(v, v+2)
		f.mov(v+1, v+3)
		f.add(32, base)
	})
	f.bit(2, rows, func() {
		f.str("q", v, base, 0)
		f.mov(v, v+1)
		f.add(16, base)
	})
	f.bit(1, rows, func() {
		f.str("d", v, base, 0)
		f.lower(v, v)
		f.add(8, base)
	})
	f.bit(0, rows, func() { f.str("s", v, base, 0) })
	f.Label(done)
}

// loadRows is the inverse of storeRows, for zeroed registers; it uses temp and base up.
func (f neon) loadRows(v, temp int, base, rows string) {
	part, done := f.NewLabel("part"), f.NewLabel("done")
	f.Op("TBZ", "$4", rows, part)
	for q := range quads {
		f.ldr("q", v+q, base, 16*q)
	}
	f.Op("JMP", done)
	f.Label(part)
	// From the end on: what is there already makes room.
	f.Op("ADD", rows+"<<2", base)
	back := func(n int) { f.Op("SUB", Imm(n), base) }
	f.bit(0, rows, func() {
		back(4)
		f.ldr("s", v, base, 0)
	})
	f.bit(1, rows, func() {
		back(8)
		f.mov(temp, v)
		f.ldr("d", v, base, 0)
		f.upper(v, temp)
	})
	f.bit(2, rows, func() {
		back(16)
		f.mov(v+1, v)
		f.ldr("q", v, base, 0)
	})
	f.bit(3, rows, func() {
		back(32)
		f.mov(v+3, v+1)
		f.mov(v+2, v)
		f.ldr("q", v, base, 0)
		f.ldr("q", v+1, base, 16)
	})
	f.Label(done)
}

// bit emits what happens if a bit of a register is set.
func (f neon) bit(n int, reg string, emit func()) {
	clear := f.NewLabel("clear")
	f.Op("TBZ", Imm(n), reg, clear)
	emit()
	f.Label(clear)
}
