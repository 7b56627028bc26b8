package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// An input gives the user's messages.
type input interface {
	// read waits for a message. The error is io.EOF at the end of the input.
	read(ctx context.Context) (string, error)
	// interactive: somebody types, and sees what is answered.
	interactive() bool
	// interrupt takes back what was typed so far; it may be called while another goroutine reads.
	interrupt()
	// interrupted reports whether there was an interrupt that came too late to act on, and forgets it.
	interrupted() bool
	close()
}

// openInput gives a line editor where somebody types, and otherwise lines as they come.
func openInput(in io.Reader, out *console, multiline bool) input {
	if f, ok := in.(*os.File); ok && f == os.Stdin && isTerminal(f) && out.terminal && os.Getenv("TERM") != "dumb" {
		if e := newEditor(out, multiline); e != nil {
			return e
		}
	}
	return &lines{in: in, multiline: multiline}
}

// lines reads messages of one line, or with multiline up to an empty line, without any echo or prompt.
type lines struct {
	in        io.Reader
	multiline bool
	got       chan line // unbuffered; nil until the first read
}

type line struct {
	text string
	err  error
}

func (l *lines) interactive() bool { return false }
func (l *lines) interrupt()        {}
func (l *lines) interrupted() bool { return false }
func (l *lines) close()            {}

// scan delivers lines until the input ends.
func (l *lines) scan() {
	in := bufio.NewReader(l.in)
	for {
		text, err := readLine(in)
		if text != "" || err == nil {
			l.got <- line{text: text}
		}
		if err != nil {
			l.got <- line{err: err}
			return
		}
	}
}

// readLine reads a line without its end.
func readLine(in *bufio.Reader) (string, error) {
	var b []byte
	for {
		part, err := in.ReadSlice('\n')
		b = append(b, part...)
		if len(b) > maxLine {
			return "", fmt.Errorf("a line of more than %d bytes", maxLine)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r"), err
	}
}

func (l *lines) next(ctx context.Context) (string, error) {
	if l.got == nil {
		l.got = make(chan line)
		go l.scan()
	}
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case got := <-l.got:
		if got.err != nil {
			l.got = make(chan line, 1)
			l.got <- got // the end stays the end
		}
		return got.text, got.err
	}
}

func (l *lines) read(ctx context.Context) (string, error) {
	text, err := l.next(ctx)
	if err != nil || !l.multiline || text == "" {
		return text, err
	}
	if _, _, ok := command(text); ok {
		return text, nil
	}
	all := []string{text}
	for {
		text, err := l.next(ctx)
		if errors.Is(err, io.EOF) || err == nil && text == "" {
			return strings.Join(all, "\n"), nil
		}
		if err != nil {
			return "", err
		}
		all = append(all, text)
	}
}
