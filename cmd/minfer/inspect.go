package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info MODEL",
		Short: "Show a model file's metadata and tensors",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := hub.Open(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				err = printInfoJSON(cmd.OutOrStdout(), f)
			} else {
				err = printInfo(cmd.OutOrStdout(), f)
			}
			return errors.Join(err, f.Close())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object: every value whole")
	return cmd
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
		fmt.Fprintf(w, "  %s = %s\n", k, v.Summary(shownElements, shownBytes))
	}
	fmt.Fprintf(w, "\ntensors:\n")
	for _, t := range f.Tensors() {
		if _, err := fmt.Fprintf(w, "  %-40s %-5s %v\n", t.Name, t.Type, t.Shape); err != nil {
			return err
		}
	}
	return nil
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
