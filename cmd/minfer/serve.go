package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/hub"
	"github.com/minfer-go/minfer/sample"
	"github.com/minfer-go/minfer/server"
)

// Defaults of serve.
const (
	defaultHost         = "127.0.0.1"
	defaultPort         = 8080
	defaultSlots        = 4
	defaultQueue        = 256
	defaultQueueTimeout = 5 * time.Minute
	defaultDrain        = 30 * time.Second
)

// serveFlags are the flags of serve that say how the server behaves.
type serveFlags struct {
	host, logFormat, slotsFile, template, keyFile string
	port, slots, queue, maxTokens                 int
	keys, cors, hosts, aliases                    []string
	queueTimeout                                  time.Duration
	maxBody                                       int64
	verbose                                       bool
	sampling                                      sample.Config
}

func (s *serveFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.host, "host", defaultHost, "address to listen on; 0.0.0.0 for all")
	f.IntVar(&s.port, "port", defaultPort, "port to listen on; 0 takes a free one and prints it")
	f.IntVar(&s.slots, "n-slots", defaultSlots, "most requests that run at once; they share the context")
	f.IntVar(&s.queue, "queue", defaultQueue, "most requests that wait; further ones are refused with 429")
	f.DurationVar(&s.queueTimeout, "queue-timeout", defaultQueueTimeout, "how long a request may wait to start before it is refused with 503; 0 for ever")
	f.StringArrayVar(&s.keys, "api-key", nil, "a `KEY` that lets clients in; repeatable; also MINFER_API_KEY")
	f.StringVar(&s.keyFile, "api-key-file", "", "`FILE` with a key on each line")
	f.StringArrayVar(&s.cors, "cors", nil, "a browser `ORIGIN` that may call, such as https://example.org, or *; repeatable")
	f.StringArrayVar(&s.hosts, "allow-host", nil, "a `NAME` beside localhost under which a server without keys is called; repeatable")
	f.StringArrayVar(&s.aliases, "alias", nil, "a further `NAME` of the model; repeatable")
	f.StringVar(&s.slotsFile, "slots-file", "", "keep evaluated prompts in `FILE` across restarts")
	f.StringVar(&s.logFormat, "log-format", "text", "text or json")
	f.BoolVar(&s.verbose, "verbose", false, "log health checks, scrapes and pages too")
	f.StringVar(&s.template, "chat-template", "", "use the chat template in `FILE` in place of the model's own")
	f.Int64Var(&s.maxBody, "max-body", server.DefaultMaxBody, "most bytes of a request's body")

	s.sampling = sample.Default()
	c := &s.sampling
	f.IntVarP(&s.maxTokens, "n-predict", "n", -1, "most tokens of a reply where the request does not say; -1 runs to the end of the context")
	f.Float64Var(&c.Temperature, "temp", c.Temperature, "default temperature; 0 is greedy")
	f.IntVar(&c.TopK, "top-k", c.TopK, "default of top_k; 0 is off")
	f.Float64Var(&c.TopP, "top-p", c.TopP, "default of top_p; 1 is off")
	f.Float64Var(&c.MinP, "min-p", c.MinP, "default of min_p; 0 is off")
	f.Float64Var(&c.RepeatPenalty, "repeat-penalty", c.RepeatPenalty, "default of repeat_penalty; 1 is off")
}

