package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minfer-go/minfer/bench"
	"github.com/minfer-go/minfer/hub"
)

// newBench is minfer bench MODEL...
func newBench() *cobra.Command {
	var (
		engineOf = engineFlags{}
		c        bench.Config
		threads  []int
		combined []string
		output   string
	)
	cmd := &cobra.Command{
		Use:   "bench MODEL...",
		Short: "Measure how fast models run",
		Long: `bench measures prompt evaluation (pp) and generation (tg) in tokens per second:
mean ± standard deviation over -r repetitions after one that is not timed. Every
repetition begins with an empty context, or after -d tokens of one.

For generation it also reports the bytes of weights and KV cells read per second,
and what share that is of the rate at which the same weights are read with nothing else
to do, measured just before each repetition.`,
		Example: `  minfer bench tiny
  minfer bench -p 32,512 -n 64 -d 0,2048 -r 5 -t 1,2 a.gguf b.gguf -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := engineOf.options(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			for _, pg := range combined {
				var p, n int
				if _, err := fmt.Sscanf(pg, "%d,%d", &p, &n); err != nil || p < 1 || n < 1 {
					return fmt.Errorf("--pg '%s' must be two positive numbers such as 512,64", pg)
				}
				c.Combined = append(c.Combined, [2]int{p, n})
			}
			if len(threads) == 0 {
				threads = []int{0}
			}
			var results []bench.Result
			for _, name := range args {
				for _, t := range threads {
					if t < 0 {
						return fmt.Errorf("--threads %d must not be negative", t)
					}
					options.Threads = t
					c.Engine, c.Context = options, options.Context
					f, err := hub.Open(name)
					if err != nil {
						return err
					}
					r, err := bench.Run(cmd.Context(), f, c)
					if err := errors.Join(err, f.Close()); err != nil {
						return err
					}
					printOpTimes(cmd.ErrOrStderr(), r.OpTimes)
					results = append(results, r)
				}
			}
			return bench.Write(cmd.OutOrStdout(), output, results)
		},
	}
	flags := cmd.Flags()
	engineOf.register(flags)
	flags.IntSliceVarP(&threads, "threads", "t", nil, "CPU worker threads; several to compare them")
	flags.IntSliceVarP(&c.Prompts, "n-prompt", "p", []int{512}, "prompt tokens of pp tests; 0 for none")
	flags.IntSliceVarP(&c.Generates, "n-gen", "n", []int{128}, "generated tokens of tg tests; 0 for none")
	flags.StringArrayVar(&combined, "pg", nil, "`P,N`: a test that times a prompt of P and N generated tokens together; repeatable")
	flags.IntSliceVarP(&c.Depths, "depth", "d", []int{0}, "tokens in the context before each test")
	flags.IntSliceVarP(&c.Streams, "streams", "s", []int{1}, "sequences that generate together in tg tests")
	flags.IntVarP(&c.Reps, "reps", "r", 5, "timed repetitions of each test")
	flags.StringVarP(&output, "output", "o", "md", "format: "+strings.Join(bench.Formats(), ", "))
	cmd.AddCommand(newBenchServe())
	return cmd
}
