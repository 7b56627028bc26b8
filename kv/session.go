package kv

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
)

// Errors of reading a session file. Each says what did not fit; none leaves anything applied.
var (
	ErrSessionFormat   = errors.New("kv: not a session file")
	ErrSessionVersion  = errors.New("kv: session file of another version")
	ErrSessionMismatch = errors.New("kv: session file of another run")
	ErrSessionDamaged  = errors.New("kv: session file is damaged")
	ErrSessionLimit    = errors.New("kv: session file is beyond a limit")
)

// Limits of a session file.
const (
	MaxSessionSeqs = 1 << 12
	MaxSessionHost = 64 << 20
)

// The start of a session file.
const (
	sessionMagic   = "minferKV"
	sessionVersion = 1
)

// A SessionHeader says what run a session file belongs to. Files are little-endian:
//
//	magic [8]byte, version u32, flags u32 (none are defined), header, sequences u32,
//	per sequence: tokens u32, token ids i32 each, per layer K then V rows, position by position,
//	host state: length u32, bytes; SHA-256 of everything before it.
type SessionHeader struct {
	Backend  string   // name of the device's backend, at most 16 bytes
	Model    [32]byte // fingerprint
	Layers   int
	KVHeads  int
	HeadDim  int
	Type     uint32 // ggml number of the cells' element type
	RowBytes int    // size of one K or V row: KVHeads·HeadDim elements of that type
	Cells    int    // of the arena
}

// A SessionSeq is one sequence to be written.
type SessionSeq struct {
	Tokens []int32
	// Rows returns the K and V rows of a layer, position by position.
	Rows func(layer int) (k, v []byte, err error)
}

// WriteSession writes a session file. It holds one layer of one sequence at a time.
func WriteSession(w io.Writer, h SessionHeader, seqs []SessionSeq, host []byte) error {
	if len(h.Backend) > 16 || len(seqs) > MaxSessionSeqs || len(host) > MaxSessionHost {
		return fmt.Errorf("%w: backend name of %d bytes, %d sequences, %d bytes of host state", ErrSessionLimit, len(h.Backend), len(seqs), len(host))
	}
	s := sessionWriter{w: w, sum: sha256.New()}
	s.bytes([]byte(sessionMagic))
	s.u32(sessionVersion, 0)
	s.bytes(h.encode())
	s.u32(uint32(len(seqs)))
	for _, q := range seqs {
		s.u32(uint32(len(q.Tokens)))
		for _, id := range q.Tokens {
			s.u32(uint32(id))
		}
		for l := range h.Layers {
			k, v, err := q.Rows(l)
			if err != nil {
				return err
			}
			if want := len(q.Tokens) * h.RowBytes; len(k) != want || len(v) != want {
				return fmt.Errorf("%w: layer %d has %d and %d bytes for %d positions", ErrRange, l, len(k), len(v), len(q.Tokens))
			}
			s.bytes(k)
			s.bytes(v)
		}
	}
	s.u32(uint32(len(host)))
	s.bytes(host)
	s.bytes(s.sum.Sum(nil))
	return s.err
}

// encode is the fixed-size form of a header.
func (h *SessionHeader) encode() []byte {
	b := make([]byte, 16, 80)
	copy(b, h.Backend)
	b = append(b, h.Model[:]...)
	for _, n := range []int{h.Layers, h.KVHeads, h.HeadDim, int(h.Type), h.RowBytes, h.Cells} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return b
}

type sessionWriter struct {
	w   io.Writer
	sum hash.Hash
	err error
}

func (s *sessionWriter) bytes(b []byte) {
	if s.err == nil {
		s.sum.Write(b)
		_, s.err = s.w.Write(b)
	}
}

func (s *sessionWriter) u32(ns ...uint32) {
	for _, n := range ns {
		s.bytes(binary.LittleEndian.AppendUint32(nil, n))
	}
}

// A SessionSink takes one layer of a sequence that is being read.
type SessionSink func(layer int, k, v []byte) error

