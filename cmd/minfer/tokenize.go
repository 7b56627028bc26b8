package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/minfer-go/minfer/hub"
	"github.com/minfer-go/minfer/tokenizer"
)

// newTokenize is minfer tokenize MODEL.
func newTokenize() *cobra.Command {
	var jsonl, plain bool
	cmd := &cobra.Command{
		Use:   "tokenize MODEL",
		Short: "Turn text on standard input into token ids",
		Long: `tokenize prints the ids of the text on standard input, separated by spaces.
Control tokens in the text are recognised unless --no-special; none are added.
With --jsonl, every line {"text": ...} gives a line {"ids": [...]}.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := hub.Open(args[0])
			if err != nil {
				return err
			}
			t, err := tokenizer.New(f)
			if err == nil && jsonl {
				err = tokenizeLines(cmd.OutOrStdout(), stdin(cmd), t, !plain)
			} else if err == nil {
				err = tokenizeText(cmd.OutOrStdout(), stdin(cmd), t, !plain)
			}
			return errors.Join(err, f.Close())
		},
	}
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read and write JSON lines")
	cmd.Flags().BoolVar(&plain, "no-special", false, "control tokens in the text are plain text")
	return cmd
}

func tokenizeText(w io.Writer, r io.Reader, t *tokenizer.Tokenizer, special bool) error {
	text, err := readWhole(r, "the text on standard input", maxInput)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, strings.Trim(fmt.Sprint(t.Encode(string(text), special)), "[]"))
	return err
}

func tokenizeLines(w io.Writer, r io.Reader, t *tokenizer.Tokenizer, special bool) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	line := 1
	for ; in.Scan() && in.Err() == nil; line++ { // a read that fails leaves half a line
		if len(in.Bytes()) == 0 {
			continue
		}
		var row struct {
			Text *string `json:"text"`
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if row.Text == nil {
			return fmt.Errorf(`line %d: no "text"`, line)
		}
		ids := t.Encode(*row.Text, special)
		if ids == nil {
			ids = []int32{}
		}
		if err := enc.Encode(map[string][]int32{"ids": ids}); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return errors.Join(fmt.Errorf("line %d, of at most %d bytes: %w", line, maxLine, err), out.Flush())
	}
	return out.Flush()
}
