package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// recorded is a conversation that outgrows its context of 192 tokens.
var recorded = []string{
	"What is the capital of France?", "What is 2 plus 3?", "Tell me a story about a brave fox.", "What is the opposite of hot?",
	"/stats", "Tell me a story about a cat.", "What is the capital of Italy?", "What is 7 plus 1?",
	"Give me a JSON object for a person named Mia who is 7 years old.", "/regen", "What is the opposite of big?",
	"Tell me a story about a dog.", "What is the capital of Spain?", "Tell me a story about a little whale.", "/stats",
}

// speed is what differs from run to run.
var speed = regexp.MustCompile(`; prefill [0-9.]+ ms, [0-9.]+ tok/s\]`)

// TestRecordedConversation holds docs/conversation.md to the program: go test ./cmd/minfer -run Recorded -update writes it.
func TestRecordedConversation(t *testing.T) {
	if testing.Short() {
		t.Skip("twelve turns on the portable kernels take long under the race detector")
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("another architecture may round otherwise, and say something else")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--cnv", "tiny", "--greedy", "--n-ctx", "192", "--system", "You are Tiny, a friendly assistant."}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Args[0] = "minfer"
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+t.TempDir(), "MINFER_NO_AVX512=1", "MINFER_NO_AVX2=1", "MINFER_NO_CONTEXT_SHIFT=")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write // one stream, in the order of a terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := write.Close(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(read)
	line := func() string {
		s, err := out.ReadString('\n')
		if err != nil {
			t.Fatalf("the program ended: %v", err)
		}
		return s
	}
	line() // how the model was loaded
	var b strings.Builder
	fmt.Fprintf(&b, "$ minfer %s\n", strings.Replace(strings.Join(args, " "), args[len(args)-1], `"`+args[len(args)-1]+`"`, 1))
	for _, text := range recorded {
		fmt.Fprintf(&b, "> %s\n", text)
		if _, err := io.WriteString(in, text+"\n"); err != nil {
			t.Fatal(err)
		}
		last := "[prefill_tokens "
		if text == "/stats" {
			last = "this run "
		}
		for s := ""; !strings.HasPrefix(s, last); {
			s = line()
			b.WriteString(speed.ReplaceAllString(s, "]"))
		}
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	have := `# A conversation that outgrows its context

Twelve turns with the built-in model, one of them given anew, in a context of 192 tokens. When it is full the
oldest messages leave, also in the middle of a reply, and every turn still evaluates little more than its own message. The times are left out; a test
(` + "`go test ./cmd/minfer -run Recorded`" + `) runs the conversation again and compares.

` + "```console\n" + b.String() + "```\n"
	path := filepath.Join("..", "..", "docs", "conversation.md")
	if *update {
		if err := os.WriteFile(path, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.ReplaceAll(string(want), "\r\n", "\n"); have != want {
		t.Errorf("docs/conversation.md differs from the program (-update rewrites it):\n%s", have)
	}
	if n := strings.Count(have, "the context is full"); n < 3 {
		t.Errorf("the context was full %d times", n)
	}
}
