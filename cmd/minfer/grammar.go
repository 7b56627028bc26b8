package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minfer-go/minfer/grammar"
)

// grammarFlags are the flags that give a grammar, in one of four forms.
type grammarFlags struct {
	grammarFile, grammarText, schemaFile, schemaText string

	flags *pflag.FlagSet
}

// register adds the flags to f; verb begins what each is said to do.
func (s *grammarFlags) register(f *pflag.FlagSet, verb string) {
	s.flags = f
	f.StringVar(&s.grammarFile, "grammar", "", verb+" the GBNF grammar in `FILE`")
	f.StringVar(&s.grammarText, "grammar-str", "", verb+" this `GBNF` grammar")
	f.StringVar(&s.schemaFile, "json-schema", "", verb+" the JSON Schema in `FILE`")
	f.StringVar(&s.schemaText, "json-schema-str", "", verb+" this JSON `SCHEMA`")
}

// compile compiles the grammar or schema that the flags give; nil without one.
func (s *grammarFlags) compile() (*grammar.Grammar, error) {
	var found *grammar.Grammar
	var by string
	for _, source := range []struct {
		flag    string
		value   string
		file    bool
		compile func(string) (*grammar.Grammar, error)
	}{
		{"grammar", s.grammarFile, true, grammar.ParseGBNF},
		{"grammar-str", s.grammarText, false, grammar.ParseGBNF},
		{"json-schema", s.schemaFile, true, schemaGrammar},
		{"json-schema-str", s.schemaText, false, schemaGrammar},
	} {
		if !s.flags.Changed(source.flag) {
			continue
		}
		if by != "" {
			return nil, fmt.Errorf("--%s and --%s exclude each other", by, source.flag)
		}
		by = source.flag
		text, name := source.value, "--"+source.flag
		if source.file {
			var err error
			if text, err = readLimited(source.value, grammar.MaxSource); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			name += " " + source.value
		}
		g, err := source.compile(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found = g
	}
	return found, nil
}

func schemaGrammar(text string) (*grammar.Grammar, error) {
	return grammar.FromJSONSchema([]byte(text))
}

// newGrammar is minfer grammar --grammar F|--json-schema F.
func newGrammar() *cobra.Command {
	var (
		language    grammarFlags
		show, jsonl bool
	)
	cmd := &cobra.Command{
		Use:   "grammar --grammar FILE | --json-schema FILE",
		Short: "Match text with a grammar or a JSON Schema",
		Long: `grammar says whether the text on standard input is one of a grammar or valid under
a JSON Schema. It needs no model. The exit code is 0 for a match;
otherwise it is 1, and standard error names the first byte that does not fit. One
line end after the text is passed over where the grammar has none.

With --jsonl, every line {"text": ...} of standard input gives a line
{"match": true} or {"match": false}; there the text is matched as it is.

With --print, nothing is read: the grammar is printed, a schema as the GBNF that
it becomes.`,
		Example: `  echo '{"age": 7}' | minfer grammar --json-schema person.json
  minfer grammar --json-schema person.json --print > person.gbnf
  minfer grammar --grammar person.gbnf --jsonl < texts.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := language.compile()
			if err != nil {
				return err
			}
			switch {
			case g == nil:
				return errors.New("grammar takes one of --grammar, --grammar-str, --json-schema and --json-schema-str")
			case show:
				_, err = io.WriteString(cmd.OutOrStdout(), g.GBNF())
				return err
			case jsonl:
				return matchLines(cmd.OutOrStdout(), stdin(cmd), g)
			}
			text, err := readWhole(stdin(cmd), "the text on standard input", maxInput)
			if err != nil {
				return err
			}
			return matchText(g, text)
		},
	}
	language.register(cmd.Flags(), "match with")
	cmd.Flags().BoolVar(&show, "print", false, "print the grammar in GBNF and match nothing")
	cmd.Flags().BoolVar(&jsonl, "jsonl", false, "read and write JSON lines")
	cmd.MarkFlagsMutuallyExclusive("print", "jsonl")
	return cmd
}

// matchText is nil for a text of the language, and for one that a single line end follows: most tools write one.
func matchText(g *grammar.Grammar, text []byte) error {
	err := g.Check(text)
	if short, ok := bytes.CutSuffix(text, []byte("\n")); err != nil && ok {
		short, _ = bytes.CutSuffix(short, []byte("\r"))
		if g.Check(short) == nil {
			return nil
		}
	}
	return err
}

// matchLines answers every line of r with one line on w.
func matchLines(w io.Writer, r io.Reader, g *grammar.Grammar) error {
	in := bufio.NewScanner(r)
	in.Buffer(nil, maxLine)
	out := bufio.NewWriter(w)
	line := 1
	for ; in.Scan(); line++ {
		if len(in.Bytes()) == 0 {
			continue
		}
		var row struct {
			Text *string `json:"text"`
		}
		err := json.Unmarshal(in.Bytes(), &row)
		if err == nil && row.Text == nil {
			err = errors.New(`no "text"`)
		}
		if err == nil {
			// A limit that ends the parses leaves the question open; it is no mismatch.
			if err = g.Check([]byte(*row.Text)); errors.Is(err, grammar.ErrRejected) && !errors.Is(err, grammar.ErrLimit) {
				_, err = fmt.Fprintln(out, `{"match":false}`)
			} else if err == nil {
				_, err = fmt.Fprintln(out, `{"match":true}`)
			}
		}
		if err != nil {
			return errors.Join(fmt.Errorf("line %d: %w", line, err), out.Flush())
		}
	}
	if err := in.Err(); err != nil {
		return errors.Join(fmt.Errorf("line %d, of at most %d bytes: %w", line, maxLine, err), out.Flush())
	}
	return out.Flush()
}
