package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/chat"
)

func TestReasoningIsGrey(t *testing.T) {
	spans := []chat.Span{
		{Kind: chat.Markup, Text: "<think>\n"},
		{Kind: chat.ReasoningText, Text: "so"},
		{Kind: chat.ReasoningText, Text: " it is"},
		{Kind: chat.Markup, Text: "\n</think>\n\n"},
		{Kind: chat.ContentText, Text: "Four."},
	}
	write := func(mode string, spans []chat.Span) string {
		var out bytes.Buffer
		c, err := newConsole(&out, io.Discard, mode)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // a second reply begins as the first
			for _, s := range spans {
				if err := c.span(s); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.endReply(); err != nil {
				t.Fatal(err)
			}
		}
		return out.String()
	}
	t.Setenv("MINFER_COLOR", "")
	const bare = "<think>\nso it is\n</think>\n\nFour.\n"
	for _, mode := range []string{"off", "auto"} {
		if have := write(mode, spans); have != bare+bare {
			t.Errorf("%s: %q", mode, have)
		}
	}
	coloured := grey + "<think>\nso it is\n</think>\n\n" + plain + "Four.\n"
	if have := write("on", spans); have != coloured+coloured {
		t.Errorf("on: %q", have)
	}
	if have, want := write("on", spans[:3]), grey+"<think>\nso it is"+plain+"\n"; have != want+want {
		t.Errorf("reasoning alone: %q", have)
	}
	t.Setenv("MINFER_COLOR", "1")
	if have := write("auto", spans); have != coloured+coloured {
		t.Errorf("MINFER_COLOR=1: %q", have)
	}
	if _, err := newConsole(io.Discard, io.Discard, "sometimes"); err == nil {
		t.Error("--color sometimes is accepted")
	}
}

// TestVisible: nothing that a reply holds reaches the terminal as a command.
func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n你好 🙂": "plain\ttext\n你好 🙂",
		"\x1b[2J\a\r\x00":   "^[[2J^G^M^@",
		"\x7f\u009b31m":     "^?<9B>31m",
	} {
		if have := visible(text); have != want {
			t.Errorf("%q: %q, want %q", text, have, want)
		}
	}
}

func TestSpellOut(t *testing.T) {
	flags := newRoot().Flags()
	for _, test := range [][2]string{
		{"-st tiny", "--single-turn tiny"},
		{"tiny -cnv -mli -st", "tiny --cnv --multiline-input --single-turn"},
		{"tiny --stop -st -st", "tiny --stop -st --single-turn"},
		{"tiny --stop=x -st", "tiny --stop=x --single-turn"},
		{"tiny -n -st", "tiny -n -st"},
		{"tiny --cnv -st", "tiny --cnv --single-turn"},
		{"tiny -- -st", "tiny -- -st"},
		{"tiny --stop -- -st", "tiny --stop -- --single-turn"},
	} {
		if have := strings.Join(spellOut(strings.Fields(test[0]), flags), " "); have != test[1] {
			t.Errorf("%s: %s, want %s", test[0], have, test[1])
		}
	}
}

func TestLines(t *testing.T) {
	for _, test := range []struct {
		input     string
		multiline bool
		want      []string
	}{
		{"", false, nil},
		{"a\nb\r\n\nc", false, []string{"a", "b", "", "c"}},
		{"a\nb\n\nc", true, []string{"a\nb", "c"}},
		{"a\n/help\n", true, []string{"a\n/help"}},
		{"/help\na\n", true, []string{"/help", "a"}},
		{strings.Repeat("x", 100_000) + "\n", false, []string{strings.Repeat("x", 100_000)}},
	} {
		in := openInput(strings.NewReader(test.input), &console{}, test.multiline)
		var have []string
		for {
			text, err := in.read(context.Background())
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			have = append(have, text)
		}
		if !slices.Equal(have, test.want) {
			t.Errorf("%.40q, %v: %.200q", test.input, test.multiline, have)
		}
		if _, err := in.read(context.Background()); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
	}
	long := openInput(io.MultiReader(&endless{left: maxLine + 1}), &console{}, false)
	if _, err := long.read(context.Background()); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a line of %d bytes: %v", maxLine+1, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	silent, _ := io.Pipe()
	if _, err := openInput(silent, &console{}, false).read(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// endless is a long line.
type endless struct{ left int }

func (e *endless) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(b), e.left)
	for i := range n {
		b[i] = 'x'
	}
	e.left -= n
	return n, nil
}

func TestCommandSyntax(t *testing.T) {
	for _, test := range []struct {
		text, name, argument string
		ok                   bool
	}{
		{"/help", "/help", "", true},
		{"/system  Be kind. ", "/system", "Be kind.", true},
		{"//help", "", "", false},
		{"help", "", "", false},
		{"/a\nb", "", "", false},
	} {
		if name, argument, ok := command(test.text); name != test.name || argument != test.argument || ok != test.ok {
			t.Errorf("%q: %q %q %v", test.text, name, argument, ok)
		}
	}
	if have := unescape("//help"); have != "/help" {
		t.Errorf("%q", have)
	}
}
