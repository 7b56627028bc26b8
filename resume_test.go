package minfer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/kv"
	"github.com/minfer-go/minfer/quant"
)

// saved is a conversation in a file, and how it goes on.
func saved(t *testing.T, m *minfer.Model, path string, settings ...minfer.Setting) (next []string) {
	t.Helper()
	c := m.NewConversation(settings...)
	defer c.Close()
	for _, q := range questions[:4] {
		say(t, c, q)
	}
	if err := c.Save(context.Background(), path); err != nil {
		t.Fatal(err)
	}
	for _, q := range questions[4:8] {
		text, _ := say(t, c, q)
		next = append(next, text)
	}
	return next
}

// TestResume: a conversation that is loaded goes on bit for bit, with nothing to evaluate but what is new; also after a
// shift.
func TestResume(t *testing.T) {
	for _, size := range []int{512, 160} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "talk.json")
			settings := []minfer.Setting{minfer.MaxTokens(60), minfer.Seed(11), minfer.System("You are helpful.")}
			want := saved(t, open(t, minfer.WithContext(size)), path, settings...)
			m := open(t, minfer.WithContext(size))
			c := m.NewConversation(settings...)
			defer c.Close()
			r, err := c.Load(context.Background(), path)
			if err != nil || r.Reason != nil || r.Messages != 8 || r.Tokens != c.Held() || r.Tokens == 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			if size < 512 && c.Forgotten() == 0 {
				t.Error("the saved conversation was not shifted")
			}
			var have []string
			for i, q := range questions[4:8] {
				text, stats := say(t, c, q)
				have = append(have, text)
				if i == 0 && stats.Cached < r.Tokens && stats.Forgotten == 0 {
					t.Errorf("the first turn found %d of %d tokens", stats.Cached, r.Tokens)
				}
			}
			if !slices.Equal(have, want) {
				t.Errorf("resumed:\n%q\nnot interrupted:\n%q", have, want)
			}
		})
	}
}

// TestResumeRefuses: cells that do not fit are refused with the reason, and the conversation goes on without them.
func TestResumeRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "talk.json")
	settings := []minfer.Setting{minfer.MaxTokens(30), minfer.Greedy()}
	m := open(t, minfer.WithContext(512))
	want := saved(t, m, path, settings...)[0]
	history, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := os.ReadFile(path + ".kv")
	if err != nil {
		t.Fatal(err)
	}
	flip := func(at int) []byte {
		b := slices.Clone(cells)
		b[(at+len(b))%len(b)] ^= 4
		return b
	}
	f32 := engine.Options{Context: 512, Threads: 1, CacheType: quant.F32, CacheTypeSet: true}
	for _, test := range []struct {
		name    string
		model   *minfer.Model
		history []byte
		cells   []byte
		is      error
		says    string
	}{
		{"no cells", m, history, nil, nil, "no file"},
		{"empty", m, history, []byte{}, kv.ErrSessionDamaged, ""},
		{"not a session", m, history, history, kv.ErrSessionFormat, ""},
		{"cut", m, history, cells[:len(cells)/2], kv.ErrSessionDamaged, ""},
		{"one byte short", m, history, cells[:len(cells)-1], kv.ErrSessionDamaged, ""},
		{"one byte more", m, history, append(slices.Clone(cells), 0), kv.ErrSessionDamaged, ""},
		{"a bit in the middle", m, history, flip(len(cells) / 2), kv.ErrSessionDamaged, ""},
		{"a bit of the checksum", m, history, flip(-1), kv.ErrSessionDamaged, ""},
		{"another context", open(t, minfer.WithContext(500)), history, cells, kv.ErrSessionMismatch, "cells"},
		{"another cell type", open(t, minfer.WithEngine(f32)), history, cells, kv.ErrSessionMismatch, ""},
		{"an edited history", m, []byte(strings.Replace(string(history), "France", "Peru", 1)), cells, nil, "history was changed"},
		{"another template", open(t, minfer.WithContext(512), minfer.WithChat(chat.WithTemplate("t", m.Format().Source()+"{# #}"))), history, cells, nil, "template"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "talk.json")
			if err := os.WriteFile(path, test.history, 0o600); err != nil {
				t.Fatal(err)
			}
			if test.cells != nil {
				if err := os.WriteFile(path+".kv", test.cells, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			c := test.model.NewConversation(settings...)
			defer c.Close()
			r, err := c.Load(context.Background(), path)
			if err != nil {
				t.Fatal(err)
			}
			if r.Reason == nil || r.Tokens != 0 || c.Held() != 0 {
				t.Fatalf("%+v with %d tokens held, want a refusal", r, c.Held())
			}
			if test.is != nil && !errors.Is(r.Reason, test.is) || !strings.Contains(r.Reason.Error(), test.says) {
				t.Errorf("the reason is %v, want %v %q", r.Reason, test.is, test.says)
			}
			text, stats := say(t, c, questions[4])
			if stats.Cached != 0 {
				t.Errorf("%+v", stats)
			}
			if text != want && test.model == m && string(test.history) == string(history) {
				t.Errorf("evaluated anew: %q, want %q", text, want)
			}
		})
	}
}

