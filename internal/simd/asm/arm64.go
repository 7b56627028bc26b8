package main

import (
	"fmt"
	"strings"
)

// The NEON instructions are emitted as words, since Go's assembler lacks many of them (FCVTL, FMUL, FADD, SCVTF on
// vectors, products with one element); the comment beside each is its line in Arm's syntax.

// A neon emits arm64 code. Vector registers are numbers, general registers names.
type neon struct{ *Func }

// Load moves a pointer or 64-bit parameter into a general register.
func (f neon) Load(name, reg string) { f.Op("MOVD", f.Arg(name), reg) }

// LoadFloat fills vector register v with a float32 parameter.
func (f neon) LoadFloat(name string, v int) {
	f.Op("FMOVS", f.Arg(name), fmt.Sprintf("F%d", v))
	f.element("dup", v, v, 0)
}

// word emits an instruction.
func (f neon) word(w uint32, format string, a ...any) {
	fmt.Fprintf(&f.file.asm, "\tWORD $0x%08x // %s\n", w, fmt.Sprintf(format, a...))
}

// vectorOps are the instructions between vector registers: name, arrangement of the destination, and of the sources where
// it is another. Rd is in bits 0 to 4, Rn in 5 to 9, Rm in 16 to 20.
var vectorOps = map[string]struct {
	word    uint32
	sources int
}{
	"fadd 4s":       {0x4e20d400, 2},
	"fadd 2d":       {0x4e60d400, 2},
	"fsub 4s":       {0x4ea0d400, 2},
	"fmul 4s":       {0x6e20dc00, 2},
	"fdiv 4s":       {0x6e20fc00, 2},
	"fmla 4s":       {0x4e20cc00, 2},
	"fmla 2d":       {0x4e60cc00, 2},
	"fmls 4s":       {0x4ea0cc00, 2},
	"fmaxnm 4s":     {0x4e20c400, 2},
	"fcmeq 4s":      {0x4e20e400, 2},
	"fcmgt 4s":      {0x6ea0e400, 2},
	"add 4s":        {0x4ea08400, 2},
	"cmge 4s":       {0x4ea03c00, 2},
	"cmgt 4s":       {0x4ea03400, 2},
	"and 16b":       {0x4e201c00, 2},
	"bic 16b":       {0x4e601c00, 2},
	"orr 16b":       {0x4ea01c00, 2},
	"eor 16b":       {0x6e201c00, 2},
	"bsl 16b":       {0x6e601c00, 2}, // Rd chooses between Rn (ones) and Rm
	"bit 16b":       {0x6ea01c00, 2}, // Rm chooses the bits that Rn replaces
	"bif 16b":       {0x6ee01c00, 2}, // the inverse choice
	"fneg 4s":       {0x6ea0f800, 1},
	"scvtf 4s":      {0x4e21d800, 1},
	"fcvtl 4s 4h":   {0x0e217800, 1},
	"fcvtl2 4s 8h":  {0x4e217800, 1},
	"fcvtl 2d 2s":   {0x0e617800, 1},
	"fcvtl2 2d 4s":  {0x4e617800, 1},
	"fcvtn 4h 4s":   {0x0e216800, 1},
	"sxtl 8h 8b":    {0x0f08a400, 1},
	"sxtl2 8h 16b":  {0x4f08a400, 1},
	"sxtl 4s 4h":    {0x0f10a400, 1},
	"sxtl2 4s 8h":   {0x4f10a400, 1},
	"faddp d 2d":    {0x7e70d800, 1},
	"fmaxnmv s 4s":  {0x6e30c800, 1},
	"fcvt s h":      {0x1ee24000, 1},
	"shl 4s by 23":  {0x4f375400, 1},
	"fcvtns 4s":     {0x4e21a800, 1},
	"faddp 4s":      {0x6e20d400, 2},
	"umax 4s":       {0x6ea06400, 2},
	"umaxv s 4s":    {0x6eb0a800, 1},
	"addv s 4s":     {0x4eb1b800, 1},
	"saddlv h 16b":  {0x4e303800, 1},
	"sdot 4s 16b":   {0x4e809400, 2},
	"uxtl 8h 8b":    {0x2f08a400, 1},
	"uxtl 4s 4h":    {0x2f10a400, 1},
	"xtn 4h 4s":     {0x0e612800, 1},
	"xtn2 8h 4s":    {0x4e612800, 1},
	"xtn 8b 8h":     {0x0e212800, 1},
	"xtn2 16b 8h":   {0x4e212800, 1},
	"tbx 16b from4": {0x4e007000, 2},
}

