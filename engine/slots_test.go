package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/minfer-go/minfer/kv"
)

// saved is a slots file of an engine that answered two prompts.
func saved(t *testing.T, o Options) ([]byte, []int32) {
	t.Helper()
	e := openTiny(t, o)
	first, _ := reply(t, e, nil, story(60), 10)
	reply(t, e, nil, slices.Concat(story(30), []int32{9, 8, 7, 6}), 5)
	var b bytes.Buffer
	if err := e.SaveSlots(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), first
}

// cellsOf counts the cells between two steps.
func cellsOf(t *testing.T, e *Engine) (s kv.Stats) {
	t.Helper()
	if err := e.call(context.Background(), func() error { s = e.arena.Stats(); return nil }); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSlotsResumeUnshared: under MINFER_NO_KV_SHARE no cell of a file has two owners either, and what was saved is found.
func TestSlotsResumeUnshared(t *testing.T) {
	o := Options{Context: 256}
	file, first := saved(t, o)
	t.Setenv("MINFER_NO_KV_SHARE", "1")
	e := openTiny(t, o)
	n, tokens, err := e.LoadSlots(context.Background(), bytes.NewReader(file))
	if err != nil || n != 2 || tokens != 69+38 {
		t.Fatalf("%d prefixes, %d tokens, %v", n, tokens, err)
	}
	if c := cellsOf(t, e); c.Used != 69+38 || c.Shared != 0 {
		t.Errorf("cells %+v", c)
	}
	turn := slices.Concat(story(60), first, []int32{5, 6, 7})
	ids, stats := reply(t, e, nil, turn, 10)
	if want, _ := reply(t, openTiny(t, o), nil, turn, 10); stats.Cached != 69 || !slices.Equal(ids, want) {
		t.Errorf("resumed %v with %d cached tokens, fresh %v", ids, stats.Cached, want)
	}
}

func TestSlotsResume(t *testing.T) {
	o := Options{Context: 256}
	file, first := saved(t, o)
	e := openTiny(t, o)
	if b := e.SlotBytes(); len(file) > b+4096 {
		t.Errorf("the file has %d bytes, announced were %d", len(file), b)
	}
	n, tokens, err := e.LoadSlots(context.Background(), bytes.NewReader(file))
	if err != nil || n != 2 || tokens != 69+38 {
		t.Fatalf("%d prefixes, %d tokens, %v", n, tokens, err)
	}
	// The second shares its first 30 cells with the first.
	if c := cellsOf(t, e); c.Used != 69+8 || c.Shared != 30 {
		t.Errorf("cells %+v", c)
	}
	turn := slices.Concat(story(60), first, []int32{5, 6, 7})
	ids, stats := reply(t, e, nil, turn, 10)
	if stats.Cached != 69 {
		t.Errorf("%d tokens were cached, want 69", stats.Cached)
	}
	if want, _ := reply(t, openTiny(t, o), nil, turn, 10); !slices.Equal(ids, want) {
		t.Errorf("resumed %v, fresh %v", ids, want)
	}
}

// TestSlotsShareNothing: under MINFER_NO_KV_SHARE the prefixes of a file get cells of their own.
func TestSlotsShareNothing(t *testing.T) {
	o := Options{Context: 256}
	file, first := saved(t, o)
	t.Setenv("MINFER_NO_KV_SHARE", "1")
	e := openTiny(t, o)
	if n, tokens, err := e.LoadSlots(context.Background(), bytes.NewReader(file)); err != nil || n != 2 || tokens != 69+38 {
		t.Fatalf("%d prefixes, %d tokens, %v", n, tokens, err)
	}
	if c := cellsOf(t, e); c.Used != 69+38 || c.Shared != 0 {
		t.Errorf("cells %+v", c)
	}
	turn := slices.Concat(story(60), first, []int32{5, 6, 7})
	ids, stats := reply(t, e, nil, turn, 10)
	if c := cellsOf(t, e); stats.Cached != 69 || c.Shared != 0 {
		t.Errorf("%d tokens were cached, cells %+v", stats.Cached, c)
	}
	t.Setenv("MINFER_NO_PREFIX_REUSE", "1")
	if want, _ := reply(t, openTiny(t, o), nil, turn, 10); !slices.Equal(ids, want) {
		t.Errorf("resumed %v, fresh %v", ids, want)
	}
}

func TestSlotsRefusals(t *testing.T) {
	o := Options{Context: 256}
	file, _ := saved(t, o)
	session := func() []byte {
		e := openTiny(t, o)
		s := e.NewSession()
		reply(t, e, s, story(8), 2)
		var b bytes.Buffer
		if err := s.Save(context.Background(), &b, []byte("a conversation")); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}()
	flip := func(at int) []byte {
		b := bytes.Clone(file)
		b[at] ^= 1
		return b
	}
	for _, c := range []struct {
		name    string
		file    []byte
		context int
		want    error
	}{
		{"empty", nil, 256, kv.ErrSessionDamaged},
		{"another magic", flip(0), 256, kv.ErrSessionFormat},
		{"cut", file[:len(file)-1], 256, kv.ErrSessionDamaged},
		{"a bit in the rows", flip(len(file) / 2), 256, kv.ErrSessionDamaged},
		{"another context", file, 128, kv.ErrSessionMismatch},
		{"a conversation", session, 256, kv.ErrSessionMismatch},
	} {
		e := openTiny(t, Options{Context: c.context})
		n, tokens, err := e.LoadSlots(context.Background(), bytes.NewReader(c.file))
		if !errors.Is(err, c.want) || n != 0 || tokens != 0 {
			t.Errorf("%s: %d, %d, %v, want %v", c.name, n, tokens, err, c.want)
		}
		if used := cellsOf(t, e).Used; used != 0 {
			t.Errorf("%s: %d cells are in use", c.name, used)
		}
	}
	t.Setenv("MINFER_NO_PREFIX_REUSE", "1")
	if _, _, err := openTiny(t, o).LoadSlots(context.Background(), bytes.NewReader(file)); !errors.Is(err, ErrRequest) {
		t.Errorf("without reuse: %v", err)
	}
}

// A gate lets a writer wait until it is opened.
type gate struct {
	io.Writer
	reached, open chan struct{}
	n             int
}

func (g *gate) Write(b []byte) (int, error) {
	if g.n += len(b); g.reached != nil && g.n > 1000 {
		close(g.reached)
		g.reached = nil
		<-g.open
	}
	return g.Writer.Write(b)
}

// TestSlotsGiveWay: requests that need cells do not wait for a save, and none leak.
func TestSlotsGiveWay(t *testing.T) {
	e := openTiny(t, Options{Context: 128})
	reply(t, e, nil, story(100), 2)
	g := &gate{Writer: io.Discard, reached: make(chan struct{}), open: make(chan struct{})}
	reached, done := g.reached, make(chan error, 1)
	go func() { done <- e.SaveSlots(context.Background(), g) }()
	<-reached
	if err := e.SaveSlots(context.Background(), io.Discard); !errors.Is(err, ErrRequest) {
		t.Errorf("a second save: %v", err)
	}
	other := make([]int32, 110)
	for i := range other {
		other[i] = int32(700 - i)
	}
	reply(t, e, nil, other, 2)
	close(g.open)
	if err := <-done; !errors.Is(err, ErrSlotsBusy) {
		t.Errorf("the save ended with %v", err)
	}
	if err := e.SaveSlots(context.Background(), io.Discard); err != nil {
		t.Errorf("the next save: %v", err)
	}
	if c := cellsOf(t, e); c.Used != 111 || c.Seqs != 1 {
		t.Errorf("cells %+v", c)
	}
}
