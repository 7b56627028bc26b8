package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/hub"
)

// How much of long metadata values is shown.
const (
	shownElements = 6
	shownBytes    = 120
)

// newInfo is minfer info MODEL.
func newInfo() *cobra.Command {
	var (
		engineOf engineFlags
		asJSON   bool
		memory   bool
	)
	cmd := &cobra.Command{
		Use:   "info MODEL",
		Short: "Show a model file's metadata and tensors, or whether it fits",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := hub.Open(args[0])
			if err != nil {
				return err
			}
			switch {
			case memory:
				err = printMemory(cmd.OutOrStdout(), cmd.ErrOrStderr(), f, engineOf)
			case asJSON:
				err = printInfoJSON(cmd.OutOrStdout(), f)
			default:
				err = printInfo(cmd.OutOrStdout(), f)
			}
			return errors.Join(err, f.Close())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object: every value whole")
	cmd.Flags().BoolVar(&memory, "memory", false, "print what running the model would take with the other flags, without loading it")
	engineOf.register(cmd.Flags())
	cmd.MarkFlagsMutuallyExclusive("json", "memory")
	return cmd
}

// printMemory prints the memory plan; a model over --mem-budget is an error.
func printMemory(w, notes io.Writer, f *gguf.File, flags engineFlags) error {
	o, err := flags.options(notes)
	if err != nil {
		return err
	}
	m, err := engine.Fit(f, o)
	mib := func(bytes int) float64 { return float64(bytes) / (1 << 20) }
	if m.Total() > 0 {
		fmt.Fprintf(w, "weights     %10.1f MiB\nKV cells    %10.1f MiB\nactivations %10.1f MiB (%.1f alive at once, %.1f between steps)\nscratch     %10.1f MiB\ntotal       %10.1f MiB\n",
			mib(m.Weights), mib(m.KV), mib(m.Pool), mib(m.Peak), mib(m.Live), mib(m.Scratch), mib(m.Total()))
	}
	if m.Budget > 0 {
		fmt.Fprintf(w, "budget      %10.1f MiB\nheadroom    %10.1f MiB\n", mib(m.Budget), mib(m.Headroom))
	}
	return err
}

func printInfo(w io.Writer, f *gguf.File) error {
	var elements, bytes int
	types := map[string]int{}
	var order []string
	for _, t := range f.Tensors() {
		elements += t.Elements()
		bytes += len(t.Data())
		if types[t.Type.String()] == 0 {
			order = append(order, t.Type.String())
		}
		types[t.Type.String()]++
	}
	fmt.Fprintf(w, "file: %s\ntensors: %d, %d parameters, %.1f MiB\ntypes:", f.Name(), len(f.Tensors()), elements, float64(bytes)/(1<<20))
	for _, t := range order {
		fmt.Fprintf(w, " %s×%d", t, types[t])
	}
	fmt.Fprintf(w, "\n\nmetadata:\n")
	for _, k := range f.Keys() {
		v, _ := f.Value(k)
		fmt.Fprintf(w, "  %s = %s\n", printable(k), v.Summary(shownElements, shownBytes))
	}
	fmt.Fprintf(w, "\ntensors:\n")
	for _, t := range f.Tensors() {
		if _, err := fmt.Fprintf(w, "  %-40s %-5s %v\n", printable(t.Name), t.Type, t.Shape); err != nil {
			return err
		}
	}
	return nil
}

// printable is a name out of a file as it may go to a terminal: quoted if it holds anything but visible characters.
func printable(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// printInfoJSON prints {"file", "metadata": {...}, "tensors": [{"name", "type", "shape", "bytes"}]}, keys in file order.
func printInfoJSON(w io.Writer, f *gguf.File) error {
	type tensor struct {
		Name  string `json:"name"`
		Type  string `json:"type"`
		Shape []int  `json:"shape"`
		Bytes int    `json:"bytes"`
	}
	tensors := []tensor{}
	for _, t := range f.Tensors() {
		tensors = append(tensors, tensor{t.Name, t.Type.String(), t.Shape, len(t.Data())})
	}
	meta := []byte("{")
	for i, k := range f.Keys() {
		v, _ := f.Value(k)
		key, err := json.Marshal(k)
		if err != nil {
			return err
		}
		value, err := json.Marshal(v.Any())
		if err != nil {
			return fmt.Errorf("metadata %s: %w", k, err)
		}
		if i > 0 {
			meta = append(meta, ',')
		}
		meta = append(append(append(meta, key...), ':'), value...)
	}
	meta = append(meta, '}')
	return json.NewEncoder(w).Encode(struct {
		File     string          `json:"file"`
		Metadata json.RawMessage `json:"metadata"`
		Tensors  []tensor        `json:"tensors"`
	}{f.Name(), meta, tensors})
}

// newList is minfer list.
func newList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the models of the cache",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			entries, err := hub.List()
			if err != nil {
				return err
			}
			for _, e := range entries {
				parts := ""
				if e.Parts > 1 {
					parts = fmt.Sprintf(" (%d parts)", e.Parts)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%-50s %9.1f MiB%s\n", e.Name, float64(e.Bytes)/(1<<20), parts)
			}
			if len(entries) == 0 {
				dir, err := hub.CacheDir()
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.ErrOrStderr(), "no models in %s\n", dir)
			}
			return nil
		},
	}
}
