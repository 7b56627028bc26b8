package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/hub"
)

// newGenerate is the root command: minfer MODEL [PROMPT].
func newGenerate() *cobra.Command {
	var (
		engineOf = engineFlags{}
		sampling = samplingFlags{}
		talk     conversationFlags
		draft    draftFlags
		raw      bool
		meta     bool
		template string
		kwargs   string
		system   string
		color    string
		dumpDOT  string
		dumpJSON string
	)
	cmd := &cobra.Command{
		Use:   "minfer MODEL [PROMPT]",
		Short: "Run language models from GGUF files on this machine",
		Long: `minfer runs a language model from a GGUF file and answers the prompt.

MODEL is a path, the name of a cached model (minfer list), or "tiny", the model
built into this program. Without PROMPT the prompt is read from standard input.`,
		Example: `  minfer tiny "Tell me a story about a brave fox."
  minfer qwen2.5-0.5b-instruct-q4_0.gguf "What is the capital of France?" --greedy -n 64
  echo "Once upon a time" | minfer tiny --no-template`,
		Args:          modelAndPrompt,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := engineOf.options(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := draft.check(cmd.Flags(), cmd.ErrOrStderr()); err != nil {
				return err
			}
			settings, err := sampling.settings()
			if err != nil {
				return err
			}
			settings.Raw, settings.System = raw, system
			if kwargs != "" {
				if err := json.Unmarshal([]byte(kwargs), &settings.Variables); err != nil {
					return fmt.Errorf("--chat-template-kwargs: %w", err)
				}
			}
			form, err := chatOptions(template)
			if err != nil {
				return err
			}
			if err := talk.check(cmd.Flags(), raw, dumpDOT != "" || dumpJSON != ""); err != nil {
				return err
			}
			out, err := newConsole(cmd.OutOrStdout(), cmd.ErrOrStderr(), color)
			if err != nil {
				return err
			}
			f, err := hub.Open(args[0])
			if err != nil {
				return err
			}
			if meta {
				if err := printInfo(cmd.OutOrStdout(), f); err != nil {
					return errors.Join(err, f.Close())
				}
			}
			prompt := ""
			if talk.on {
				prompt = strings.Join(args[1:], "")
			} else if prompt, err = promptOf(args[1:], stdin(cmd)); err != nil {
				return errors.Join(err, f.Close())
			}
			start := time.Now()
			opts := []minfer.Option{minfer.WithEngine(options), minfer.WithChat(form...)}
			if !raw {
				opts = append(opts, minfer.WithChatCheck())
			}
			m, err := minfer.Load(cmd.Context(), f, opts...)
			if err != nil {
				return errors.Join(err, f.Close())
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "Loaded %s in %.0f ms: %s\n", args[0], ms(time.Since(start)), m.Engine().Info())
			if notice := m.Format().Notice(); notice != "" && !raw {
				fmt.Fprintln(cmd.ErrOrStderr(), notice)
			}
			err = sampling.complete(m, &settings)
			switch {
			case err != nil:
			case talk.on:
				err = talk.run(cmd, m, out, prompt, settings)
			case dumpDOT != "" || dumpJSON != "":
				err = dumpGraph(cmd, m, prompt, settings, dumpDOT, dumpJSON)
			default:
				err = answer(cmd, m, out, prompt, settings)
			}
			return errors.Join(err, m.Close())
		},
	}
	flags := cmd.Flags()
	engineOf.register(flags)
	engineOf.registerThreads(flags)
	sampling.register(flags)
	talk.register(flags)
	draft.register(flags)
	flags.StringVar(&system, "system", "", "system message before the prompt or the conversation")
	flags.StringVar(&template, "chat-template", "", "use the chat template in `FILE` in place of the model's own")
	flags.StringVar(&kwargs, "chat-template-kwargs", "", "more variables of the chat template: a `JSON` object such as {\"enable_thinking\": false}")
	flags.StringVar(&color, "color", "auto", "colour of reasoning: on, off, or auto for terminals; also MINFER_COLOR")
	flags.BoolVar(&raw, "no-template", false, "send the prompt as it is; control tokens in it are recognised")
	flags.BoolVar(&meta, "meta", false, "print the file's metadata and tensors before answering")
	flags.StringVar(&dumpDOT, "dump-graph", "", "write the prompt's compute graph to `FILE` as Graphviz DOT and exit")
	flags.StringVar(&dumpJSON, "dump-graph-json", "", "write the prompt's compute graph to `FILE` as JSON and exit")
	return cmd
}

