package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// How many bytes are read of what comes from outside.
const (
	maxInput = 64 << 20 // a prompt, a text to tokenize, a file of token ids
	maxLine  = 64 << 20 // one line: of JSON, or of a conversation
)

// stdin is standard input for commands that read it to its end. A read cannot be called back, so it is left to a goroutine:
// an interrupt ends the command even while nothing comes.
func stdin(cmd *cobra.Command) io.Reader { return interruptible(cmd.Context(), cmd.InOrStdin()) }

// interruptible reads r until the context is done; reads then fail with its error. At most one read of r goes on behind.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	stop := context.AfterFunc(ctx, func() { in.CloseWithError(context.Cause(ctx)) })
	go func() {
		_, err := io.Copy(in, r)
		if stop() {
			in.CloseWithError(err)
		}
	}()
	return out
}

// readWhole reads at most limit bytes; more is an error, which names what was read.
func readWhole(r io.Reader, what string, limit int) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if len(b) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", what, limit)
	}
	return b, nil
}
