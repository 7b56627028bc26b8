package sample

import "math/bits"

// rng is xoshiro256** 1.0 by Blackman and Vigna (public domain), whose state is
// filled from the seed by splitmix64. Equal seeds give equal streams everywhere.
type rng [4]uint64

// seed fills the state with four successive outputs of splitmix64.
func (r *rng) seed(seed uint64) {
	for i := range r {
		seed += 0x9e3779b97f4a7c15
		z := seed
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		r[i] = z ^ z>>31
	}
}

func (r *rng) next() uint64 {
	out := bits.RotateLeft64(r[1]*5, 7) * 9
	t := r[1] << 17
	r[2] ^= r[0]
	r[3] ^= r[1]
	r[1] ^= r[2]
	r[0] ^= r[3]
	r[2] ^= t
	r[3] = bits.RotateLeft64(r[3], 45)
	return out
}

// float64 returns a multiple of 2^-53 in [0, 1).
func (r *rng) float64() float64 { return float64(r.next()>>11) * (1.0 / (1 << 53)) }
