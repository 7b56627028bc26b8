package server

import (
	"context"
	"github.com/minfer-go/minfer/engine"
	"log/slog"
)

type slotsFile struct{}

func newSlotsFile(path string, e *engine.Engine, log *slog.Logger) *slotsFile { return nil }
func (f *slotsFile) load(ctx context.Context)                                 {}
func (f *slotsFile) close()                                                   {}
