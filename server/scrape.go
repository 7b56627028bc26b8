package server

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/minfer-go/minfer/engine"
)

// scrape answers /metrics. It only reads counts, so that it answers while the model is busy.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) error {
	if err := noQuery(r); err != nil {
		return err
	}
	var b bytes.Buffer
	p := &page{w: &b}
	c := s.model.Engine.Counters()
	s.writeRequests(p, c)
	s.writeMemory(p, c)
	s.writeOps(p, r)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // a scraper that is gone
	return p.err
}

func (s *Server) writeRequests(p *page, c engine.Counters) {
	m := &s.metrics
	p.counter("minfer_requests_total", "Requests accepted.", float64(m.requests.Load()))
	p.counter("minfer_requests_completed_total", "Requests answered in full.", float64(m.completed.Load()))
	p.counter("minfer_requests_rejected_total", "Requests refused before queueing because the server drains.", float64(m.rejected.Load()))
	p.gauge("minfer_requests_in_flight", "Requests accepted and not yet finished.", float64(m.inFlight.Load()))
	p.counter("minfer_jobs_dropped_total", "Requests that found no place: the queue was full, or they waited too long.", float64(m.dropped.Load()))
	p.counter("minfer_worker_stalled_total", "Times that the engine made no progress and failed its requests.", float64(c.Stalled))
	p.counter("minfer_engine_faults_total", "Panics that the engine contained.", float64(c.Faults))
	p.gauge("minfer_queue_depth", "Requests that wait to start.", float64(c.Queued))
	p.gauge("minfer_worker_pending_jobs", "Requests that the engine holds and that do not run.", float64(c.Queued))
	p.gauge("minfer_requests_running", "Requests that the engine works on.", float64(c.Running))
	p.counter("minfer_requests_gave_way_total", "Times that a request lost its cells to an earlier one.", float64(c.GaveWay))
	p.counter("minfer_prompt_tokens_total", "Prompt tokens of answered requests.", float64(m.prompt.Load()))
	p.counter("minfer_prompt_tokens_cached_total", "Of them found in the KV cells.", float64(m.cached.Load()))
	p.counter("minfer_completion_tokens_total", "Generated tokens of answered requests.", float64(m.completion.Load()))
	p.gauge("minfer_completion_tokens_per_second", "Generated tokens per second over the last 16 seconds.", m.tokens.rate(time.Now()))
	p.histogram("minfer_time_to_first_token_seconds", "From submission to the first token.", &m.firstToken)
	p.histogram("minfer_inter_token_seconds", "Between tokens of one reply.", &m.betweenTokens)
	p.histogram("minfer_queue_seconds", "From submission until the request started.", &m.queue)
	p.histogram("minfer_request_prompt_tokens", "Prompt tokens of a request.", &m.promptLength)
	p.histogram("minfer_request_completion_tokens", "Generated tokens of a reply.", &m.outputLength)
	draining := 0.0
	if s.draining.Load() {
		draining = 1
	}
	p.gauge("minfer_draining", "1 while the server finishes its last requests.", draining)
	p.gauge("minfer_drain_abandoned_requests", "Requests still in flight when the time to drain was over.", float64(m.abandoned.Load()))
}

func (s *Server) writeMemory(p *page, c engine.Counters) {
	e := s.model.Engine
	mem := e.Memory()
	p.gauge("minfer_memory_weights_bytes", "Weights.", float64(mem.Weights))
	p.gauge("minfer_memory_pool_bytes", "Activations of the largest step.", float64(mem.Pool))
	p.gauge("minfer_memory_live_bytes", "Of the pool, held between steps.", float64(mem.Live))
	p.gauge("minfer_memory_peak_live_bytes", "Of the pool, alive at once.", float64(mem.Peak))
	if mem.Budget > 0 {
		p.gauge("minfer_memory_budget_bytes", "What may be used.", float64(mem.Budget))
		p.gauge("minfer_memory_headroom_bytes", "Of the budget, left.", float64(mem.Headroom))
	}
	p.gauge("minfer_memory_idle_slots", "Places for requests that are free.", float64(max(0, e.Sequences()-c.Running)))
	p.gauge("minfer_memory_reserved_classes", "Step shapes with a compiled program.", float64(c.Programs))
	kv := e.KV()
	p.gauge("minfer_kv_layers", "Layers of the KV cache.", float64(kv.Layers))
	p.gauge("minfer_kv_rows", "Cells of the KV cache.", float64(kv.Cells))
	p.gauge("minfer_kv_region_bytes", "Bytes of the KV cache.", float64(mem.KV))
	packed := 0.0
	if kv.Type.String() == "Q8_0" {
		packed = 1
	}
	p.gauge("minfer_kv_packed", "1 for a packed Q8_0 cache.", packed)
	p.gauge("minfer_kv_reserved_cells", "Cells of the arena.", float64(c.Cells.Total))
	p.gauge("minfer_kv_owned_cells", "Cells in use; a shared one counts once.", float64(c.Cells.Used))
	p.gauge("minfer_kv_shared_cells", "Cells that several sequences hold.", float64(c.Cells.Shared))
	p.gauge("minfer_kv_free_cells", "Free cells.", float64(c.Cells.Free))
	p.gauge("minfer_kv_free_runs", "Runs of free cells.", float64(c.Cells.FreeExtents))
	p.gauge("minfer_kv_sequences", "Sequences that hold cells, kept prompts included.", float64(c.Cells.Seqs))
	p.counter("minfer_kv_defrags_total", "Times that cells were compacted: never needed, any free cell serves.", 0)
	p.counter("minfer_kv_cells_moved_total", "Cells moved by compaction: never needed.", 0)
	p.counter("minfer_kv_cows_total", "Cells copied on write.", float64(c.Cells.Copied))
	p.counter("minfer_kv_cow_cells_total", "Cells copied on write.", float64(c.Cells.Copied))
}

// writeOps writes where the time of steps went, under MINFER_OP_TIMING.
func (s *Server) writeOps(p *page, r *http.Request) {
	times := s.model.Engine.OpTimesBetweenSteps(r.Context(), opTimesPatience)
	if len(times) == 0 {
		return
	}
	label := func(text string) string { return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) }
	p.head("minfer_op_seconds_total", "counter", "Time of the nodes of each kind.")
	for _, t := range times {
		p.printf("minfer_op_seconds_total{op=\"%s\"} %s\n", label(t.Op), number64(t.Time.Seconds()))
	}
	p.head("minfer_op_calls_total", "counter", "Runs of the nodes of each kind.")
	for _, t := range times {
		p.printf("minfer_op_calls_total{op=\"%s\"} %d\n", label(t.Op), t.Calls)
	}
}
