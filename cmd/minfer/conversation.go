package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/engine"
)

// conversationFlags are the flags of --cnv.
type conversationFlags struct {
	on, single, multiline bool
	session               string
}

func (f *conversationFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "cnv", false, "hold a conversation (docs/chat.md)")
	flags.BoolVar(&f.single, "single-turn", false, "with --cnv: end after one turn; also -st")
	flags.BoolVar(&f.multiline, "multiline-input", false, "with --cnv: an empty line ends a message; also -mli")
	flags.StringVar(&f.session, "session", "", "with --cnv: go on with the conversation in `FILE`, and save it there")
}

// check refuses combinations that make no sense.
func (f *conversationFlags) check(flags *pflag.FlagSet, raw, dump bool) error {
	switch {
	case flags.Changed("session") && f.session == "":
		return errors.New("--session names no file")
	case !f.on && (f.single || f.multiline || f.session != ""):
		return errors.New("--single-turn, --multiline-input and --session need --cnv")
	case f.on && raw:
		return errors.New("--cnv and --no-template exclude each other: a conversation needs a template")
	case f.on && dump:
		return errors.New("--cnv and --dump-graph exclude each other")
	}
	return nil
}

// A talk is a conversation in the terminal.
type talk struct {
	flags    *conversationFlags
	model    *minfer.Model
	chat     *minfer.Conversation
	out      *console
	in       input
	signals  *signals
	turns    int
	prefill  int // tokens, of all turns
	produced int
}

// errQuit ends the loop.
var errQuit = errors.New("quit")

// run holds a conversation until its user ends it.
func (f *conversationFlags) run(cmd *cobra.Command, m *minfer.Model, out *console, first string, s minfer.Settings) (err error) {
	sig := watchSignals(context.WithoutCancel(cmd.Context())) // an interrupt ends a reply, not the conversation
	defer sig.stop()
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	c := m.NewConversation(minfer.WithSettings(s))
	defer c.Close()
	t := &talk{flags: f, model: m, chat: c, out: out, signals: sig}
	if f.session != "" {
		if err := t.resume(f.session, s.System); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.Save(context.WithoutCancel(cmd.Context()), f.session)) }()
	}
	t.in = openInput(cmd.InOrStdin(), out, f.multiline)
	defer t.in.close()
	if t.in.interactive() && first == "" {
		out.note("/help lists the commands; Ctrl-C stops a reply, Ctrl-D ends the conversation.\n")
	}
	for {
		text := first
		if first = ""; text == "" {
			if text, err = t.read(); err != nil {
				return endOfInput(err)
			}
		}
		if text == "" {
			continue
		}
		if err := t.take(text); errors.Is(err, errQuit) {
			return nil
		} else if err != nil {
			return err
		}
		if f.single && t.turns > 0 {
			return nil
		}
	}
}

// read waits for a message. An interrupt meanwhile goes to who types.
func (t *talk) read() (string, error) {
	if !t.in.interactive() {
		return t.in.read(t.signals.ctx)
	}
	t.signals.typing(t.in.interrupt)
	text, err := t.in.read(t.signals.ctx)
	t.signals.typed(t.in.interrupted())
	return text, err
}

