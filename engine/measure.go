package engine

import (
	"time"

	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/graph"
)

// OpTimes is where the time of all steps so far went; nil unless MINFER_OP_TIMING is set. It must not be called while
// requests run.
func (e *Engine) OpTimes() []backend.OpTime { return e.device.OpTimes() }

// streamReps is how often Stream reads the weights.
const streamReps = 5

// Stream is the rate, in bytes per second, at which the device reads the model's weights at this moment when it does
// nothing else: what generation is bounded by. It must not be called while requests run.
func (e *Engine) Stream() (float64, error) {
	read, in := 0, time.Duration(0)
	for range streamReps {
		bytes, took, err := e.device.Stream()
		if err != nil {
			return 0, err
		}
		read, in = read+bytes, in+took
	}
	if in == 0 {
		return 0, nil
	}
	return float64(read) / in.Seconds(), nil
}

// StepBytes is how many bytes of weights and KV cells a decode step of some sequences reads when each holds the given
// number of tokens.
func (e *Engine) StepBytes(sequences, tokens int) (int, error) {
	g, err := e.graph(e.params(1, 1, graph.Decode, false))
	if err != nil {
		return 0, err
	}
	var read []graph.Weight
	for i := range g.Nodes {
		if _, lookup := g.Nodes[i].Op.(graph.Embed); !lookup && !g.Nodes[i].Dead {
			read = append(read, graph.WeightsOf(g.Nodes[i].Op)...)
		}
	}
	bytes, err := e.device.WeightBytes(read)
	if err != nil {
		return 0, err
	}
	row, err := e.spec().RowBytes()
	return bytes + 2*row*sequences*tokens*e.model.Config().Layers, err
}
