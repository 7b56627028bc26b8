package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/minfer-go/minfer/chat"
)

// Escape sequences that are written where colour is on.
const (
	grey  = "\x1b[90m"
	plain = "\x1b[0m"
)

// A console writes replies: reasoning in grey where colour is on.
type console struct {
	out, notes io.Writer // replies; everything else
	color      bool
	terminal   bool // out is a terminal: it gets no control characters from a reply
	grey       bool // what was written last is grey
	midLine    bool // what was written last does not end a line
}

// newConsole resolves --color: on, off or auto.
func newConsole(out, notes io.Writer, mode string) (*console, error) {
	c := &console{out: out, notes: notes}
	if f, ok := out.(*os.File); ok {
		c.terminal = isTerminal(f)
	}
	switch mode {
	case "on":
		c.color = true
	case "off":
	case "auto":
		on, set, err := onOff("MINFER_COLOR")
		if err != nil {
			return nil, err
		}
		if c.color = on; !set {
			c.color = c.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		}
	default:
		return nil, fmt.Errorf("--color %q: on, off or auto", mode)
	}
	return c, nil
}

// span writes a stretch of a reply.
func (c *console) span(s chat.Span) error {
	text := s.Text
	if c.terminal {
		text = visible(text)
	}
	if text == "" {
		return nil
	}
	if want := c.color && s.Kind != chat.ContentText; want != c.grey {
		c.grey = want
		if want {
			text = grey + text
		} else {
			text = plain + text
		}
	}
	c.midLine = !strings.HasSuffix(text, "\n")
	_, err := io.WriteString(c.out, text)
	return err
}

// endReply ends the last line of a reply.
func (c *console) endReply() error {
	end := "\n"
	if c.grey {
		end = plain + end
	}
	c.grey, c.midLine = false, false
	_, err := io.WriteString(c.out, end)
	return err
}

// note writes a line for the user that is no part of a reply.
func (c *console) note(format string, args ...any) {
	fmt.Fprintf(c.notes, format+"\n", args...)
}

// visible shows control characters in caret notation, so that a reply cannot command the terminal.
func visible(text string) string {
	control := func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }
	if !strings.ContainsFunc(text, control) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !control(r):
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			b.WriteString("^" + string(r^0x40))
		default:
			fmt.Fprintf(&b, "<%02X>", r)
		}
	}
	return b.String()
}