// TestBrokenText: bytes that are no characters are replaced before the model sees them, so that a saved conversation goes on
// as it would have.
func TestBrokenText(t *testing.T) {
	m := open(t)
	path := filepath.Join(t.TempDir(), "h.json")
	c := m.NewConversation(minfer.Greedy(), minfer.MaxTokens(8), minfer.System("a\xff"))
	defer c.Close()
	say(t, c, "\xff\xfe b\xe4")
	if have := c.Messages()[0].Content.String(); have != "\ufffd\ufffd b\ufffd" || c.System() != "a\ufffd" {
		t.Errorf("%q, %q", have, c.System())
	}
	if err := c.Save(context.Background(), path); err != nil {
		t.Fatal(err)
	}
	want, wantStats := say(t, c, "Hello")
	other := m.NewConversation(minfer.Greedy(), minfer.MaxTokens(8))
	defer other.Close()
	if r, err := other.Load(context.Background(), path); err != nil || r.Reason != nil {
		t.Fatal(r, err)
	}
	if have, stats := say(t, other, "Hello"); have != want || stats.Prefilled != wantStats.Prefilled {
		t.Errorf("%q after %d tokens, without saving %q after %d", have, stats.Prefilled, want, wantStats.Prefilled)
	}
}

// TestHistoryFiles: what people may write by hand, and what is refused.
func TestHistoryFiles(t *testing.T) {
	m := open(t)
	for _, test := range []struct {
		content  string
		messages int // -1 for a refusal
		system   string
	}{
		{`[{"role":"system","content":"S"},{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`, 2, "S"},
		{`{"version":1,"messages":[]}`, 0, ""},
		{`{"version":1,"system":"S","messages":[{"role":"user","content":"a"}]}`, 1, "S"},
		{`{"version":1,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`, 2, ""},
		{`[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"tool","content":"c"}]`, 3, "before"},
		{`{"version":2,"messages":[]}`, -1, ""},
		{`{"version":1}`, -1, ""},
		{`{"version":1,"mesages":[{"role":"user","content":"a"}]}`, -1, ""},
		{`[{"role":"alien","content":"a"}]`, -1, ""},
		{`{"messages":[]}`, -1, ""},
		{`[{"content":"a"}]`, -1, ""},
		{`[{"role":"user","content":7}]`, -1, ""},
		{`[{"role":"user","content":"a"},{"role":"system","content":"b"}]`, -1, ""},
		{`{"version":1,"messages":[{"role":"user","content":"a"}],"forgotten":2}`, -1, ""},
		{`{"version":1,"messages":[{"role":"user","content":"a"}],"forgotten":-1}`, -1, ""},
		{`no JSON`, -1, ""},
		{``, -1, ""},
	} {
		path := filepath.Join(t.TempDir(), "h.json")
		if err := os.WriteFile(path, []byte(test.content), 0o600); err != nil {
			t.Fatal(err)
		}
		c := m.NewConversation(minfer.System("before"))
		_, err := c.Load(context.Background(), path)
		switch {
		case test.messages < 0 && !errors.Is(err, minfer.ErrConversation):
			t.Errorf("%s: %v, want a refusal", test.content, err)
		case test.messages >= 0 && (err != nil || len(c.Messages()) != test.messages || c.System() != test.system):
			t.Errorf("%s: %v, %q, %v", test.content, c.Messages(), c.System(), err)
		}
		c.Close()
	}
}
