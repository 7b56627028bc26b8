package server

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/minfer-go/minfer/engine"
)

// families are all that /metrics has; those of MINFER_OP_TIMING and of a memory budget come only with them.
var families = []string{
	"requests_total", "requests_completed_total", "requests_rejected_total", "requests_in_flight", "jobs_dropped_total", "worker_stalled_total", "engine_faults_total",
	"queue_depth", "worker_pending_jobs", "requests_running", "requests_gave_way_total", "prompt_tokens_total", "prompt_tokens_cached_total",
	"completion_tokens_total", "completion_tokens_per_second", "draining", "drain_abandoned_requests",
	"memory_weights_bytes", "memory_pool_bytes", "memory_live_bytes", "memory_peak_live_bytes", "memory_idle_slots", "memory_reserved_classes",
	"kv_layers", "kv_rows", "kv_region_bytes", "kv_packed", "kv_reserved_cells", "kv_owned_cells", "kv_shared_cells", "kv_free_cells",
	"kv_free_runs", "kv_sequences", "kv_defrags_total", "kv_cells_moved_total", "kv_cows_total", "kv_cow_cells_total",
	"time_to_first_token_seconds", "inter_token_seconds", "queue_seconds", "request_prompt_tokens", "request_completion_tokens",
}

var sampleLine = regexp.MustCompile(`^(minfer_[a-z_]+)(?:\{([a-z]+)="((?:[^"\\]|\\.)*)"\})? (\S+)$`)

// scrape reads /metrics: every line is well-formed, every family is announced once and before its samples.
func (r *rig) scrape() map[string]float64 {
	r.Helper()
	status, h, body := r.do(http.MethodGet, "/metrics", "")
	if status != 200 || h.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		r.Fatalf("%d %v", status, h)
	}
	samples, kinds := map[string]float64{}, map[string]string{}
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			if kinds[name] != "" {
				r.Errorf("%s is announced twice", name)
			}
			kinds[name] = kind
			continue
		}
		if strings.HasPrefix(line, "# HELP ") {
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		if m == nil {
			r.Fatalf("line %q", line)
		}
		v, err := strconv.ParseFloat(m[4], 64)
		if err != nil {
			r.Fatalf("line %q: %v", line, err)
		}
		name := m[1]
		if kinds[name] == "" {
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		}
		if kinds[name] == "" {
			r.Errorf("%s is not announced", m[1])
		}
		if kinds[name] == "counter" && !strings.HasSuffix(name, "_total") {
			r.Errorf("counter %s does not end with _total", name)
		}
		samples[strings.Split(line, " ")[0]] = v
	}
	for name := range kinds {
		if short := strings.TrimPrefix(name, "minfer_"); !slices.Contains(families, short) && !strings.HasPrefix(short, "op_") && short != "memory_budget_bytes" && short != "memory_headroom_bytes" {
			r.Errorf("family %s is not in the list", name)
		}
	}
	for _, name := range families {
		if kinds["minfer_"+name] == "" {
			r.Errorf("family minfer_%s is missing", name)
		}
	}
	return samples
}

func TestMetrics(t *testing.T) {
	m := tiny(t, engine.Options{Sequences: 2, Context: 512, Budget: 1 << 30})
	r := rigOn(t, m)
	r.scrape()
	r.post("/v1/chat/completions", `{`+capital+`}`)
	r.post("/v1/chat/completions", `{`+capital+`}`)
	r.refused("/v1/chat/completions", `{"x":1}`, 400)
	s := r.scrape()
	for name, want := range map[string]float64{
		"requests_total": 3, "requests_completed_total": 2, "requests_in_flight": 0, "jobs_dropped_total": 0, "prompt_tokens_total": 30,
		"prompt_tokens_cached_total": 14, "completion_tokens_total": 18, "completion_tokens_per_second": 1, "draining": 0, "kv_rows": 512,
		"kv_reserved_cells": 512, "kv_layers": 5, "kv_packed": 0, "memory_idle_slots": 2, "queue_depth": 0, "requests_running": 0,
		"memory_budget_bytes": 1 << 30, "time_to_first_token_seconds_count": 2, "inter_token_seconds_count": 14,
		`request_prompt_tokens_bucket{le="4"}`: 0, `request_prompt_tokens_bucket{le="16"}`: 2, `request_prompt_tokens_bucket{le="+Inf"}`: 2,
		"request_prompt_tokens_sum": 30, "request_completion_tokens_sum": 18, "queue_seconds_count": 2,
	} {
		if have, ok := s["minfer_"+name]; !ok || have != want {
			t.Errorf("minfer_%s is %v, want %v", name, have, want)
		}
	}
	if s["minfer_kv_owned_cells"]+s["minfer_kv_free_cells"] != 512 || s["minfer_kv_owned_cells"] == 0 {
		t.Errorf("%v cells are owned, %v free", s["minfer_kv_owned_cells"], s["minfer_kv_free_cells"])
	}
	if s["minfer_memory_weights_bytes"] < 1e6 || s["minfer_kv_region_bytes"] < 1e5 || s["minfer_memory_headroom_bytes"] <= 0 {
		t.Errorf("%v", s)
	}
}

// TestOpTimes: the times of ops appear only under MINFER_OP_TIMING, also while a request runs.
func TestOpTimes(t *testing.T) {
	t.Setenv("MINFER_OP_TIMING", "1")
	m := tiny(t, slow(engine.Options{}))
	r := rigOn(t, m)
	end := r.hold(endless)
	defer end()
	eventually(t, "op times", func() bool {
		for name, v := range r.scrape() {
			if strings.HasPrefix(name, "minfer_op_seconds_total{op=") && v > 0 {
				return true
			}
		}
		return false
	})
}

func TestWindow(t *testing.T) {
	var w window
	at := time.Unix(1000, 0)
	w.add(at, 8)
	w.add(at.Add(5*time.Second), 8)
	for after, want := range map[time.Duration]float64{5 * time.Second: 1, 15 * time.Second: 1, 16 * time.Second: 0.5, 21 * time.Second: 0} {
		if have := w.rate(at.Add(after)); have != want {
			t.Errorf("after %s: %v, want %v", after, have, want)
		}
	}
	w.add(at.Add(16*time.Second), 16) // takes the place of the first
	if have := w.rate(at.Add(16 * time.Second)); have != 1.5 {
		t.Errorf("%v, want 1.5", have)
	}
}
