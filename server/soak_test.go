package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/minfer-go/minfer/engine"
)

// soakTime is how long TestSoak lasts: a second, half a minute with MINFER_LONG=1, or what MINFER_LONG says, such as 1h.
func soakTime() time.Duration {
	switch text := os.Getenv("MINFER_LONG"); text {
	case "":
		return time.Second
	default:
		if d, err := time.ParseDuration(text); err == nil {
			return d
		}
		return 30 * time.Second
	}
}

// changing matches what differs between two answers to one request: ids, times, what was cached, and signs of life.
var changing = regexp.MustCompile(`"[a-z_]*id":"[^"]*"|"created[a-z_]*":("[^"]*"|\d+)|"completed_at":\d+|"[a-z_]*_duration":\d+|"cached_tokens":\d+|` +
	`"input_tokens":\d+|"cache_read_input_tokens":\d+|(?m)^: .*\n\n|^event: ping\ndata: .*\n\n`)

// stable is an answer without them.
func stable(text string) string { return changing.ReplaceAllString(text, "") }

const (
	soakTools  = `"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"enum":["Paris","Rome"]}},"required":["city"],"additionalProperties":false}}}],"tool_choice":"required"`
	soakSchema = `"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"n":{"type":"integer"},"who":{"type":"string","maxLength":12}},"required":["n","who"],"additionalProperties":false}}}`
	soakSystem = `{"role":"system","content":"You are a helpful assistant who answers in short and friendly sentences, and who never makes things up."}`
	soakTurns  = `{"role":"user","content":"Hello, who are you?"},{"role":"assistant","content":"I am an assistant."},{"role":"user","content":"%s"}`
)

// soakAsks are the kinds of requests; %s is the topic.
var soakAsks = []struct{ path, body string }{
	{"/v1/chat/completions", `{"temperature":0,"messages":[{"role":"user","content":"%s"}],"max_tokens":20}`},
	{"/v1/chat/completions", `{"temperature":0,"stream":true,"logprobs":true,"messages":[{"role":"user","content":"%s"}],"max_tokens":20}`},
	{"/v1/chat/completions", `{"temperature":0.9,"seed":7,"stream":true,"stream_options":{"include_usage":true},"messages":[` + soakSystem + `,{"role":"user","content":"%s"}],"max_tokens":40}`},
	{"/v1/chat/completions", `{"temperature":1.2,"seed":8,"top_k":30,"presence_penalty":0.5,"messages":[` + soakSystem + `,` + soakTurns + `],"max_tokens":30}`},
	{"/v1/chat/completions", `{"temperature":0,"n":3,"messages":[{"role":"user","content":"%s"}],"response_format":{"type":"json_object"},"max_tokens":20}`},
	{"/v1/chat/completions", `{"temperature":0,"stream":true,"messages":[{"role":"user","content":"%s"}],` + soakSchema + `,"max_tokens":60}`},
	{"/v1/chat/completions", `{"temperature":0,"messages":[{"role":"user","content":"%s"}],` + soakTools + `,"max_tokens":80}`},
	{"/v1/chat/completions", `{"temperature":0,"stream":true,"messages":[{"role":"user","content":"%s"}],"logprobs":true,"top_logprobs":20,"max_tokens":150,"ignore_eos":true}`},
	{"/v1/completions", `{"temperature":0,"prompt":"%s","max_tokens":12}`},
	{"/v1/completions", `{"temperature":1,"seed":3,"stream":true,"prompt":"Once there was a fox. %s","stop":[" a","?"],"max_tokens":30}`},
	{"/v1/completions", `{"temperature":1,"seed":4,"prompt":["Once there was a fox. %s","Once there was a fox. And: %s"],"max_tokens":15}`},
	{"/v1/completions", `{"temperature":0,"prompt":"%s","grammar":"root ::= [a-z ]{3,40} \"!\"","max_tokens":50}`},
	{"/v1/responses", `{"temperature":0,"stream":true,"input":"%s","max_output_tokens":12}`},
	{"/v1/messages", `{"temperature":0,"messages":[{"role":"user","content":"%s"}],"max_tokens":12}`},
	{"/v1/messages", `{"temperature":0,"stream":true,"system":"Be brief.","messages":[{"role":"user","content":"%s"}],"max_tokens":25}`},
	{"/v1/embeddings", `{"input":["%s","and more"]}`},
	{"/api/chat", `{"options":{"temperature":0,"num_predict":12},"messages":[{"role":"user","content":"%s"}]}`},
	{"/api/generate", `{"options":{"temperature":0.8,"seed":5,"num_predict":16},"prompt":"%s","stream":false}`},
}