// endOfInput is how a conversation ends whose input does.
func endOfInput(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// resume goes on with the conversation in a file; where there is none, a new one begins. system is that of the flags.
func (t *talk) resume(path, system string) error {
	if err := canWrite(path); err != nil {
		return err
	}
	r, err := t.chat.Load(t.signals.ctx, path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if system != "" && system != t.chat.System() {
		t.chat.SetSystem(system)
		if r.Reason == nil {
			r.Reason = fmt.Errorf("the system message is that of --system, not that of %s", path)
		}
	}
	t.resumed(r)
	return nil
}

// canWrite reports before the first message that there is no place to save it.
func canWrite(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.part")
	if err != nil {
		return fmt.Errorf("--session %s: %w", path, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// resumed tells what was loaded.
func (t *talk) resumed(r minfer.Resumed) {
	if r.Reason != nil {
		t.out.note("resumed %d message(s); the next turn evaluates them anew: %v", r.Messages, r.Reason)
		return
	}
	t.out.note("resumed %d message(s) and %d KV row(s): 0 tokens prefilled", r.Messages, r.Tokens)
}

// take acts on what the user typed.
func (t *talk) take(text string) error {
	if name, argument, ok := command(text); ok {
		return t.command(name, argument)
	}
	return t.reply(func(ctx context.Context) (*minfer.Turn, error) { return t.chat.Say(ctx, unescape(text)) })
}

// reply shows a turn as it grows. A refusal of the turn is told and the conversation goes on; what is returned ends it.
func (t *talk) reply(begin func(context.Context) (*minfer.Turn, error)) error {
	ctx, done := t.signals.reply()
	defer done()
	turn, err := begin(ctx)
	if errors.Is(err, context.Canceled) && t.signals.ctx.Err() == nil {
		t.out.note("[stopped]")
		return nil
	} else if err != nil {
		return t.refuse(err)
	}
	for span := range turn.Spans() {
		if err := t.out.span(span); err != nil {
			return err
		}
	}
	if err := t.out.endReply(); err != nil {
		return err
	}
	t.turns++
	s := turn.Stats()
	t.prefill += s.Prefilled
	t.produced += s.Generated
	if s.Forgotten > 0 {
		how := "their KV rows were removed in place"
		if s.Rerendered {
			how = "the prompt was evaluated anew"
		}
		t.out.note("[the context is full: the %d oldest messages were dropped; %s]", s.Forgotten, how)
	}
	switch {
	case t.signals.ctx.Err() != nil:
		return context.Canceled
	case errors.Is(turn.Err(), context.Canceled):
		t.out.note("[stopped]")
	case turn.Err() != nil:
		return t.refuse(turn.Err())
	case turn.Reason() == engine.ReasonLength:
		t.out.note("[the reply is at its longest: -n or the context ends it]")
	}
	t.out.note("[prefill_tokens %d, cached %d, generated %d; prefill %.1f ms, %.1f tok/s]",
		s.Prefilled, s.Cached, s.Generated, ms(s.Prefill), rate(s.Generated-1, s.Decode))
	if t.flags.session != "" {
		if err := t.chat.SaveHistory(t.flags.session); err != nil {
			return t.refuse(err)
		}
	}
	return nil
}

// refuse tells of an error that a further turn may not meet. With --single-turn, and where nobody can try again, it ends
// the run.
func (t *talk) refuse(err error) error {
	if t.signals.ctx.Err() != nil {
		return context.Canceled
	}
	if t.flags.single || !t.in.interactive() {
		return err
	}
	t.out.note("Error: %v", err)
	return nil
}

// signals turns interrupts into the end of a reply, or of the conversation where no reply is under way. Where somebody types
// they end only what is under way.
type signals struct {
	ctx  context.Context // done when the conversation has to end
	stop func()

	mu     sync.Mutex
	cancel context.CancelFunc // of the reply under way
	editor func()             // hears of an interrupt while it reads
	typist bool               // somebody types: an interrupt does not end the conversation
	early  bool               // there was an interrupt after a message and before its reply
}

func watchSignals(parent context.Context) *signals {
	s := &signals{}
	ctx, quit := context.WithCancel(parent)
	s.ctx = ctx
	c := make(chan os.Signal, 4)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	s.stop = func() { signal.Stop(c); quit() }
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case got := <-c:
				if got != os.Interrupt || !s.interrupt() {
					quit()
				}
			}
		}
	}()
	return s
}

// interrupt ends what is under way, and reports whether the conversation goes on.
func (s *signals) interrupt() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cancel != nil:
		s.cancel()
	case s.editor != nil:
		s.editor()
	case s.typist:
		s.early = true
	default:
		return false
	}
	return true
}

// typing says that an editor reads.
func (s *signals) typing(editor func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.editor, s.typist, s.early = editor, true, false
}

// typed says that the editor has read a message, and whether there was an interrupt that it has not acted on.
func (s *signals) typed(interrupted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.editor = nil
	s.early = s.early || interrupted
}

// reply is the context of a reply; done says that it has ended.
func (s *signals) reply() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
	if s.early {
		cancel()
	}
	s.early = false
	return ctx, func() {
		s.mu.Lock()
		s.cancel = nil
		s.mu.Unlock()
		cancel()
	}
}

// shortForms are flags of more than one letter behind a single dash, as other programs of the kind spell them.
var shortForms = map[string]string{"-st": "--single-turn", "-mli": "--multiline-input", "-cnv": "--cnv"}

// spellOut replaces the short forms of a command line, but not where one is the value of another flag.
func spellOut(args []string, flags *pflag.FlagSet) []string {
	var out []string
	value := false // the next argument is the value of a flag
	for i, a := range args {
		if a == "--" && !value {
			return append(out, args[i:]...)
		}
		if long, ok := shortForms[a]; ok && !value {
			a = long
		}
		value = !value && takesValue(a, flags)
		out = append(out, a)
	}
	return out
}

// takesValue reports whether an argument is a flag whose value is the next argument.
func takesValue(a string, flags *pflag.FlagSet) bool {
	var f *pflag.Flag
	switch {
	case len(a) > 2 && a[:2] == "--":
		f = flags.Lookup(a[2:])
	case len(a) == 2 && a[0] == '-':
		f = flags.ShorthandLookup(a[1:])
	}
	return f != nil && f.NoOptDefVal == ""
}
