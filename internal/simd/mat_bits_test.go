package simd

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/minfer-go/minfer/quant"
)

// productBits holds hashes of products: one of the vector sets, that all agree, and one of the portable set. They are the
// same on every architecture, so that the kernels of one are held to those of another that no one machine can run.
var productBits = map[quant.Type]struct{ vector, portable uint64 }{
	quant.F32:    {0x128d8ec3bb370811, 0x563ba1817f01ace1},
	quant.F16:    {0xe870238aa1dd47bd, 0x57792cd664819841},
	quant.Q4_0:   {0x7206d14e01a69f67, 0xfa2ab6c1bc87b2b7},
	quant.Q4_1:   {0xdaf3607b93387c79, 0xe45df99020de5cd4},
	quant.Q5_0:   {0x19e7b2b81f282275, 0x6a3cf52653b1086d},
	quant.Q5_1:   {0x1adc9701ac3c62f6, 0x76643ca1450cb8f8},
	quant.Q8_0:   {0x7992d664d4454b3d, 0x48c9e120eda649b8},
	quant.Q2_K:   {0x0afb898b586053d8, 0x348cfa8bf48279fe},
	quant.Q3_K:   {0xe97c8fec6acc1536, 0x7be759ab516d9fe4},
	quant.Q4_K:   {0x5362ddd4d4e476cd, 0x7d72b7aee2746b80},
	quant.Q5_K:   {0x36a198b5f8344b61, 0xc376fe9b07f805f5},
	quant.Q6_K:   {0xa1fad3b829bd38bc, 0xa5a571632b34a0ef},
	quant.IQ4_NL: {0x56fcf42881b11c16, 0x241c318137575d38},
	quant.IQ4_XS: {0x3b00f0eae0df4ba3, 0x1f5f597f47fdf995},
	quant.BF16:   {0x75cf5e6a474b2f3d, 0x0965f2f5cdb7bf8f},
	quant.MXFP4:  {0xbd37f2554c4c9d11, 0x3b400d67d32f7c55},
}

// The bits of products are those of every other machine.
func TestProductBits(t *testing.T) {
	oneGoroutine(t)
	for _, typ := range matTypes() {
		eachSet(t, func(t *testing.T, s *Set) {
			rng := rand.New(rand.NewPCG(23, 24))
			const rows, cols = 37, 768
			w := packed(t, typ, randomBlocks(rng, typ, rows, cols, false), rows, cols)
			hash := fnv.New64a()
			for _, tokens := range []int{1, 2, 3, 4, 14} {
				x := randomActs(rng, tokens, cols)
				for _, v := range product(t, s, w, stored(t, &s.Mat, KindFor(typ), x, tokens, cols)) {
					var b [4]byte
					put32(b[:], math.Float32bits(v))
					hash.Write(b[:])
				}
			}
			want := productBits[typ].vector
			if s.ISA == Generic {
				want = productBits[typ].portable
			}
			if got := hash.Sum64(); got != want {
				t.Errorf("%s: products hash to %#016x, want %#016x", typ, got, want)
			}
		})
	}
}
