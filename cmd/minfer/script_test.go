package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/internal/builtin"
)

var update = flag.Bool("update", false, "rewrite the files that scripts compare output with")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"minfer": main})
}

// TestScripts runs the command lines in testdata/script, each against the real program in an empty directory. The
// variable MODELS is a directory with model files, good and bad.
func TestScripts(t *testing.T) {
	models := t.TempDir()
	writeModels(t, models)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("MODELS", models)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, "cache"))
			e.Setenv("HELP", absolute(t, "testdata", "help"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"interrupt": interrupt,
			"json":      isJSON,
			"floats":    floats,
			"sameline":  sameLine,
			"golden":    golden,
			"serves":    serves,
		},
	})
}

func absolute(t *testing.T, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// exits CODE PROGRAM ARGS... runs a program that must end with an exit code. Its output can be inspected as after exec.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	have := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		have = exit.ExitCode()
	}
	if have != want {
		ts.Fatalf("exit code %d, want %d", have, want)
	}
}

// interrupt ARGS... starts minfer, sends it an interrupt once it has written to standard output, and checks that it
// ends with code 130 and no complaint.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	if runtime.GOOS == "windows" {
		ts.Logf("this system cannot send an interrupt to one process")
		return
	}
	program := "minfer"
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, program); exists(path) {
			program = path
			break
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = ts.MkAbs(".")
	// The reference path is slow enough that the reply cannot end before the interrupt arrives.
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+ts.Getenv("XDG_CACHE_HOME"), "MINFER_F32_ACTIVATIONS=1")
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	ts.Check(cmd.Start())
	_, err = io.ReadFull(out, make([]byte, 1))
	ts.Check(err)
	ts.Check(cmd.Process.Signal(os.Interrupt))
	_, err = io.Copy(io.Discard, out)
	ts.Check(err)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupt {
		ts.Fatalf("after an interrupt: %v, want exit code %d\n%s", err, exitInterrupt, stderr.String())
	}
	if strings.Contains(stderr.String(), "Error") {
		ts.Fatalf("an interrupt is no error:\n%s", stderr.String())
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isJSON FILE KEYS... checks that a file is one JSON object with the keys, and no others if any are given.
func isJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: json FILE KEYS...")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &object); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	var have []string
	for k := range object {
		have = append(have, k)
	}
	slices.Sort(have)
	want := slices.Sorted(slices.Values(args[1:]))
	if len(want) > 0 && !slices.Equal(have, want) {
		ts.Fatalf("%s has the keys %v, want %v", args[0], have, want)
	}
}

// floats FILE COUNT checks that a file holds COUNT finite little-endian float32 numbers that are not all equal.
func floats(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: floats FILE COUNT")
	}
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	b := []byte(ts.ReadFile(args[0]))
	if len(b) != 4*want {
		ts.Fatalf("%s has %d bytes, want %d", args[0], len(b), 4*want)
	}
	low, high := math.Inf(1), math.Inf(-1)
	for i := range want {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		if math.IsNaN(x) || math.IsInf(x, 0) {
			ts.Fatalf("%s: number %d is %g", args[0], i, x)
		}
		low, high = min(low, x), max(high, x)
	}
	if low == high {
		ts.Fatalf("%s: all numbers are %g", args[0], low)
	}
}

// sameLine A B checks that two texts are equal up to white space at their ends.
func sameLine(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: sameline A B")
	}
	a, b := strings.TrimSpace(ts.ReadFile(args[0])), strings.TrimSpace(ts.ReadFile(args[1]))
	if (a == b) == neg {
		ts.Fatalf("%s: %q\n%s: %q", args[0], a, args[1], b)
	}
}

// golden NAME compares standard output with testdata/help/NAME.
func golden(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: golden NAME")
	}
	path, have := filepath.Join(ts.Getenv("HELP"), args[0]), ts.ReadFile("stdout")
	if *update {
		ts.Check(os.WriteFile(path, []byte(have), 0o644))
	}
	want, err := os.ReadFile(path)
	ts.Check(err)
	if have != strings.ReplaceAll(string(want), "\r\n", "\n") {
		ts.Fatalf("%s differs from the output (go test ./cmd/minfer -update rewrites it):\n%s", path, have)
	}
}

// writeModels writes the files that scripts name: the built-in model whole, in three parts, and with faults.
func writeModels(t *testing.T, dir string) {
	t.Helper()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path(name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tiny := builtin.Tiny()
	write("whole.gguf", tiny)
	write("cut.gguf", tiny[:len(tiny)/2])
	write("text.gguf", []byte("this is no model"))
	f, err := gguf.FromBytes("tiny", tiny)
	if err != nil {
		t.Fatal(err)
	}
	set := func(key string, v gguf.Value) func(string) (gguf.Value, bool) {
		return func(k string) (gguf.Value, bool) { return v, k == key }
	}
	all := f.Tensors()
	write("mamba.gguf", rewrite(t, f, set("general.architecture", gguf.ValueOf("mamba")), all, nil))
	write("pre.gguf", rewrite(t, f, set("tokenizer.ggml.pre", gguf.ValueOf("nonesuch")), all, nil))
	write("escapes.gguf", rewrite(t, f, nil, all, func(w *gguf.Writer) error {
		return w.Set("key\x1b[31m", gguf.ValueOf("value\x1b[32m"))
	}))
	write("lacking.gguf", rewrite(t, f, nil, slices.DeleteFunc(slices.Clone(all), func(x *gguf.Tensor) bool {
		return x.Name == "blk.0.attn_q.weight" || x.Name == "blk.4.ffn_down.weight"
	}), nil))
	parts := 3
	for i := range parts {
		from, to := len(all)*i/parts, len(all)*(i+1)/parts
		write(filepath.Base(gguf.PartPath(path("split"), i, parts)), rewrite(t, f, nil, all[from:to], func(w *gguf.Writer) error {
			return errors.Join(w.Set("split.no", gguf.ValueOf(uint16(i))), w.Set("split.count", gguf.ValueOf(uint16(parts))),
				w.Set("split.tensors.count", gguf.ValueOf(int32(len(all)))))
		}))
	}
}

// rewrite is a file with some of f's tensors, its metadata changed by swap and extended by more; either may be nil.
func rewrite(t *testing.T, f *gguf.File, swap func(key string) (gguf.Value, bool), tensors []*gguf.Tensor, more func(*gguf.Writer) error) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gguf.NewWriter("test", &out)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, k := range f.Keys() {
		v, _ := f.Value(k)
		if swap != nil {
			if other, ok := swap(k); ok {
				v = other
			}
		}
		check(w.Set(k, v))
	}
	if more != nil {
		check(more(w))
	}
	for _, x := range tensors {
		check(w.AddTensor(x.Name, x.Type, x.Shape))
	}
	for _, x := range tensors {
		check(w.WriteTensor(x.Name, x.Data()))
	}
	check(w.Close())
	return out.Bytes()
}
