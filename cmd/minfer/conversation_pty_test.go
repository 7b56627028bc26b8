//go:build linux || darwin

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// patience is how long a program may take to do what is expected.
const patience = 20 * time.Second

// A terminal is a program behind a pseudo-terminal, and what it wrote.
type terminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	file *os.File
	done chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	read int // what expect has seen
}

// startTerminal runs minfer in a terminal of 80 columns.
func startTerminal(t *testing.T, home string, args ...string) *terminal {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: exec.Command(exe, args...), done: make(chan struct{})}
	x.cmd.Args[0] = "minfer" // TestMain runs the program under this name
	x.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, "cache"), "TERM=xterm", "INPUTRC="+os.DevNull, "NO_COLOR=",
		"MINFER_NO_AVX512=1", "MINFER_NO_AVX2=1", "MINFER_NO_NEON=1") // slow enough for a reply to be stopped
	if x.file, err = pty.StartWithSize(x.cmd, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Skipf("no pseudo-terminal: %v", err)
	}
	t.Cleanup(func() {
		_ = x.cmd.Process.Kill() // it has ended already unless the test failed
		_ = x.file.Close()
		<-x.done
	})
	go x.receive()
	return x
}

// receive collects output.
func (x *terminal) receive() {
	defer close(x.done)
	b := make([]byte, 4096)
	for {
		n, err := x.file.Read(b)
		x.mu.Lock()
		x.text.Write(b[:n])
		x.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (x *terminal) send(text string) {
	x.t.Helper()
	if _, err := io.WriteString(x.file, text); err != nil {
		x.t.Fatal(err)
	}
}

// expect waits until the program has written one of some texts after what was expected before, and returns all up to its
// end.
func (x *terminal) expect(texts ...string) string {
	x.t.Helper()
	got, ok := x.within(patience, texts...)
	if !ok {
		x.t.Fatalf("none of %q in %q", texts, got)
	}
	return got
}

// stopped is expect after an interrupt. A terminal discards what was typed before one: if it does so just as the editor goes to
// read it, the editor acts on the interrupt at the next key.
func (x *terminal) stopped(texts ...string) {
	x.t.Helper()
	if _, ok := x.within(patience/4, texts...); !ok {
		x.send(" ")
		x.expect(texts...)
	}
}

// within is expect that gives up after some time, and returns what there is then.
func (x *terminal) within(patience time.Duration, texts ...string) (string, bool) {
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		x.mu.Lock()
		rest := x.text.String()[x.read:]
		end := -1
		for _, text := range texts {
			if at := strings.Index(rest, text); at >= 0 && (end < 0 || at+len(text) < end) {
				end = at + len(text)
			}
		}
		x.read += max(end, 0)
		x.mu.Unlock()
		if end >= 0 {
			return rest[:end], true
		}
		if time.Now().After(deadline) {
			return rest, false
		}
	}
}

// prompt waits until the line editor reads keys: it shows the cursor when it has drawn the prompt.
func (x *terminal) prompt() {
	x.t.Helper()
	x.expect("> ")
	x.expect("\x1b[?25h")
}

// exits waits for the end of the program.
func (x *terminal) exits(code int) {
	x.t.Helper()
	select {
	case <-x.done:
	case <-time.After(patience):
		_ = x.cmd.Process.Signal(syscall.SIGQUIT) // it writes where it hangs
		select {
		case <-x.done:
		case <-time.After(time.Second):
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.t.Fatalf("it does not end: %q", x.text.String())
	}
	if err := x.cmd.Wait(); x.cmd.ProcessState.ExitCode() != code {
		x.t.Errorf("%v, want exit code %d; it wrote %q", err, code, x.text.String())
	}
}

const (
	ctrlC     = "\x03"
	ctrlD     = "\x04"
	upArrow   = "\x1b[A"
	pasteFrom = "\x1b[200~"
	pasteTo   = "\x1b[201~"
)

func TestConversationInTerminal(t *testing.T) {
	home := t.TempDir()
	x := startTerminal(t, home, "--cnv", "tiny", "--greedy", "-n", "800", "--ignore-eos")
	x.prompt()
	x.send("Tell me a story.\r")
	x.expect("Once upon")
	x.send(ctrlC)
	x.expect("[stopped]")
	x.expect("prefill_tokens")
	x.prompt()
	x.send(ctrlC)
	x.expect("Ctrl-D")
	x.prompt()
	x.send("/stats\r")
	x.expect("messages   2,")
	x.prompt()
	x.send(upArrow + upArrow + "\r") // the story once more, from the history
	x.expect("\x1b[?2004l")          // the line is taken
	x.expect(" ")
	x.send(ctrlC)
	x.expect("[stopped]")
	x.prompt()
	x.send("/exit\r")
	x.exits(0)

	x = startTerminal(t, home, "--cnv", "tiny", "--greedy", "-n", "8")
	x.prompt()
	x.send(upArrow + upArrow + "\r") // history outlives the program
	x.expect("story.")
	x.expect("tok/s]")
	x.prompt()
	x.send(ctrlD)
	x.exits(0)
}

// TestInterruptAmongKeys: Ctrl-C counts whatever keys arrive with it, and however soon it follows the end of a message.
func TestInterruptAmongKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "talk.json")
	x := startTerminal(t, t.TempDir(), "--cnv", "tiny", "--greedy", "-n", "-1", "--ignore-eos", "--session", path)
	x.prompt()
	for _, keys := range []string{"lost" + ctrlC, "lost" + ctrlC + "def", "\x1b" + ctrlC, "sent\r" + ctrlC, pasteFrom + "lost" + ctrlC} {
		x.send(keys)
		x.stopped("[stopped]", "Ctrl-D or /exit") // a message that was sent already is answered for a moment
		x.prompt()
		time.Sleep(20 * time.Millisecond) // keys after the last Ctrl-C may have come before it was acted on, or not
		x.send(ctrlC)
		x.stopped("Ctrl-D or /exit")
		x.prompt()
	}
	for wait := range 8 {
		x.send("story\r")
		time.Sleep(time.Duration(wait*wait) * time.Millisecond / 2)
		x.send(ctrlC)
		x.stopped("[stopped]", "Ctrl-D or /exit") // not the end of the reply
		x.prompt()
	}
	x.send("/exit\r")
	x.exits(0)
	if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "lost") {
		t.Errorf("%s, %v", b, err)
	}
}