// soakTopic is one of a number of topics; many are many times the cells.
func soakTopic(i int) string {
	topics := []string{"What is the capital of France?", "Tell me a story about a brave fox.", "Two plus two is", "Name three colours and a bird."}
	if i < len(topics) {
		return topics[i]
	}
	return fmt.Sprintf("%s %s Then think of the number %d.", strings.Repeat("Once more: ", i%5), topics[i%len(topics)], i)
}

// A soak is a server under load, and one that gives the serial answers.
type soak struct {
	*rig
	model  Model
	serial *rig
	mu     sync.Mutex
	want   map[string]string

	answered, left, slow, cut atomic.Int64
}

// serially is what a request gets alone, on an engine that keeps nothing.
func (s *soak) serially(path, body string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if text, ok := s.want[path+body]; ok {
		return text
	}
	status, _, text := s.serial.do(http.MethodPost, path, body)
	if status != http.StatusOK {
		s.Errorf("%s %s alone: %d %s", path, body, status, text)
	}
	s.want[path+body] = stable(text)
	return s.want[path+body]
}

// ask sends a request and compares what comes, be it all or the beginning, with the serial answer. A slow reader takes its
// time.
func (s *soak) ask(ctx context.Context, path, body string, lag func() time.Duration) {
	want := s.serially(path, body)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.web.URL+path, strings.NewReader(body))
	if err != nil {
		s.Error(err)
		return
	}
	resp, err := s.web.Client().Do(req)
	if err != nil {
		if s.left.Add(1); ctx.Err() == nil {
			s.Error(err)
		}
		return
	}
	defer resp.Body.Close()
	var b bytes.Buffer
	if lag == nil {
		_, err = b.ReadFrom(resp.Body)
	} else {
		for err == nil {
			time.Sleep(lag())
			_, err = io.CopyN(&b, resp.Body, 700)
		}
		if errors.Is(err, io.EOF) {
			err = nil
			s.slow.Add(1)
		}
	}
	have := b.String()
	switch {
	case resp.StatusCode == http.StatusTooManyRequests && strings.Contains(have, "wait already"):
	case ctx.Err() != nil && (resp.StatusCode != http.StatusOK || err != nil):
		s.left.Add(1)
		if resp.StatusCode != http.StatusOK {
			return
		}
		have = have[:strings.LastIndexByte(have, '\n')+1]
		if strings.Contains(have, "\n\n") { // events
			have = have[:strings.LastIndex(have, "\n\n")+2]
		}
		if part := stable(have); part != "" && !strings.Contains(part, `"error"`) {
			if s.cut.Add(1); !strings.HasPrefix(want, part) {
				s.Errorf("%s %s: until it was left it gave\n%s\nalone it gives\n%s", path, body, part, want)
			}
		}
	case err != nil:
		s.Errorf("%s %s: %v", path, body, err)
	case resp.StatusCode != http.StatusOK || stable(have) != want:
		s.Errorf("%s %s: %d\n%s\nalone it gives\n%s", path, body, resp.StatusCode, stable(have), want)
	default:
		s.answered.Add(1)
	}
}