// newServe is minfer serve MODEL.
func newServe() *cobra.Command {
	var (
		engineOf = engineFlags{}
		flags    = serveFlags{}
	)
	cmd := &cobra.Command{
		Use:   "serve MODEL",
		Short: "Answer HTTP requests in the forms of OpenAI, Anthropic and Ollama",
		Long: `serve answers HTTP requests with a model: OpenAI's chat completions, completions,
embeddings and responses, Anthropic's messages, Ollama's chat and generate; and
shows a chat page at the address it prints. Requests run together, up to
--n-slots of them; further ones wait.

On SIGINT or SIGTERM it takes no more requests and lets those accepted finish for
at most MINFER_DRAIN_MS milliseconds. A second signal ends it at once.
docs/server.md describes every endpoint.`,
		Example: `  minfer serve tiny
  minfer serve qwen2.5-0.5b-instruct-q4_0.gguf --host 0.0.0.0 --api-key "$KEY" --n-slots 8 --n-ctx 16384
  curl -s localhost:8080/v1/chat/completions -d '{"messages": [{"role": "user", "content": "Hi"}]}'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return serve(cmd, args[0], &engineOf, &flags)
		},
	}
	engineOf.register(cmd.Flags())
	engineOf.registerThreads(cmd.Flags())
	flags.register(cmd)
	return cmd
}

// logger is the log that the flags ask for.
func (s *serveFlags) logger(w io.Writer) (*slog.Logger, error) {
	o := &slog.HandlerOptions{Level: slog.LevelInfo}
	if s.verbose {
		o.Level = slog.LevelDebug
	}
	switch s.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, fmt.Errorf("--log-format '%s' is neither text nor json", s.logFormat)
}

// options resolves flags and environment; what makes no sense is refused before the model is loaded.
func (s *serveFlags) options(log *slog.Logger) (server.Options, error) {
	o := server.Options{
		Version: version(), Aliases: s.aliases, Origins: s.cors, Hosts: s.hosts, Loopback: loopback(s.host), MaxBody: s.maxBody,
		MaxTokens: s.maxTokens, Sampling: s.sampling, Drain: drainTime(log), SlotsFile: s.slotsFile, Log: log,
	}
	switch {
	case s.port < 0 || s.port > 65535:
		return o, fmt.Errorf("--port %d must lie in [0, 65535]", s.port)
	case s.slots < 1 || s.slots > engine.MaxSequences:
		return o, fmt.Errorf("--n-slots %d must lie in [1, %d]", s.slots, engine.MaxSequences)
	case s.queue < 1 || s.queue > engine.MaxQueue:
		return o, fmt.Errorf("--queue %d must lie in [1, %d]", s.queue, engine.MaxQueue)
	case s.queueTimeout < 0:
		return o, fmt.Errorf("--queue-timeout %s must not be negative", s.queueTimeout)
	case s.maxTokens < -1 || s.maxTokens == 0:
		return o, fmt.Errorf("--n-predict %d must be at least 1, or -1", s.maxTokens)
	case s.maxBody < 1:
		return o, fmt.Errorf("--max-body %d must be at least 1", s.maxBody)
	}
	o.Keys = s.keys
	if key := os.Getenv("MINFER_API_KEY"); key != "" {
		o.Keys = append(o.Keys, key)
	}
	if s.keyFile != "" {
		keys, err := readKeys(s.keyFile)
		if err != nil {
			return o, fmt.Errorf("--api-key-file: %w", err)
		}
		o.Keys = append(o.Keys, keys...)
	}
	return o, s.sampling.Validate(1 << 30)
}

// serve loads the model and serves until a signal comes.
func serve(cmd *cobra.Command, name string, engineOf *engineFlags, flags *serveFlags) error {
	log, err := flags.logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	options, err := flags.options(log)
	if err != nil {
		return err
	}
	engineOptions, err := engineOf.options(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	engineOptions.Sequences, engineOptions.Queue, engineOptions.QueueTimeout = batching(log, flags.slots), flags.queue, flags.queueTimeout
	chatOf, err := chatOptions(flags.template)
	if err != nil {
		return err
	}
	f, err := hub.Open(name)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", net.JoinHostPort(flags.host, strconv.Itoa(flags.port)))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	start := time.Now()
	m, err := minfer.Load(cmd.Context(), f, minfer.WithEngine(engineOptions), minfer.WithChat(chatOf...))
	if err != nil {
		return errors.Join(err, listener.Close(), f.Close())
	}
	served := server.Model{Name: server.ModelName(name), File: f, Tokens: m.Tokenizer(), Format: m.Format(), Engine: m.Engine()}
	s, err := server.New(cmd.Context(), served, options)
	if err != nil {
		return errors.Join(err, listener.Close(), m.Close())
	}
	if notice := m.Format().Notice(); notice != "" {
		log.Warn(notice)
	}
	log.Info("loaded", "model", served.Name, "ms", time.Since(start).Milliseconds(), "device", m.Engine().Info(), "n_ctx", m.Engine().Context(),
		"n_slots", m.Engine().Sequences())
	fmt.Fprintf(cmd.OutOrStdout(), "Serving %s at http://%s\n", served.Name, listener.Addr())
	again := context.AfterFunc(cmd.Context(), func() { signal.Reset(os.Interrupt, syscall.SIGTERM) }) // a second signal ends the program
	defer again()
	return errors.Join(s.Serve(cmd.Context(), listener), m.Close())
}

// batching is how many requests run at once: one under MINFER_BATCH=0.
func batching(log *slog.Logger, slots int) int {
	switch value := os.Getenv("MINFER_BATCH"); value {
	case "", "1":
	case "0":
		log.Info("batching: off (MINFER_BATCH=0): requests run one at a time")
		return 1
	default:
		log.Warn("MINFER_BATCH is neither 0 nor 1 and does not count", "value", value)
	}
	log.Info("batching: on (MINFER_BATCH=0 forces it off)")
	return slots
}

// drainTime reads MINFER_DRAIN_MS.
func drainTime(log *slog.Logger) time.Duration {
	text := os.Getenv("MINFER_DRAIN_MS")
	if text == "" {
		return defaultDrain
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		log.Warn("MINFER_DRAIN_MS is not a whole number of milliseconds; the default is used", "value", text, "default_ms", defaultDrain.Milliseconds())
		return defaultDrain
	}
	return time.Duration(n) * time.Millisecond
}

// loopback reports whether a host can be reached from this machine alone.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// maxKeys bounds a file of keys.
const maxKeys = 1 << 20

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	return v
}

// readKeys reads keys, one on each line; empty lines and those that begin with # do not count.
func readKeys(path string) ([]string, error) {
	text, err := readLimited(path, maxKeys)
	if err != nil {
		return nil, err
	}
	var keys []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			keys = append(keys, line)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no key", path)
	}
	return keys, nil
}
