package load

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// A Row is a result with what it was measured with.
type Row struct {
	Server string
	Prompt string // how the prompts are alike
	Config Config
	Result *Result
}

// WriteMarkdown writes rows as a table. Times are in milliseconds.
func WriteMarkdown(w io.Writer, rows []Row) error {
	if _, err := fmt.Fprint(w, "| server | prompts | clients | rate | failed | tok/s | req/s | cached | first p50 | p90 | p99 | between p50 | p90 | p99 |\n"+
		"|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n"); err != nil {
		return err
	}
	for _, row := range rows {
		r, rate := row.Result, "closed"
		if row.Config.Rate > 0 {
			rate = fmt.Sprintf("%.4g/s", row.Config.Rate)
		}
		cached := 0.0
		if r.Prompt > 0 {
			cached = 100 * float64(r.Cached) / float64(r.Prompt)
		}
		if _, err := fmt.Fprintf(w, "| %s | %s | %d | %s | %d | %.1f | %.2f | %.0f%% |", row.Server, row.Prompt, row.Config.Clients, rate, r.Failed,
			r.TokensPerSecond, r.RequestsPerSecond, cached); err != nil {
			return err
		}
		for _, times := range [][]time.Duration{r.First, r.Between} {
			for _, p := range []float64{50, 90, 99} {
				if _, err := fmt.Fprintf(w, " %.2f |", float64(Percentile(times, p).Microseconds())/1000); err != nil {
					return err
				}
			}
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes a row on a line, its times in seconds.
func (row Row) WriteJSON(w io.Writer) error {
	r := row.Result
	out := map[string]any{
		"server": row.Server, "prompts": row.Prompt, "clients": row.Config.Clients, "rate": row.Config.Rate, "requests": r.Requests, "failed": r.Failed,
		"words": row.Config.Words, "shared": row.Config.Shared, "max_tokens": row.Config.MaxTokens, "seconds": r.Took.Seconds(),
		"prompt_tokens": r.Prompt, "cached_tokens": r.Cached, "tokens": r.Tokens, "tokens_per_second": r.TokensPerSecond,
	}
	for name, times := range map[string][]time.Duration{"first": r.First, "between": r.Between} {
		for _, p := range []float64{50, 90, 99} {
			out[fmt.Sprintf("%s_p%.0f", name, p)] = Percentile(times, p).Seconds()
		}
	}
	return json.NewEncoder(w).Encode(out)
}
