package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/minfer-go/minfer/chat"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/hub"
	"github.com/minfer-go/minfer/jinja"
	"github.com/minfer-go/minfer/tokenizer"
)

// maxTemplate bounds a template file; it is read before its size is checked by the template engine.
const maxTemplate = jinja.MaxSourceBytes

// clockLayout is the form of MINFER_NOW: local time without a zone.
const clockLayout = "2006-01-02T15:04:05"

// templateClock is the clock that templates read: the time in MINFER_NOW if it is set.
func templateClock() (func() time.Time, error) {
	text := os.Getenv("MINFER_NOW")
	if text == "" {
		return time.Now, nil
	}
	now, err := time.ParseInLocation(clockLayout, text, time.Local)
	if err != nil {
		return nil, fmt.Errorf("MINFER_NOW: %q is no time such as 2026-01-02T03:04:05", text)
	}
	return func() time.Time { return now }, nil
}

// chatOptions sets up the chat form of a model, with the template of a file in place of its own if one is given.
func chatOptions(templateFile string) ([]chat.Option, error) {
	now, err := templateClock()
	if err != nil {
		return nil, err
	}
	opts := []chat.Option{chat.WithClock(now)}
	if templateFile != "" {
		text, err := readLimited(templateFile, maxTemplate)
		if err != nil {
			return nil, err
		}
		opts = append(opts, chat.WithTemplate(templateFile, text))
	}
	return opts, nil
}

// newTemplate is minfer template MODEL|--file T.jinja.
func newTemplate() *cobra.Command {
	var (
		file  string
		jsonl bool
	)
	cmd := &cobra.Command{
		Use:   "template MODEL | --file T.jinja",
		Short: "Render a chat template",
		Long: `template renders the chat template of a model, or of a file, with the variables of
the JSON object on standard input: messages, tools, documents,
add_generation_prompt and whatever else the template reads. The prompt is
printed as it is, without a line end of its own. A model's template also gets
the special tokens of the model (bos_token, eos_token, ...) where the object does
not set them.

With --jsonl, every line of standard input gives a line {"output": ...} or
{"error": ...}.

MINFER_NOW=2026-01-02T03:04:05 sets the clock that the template reads.`,
		Example: `  echo '{"messages": [{"role": "user", "content": "Hi"}], "add_generation_prompt": true}' | minfer template tiny
  minfer template --file qwen3.jinja --jsonl < requests.jsonl`,
		Args: func(_ *cobra.Command, args []string) error {
			if (file != "") == (len(args) == 1) || len(args) > 1 {
				return errors.New("template takes either a model or --file")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var render func(context.Context, []byte) (string, error)
			if file != "" {
				render, err = fileRenderer(file)
			} else {
				f, openErr := hub.Open(args[0])
				if openErr != nil {
					return openErr
				}
				defer func() { err = errors.Join(err, f.Close()) }()
				render, err = modelRenderer(f, cmd.ErrOrStderr())
			}
			if err != nil {
				return err
			}
			if jsonl {
				return renderLines(cmd.Context(), cmd.OutOrStdout(), stdin(cmd), render)
			}
			data, err := readWhole(stdin(cmd), "the request", maxLine)
			if err != nil {
				return err
			}
			text, err := render(cmd.Context(), data)
			if err != nil {
				return err
			}
			_, err = io.WriteString(cmd.OutOrStdout(), text)
			return err
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "render the template in this `FILE`; nothing is added to the variables")
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read and write JSON lines")
	return cmd
}

// fileRenderer renders a template file with the variables of a request alone.
func fileRenderer(path string) (func(context.Context, []byte) (string, error), error) {
	now, err := templateClock()
	if err != nil {
		return nil, err
	}
	text, err := readLimited(path, maxTemplate)
	if err != nil {
		return nil, err
	}
	t, err := jinja.Parse(path, text, jinja.WithClock(now))
	return func(ctx context.Context, data []byte) (string, error) {
		if err != nil {
			return "", err
		}
		v, err := jinja.FromJSON(data)
		if err != nil {
			return "", err
		}
		return t.Render(ctx, v)
	}, nil
}

// modelRenderer renders the template of a model.
func modelRenderer(f *gguf.File, notices io.Writer) (func(context.Context, []byte) (string, error), error) {
	t, err := tokenizer.New(f)
	if err != nil {
		return nil, err
	}
	opts, err := chatOptions("")
	if err != nil {
		return nil, err
	}
	c, err := chat.New(f, t, opts...)
	if err != nil {
		return nil, err
	}
	if c.Notice() != "" {
		fmt.Fprintln(notices, c.Notice())
	}
	return c.RenderJSON, nil
}

// renderLines answers every line of r with one line on w.
func renderLines(ctx context.Context, w io.Writer, r io.Reader, render func(context.Context, []byte) (string, error)) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for in.Scan() {
		if len(in.Bytes()) == 0 {
			continue
		}
		text, err := render(ctx, in.Bytes())
		answer := map[string]string{"output": text}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			answer = map[string]string{"error": err.Error()}
		}
		if err := enc.Encode(answer); err != nil {
			return err
		}
	}
	return errors.Join(in.Err(), out.Flush())
}
