package engine

import (
	"context"
	"time"

	"github.com/minfer-go/minfer/backend"
)

// Sequences is how many requests run at once.
func (e *Engine) Sequences() int { return e.options.Sequences }

// KV describes the cells.
func (e *Engine) KV() backend.KVSpec { return e.spec() }

// OpTimesBetweenSteps is OpTimes while requests run: it waits for the end of the current step, at most as long as
// patience, and returns nil if that is too short.
func (e *Engine) OpTimesBetweenSteps(ctx context.Context, patience time.Duration) []backend.OpTime {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found := make(chan []backend.OpTime, 1)
	if e.call(ctx, func() error { found <- e.device.OpTimes(); return nil }) != nil {
		return nil
	}
	return <-found
}