// v emits an instruction of vectorOps: destination first, as in Arm's syntax.
func (f neon) v(op string, d int, sources ...int) {
	o, ok := vectorOps[op]
	if !ok || len(sources) != o.sources {
		panic(fmt.Sprintf("asm: %s with %d sources", op, len(sources)))
	}
	w := o.word | uint32(d) | uint32(sources[0])<<5
	if o.sources == 2 {
		w |= uint32(sources[1]) << 16
	}
	part := strings.Fields(op)
	name, to, from := part[0], part[1], part[1]
	switch {
	case name == "shl":
		f.word(w, "shl v%d.4s, v%d.4s, #23", d, sources[0])
		return
	case name == "tbx":
		n := sources[0]
		f.word(w, "tbx v%d.16b, {v%d.16b-v%d.16b}, v%d.16b", d, n, n+3, sources[1])
		return
	case len(part) == 3:
		from = part[2]
	}
	text := name + " " + register(d, to)
	for _, s := range sources {
		text += ", " + register(s, from)
	}
	f.word(w, "%s", text)
}

// register is a vector register in an arrangement, or one of the scalar names h, s and d.
func register(v int, arrangement string) string {
	if len(arrangement) == 1 {
		return fmt.Sprintf("%s%d", arrangement, v)
	}
	return fmt.Sprintf("v%d.%s", v, arrangement)
}

// mov copies a register.
func (f neon) mov(d, n int) { f.v("orr 16b", d, n, n) }

// zero clears a register.
func (f neon) zero(d int) { f.v("eor 16b", d, d, d) }

// element emits fmla or fmul of Rn with element index of Rm, or dup of that element of Rn, on 4s.
func (f neon) element(op string, d, n, index int, m ...int) {
	h, l := uint32(index)>>1, uint32(index)&1
	switch op {
	case "dup":
		f.word(0x4e040400|uint32(index)<<19|uint32(n)<<5|uint32(d), "dup v%d.4s, v%d.s[%d]", d, n, index)
		return
	case "fmla", "fmul":
		word := map[string]uint32{"fmla": 0x4f801000, "fmul": 0x4f809000}[op]
		f.word(word|l<<21|uint32(m[0])<<16|h<<11|uint32(n)<<5|uint32(d), "%s v%d.4s, v%d.4s, v%d.s[%d]", op, d, n, m[0], index)
		return
	}
	panic("asm: " + op + " by element")
}

// dupWord fills a register with the low word of a general register.
func (f neon) dupWord(d int, reg string) {
	f.word(0x4e040c00|general(reg)<<5|uint32(d), "dup v%d.4s, w%d", d, general(reg))
}

// general is the number of a general register named as in Go, R0.
func general(reg string) uint32 {
	var n uint32
	if _, err := fmt.Sscanf(reg, "R%d", &n); err != nil || n > 25 {
		panic("asm: no register " + reg)
	}
	return n
}

// transfer is the log of the size, and the word of a load, for each width of a register.
var transfer = map[string]struct {
	shift uint
	load  uint32
}{
	"h": {1, 0x7d400000}, "s": {2, 0xbd400000}, "d": {3, 0xfd400000}, "q": {4, 0x3dc00000},
}

// loadBit tells loads from stores.
const loadBit = 1 << 22

// ldr and str move a register of the given width, h, s, d or q, at a multiple of its size from an address.
func (f neon) ldr(width string, v int, base string, disp int) { f.move("ldr", width, v, base, disp) }

func (f neon) str(width string, v int, base string, disp int) { f.move("str", width, v, base, disp) }

func (f neon) move(op, width string, v int, base string, disp int) {
	t := transfer[width]
	if disp < 0 || disp>>t.shift > 0xfff || disp>>t.shift<<t.shift != disp {
		panic(fmt.Sprintf("asm: %s %s at %d", op, width, disp))
	}
	w := t.load
	if op == "str" {
		w &^= loadBit
	}
	f.word(w|uint32(disp)>>t.shift<<10|general(base)<<5|uint32(v), "%s %s%d, [x%d, #%d]", op, width, v, general(base), disp)
}

// ldur loads 16 bytes from any distance up to 255.
func (f neon) ldur(v int, base string, disp int) {
	if disp < 0 || disp > 255 {
		panic(fmt.Sprintf("asm: ldur at %d", disp))
	}
	f.word(0x3cc00000|uint32(disp)<<12|general(base)<<5|uint32(v), "ldur q%d, [x%d, #%d]", v, general(base), disp)
}

// ld2 loads four pairs of words, the first of each to v, the second to v+1; st2 is its inverse.
func (f neon) ld2(v int, base string) {
	f.word(0x4c408800|general(base)<<5|uint32(v), "ld2 {v%d.4s, v%d.4s}, [x%d]", v, v+1, general(base))
}

func (f neon) st2(v int, base string) {
	f.word(0x4c008800|general(base)<<5|uint32(v), "st2 {v%d.4s, v%d.4s}, [x%d]", v, v+1, general(base))
}

// table points reg to a table of File.Data32.
func (f neon) table(operand, reg string) { f.Op("MOVD", "$"+operand, reg) }

// add advances a register.
func (f neon) add(n int, reg string) { f.Op("ADD", Imm(n), reg) }

// countdown takes n from the counter and jumps back while some are left.
func (f neon) countdown(n int, reg, label string) {
	f.Op("SUB", Imm(n), reg)
	f.Op("CBNZ", reg, label)
}