// TestPaste: several pasted lines are one message; wide and combined characters are edited whole.
func TestPaste(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "talk.json")
	x := startTerminal(t, home, "--cnv", "tiny", "--greedy", "-n", "4", "--session", path)
	x.prompt()
	x.send(pasteFrom + "one\ntwo\n三つ" + pasteTo)
	x.expect("三つ")
	x.send("e\u0301👍\x7f\x7f!\r")
	x.expect("prefill_tokens")
	x.prompt()
	x.send("a\\\rb\r")
	x.expect("prefill_tokens")
	x.prompt()
	x.send(ctrlD)
	x.exits(0)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"one\ntwo\n三つ!"`, `"a\nb"`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no message %s in %s", want, b)
		}
	}
}

// TestMultilineInTerminal: with -mli an empty line ends a message.
func TestMultilineInTerminal(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "talk.json")
	x := startTerminal(t, home, "--cnv", "-mli", "-st", "tiny", "--greedy", "-n", "4", "--session", path)
	x.prompt()
	x.send("one\rtwo\r\r")
	x.expect("prefill_tokens")
	x.exits(0)
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), `"one\ntwo"`) {
		t.Errorf("%s, %v", b, err)
	}
}

// TestTerminate: a request to terminate ends the program while somebody types; the conversation is saved and the terminal
// is left as it was.
func TestTerminate(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, "talk.json")
	x := startTerminal(t, home, "--cnv", "tiny", "--greedy", "-n", "4", "--session", path)
	x.prompt()
	x.send("Hello\r")
	x.expect("prefill_tokens")
	x.prompt()
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	x.exits(exitInterrupt)
	for _, p := range []string{path, path + ".kv"} {
		if _, err := os.Stat(p); err != nil {
			t.Error(err)
		}
	}
}

// TestInterruptWithoutTerminal: an interrupt stops a reply, and the next message is answered; between replies it ends the
// program, and the conversation is saved.
func TestInterruptWithoutTerminal(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "talk.json")
	cmd := exec.Command(exe, "--cnv", "tiny", "--greedy", "-n", "800", "--ignore-eos", "--session", path)
	cmd.Args[0] = "minfer"
	cmd.Env = append(os.Environ(), "MINFER_NO_AVX512=1", "MINFER_NO_AVX2=1", "MINFER_NO_NEON=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: cmd, file: read, done: make(chan struct{})}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended already unless the test failed
	go x.receive()
	interrupt := func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if _, err := io.WriteString(in, "Tell me a story.\n"); err != nil {
			t.Fatal(err)
		}
		x.expect(" a ")
		interrupt()
		x.expect("[stopped]")
		x.expect("tok/s]\n")
	}
	for ended := false; !ended; { // one that comes before the program reads the next line stops the reply that is over
		interrupt()
		select {
		case <-x.done:
			ended = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	x.exits(exitInterrupt)
	x.mu.Lock()
	if text := x.text.String(); strings.Contains(text, "\x1b") || strings.Contains(text, "> ") {
		t.Errorf("escape sequences or a prompt where nobody sees them: %q", text)
	}
	x.mu.Unlock()
	if b, err := os.ReadFile(path); err != nil || strings.Count(string(b), `"assistant"`) != 2 {
		t.Errorf("%s, %v", b, err)
	}
}