// modelAndPrompt says what is wrong with the arguments of the root command.
func modelAndPrompt(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return errors.New("no MODEL is named ('minfer help' shows how)")
	case len(args) > 2:
		return fmt.Errorf("one MODEL and at most one PROMPT, not %d arguments: quote a prompt of several words", len(args))
	}
	return nil
}

// promptOf is the prompt argument, or what standard input holds, without its last line end.
func promptOf(args []string, in io.Reader) (string, error) {
	if len(args) > 0 {
		return args[0], nil
	}
	b, err := readWhole(in, "the prompt on standard input", maxInput)
	if err != nil {
		return "", err
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	if text == "" {
		return "", errors.New("the prompt is empty: give one as an argument or on standard input")
	}
	return text, nil
}

// answer streams the reply to standard output and the timing to standard error.
func answer(cmd *cobra.Command, m *minfer.Model, out *console, prompt string, s minfer.Settings) error {
	start := time.Now()
	g, err := m.Generate(cmd.Context(), prompt, minfer.WithSettings(s))
	if err != nil {
		return err
	}
	for span := range g.Spans() {
		if err := out.span(span); err != nil {
			return err
		}
	}
	if err := out.endReply(); err != nil {
		return err
	}
	if s := g.Stats(); s.Generated > 0 || g.Err() == nil { // a prompt that was not evaluated whole has no speed
		printTimes(cmd.ErrOrStderr(), s, time.Since(start))
	}
	printOpTimes(cmd.ErrOrStderr(), m.Engine().OpTimes())
	return g.Err()
}

// printOpTimes prints the table of MINFER_OP_TIMING, if there is one.
func printOpTimes(w io.Writer, times []backend.OpTime) {
	var all time.Duration
	for _, t := range times {
		all += t.Time
	}
	if all == 0 {
		return
	}
	fmt.Fprintf(w, "\n%10s %6s %9s %10s  %s\n", "ms", "%", "calls", "µs/call", "op")
	for _, t := range times {
		fmt.Fprintf(w, "%10.2f %6.2f %9d %10.2f  %s\n", ms(t.Time), 100*float64(t.Time)/float64(all), t.Calls,
			1000*ms(t.Time)/float64(max(t.Calls, 1)), t.Op)
	}
}

// printTimes prints the timing lines. Generated counts decode steps alone, as llama-bench does; the first token comes
// from the prefill.
func printTimes(w io.Writer, s engine.Stats, total time.Duration) {
	fmt.Fprintf(w, "\nPrefill:   %5d tokens in %8.1f ms (%.1f tok/s)\n", s.Prompt, ms(s.Prefill), rate(s.Prompt, s.Prefill))
	fmt.Fprintf(w, "Generated: %5d tokens in %8.1f ms (%.1f tok/s)\n", s.Generated, ms(s.Decode), rate(s.Generated-1, s.Decode))
	fmt.Fprintf(w, "Total:     %5d tokens in %8.1f ms (%.1f tok/s)\n", s.Prompt+s.Generated, ms(total), rate(s.Prompt+s.Generated, total))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func rate(tokens int, d time.Duration) float64 {
	if d <= 0 || tokens < 0 {
		return 0
	}
	return float64(tokens) / d.Seconds()
}

// dumpGraph writes the graph of the prompt's prefill.
func dumpGraph(cmd *cobra.Command, m *minfer.Model, prompt string, s minfer.Settings, dot, json string) error {
	p, err := m.Prompt(cmd.Context(), prompt, s)
	if err != nil {
		return err
	}
	g, targets, err := m.Engine().Graph(len(p.Tokens))
	if err != nil {
		return err
	}
	e := graph.Export(g, m.File().Name(), targets)
	write := func(path string, to func(io.Writer) error) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		return errors.Join(to(f), f.Close())
	}
	if dot != "" {
		if err := write(dot, e.WriteDOT); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Graph DOT exported to %s (%d nodes)\n", dot, len(e.Nodes))
	}
	if json != "" {
		if err := write(json, e.WriteJSON); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "Graph JSON exported to %s (%d nodes, %s)\n", json, len(e.Nodes), e.Kind)
	}
	return nil
}
