package bench

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// Formats lists the names that Write knows.
func Formats() []string { return []string{"md", "csv", "json"} }

// A row is one line of a report; the JSON names are its fields in csv too.
type row struct {
	Model      string  `json:"model"`
	Bytes      int     `json:"model_bytes"`
	Parameters int     `json:"parameters"`
	Device     string  `json:"device"`
	Test       string  `json:"test"`
	Prompt     int     `json:"n_prompt"`
	Generate   int     `json:"n_gen"`
	Depth      int     `json:"n_depth"`
	Streams    int     `json:"n_streams"`
	Rate       float64 `json:"tok_s"`
	Stddev     float64 `json:"tok_s_stddev"`
	GBs        float64 `json:"gb_s"`           // weights and cells read by generation, 0 for prompts
	Stream     float64 `json:"stream_gb_s"`    // reading the weights and doing nothing else, just before each repetition
	Percent    float64 `json:"stream_percent"` // GBs of Stream
	LoadMs     float64 `json:"load_ms"`
	Resident   int     `json:"resident_peak_bytes"`
}

func rows(results []Result) []row {
	var all []row
	for _, r := range results {
		for _, t := range r.Tests {
			mean, stddev := t.Mean()
			w := row{
				Model: strings.TrimSuffix(filepath.Base(r.Model), ".gguf"), Bytes: r.FileBytes, Parameters: r.Parameters, Device: r.Info,
				Test: t.Name(), Prompt: t.Prompt, Generate: t.Generate, Depth: t.Depth, Streams: max(1, t.Streams), Rate: mean, Stddev: stddev,
				Stream: t.Stream() / 1e9, LoadMs: float64(r.Load.Microseconds()) / 1000, Resident: r.Resident,
			}
			if t.Prompt == 0 {
				w.GBs = mean / float64(w.Streams) * float64(t.Bytes) / 1e9
				if w.Stream > 0 {
					w.Percent = 100 * w.GBs / w.Stream
				}
			}
			all = append(all, w)
		}
	}
	return all
}

// Write prints results as a markdown table, csv with a header, or a JSON array.
func Write(w io.Writer, format string, results []Result) error {
	switch format {
	case "md":
		return writeMarkdown(w, rows(results))
	case "csv":
		return writeCSV(w, rows(results))
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(rows(results))
	}
	return fmt.Errorf("%w: output format '%s'; known are %s", ErrConfig, format, strings.Join(Formats(), ", "))
}

func writeMarkdown(w io.Writer, rows []row) error {
	const layout = "| %-28s | %10s | %9s | %-30s | %14s | %18s | %6s | %9s | %9s | %9s |\n"
	fmt.Fprintf(w, layout, "model", "size", "params", "device", "test", "t/s", "GB/s", "of stream", "load", "resident")
	fmt.Fprintf(w, "| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, r := range rows {
		gbs, percent := "", ""
		if r.GBs > 0 {
			gbs, percent = fmt.Sprintf("%.1f", r.GBs), fmt.Sprintf("%.0f %%", r.Percent)
		}
		if _, err := fmt.Fprintf(w, layout, r.Model, fmt.Sprintf("%.1f MiB", float64(r.Bytes)/(1<<20)),
			fmt.Sprintf("%.1f M", float64(r.Parameters)/1e6), r.Device, r.Test, fmt.Sprintf("%.2f ± %.2f", r.Rate, r.Stddev), gbs, percent,
			fmt.Sprintf("%.0f ms", r.LoadMs), fmt.Sprintf("%.0f MiB", float64(r.Resident)/(1<<20))); err != nil {
			return err
		}
	}
	return nil
}

func writeCSV(w io.Writer, rows []row) error {
	out := csv.NewWriter(w)
	lines := [][]string{{
		"model", "model_bytes", "parameters", "device", "test", "n_prompt", "n_gen", "n_depth", "n_streams", "tok_s", "tok_s_stddev", "gb_s",
		"stream_gb_s", "stream_percent", "load_ms", "resident_peak_bytes",
	}}
	f := func(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
	for _, r := range rows {
		lines = append(lines, []string{
			r.Model, strconv.Itoa(r.Bytes), strconv.Itoa(r.Parameters), r.Device, r.Test, strconv.Itoa(r.Prompt), strconv.Itoa(r.Generate),
			strconv.Itoa(r.Depth), strconv.Itoa(r.Streams), f(r.Rate), f(r.Stddev), f(r.GBs), f(r.Stream), f(r.Percent), f(r.LoadMs), strconv.Itoa(r.Resident),
		})
	}
	return out.WriteAll(lines)
}
