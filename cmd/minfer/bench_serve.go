package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/bench/load"
	"github.com/minfer-go/minfer/hub"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/server"
)

// A target is a server to measure.
type target struct{ name, url string }

// newBenchServe is minfer bench serve [MODEL].
func newBenchServe() *cobra.Command {
	var (
		engineOf = engineFlags{}
		c        load.Config
		clients  []int
		slots    int
		urls     []string
		output   string
	)
	cmd := &cobra.Command{
		Use:   "serve [MODEL]",
		Short: "Measure a server under load",
		Long: `serve puts load on a server and prints what clients see: tokens per second over all
of them, the time to the first token and between tokens (percentiles, in
milliseconds), and the share of prompt tokens that the server had cached. Each
number of clients is measured with distinct prompts and with prompts that share
their first --shared words.

It serves MODEL itself, on a port of this machine, and measures every --url
beside it: any server with OpenAI's streaming /v1/completions.`,
		Example: `  minfer bench serve tiny
  minfer bench serve model.gguf --clients 1,8 --rate 2 --url llama.cpp=http://127.0.0.1:8081`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "md" && output != "json" {
				return fmt.Errorf("--output '%s' is neither md nor json", output)
			}
			targets, err := namedURLs(urls)
			if err != nil {
				return err
			}
			if len(args) == 1 {
				options, err := engineOf.options(cmd.ErrOrStderr())
				if err != nil {
					return err
				}
				options.Sequences = slots
				own, stop, err := serveForLoad(cmd.Context(), args[0], minfer.WithEngine(options))
				if err != nil {
					return err
				}
				defer stop()
				targets = append([]target{own}, targets...)
			}
			if len(targets) == 0 {
				return errors.New("there is neither a model nor a --url to measure")
			}
			return measure(cmd, c, clients, targets, output)
		},
	}
	flags := cmd.Flags()
	engineOf.register(flags)
	engineOf.registerThreads(flags)
	flags.IntVar(&slots, "n-slots", 32, "most requests that the served MODEL runs at once")
	flags.IntSliceVar(&clients, "clients", []int{1, 4, 8, 32}, "most requests at once; several to compare them")
	flags.IntVar(&c.Requests, "requests", 64, "requests of each measurement")
	flags.Float64Var(&c.Rate, "rate", 0, "requests per `SECOND` that arrive, at random times; 0: each client asks again at once")
	flags.IntVar(&c.Words, "words", 96, "words of a prompt")
	flags.IntVar(&c.Shared, "shared", 80, "of them, the same in every prompt of the second measurement; 0 leaves it out")
	flags.IntVarP(&c.MaxTokens, "n-gen", "n", 32, "tokens of a reply")
	flags.Uint64Var(&c.Seed, "seed", 1, "seed of prompts and arrivals")
	flags.StringArrayVar(&urls, "url", nil, "measure the server at `NAME=URL` too; repeatable")
	flags.StringVarP(&output, "output", "o", "md", "format: md or json")
	return cmd
}

// namedURLs reads NAME=URL.
func namedURLs(texts []string) ([]target, error) {
	var all []target
	for _, text := range texts {
		name, url, ok := strings.Cut(text, "=")
		if !ok || name == "" || !strings.HasPrefix(url, "http") {
			return nil, fmt.Errorf("--url '%s' is no NAME=URL such as llama.cpp=http://127.0.0.1:8081", text)
		}
		all = append(all, target{name, url})
	}
	return all, nil
}

// serveForLoad serves a model on a free port until stop is called.
func serveForLoad(ctx context.Context, name string, opts ...minfer.Option) (own target, stop func(), err error) {
	f, err := hub.Open(name)
	if err != nil {
		return own, nil, err
	}
	m, err := minfer.Load(ctx, f, opts...)
	if err != nil {
		return own, nil, errors.Join(err, f.Close())
	}
	served := server.Model{Name: server.ModelName(name), File: f, Tokens: m.Tokenizer(), Format: m.Format(), Engine: m.Engine()}
	s, err := server.New(ctx, served, server.Options{Version: version(), Sampling: sample.Default()})
	if err != nil {
		return own, nil, errors.Join(err, m.Close())
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return own, nil, errors.Join(err, m.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(ctx, l) // clients see what fails
	}()
	return target{"minfer", "http://" + l.Addr().String()}, func() {
		cancel()
		<-done
		_ = m.Close() // nothing is left to lose
	}, nil
}

// measure runs every combination and prints the results: rows of a table at the end, lines of JSON as they come.
func measure(cmd *cobra.Command, c load.Config, clients []int, targets []target, output string) error {
	var rows []load.Row
	seed := c.Seed
	for _, shared := range []int{0, c.Shared} {
		for _, n := range clients {
			seed++
			for _, t := range targets {
				one := c
				one.URL, one.Clients, one.Shared, one.Seed = t.url, n, shared, seed
				result, err := load.Run(cmd.Context(), one)
				if err != nil {
					return err
				}
				kind := "distinct"
				if shared > 0 {
					kind = fmt.Sprintf("%d of %d shared", shared, c.Words)
				}
				rows = append(rows, load.Row{Server: t.name, Prompt: kind, Config: one, Result: result})
				if result.Failed > 0 {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s, %d clients: %d of %d failed: %s\n", t.name, n, result.Failed, result.Requests, result.FirstError)
				}
				if output == "json" {
					if err := rows[len(rows)-1].WriteJSON(cmd.OutOrStdout()); err != nil {
						return err
					}
				}
			}
		}
		if c.Shared == 0 {
			break
		}
	}
	if output == "json" {
		return nil
	}
	return load.WriteMarkdown(cmd.OutOrStdout(), rows)
}
