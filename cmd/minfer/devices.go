package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/minfer-go/minfer/backend"
)

// Names of the flags and variables that place a model on GPUs.
const (
	gpuFlag        = "gpu"
	layersFlag     = "gpu-layers"
	layersVariable = "MINFER_GPU_LAYERS"
	memoryVariable = "MINFER_GPU_MEM"
)

// deviceFlags are the flags that place a model on GPUs.
type deviceFlags struct {
	flags  *pflag.FlagSet
	gpu    int
	layers string
}

func (d *deviceFlags) register(f *pflag.FlagSet) {
	d.flags = f
	f.IntVar(&d.gpu, gpuFlag, 0, "index of the GPU; ignored where there is none")
	f.StringVar(&d.layers, layersFlag, "", "blocks that run on the GPU: `N`, or auto for as many as fit; also "+layersVariable)
}

// check looks at the flags and variables of GPUs. No backend of this build has a GPU: what asks for one is refused, and what
// a run without GPUs satisfies is told.
func (d *deviceFlags) check(notes io.Writer) error {
	reason, err := noGPU()
	if err != nil {
		return err
	}
	if d.flags.Changed(gpuFlag) {
		if d.gpu < 0 {
			return fmt.Errorf("--%s %d must not be negative", gpuFlag, d.gpu)
		}
		fmt.Fprintf(notes, "--%s %d is ignored: %s\n", gpuFlag, d.gpu, reason)
	}
	layers, from, given := d.layers, "--"+layersFlag+" ", d.flags.Changed(layersFlag)
	if !given {
		layers, from = os.Getenv(layersVariable), layersVariable+"="
	}
	if given || layers != "" {
		if err := placeLayers(notes, from+layers, layers, reason); err != nil {
			return err
		}
	}
	if text := os.Getenv(memoryVariable); text != "" {
		if mib, err := strconv.ParseUint(text, 10, 32); err != nil || mib == 0 {
			return fmt.Errorf("%s=%s is no positive number of MiB", memoryVariable, text)
		}
		fmt.Fprintf(notes, "%s=%s is ignored: %s\n", memoryVariable, text, reason)
	}
	return nil
}

// placeLayers accepts the numbers of blocks that can be placed without a GPU: none, and as many as fit.
func placeLayers(notes io.Writer, what, layers, reason string) error {
	n, err := strconv.ParseUint(layers, 10, 31)
	switch {
	case layers == "auto" || err == nil && n == 0:
		fmt.Fprintf(notes, "offload: every block on cpu (%s): %s\n", what, reason)
		return nil
	case err != nil:
		return fmt.Errorf("%s: a number of blocks, or auto", what)
	}
	return fmt.Errorf("%s: %s; 0 and auto run every block on cpu", what, reason)
}

// noGPU says which backends there are instead.
func noGPU() (string, error) {
	all, err := backend.Select(nil)
	if err != nil {
		return "", err
	}
	var names []string
	for _, b := range all {
		names = append(names, b.Name())
	}
	return "no GPU backend is registered; backends: " + strings.Join(names, ", "), nil
}
