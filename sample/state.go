package sample

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// State is what a sampler carries from token to token: restored into a sampler
// of the same Config, the run goes on exactly as it would have. It serves to
// regenerate a reply and to keep a session in a file.
type State struct {
	RNG     [4]uint64 // xoshiro256** state, not all zero
	Mu      float64   // mirostat's bound on the surprise, bits
	History []int32   // accepted tokens, oldest first, as far back as the Config looks
}

// State returns a copy of the state.
func (s *Sampler) State() State {
	return State{RNG: s.rng, Mu: s.mu, History: slices.Clone(s.window(s.keep))}
}

// Restore replaces the state. Errors wrap ErrState and leave the sampler as it was.
func (s *Sampler) Restore(st State) error {
	switch {
	case st.RNG == [4]uint64{}:
		return fmt.Errorf("%w: the generator's state is all zero", ErrState)
	case math.IsNaN(st.Mu) || math.IsInf(st.Mu, 0):
		return fmt.Errorf("%w: mirostat mu is %g", ErrState, st.Mu)
	case len(st.History) > MaxHistory:
		return fmt.Errorf("%w: history of %d tokens, at most %d", ErrState, len(st.History), MaxHistory)
	}
	for _, id := range st.History {
		if id < 0 || int(id) >= s.vocab {
			return fmt.Errorf("%w: token %d in the history, vocabulary is %d tokens", ErrState, id, s.vocab)
		}
	}
	s.rng, s.mu = st.RNG, st.Mu
	s.history = s.history[:0]
	for _, id := range st.History {
		s.Accept(id)
	}
	return nil
}

// stateVersion is the first byte of an encoded State.
const stateVersion = 1

// stateHeader is the length of an encoded State without history.
const stateHeader = 1 + 4*8 + 8 + 4

// MarshalBinary encodes the state: a version byte, then little-endian the
// generator (4×8 bytes), mu (float64) and the history (count and ids, 4 bytes
// each).
func (st State) MarshalBinary() ([]byte, error) {
	if len(st.History) > MaxHistory {
		return nil, fmt.Errorf("%w: history of %d tokens, at most %d", ErrState, len(st.History), MaxHistory)
	}
	b := make([]byte, 0, stateHeader+4*len(st.History))
	b = append(b, stateVersion)
	for _, w := range st.RNG {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(st.Mu))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(st.History)))
	for _, id := range st.History {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return b, nil
}

// UnmarshalBinary decodes what MarshalBinary wrote. Errors wrap ErrState.
func (st *State) UnmarshalBinary(b []byte) error {
	if len(b) < stateHeader {
		return fmt.Errorf("%w: %d bytes, at least %d", ErrState, len(b), stateHeader)
	}
	if b[0] != stateVersion {
		return fmt.Errorf("%w: version %d, this is %d", ErrState, b[0], stateVersion)
	}
	n := binary.LittleEndian.Uint32(b[stateHeader-4:])
	if n > MaxHistory {
		return fmt.Errorf("%w: history of %d tokens, at most %d", ErrState, n, MaxHistory)
	}
	if len(b) != stateHeader+4*int(n) {
		return fmt.Errorf("%w: %d bytes, a history of %d tokens makes %d", ErrState, len(b), n, stateHeader+4*int(n))
	}
	var out State
	for i := range out.RNG {
		out.RNG[i] = binary.LittleEndian.Uint64(b[1+8*i:])
	}
	out.Mu = math.Float64frombits(binary.LittleEndian.Uint64(b[1+4*8:]))
	out.History = make([]int32, n)
	for i := range out.History {
		out.History[i] = int32(binary.LittleEndian.Uint32(b[stateHeader+4*i:]))
	}
	*st = out
	return nil
}
