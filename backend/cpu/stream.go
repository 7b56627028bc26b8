package cpu

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/internal/team"
)

// streamChunk is how many bytes one task of a streamStep reads.
const streamChunk = 1 << 20

// A streamStep reads memory and adds it up, so that the reads cannot be left out.
type streamStep struct {
	parts [][]byte
	sum   atomic.Uint64
}

func (s *streamStep) Tasks() int { return len(s.parts) }

func (s *streamStep) Do(_ *team.Worker, task int) {
	var a, b, c, d, e, f, g, h uint64
	for p := s.parts[task]; len(p) >= 64; p = p[64:] {
		line := (*[64]byte)(p)
		a += binary.LittleEndian.Uint64(line[0:])
		b += binary.LittleEndian.Uint64(line[8:])
		c += binary.LittleEndian.Uint64(line[16:])
		d += binary.LittleEndian.Uint64(line[24:])
		e += binary.LittleEndian.Uint64(line[32:])
		f += binary.LittleEndian.Uint64(line[40:])
		g += binary.LittleEndian.Uint64(line[48:])
		h += binary.LittleEndian.Uint64(line[56:])
	}
	s.sum.Add(a + b + c + d + e + f + g + h)
}

// Stream reads all packed matrices once.
func (d *Device) Stream() (bytes int, took time.Duration, err error) {
	s := &streamStep{}
	for _, m := range d.matrices {
		for p := m.Panels; len(p) > 0; {
			n := min(streamChunk, len(p))
			s.parts = append(s.parts, p[:n])
			bytes += n
			p = p[n:]
		}
	}
	start := time.Now()
	if err := d.team.Run([]team.Step{s}); err != nil {
		return 0, 0, fmt.Errorf("%w: %w", backend.ErrRun, err)
	}
	return bytes, time.Since(start), nil
}
