package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// An interrupt ends a command that waits for standard input.
func TestInterruptedInput(t *testing.T) {
	for _, args := range [][]string{{"tiny"}, {"tokenize", "tiny"}, {"tokenize", "tiny", "--jsonl"}, {"template", "tiny"}, {"template", "tiny", "--jsonl"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			in, writer := io.Pipe()
			defer func() { _ = writer.Close() }()
			ctx, cancel := context.WithCancel(t.Context())
			root := newRoot()
			root.SetArgs(args)
			root.SetIn(in)
			root.SetOut(io.Discard)
			root.SetErr(io.Discard)
			done := make(chan error, 1)
			go func() { done <- root.ExecuteContext(ctx) }()
			if _, err := io.WriteString(writer, "{"); err != nil { // it reads
				t.Fatal(err)
			}
			cancel()
			select {
			case err := <-done:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("ended with: %v, want %v", err, context.Canceled)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("still waits for input")
			}
		})
	}
}

func TestInterruptibleReadsAll(t *testing.T) {
	text := strings.Repeat("0123456789", 20000)
	b, err := io.ReadAll(interruptible(t.Context(), strings.NewReader(text)))
	if err != nil || string(b) != text {
		t.Errorf("%d bytes, %v; want %d", len(b), err, len(text))
	}
	broken := errors.New("broken")
	if _, err := io.ReadAll(interruptible(t.Context(), io.MultiReader(strings.NewReader("x"), failing{broken}))); !errors.Is(err, broken) {
		t.Errorf("the reader's own failure became: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestReadWholeLimit(t *testing.T) {
	if b, err := readWhole(bytes.NewReader(make([]byte, 10)), "what", 10); err != nil || len(b) != 10 {
		t.Errorf("at the limit: %d bytes, %v", len(b), err)
	}
	if _, err := readWhole(bytes.NewReader(make([]byte, 11)), "what", 10); err == nil || !strings.Contains(err.Error(), "what has more than 10 bytes") {
		t.Errorf("one past the limit: %v", err)
	}
	if err := tokenizeText(io.Discard, &endless{left: maxInput + 1}, nil, false); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("a text one past the limit: %v", err)
	}
	if err := tokenizeLines(io.Discard, &endless{left: maxLine + 1}, nil, false); err == nil || !strings.Contains(err.Error(), "line 1, of at most 67108864 bytes") {
		t.Errorf("a line one past the limit: %v", err)
	}
}
