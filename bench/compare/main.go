// Command compare measures minfer and llama.cpp on the same files in turn, A B A B, and prints a markdown table of
// medians and ratios.
//
//	go run ./bench/compare -peer llama-bench a.gguf b.gguf
//
// The peer is a llama-bench program, or a Python script with the interface "bench MODEL -t T -p P -n N -r R" that prints
// one JSON line with pp_tok_s and tg_tok_s. Generation is measured with the given number of tokens in the context.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// A measure gives tokens per second of prompt evaluation and generation at one setting; 0 where it was not measured.
type measure func(model string, threads, prompt, generate int) (pp, tg float64, err error)

// A cell is one line of the table.
type cell struct {
	model            string
	threads          int
	name             string
	prompt, generate int
	ours, theirs     []float64
}

func run() error {
	minfer := flag.String("minfer", "minfer", "the minfer program")
	peer := flag.String("peer", "llama-bench", "llama-bench, or a Python script with a bench command")
	prompts := flag.String("p", "32,128,512,2048", "prompt tokens")
	depths := flag.String("d", "1,2048", "tokens in the context when generation is measured")
	generate := flag.Int("n", 32, "generated tokens")
	threads := flag.String("t", strconv.Itoa(runtime.NumCPU()), "threads")
	rounds := flag.Int("rounds", 5, "how often each program runs; medians are shown")
	flag.Parse()
	if flag.NArg() == 0 || *rounds < 1 || *generate < 1 {
		return errors.New("usage: compare [flags] MODEL.gguf...; -h lists the flags")
	}
	ps, err := numbers(*prompts)
	if err != nil {
		return err
	}
	ds, err := numbers(*depths)
	if err != nil {
		return err
	}
	ts, err := numbers(*threads)
	if err != nil {
		return err
	}
	a, b := ours(*minfer), theirs(*peer)
	fmt.Println("| model | threads | test | minfer t/s | llama.cpp t/s | ratio |")
	fmt.Println("| --- | ---: | --- | ---: | ---: | ---: |")
	for _, model := range flag.Args() {
		for _, t := range ts {
			var cells []*cell
			for _, p := range ps {
				cells = append(cells, &cell{model: model, threads: t, name: fmt.Sprintf("pp%d", p), prompt: p})
			}
			for _, d := range ds {
				cells = append(cells, &cell{model: model, threads: t, name: fmt.Sprintf("tg%d @ d%d", *generate, d), prompt: d, generate: *generate})
			}
			if err := alternate(cells, *rounds, a, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// alternate measures the cells of one model round by round, one program after the other, and prints their lines.
func alternate(cells []*cell, rounds int, a, b measure) error {
	for round := range rounds {
		for _, c := range cells {
			fmt.Fprintf(os.Stderr, "%s, %d threads, round %d/%d: %s\n", filepath.Base(c.model), c.threads, round+1, rounds, c.name)
			if err := c.add(a, &c.ours); err != nil {
				return err
			}
			if err := c.add(b, &c.theirs); err != nil {
				return err
			}
		}
	}
	for _, c := range cells {
		x, y := median(c.ours), median(c.theirs)
		fmt.Printf("| %s | %d | %s | %.1f | %.1f | %.2f |\n", strings.TrimSuffix(filepath.Base(c.model), ".gguf"), c.threads, c.name, x, y, x/y)
	}
	return nil
}

func (c *cell) add(m measure, to *[]float64) error {
	pp, tg, err := m(c.model, c.threads, c.prompt, c.generate)
	if err != nil {
		return err
	}
	if c.generate > 0 {
		pp = tg
	}
	*to = append(*to, pp)
	return nil
}

// ours measures with minfer bench.
func ours(program string) measure {
	return func(model string, threads, prompt, generate int) (pp, tg float64, err error) {
		args := []string{"bench", model, "-o", "json", "-r", "1", "-t", strconv.Itoa(threads)}
		if generate > 0 {
			args = append(args, "-p", "0", "-n", strconv.Itoa(generate), "-d", strconv.Itoa(prompt))
		} else {
			args = append(args, "-p", strconv.Itoa(prompt), "-n", "0")
		}
		var rows []struct {
			Rate float64 `json:"tok_s"`
		}
		if err := output(&rows, program, args...); err != nil {
			return 0, 0, err
		}
		if len(rows) != 1 {
			return 0, 0, fmt.Errorf("%s gave %d results", program, len(rows))
		}
		return rows[0].Rate, rows[0].Rate, nil
	}
}

// theirs measures with the peer.
func theirs(program string) measure {
	if strings.HasSuffix(program, ".py") {
		return func(model string, threads, prompt, generate int) (pp, tg float64, err error) {
			var row struct {
				PP []float64 `json:"pp_tok_s"`
				TG []float64 `json:"tg_tok_s"`
			}
			err = output(&row, "python3", program, "bench", model, "-r", "1", "-t", strconv.Itoa(threads), "-p", strconv.Itoa(prompt), "-n", strconv.Itoa(generate))
			return median(row.PP), median(row.TG), err
		}
	}
	return func(model string, threads, prompt, generate int) (pp, tg float64, err error) {
		args := []string{"-m", model, "-o", "json", "-r", "1", "-ngl", "0", "-t", strconv.Itoa(threads)}
		if generate > 0 {
			args = append(args, "-p", "0", "-n", strconv.Itoa(generate), "-d", strconv.Itoa(prompt))
		} else {
			args = append(args, "-p", strconv.Itoa(prompt), "-n", "0")
		}
		var rows []struct {
			Rate float64 `json:"avg_ts"`
		}
		if err := output(&rows, program, args...); err != nil {
			return 0, 0, err
		}
		if len(rows) != 1 {
			return 0, 0, fmt.Errorf("%s gave %d results", program, len(rows))
		}
		return rows[0].Rate, rows[0].Rate, nil
	}
}

// output runs a program and decodes the JSON on its standard output.
func output(into any, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return nil
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// numbers reads "1,2,3".
func numbers(list string) ([]int, error) {
	var ns []int
	for _, f := range strings.Split(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("'%s' is no list of positive numbers", list)
		}
		ns = append(ns, n)
	}
	return ns, nil
}
