package server

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// rateWindow is how far back the rate of generated tokens looks.
const rateWindow = 16 * time.Second

// metrics are the server's own counts; the engine has the others.
type metrics struct {
	requests, completed, rejected, dropped atomic.Int64
	inFlight, abandoned                    atomic.Int64
	prompt, cached, completion             atomic.Int64
	tokens                                 window

	firstToken, betweenTokens, queue histogram
	promptLength, outputLength       histogram
}

// Bounds of the histograms, in seconds and in tokens.
var (
	secondsBounds = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300}
	tokensBounds  = []float64{1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}
)

func (m *metrics) init() {
	for _, h := range []*histogram{&m.firstToken, &m.betweenTokens, &m.queue} {
		h.bounds, h.counts = secondsBounds, make([]atomic.Int64, len(secondsBounds)+1)
	}
	for _, h := range []*histogram{&m.promptLength, &m.outputLength} {
		h.bounds, h.counts = tokensBounds, make([]atomic.Int64, len(tokensBounds)+1)
	}
}

// ended counts a run. Tokens of a client that left before its answer was complete were not delivered and do not count.
func (m *metrics) ended(u *usage, r *run) {
	m.queue.observe(u.queued.Seconds())
	for _, e := range r.endings {
		if e.err != nil {
			return
		}
	}
	m.prompt.Add(int64(u.prompt))
	m.cached.Add(int64(u.cached))
	m.completion.Add(int64(u.generated))
	m.promptLength.observe(float64(u.prompt))
	for _, e := range r.endings {
		m.outputLength.observe(float64(e.stats.Generated))
	}
}

// A histogram counts observations by size. Observing takes no lock.
type histogram struct {
	bounds []float64
	counts []atomic.Int64 // of each bucket alone; the last one has no bound
	sum    atomic.Uint64  // bits of a float64
}

func (h *histogram) observe(v float64) {
	i := 0
	for i < len(h.bounds) && v > h.bounds[i] {
		i++
	}
	h.counts[i].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}

// A window counts events of the last seconds.
type window struct {
	mu      sync.Mutex
	counts  [rateWindow / time.Second]int
	seconds [rateWindow / time.Second]int64 // which second each count is of
}

func (w *window) add(now time.Time, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	second := now.Unix()
	i := second % int64(len(w.counts))
	if w.seconds[i] != second {
		w.seconds[i], w.counts[i] = second, 0
	}
	w.counts[i] += n
}

// rate is events per second over the window.
func (w *window) rate(now time.Time) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for i, second := range w.seconds {
		if now.Unix()-second < int64(len(w.counts)) {
			n += w.counts[i]
		}
	}
	return float64(n) / rateWindow.Seconds()
}

// A page writes Prometheus' text format, version 0.0.4.
type page struct {
	w   io.Writer
	err error
}

func (p *page) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}

func number64(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func (p *page) head(name, kind, help string) {
	p.printf("# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

func (p *page) counter(name, help string, v float64) {
	p.head(name, "counter", help)
	p.printf("%s %s\n", name, number64(v))
}

func (p *page) gauge(name, help string, v float64) {
	p.head(name, "gauge", help)
	p.printf("%s %s\n", name, number64(v))
}

func (p *page) histogram(name, help string, h *histogram) {
	p.head(name, "histogram", help)
	sum, n := int64(0), len(h.bounds)
	for i, bound := range h.bounds {
		sum += h.counts[i].Load()
		p.printf("%s_bucket{le=\"%s\"} %d\n", name, number64(bound), sum)
	}
	sum += h.counts[n].Load()
	p.printf("%s_bucket{le=\"+Inf\"} %d\n%s_sum %s\n%s_count %d\n", name, sum, name, number64(math.Float64frombits(h.sum.Load())), name, sum)
}
