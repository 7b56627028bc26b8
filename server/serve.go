package server

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"time"
)

// splitSuffix matches the number of a part of a split model file.
var splitSuffix = regexp.MustCompile(`^-\d{5}-of-\d{5}$`)

// Serve answers requests from a listener until ctx is cancelled. Then it takes no more, lets those accepted finish for
// Options.Drain, and returns nil; those left over are cut off and logged.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	requests, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	web := &http.Server{
		Handler: s.handler, ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes,
		BaseContext: func(net.Listener) context.Context { return requests },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	if s.slots != nil {
		s.slots.open(ctx)
		defer s.slots.close()
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.draining.Store(true)
	s.log.Info("draining", "in_flight", s.metrics.inFlight.Load(), "limit_ms", ms(s.options.Drain))
	limit, stop := context.WithTimeout(context.WithoutCancel(ctx), s.options.Drain)
	defer stop()
	err := web.Shutdown(limit)
	if errors.Is(err, context.DeadlineExceeded) {
		n := s.metrics.inFlight.Load()
		s.metrics.abandoned.Store(n)
		s.log.Warn("drain time is over", "abandoned", n)
		cut(errDrained)
		err = web.Close()
		s.settle()
	}
	return err
}

// errDrained is why requests end that outlast the drain time.
var errDrained = unavailable("the server is shutting down", retryDrain)

// settlePatience is how long requests that were cut off may take to notice.
const settlePatience = 5 * time.Second

// settle waits for requests that were cut off.
func (s *Server) settle() {
	for end := time.Now().Add(settlePatience); s.metrics.inFlight.Load() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}
