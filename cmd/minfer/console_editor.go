//go:build !js && !wasip1 && !plan9

package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/reeflective/readline"

	"github.com/minfer-go/minfer/hub"
)

// An editor reads messages that somebody types: with history, multi-line paste, and a backslash at the end of a line to go
// on in the next.
type editor struct {
	shell     *readline.Shell
	out       *console
	multiline bool
	restore   func() // puts the terminal back as it was

	fresh   bool        // the library has just changed the terminal's settings
	stopped atomic.Bool // there is an interrupt to act on
	fed     bool        // the library was given the key for one and has not acted on it
}

// giveUp is Ctrl-C, the key that makes the library give up a line.
const giveUp = '\x03'

func newEditor(out *console, multiline bool) input {
	e := &editor{shell: readline.NewShell(), out: out, multiline: multiline, restore: terminalState(os.Stdin)}
	e.shell.Prompt.Primary(e.prompt)
	e.shell.Prompt.Secondary(func() string { return "… " })
	for option, on := range map[string]bool{
		"enable-bracketed-paste": true,
		"cursor-position-probe":  false, // keys that come together with the terminal's answer would be lost
	} {
		if err := e.shell.Config.Set(option, on); err != nil {
			out.note("the line editor has no %s: %v", option, err)
		}
	}
	e.shell.AcceptMultiline = e.complete
	e.shell.History.Delete()
	e.shell.History.Add("messages", openHistory())
	return e
}

// prompt is called whenever the library draws, on its goroutine. The library takes Ctrl-C for a key, and loses it among others
// that arrive with it; so the terminal is made to send an interrupt, which then comes in as that key alone.
func (e *editor) prompt() string {
	if e.fresh {
		e.fresh = false
		interruptKey(os.Stdin)
	}
	if e.stopped.Swap(false) {
		e.clear()
		e.shell.Keys.Feed(true, giveUp)
		e.fed = true
	}
	return "> "
}

// clear drops the keys that nobody has acted on.
func (e *editor) clear() {
	for _, empty := e.shell.Keys.Pop(); !empty; {
		_, empty = e.shell.Keys.Pop()
	}
}

func (e *editor) interrupt() {
	e.stopped.Store(true)
	e.shell.Keys.RequestRefresh()
}

func (e *editor) interrupted() bool { return e.stopped.Swap(false) }

// complete reports whether a message is at its end when Enter is pressed.
func (e *editor) complete(text []rune) bool {
	s := string(text)
	if _, _, ok := command(s); ok || s == "" {
		return true
	}
	if e.multiline {
		return strings.HasSuffix(s, "\n")
	}
	return !strings.HasSuffix(s, `\`)
}

func (e *editor) interactive() bool { return true }
func (e *editor) close()            { e.restore() }

func (e *editor) read(ctx context.Context) (string, error) {
	got := make(chan line, 1)
	e.fresh = true
	go func() {
		text, err := e.shell.Readline()
		got <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case l := <-got:
		fed := e.fed
		e.fed = false
		if errors.Is(l.err, readline.ErrInterrupt) {
			e.out.note("(Ctrl-D or /exit ends the conversation)")
			return "", nil
		}
		if fed { // the message had been sent when the key came
			e.clear()
			e.stopped.Store(true)
		}
		text := strings.ReplaceAll(l.text, "\\\n", "\n")
		if e.multiline {
			text = strings.TrimRight(text, "\n")
		}
		return text, l.err
	}
}

// historyLines bounds what is kept of earlier messages.
const historyLines = 1000

// A typed is the history of the line editor: what was typed, in memory and in a file that only its owner can read. A file
// that cannot be read or written is done without.
type typed struct {
	path  string // empty for none
	texts []string
}

func openHistory() *typed {
	h := &typed{}
	models, err := hub.CacheDir()
	if err != nil {
		return h
	}
	h.path = filepath.Join(filepath.Dir(models), "history")
	b, err := os.ReadFile(h.path)
	if err != nil {
		return h
	}
	for text := range strings.SplitSeq(string(b), "\n") {
		var s string
		if json.Unmarshal([]byte(text), &s) == nil && s != "" {
			h.texts = append(h.texts, s)
		}
	}
	if n := len(h.texts); n > historyLines {
		h.texts = h.texts[n-historyLines:]
		_ = h.write(os.O_TRUNC, h.texts) // it only stays longer than it should be
	}
	return h
}

// write appends texts to the file, or with os.O_TRUNC replaces it.
func (h *typed) write(mode int, texts []string) error {
	if h.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND|mode, 0o600)
	if err != nil {
		return err
	}
	for _, text := range texts {
		b, jsonErr := json.Marshal(text)
		_, writeErr := f.Write(append(b, '\n'))
		err = errors.Join(err, jsonErr, writeErr)
	}
	return errors.Join(err, f.Close())
}

// Write adds a text and returns how many there are.
func (h *typed) Write(text string) (int, error) {
	if text != "" && (len(h.texts) == 0 || h.texts[len(h.texts)-1] != text) {
		h.texts = append(h.texts, text)
		_ = h.write(0, []string{text}) // history is a convenience; the message itself goes on
	}
	return len(h.texts), nil
}

// GetLine returns a text by its number.
func (h *typed) GetLine(i int) (string, error) {
	if i < 0 || i >= len(h.texts) {
		return "", errors.New("no such line of history")
	}
	return h.texts[i], nil
}

// Len is the number of texts.
func (h *typed) Len() int { return len(h.texts) }

// Dump returns the texts.
func (h *typed) Dump() any { return h.texts }
