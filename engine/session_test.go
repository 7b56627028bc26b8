package engine

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/internal/builtin"
	"github.com/minfer-go/minfer/kv"
	"github.com/minfer-go/minfer/quant"
	"github.com/minfer-go/minfer/sample"
)

func openTiny(t *testing.T, o Options) *Engine {
	t.Helper()
	f, err := gguf.FromBytes(builtin.Name, builtin.Tiny())
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(context.Background(), f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// reply runs a greedy request and returns its tokens.
func reply(t *testing.T, e *Engine, s *Session, prompt []int32, n int) ([]int32, Stats) {
	t.Helper()
	c := sample.Neutral()
	c.Temperature = 0
	j, err := e.Submit(context.Background(), Request{Prompt: prompt, MaxTokens: n, Sampling: c, Session: s})
	if err != nil {
		t.Fatal(err)
	}
	var ids []int32
	for tok, ok := j.Next(); ok; tok, ok = j.Next() {
		ids = append(ids, tok.ID)
	}
	_, stats, err := j.Result()
	if err != nil {
		t.Fatal(err)
	}
	return ids, stats
}

func story(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(300 + i*37%1000)
	}
	return ids
}

func TestSessionPrefillsOnlyItsDelta(t *testing.T) {
	e := openTiny(t, Options{})
	s := e.NewSession()
	first, _ := reply(t, e, s, story(40), 10)
	turn := slices.Concat(story(40), first, []int32{5, 6, 7})
	ids, stats := reply(t, e, s, turn, 10)
	if stats.Cached != 49 { // the reply's last token was sampled, not evaluated
		t.Errorf("%d tokens were in the cells, want 49", stats.Cached)
	}
	plain, _ := reply(t, e, nil, turn, 10)
	if !slices.Equal(ids, plain) {
		t.Errorf("a session continues with %v, a plain request with %v", ids, plain)
	}
}

func TestSessionFileResumesBitForBit(t *testing.T) {
	for _, cells := range []quant.Type{quant.F32, quant.F16, quant.Q8_0} {
		o := Options{CacheType: cells, CacheTypeSet: true, Context: 512}
		e := openTiny(t, o)
		s := e.NewSession()
		first, _ := reply(t, e, s, story(40), 10)
		if err := s.Remove(context.Background(), 8, 20); err != nil {
			t.Fatal(err)
		}
		held := s.Tokens()
		if want := slices.Concat(story(40)[:8], story(40)[20:], first[:9]); !slices.Equal(held, want) {
			t.Fatalf("after removal the session holds %v, want %v", held, want)
		}
		var file bytes.Buffer
		if err := s.Save(context.Background(), &file, []byte("host")); err != nil {
			t.Fatal(err)
		}
		turn := slices.Concat(held, first[9:], []int32{5})
		want, _ := reply(t, e, s, turn, 20)

		again := openTiny(t, o)
		r := again.NewSession()
		host, err := r.Load(context.Background(), bytes.NewReader(file.Bytes()))
		if err != nil || string(host) != "host" {
			t.Fatalf("host %q, error %v", host, err)
		}
		have, stats := reply(t, again, r, turn, 20)
		if stats.Cached != len(held) || !slices.Equal(have, want) {
			t.Errorf("%s: resumed %d of %d tokens, continues with %v, want %v", cells, stats.Cached, len(held), have, want)
		}
	}
}

func TestSessionFileRefusals(t *testing.T) {
	e := openTiny(t, Options{Context: 256})
	s := e.NewSession()
	reply(t, e, s, story(20), 3)
	var buf bytes.Buffer
	if err := s.Save(context.Background(), &buf, []byte("host state")); err != nil {
		t.Fatal(err)
	}
	good := buf.Bytes()
	load := func(e *Engine, b []byte) error {
		s := e.NewSession()
		defer s.Close()
		reply(t, e, s, story(10), 1)
		_, err := s.Load(context.Background(), bytes.NewReader(b))
		if err != nil && len(s.Tokens()) != 0 {
			t.Errorf("after %v the session holds %d tokens", err, len(s.Tokens()))
		}
		return err
	}
	if err := load(e, good); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(good); n += 1 + len(good)/97 {
		if err := load(e, good[:n]); !errors.Is(err, kv.ErrSessionDamaged) {
			t.Fatalf("cut at %d of %d: %v", n, len(good), err)
		}
		flipped := bytes.Clone(good)
		flipped[n] ^= 4
		if err := load(e, flipped); err == nil {
			t.Fatalf("a flipped bit at %d went unnoticed", n)
		}
	}
	if err := load(e, append(bytes.Clone(good), 0)); !errors.Is(err, kv.ErrSessionDamaged) {
		t.Errorf("trailing byte: %v", err)
	}
	version := bytes.Clone(good)
	version[8]++
	if err := load(e, version); !errors.Is(err, kv.ErrSessionVersion) {
		t.Errorf("another version: %v", err)
	}
	foreign := bytes.Clone(good)
	foreign[0]++
	if err := load(e, foreign); !errors.Is(err, kv.ErrSessionFormat) {
		t.Errorf("another format: %v", err)
	}
	for _, o := range []Options{{Context: 255}, {Context: 256, CacheType: quant.F32, CacheTypeSet: true}} {
		if err := load(openTiny(t, o), good); !errors.Is(err, kv.ErrSessionMismatch) {
			t.Errorf("another run %+v: %v", o, err)
		}
	}
}

// TestClosedSessionsLeaveNothing: neither cells nor sequences, whether a request runs on them or not, and closing twice
// is fine.
func TestClosedSessionsLeaveNothing(t *testing.T) {
	e := openTiny(t, Options{Context: 256})
	for i := range 4 {
		s := e.NewSession()
		if i%2 == 0 {
			reply(t, e, s, story(20), 2)
			s.Close()
		} else {
			r := ask(story(20), 5)
			r.Session, r.IsEnd = s, func(int32) bool {
				if !s.closed { // on the loop, as Close is
					s.closed = true
					e.sessions = slices.DeleteFunc(e.sessions, func(have *Session) bool { return have == s })
				}
				return false
			}
			j, err := e.Submit(context.Background(), r)
			if err != nil {
				t.Fatal(err)
			}
			drain(t, j)
		}
		s.Close()
		if c := cellsOf(t, e); c.Used != 0 || c.Seqs != 0 {
			t.Errorf("after session %d the cells are %+v", i, c)
		}
		if _, err := e.Submit(context.Background(), Request{Prompt: story(3), Session: s, Sampling: greedy()}); err != nil {
			t.Fatal(err)
		}
		if err := s.Remove(context.Background(), 0, 1); !errors.Is(err, ErrRequest) {
			t.Errorf("a closed session takes work: %v", err)
		}
	}
}
