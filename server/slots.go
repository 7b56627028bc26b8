package server

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/minfer-go/minfer/engine"
)

// slotsRetry is how long a save waits that gave its cells up to requests.
const slotsRetry = time.Second

// A slotsFile keeps the evaluated prompts of the engine in a file, rewritten after requests. One goroutine writes; what
// changes while it does is written next.
type slotsFile struct {
	path   string
	engine *engine.Engine
	log    *slog.Logger
	dirty  chan struct{} // capacity 1
	stop   context.CancelFunc
	done   chan struct{}
}

func newSlotsFile(path string, e *engine.Engine, log *slog.Logger) *slotsFile {
	return &slotsFile{path: path, engine: e, log: log, dirty: make(chan struct{}, 1), done: make(chan struct{})}
}

// open reads the file, if there is one, and starts to write it. A file that cannot be used is reported and the engine
// begins empty.
func (f *slotsFile) open(ctx context.Context) {
	f.log.Info("slots file", "path", f.path, "bytes_at_most", f.engine.SlotBytes(), "written", "after each request")
	if n, tokens, err := f.read(ctx); err == nil {
		f.log.Info("slots resumed", "prompts", n, "tokens", tokens)
	} else if !errors.Is(err, fs.ErrNotExist) {
		f.log.Warn("slots file refused, starting empty", "path", f.path, "reason", err.Error())
	}
	ctx, f.stop = context.WithCancel(context.WithoutCancel(ctx))
	go f.loop(ctx)
}

func (f *slotsFile) read(ctx context.Context) (prompts, tokens int, err error) {
	file, err := os.Open(f.path)
	if err != nil {
		return 0, 0, err
	}
	prompts, tokens, err = f.engine.LoadSlots(ctx, bufio.NewReaderSize(file, 1<<20))
	return prompts, tokens, errors.Join(err, file.Close())
}

// touch asks for the file to be written.
func (f *slotsFile) touch() {
	select {
	case f.dirty <- struct{}{}:
	default:
	}
}

func (f *slotsFile) loop(ctx context.Context) {
	defer close(f.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.dirty:
		}
		if !f.write(ctx) {
			f.touch()
			select {
			case <-ctx.Done():
				return
			case <-time.After(slotsRetry):
			}
		}
	}
}

// write replaces the file and reports whether that was not interrupted, by requests or by the end.
func (f *slotsFile) write(ctx context.Context) bool {
	err := f.replace(ctx)
	switch {
	case errors.Is(err, engine.ErrSlotsBusy), err != nil && ctx.Err() != nil:
		return false
	case err != nil:
		f.log.Error("slots file not written", "path", f.path, "reason", err.Error())
	}
	return true
}

// replace writes beside the file and renames, so that the file is always whole.
func (f *slotsFile) replace(ctx context.Context) error {
	tmp, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*.part")
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(tmp, 1<<20)
	err = f.engine.SaveSlots(ctx, w)
	if err == nil {
		err = w.Flush()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// close writes what has changed and ends.
func (f *slotsFile) close() {
	f.stop()
	<-f.done
	select {
	case <-f.dirty:
		f.write(context.Background())
	default:
	}
}