// load lets clients ask for a while and waits until nothing is in flight.
func (s *soak) load(lasting time.Duration, topics int, seed uint64) {
	var clients sync.WaitGroup
	end := time.Now().Add(lasting)
	for c := range 10 {
		clients.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(c)))
			for time.Now().Before(end) && !s.Failed() {
				one := soakAsks[random.IntN(len(soakAsks))]
				patience := time.Hour
				if random.IntN(3) == 0 { // leaves after 0.1 to 400 ms
					patience = time.Duration(1e5 * math.Pow(4000, random.Float64()))
				}
				ctx, cancel := context.WithTimeout(s.Context(), patience)
				var lag func() time.Duration
				if c < 2 {
					lag = func() time.Duration { return time.Duration(random.IntN(15)) * time.Millisecond }
				}
				s.ask(ctx, one.path, strings.ReplaceAll(one.body, "%s", soakTopic(random.IntN(topics))), lag)
				cancel()
			}
		})
	}
	clients.Go(func() { // operators look and save
		for n := 0; time.Now().Before(end); n++ {
			s.do(http.MethodGet, []string{"/metrics", "/health"}[n%2], "")
			if err := s.model.Engine.SaveSlots(s.Context(), io.Discard); err != nil && !errors.Is(err, engine.ErrSlotsBusy) {
				s.Error(err)
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	clients.Wait()
	s.web.Client().CloseIdleConnections()
	s.serial.web.Client().CloseIdleConnections()
	eventually(s.T, "no request in flight", func() bool {
		c := s.model.Engine.Counters()
		return s.server.metrics.inFlight.Load() == 0 && c.Running+c.Queued == 0
	})
}

// heap is what is in use after a collection.
func heap() uint64 {
	var s runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestSoak lets clients of every API ask and leave at random times, and some read slowly. Every answer, and every
// beginning of one, is what the request gets alone; and when they are gone there are no more goroutines, cells or bytes in
// use than before.
func TestSoak(t *testing.T) {
	o := engine.Options{Context: 512, Sequences: 4, Queue: 64}
	t.Setenv("MINFER_NO_PREFIX_REUSE", "1")
	alone := o
	alone.Sequences = 1
	serial := rigOn(t, tiny(t, alone))
	t.Setenv("MINFER_NO_PREFIX_REUSE", "")
	m := tiny(t, o)
	s := &soak{rig: rigOn(t, m), model: m, serial: serial, want: map[string]string{}}
	topics := 4
	if soakTime() > time.Minute {
		topics = 24
	}
	s.load(min(soakTime()/4, 2*time.Minute), topics, 1) // what is compiled and grown for good
	if soakTime() > time.Minute {
		for i := range topics { // answers that are kept for good
			for _, one := range soakAsks {
				s.serially(one.path, strings.ReplaceAll(one.body, "%s", soakTopic(i)))
			}
		}
	}
	serial.web.Client().CloseIdleConnections()
	goroutines, held, resident := runtime.NumGoroutine(), heap(), residentBytes()
	const rounds = 6
	for i := range rounds {
		s.load(soakTime()/rounds, topics, uint64(2+i))
		if soakTime() >= time.Minute {
			c := m.Engine.Counters()
			t.Logf("round %d: %d answers, %d left (%d in the middle of a reply), %d read slowly; heap %d of %d, resident %d of %d, %d goroutines; %d cached of %d prompt tokens, %d gave way",
				i, s.answered.Load(), s.left.Load(), s.cut.Load(), s.slow.Load(), heap(), held, residentBytes(), resident, runtime.NumGoroutine(), c.Cached, c.Prompt, c.GaveWay)
		}
	}
	eventually(t, fmt.Sprintf("%d goroutines, now %d", goroutines, runtime.NumGoroutine()), func() bool { return runtime.NumGoroutine() <= goroutines })
	if now := heap(); now > held+held/8+4<<20 {
		t.Errorf("%d bytes are in use, before it were %d", now, held)
	}
	if now := residentBytes(); now > resident+resident/8+32<<20 && !raced {
		t.Errorf("%d bytes are resident, before it were %d", now, resident)
	}
	if c := m.Engine.Counters(); c.Ended[engine.ReasonFailure] != 0 || c.Faults != 0 || c.Stalled != 0 {
		t.Errorf("%+v", c)
	}
	// All cells can be had, and then nobody else holds one.
	whole := `{"prompt":[` + strings.TrimSuffix(strings.Repeat("700,", 511), ",") + `],"max_tokens":1}`
	s.post("/v1/completions", whole)
	eventually(t, "one kept prompt", func() bool {
		c := m.Engine.Counters()
		return c.Running == 0 && c.Cells.Seqs == 1 && c.Cells.Used == 511 && c.Cells.Shared == 0 && c.Cells.Used+c.Cells.Free == 512
	})
	if s.answered.Load() < 16 || s.left.Load() == 0 {
		t.Errorf("only %d answers, %d were left", s.answered.Load(), s.left.Load())
	}
}

// residentBytes is the memory that the system has given the process; 0 where it does not tell.
func residentBytes() int {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}
