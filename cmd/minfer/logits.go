package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/hub"
	"github.com/minfer-go/minfer/sample"
)

// newLogits is minfer logits MODEL --tokens FILE --out FILE.
func newLogits() *cobra.Command {
	var (
		engineOf   = engineFlags{}
		tokensFile string
		outFile    string
		chunk      int
	)
	cmd := &cobra.Command{
		Use:   "logits MODEL --tokens FILE --out FILE",
		Short: "Write the logits of every position of a prompt",
		Long: `logits evaluates the token ids in --tokens (separated by spaces) and writes, for
every position, the logits of the whole vocabulary to --out: little-endian f32,
position by position.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			options, err := engineOf.options(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if chunk < 0 {
				return fmt.Errorf("--chunk %d must not be negative", chunk)
			}
			ids, err := readTokens(tokensFile)
			if err != nil {
				return err
			}
			if options.Context == 0 {
				options.Context = max(len(ids), 1)
			}
			f, err := hub.Open(args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			e, err := engine.Open(cmd.Context(), f, options)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.Close()) }()
			out := &floatFile{path: outFile}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			j, err := e.Submit(ctx, engine.Request{
				Prompt: ids, Chunk: chunk, Sampling: sample.Neutral(),
				Logits: func(_ int, logits []float32) {
					if out.write(logits); out.err != nil {
						cancel()
					}
				},
			})
			if err != nil {
				return err
			}
			j.Next()
			_, _, err = j.Result()
			if failed := out.close(); failed != nil {
				return failed
			}
			return err
		},
	}
	flags := cmd.Flags()
	engineOf.register(flags)
	engineOf.registerThreads(flags)
	flags.StringVar(&tokensFile, "tokens", "", "`FILE` with token ids separated by white space")
	flags.StringVar(&outFile, "out", "", "`FILE` that the logits go to")
	flags.IntVar(&chunk, "chunk", 0, "feed the prompt this many tokens at a time (default: --n-batch)")
	for _, name := range []string{"tokens", "out"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is registered above
		}
	}
	return cmd
}

// A floatFile is created with its first numbers: a prompt that is refused leaves what was there before. It keeps its first
// error and does nothing after it.
type floatFile struct {
	path string
	f    *os.File
	w    *bufio.Writer
	err  error
}

// write appends numbers, little-endian.
func (o *floatFile) write(xs []float32) {
	if o.f == nil && o.err == nil {
		if o.f, o.err = os.Create(o.path); o.err == nil {
			o.w = bufio.NewWriterSize(o.f, 1<<20)
		}
	}
	var b [4]byte
	for _, x := range xs {
		if o.err != nil {
			return
		}
		binary.LittleEndian.PutUint32(b[:], math.Float32bits(x))
		_, o.err = o.w.Write(b[:])
	}
}

// close ends the file and returns the first error of its life.
func (o *floatFile) close() error {
	if o.f == nil {
		return o.err
	}
	if o.err == nil {
		o.err = o.w.Flush()
	}
	return errors.Join(o.err, o.f.Close())
}

// readTokens reads ids separated by white space.
func readTokens(path string) ([]int32, error) {
	text, err := readLimited(path, maxInput)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, field := range strings.Fields(text) {
		id, err := strconv.ParseInt(field, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%s: token id '%s': %w", path, field, err)
		}
		ids = append(ids, int32(id))
	}
	return ids, nil
}
