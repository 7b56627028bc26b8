package main

// A weightForm says how the packed panels of one weight type become codes, scales and minima: pack.go of package simd
// describes the planes. It knows no instruction set; the emitters of one turn it into instructions.
type weightForm struct {
	name   string
	class  string // Block, Min, Half, Q2
	blocks int    // in a unit
	header int    // bytes before the first block of a unit
	planes []plane
	table  *[16]byte // replaces nibbles
	scales scaleForm
	start  int // word array of the activations that the integer sums start from, -1 for none
}

// plane is one array of code bits: width bits each, that land at bit position shift of the codes.
type plane struct {
	width, shift int
}

// bytes is the size of the plane of one block.
func (p plane) bytes() int { return codeBytes * p.width / 8 }

// scaleForm is the layout of a unit's header.
type scaleForm int

const (
	scaleHalf      scaleForm = iota // binary16 [blocks][16], then minima likewise for class Min
	scaleExponent                   // E8M0 bytes [blocks][16]
	scaleSuper                      // binary16 d[16], signed bytes [blocks][16] from superAt
	scaleSuperMin                   // binary16 d[16] dmin[16], bytes scale [blocks][16] min [blocks][16]
	scaleSuperHalf                  // binary16 d[16], signed bytes [blocks][2][16] from superAt; the product times eighth
	scaleSuperQ2                    // binary16 d[16] dmin[16], bytes [blocks][2][16]: scale low, min high half
)

var (
	iq4Table = &[16]byte{1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241}
	fp4Table = &[16]byte{16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4}
)

// weightForms mirrors the table forms of package simd.
var weightForms = []weightForm{
	{name: "Q40", class: "Block", blocks: 2, header: 64, planes: nibbles, scales: scaleHalf, start: wordMinus8},
	{name: "Q41", class: "Min", blocks: 2, header: 128, planes: nibbles, scales: scaleHalf, start: -1},
	{name: "Q50", class: "Block", blocks: 2, header: 64, planes: fiveBits, scales: scaleHalf, start: wordMinus16},
	{name: "Q51", class: "Min", blocks: 2, header: 128, planes: fiveBits, scales: scaleHalf, start: -1},
	{name: "Q80", class: "Block", blocks: 2, header: 64, planes: []plane{{8, 0}}, scales: scaleHalf, start: wordMinus128},
	{name: "IQ4NL", class: "Block", blocks: 2, header: 64, planes: nibbles, table: iq4Table, scales: scaleHalf, start: wordMinus128},
	{name: "MXFP4", class: "Block", blocks: 2, header: 32, planes: nibbles, table: fp4Table, scales: scaleExponent, start: wordMinus16},
	{name: "Q2K", class: "Q2", blocks: 8, header: 320, planes: []plane{{2, 0}}, scales: scaleSuperQ2, start: -1},
	{name: "Q3K", class: "Half", blocks: 8, header: 288, planes: []plane{{2, 3}, {1, 5}}, scales: scaleSuperHalf, start: -1},
	{name: "Q4K", class: "Min", blocks: 8, header: 320, planes: nibbles, scales: scaleSuperMin, start: -1},
	{name: "Q5K", class: "Min", blocks: 8, header: 320, planes: fiveBits, scales: scaleSuperMin, start: -1},
	{name: "Q6K", class: "Half", blocks: 8, header: 320, planes: []plane{{4, 0}, {2, 4}}, scales: scaleSuperHalf, start: -1},
	{name: "IQ4XS", class: "Block", blocks: 8, header: 192, planes: nibbles, table: iq4Table, scales: scaleSuper, start: wordMinus128},
}

var (
	nibbles  = []plane{{4, 0}}
	fiveBits = []plane{{4, 0}, {1, 4}}
)

// blockBytes is the size of the codes of one block.
func (w *weightForm) blockBytes() (n int) {
	for _, p := range w.planes {
		n += p.bytes()
	}
	return n
}

// unitBytes is the size of a unit.
func (w *weightForm) unitBytes() int { return w.header + w.blocks*w.blockBytes() }

// superAt is where the small scales of a K type begin.
func (w *weightForm) superAt() int {
	if w.name == "Q3K" {
		return 32
	}
	return 64
}

// recordBytes is the size of the expanded record of a class.
func recordBytes(class string) int {
	switch class {
	case "Block":
		return codeBytes + vector
	case "Min", "Half":
		return codeBytes + 2*vector
	case "Q2":
		return codeBytes + 4*vector
	}
	return floatUnit * vector
}
