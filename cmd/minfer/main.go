// Command minfer runs language models from GGUF files: it answers a prompt in the terminal and looks into models.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/minfer-go/minfer/hub"
)

// Exit codes: 0 for success, exitError for any refusal or failure, exitInterrupt when the user stopped the run.
const (
	exitError     = 1
	exitInterrupt = 130
)

func main() { os.Exit(run(os.Args[1:])) }

// run executes a command line and returns the exit code.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the program at once
	if err := lacking(args); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return exitError
	}
	root := newRoot()
	root.SetArgs(spellOut(args, root.Flags()))
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		return exitInterrupt
	}
	fmt.Fprintln(os.Stderr, "Error:", err)
	return exitError
}

func newRoot() *cobra.Command {
	root := newGenerate()
	root.Version = version()
	root.AddCommand(newTokenize(), newLogits(), newInfo(), newList(), newBench(), newTemplate(), newGrammar(), newServe())
	return root
}

// lacks are commands that people know from other programs and that this build does not have.
var lacks = map[string]string{
	"convert": "convert models", "quantize": "quantize models", "split": "split models", "download": "download models",
	"viz": "show graphs in a browser (--dump-graph writes one)", "specverify": "decode speculatively",
}

// lacking refuses such a command by name, before its arguments are taken for a model and a prompt.
func lacking(args []string) error {
	if len(args) == 0 || lacks[args[0]] == "" {
		return nil
	}
	if _, err := hub.Resolve(args[0]); err == nil {
		return nil // a model of that name
	}
	return fmt.Errorf("there is no command '%s': this build does not %s ('minfer help' lists the commands)", args[0], lacks[args[0]])
}