// ReadSession reads a session file that must belong to the run that want describes. accept is told each sequence's
// tokens and returns where its rows go. The caller must undo what the sinks did if an error is returned: damage may show
// only at the end.
func ReadSession(r io.Reader, want SessionHeader, accept func(tokens []int32) (SessionSink, error)) (host []byte, err error) {
	s := sessionReader{r: r, sum: sha256.New()}
	if magic := s.bytes(len(sessionMagic), "magic"); s.err == nil && string(magic) != sessionMagic {
		return nil, fmt.Errorf("%w: it starts with %q", ErrSessionFormat, magic)
	}
	if v := s.u32("version"); s.err == nil && v != sessionVersion {
		return nil, fmt.Errorf("%w: %d, this build reads %d", ErrSessionVersion, v, sessionVersion)
	}
	if flags := s.u32("flags"); s.err == nil && flags != 0 {
		return nil, fmt.Errorf("%w: unknown flags %#x", ErrSessionVersion, flags)
	}
	if have := s.bytes(len(want.encode()), "header"); s.err == nil {
		if err := want.match(have); err != nil {
			return nil, err
		}
	}
	seqs := s.u32("number of sequences")
	if s.err == nil && seqs > MaxSessionSeqs {
		return nil, fmt.Errorf("%w: %d sequences", ErrSessionLimit, seqs)
	}
	for range seqs {
		if err := s.sequence(want, accept); err != nil {
			return nil, err
		}
	}
	n := s.u32("length of host state")
	if s.err == nil && n > MaxSessionHost {
		return nil, fmt.Errorf("%w: %d bytes of host state", ErrSessionLimit, n)
	}
	host = s.bytes(int(n), "host state")
	sum := s.sum.Sum(nil)
	have := s.bytes(len(sum), "checksum")
	if s.err != nil {
		return nil, s.err
	}
	if string(have) != string(sum) {
		return nil, fmt.Errorf("%w: the checksum does not match", ErrSessionDamaged)
	}
	if n, _ := io.ReadFull(r, make([]byte, 1)); n > 0 {
		return nil, fmt.Errorf("%w: bytes after the checksum", ErrSessionDamaged)
	}
	return host, nil
}

// match compares an encoded header with the run's own, field by field, for the reason.
func (h *SessionHeader) match(have []byte) error {
	backend := string(have[:16])
	for len(backend) > 0 && backend[len(backend)-1] == 0 {
		backend = backend[:len(backend)-1]
	}
	if backend != h.Backend {
		return fmt.Errorf("%w: backend '%s', this run has '%s'", ErrSessionMismatch, backend, h.Backend)
	}
	fields := []string{"layers", "KV heads", "head dimension", "cell type", "row size", "cells"}
	own := []int{h.Layers, h.KVHeads, h.HeadDim, int(h.Type), h.RowBytes, h.Cells}
	for i, name := range fields {
		if v := binary.LittleEndian.Uint32(have[48+4*i:]); v != uint32(own[i]) {
			return fmt.Errorf("%w: %s %d, this run has %d", ErrSessionMismatch, name, v, own[i])
		}
	}
	if string(have[16:48]) != string(h.Model[:]) {
		return fmt.Errorf("%w: another model", ErrSessionMismatch)
	}
	return nil
}

type sessionReader struct {
	r   io.Reader
	sum hash.Hash
	err error
}

// sequence reads one sequence and hands its layers on.
func (s *sessionReader) sequence(h SessionHeader, accept func([]int32) (SessionSink, error)) error {
	n := s.u32("number of tokens")
	if s.err == nil && uint64(n) > uint64(h.Cells) {
		return fmt.Errorf("%w: %d tokens for %d cells", ErrSessionLimit, n, h.Cells)
	}
	raw := s.bytes(4*int(n), "tokens")
	if s.err != nil {
		return s.err
	}
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	put, err := accept(tokens)
	if err != nil {
		return err
	}
	for l := range h.Layers {
		k := s.bytes(len(tokens)*h.RowBytes, fmt.Sprintf("K rows of layer %d", l))
		v := s.bytes(len(tokens)*h.RowBytes, fmt.Sprintf("V rows of layer %d", l))
		if s.err != nil {
			return s.err
		}
		if err := put(l, k, v); err != nil {
			return err
		}
	}
	return nil
}

// bytes reads exactly n bytes; after a failure it returns nothing.
func (s *sessionReader) bytes(n int, what string) []byte {
	if s.err != nil {
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(s.r, b); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%w: the file ends inside its %s", ErrSessionDamaged, what)
		}
		s.err = err
		return nil
	}
	s.sum.Write(b)
	return b
}

func (s *sessionReader) u32(what string) uint32 {
	if b := s.bytes(4, what); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}
