package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"
)

// draftFlags are the flags of speculative decoding, which this build does not have.
type draftFlags struct {
	model    string
	tokens   int
	adaptive bool
}

// defaultDraft is how many tokens a draft model proposes at once.
const defaultDraft = 2

func (d *draftFlags) register(f *pflag.FlagSet) {
	f.StringVar(&d.model, "spec-draft", "", "draft `MODEL` of speculative decoding; refused, this build has none")
	f.IntVar(&d.tokens, "spec-draft-n", defaultDraft, "tokens drafted at once; no effect without --spec-draft")
	f.BoolVar(&d.adaptive, "spec-draft-adaptive", false, "adapt the number of drafted tokens; no effect without --spec-draft")
}

// check refuses a draft model, and tells of flags that have no effect without one.
func (d *draftFlags) check(f *pflag.FlagSet, notes io.Writer) error {
	if f.Changed("spec-draft") {
		return fmt.Errorf("--spec-draft %s: this build has no speculative decoding; the model generates alone without the flag", d.model)
	}
	if d.tokens < 1 {
		return fmt.Errorf("--spec-draft-n %d must be at least 1", d.tokens)
	}
	for _, name := range []string{"spec-draft-n", "spec-draft-adaptive"} {
		if f.Changed(name) {
			fmt.Fprintf(notes, "--%s has no effect without --spec-draft\n", name)
		}
	}
	return nil
}
