package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// serving matches the line that serve prints when it listens.
var serving = regexp.MustCompile(`^Serving (\S+) at (http://\S+)\n$`)

// serves ARGS... runs minfer serve, asks it one question, interrupts it, and checks that it ends with code 0. What it wrote
// to standard error is in the file serve.log.
func serves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serves ARGS...")
	}
	program := "minfer"
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if path := filepath.Join(dir, program); exists(path) {
			program = path
			break
		}
	}
	cmd := exec.Command(program, append([]string{"serve"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "MINFER_DRAIN_MS="+ts.Getenv("MINFER_DRAIN_MS"), "MINFER_BATCH="+ts.Getenv("MINFER_BATCH"))
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	ts.Check(cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	m := serving.FindStringSubmatch(line)
	if m == nil {
		_ = cmd.Wait()
		ts.Fatalf("serve printed %q, %v\n%s", line, err, stderr.String())
	}
	resp, err := http.Post(m[2]+"/v1/chat/completions", "application/json",
		strings.NewReader(`{"messages":[{"role":"user","content":"What is the capital of France?"}],"temperature":0}`))
	ts.Check(err)
	body, err := io.ReadAll(resp.Body)
	ts.Check(err)
	ts.Check(resp.Body.Close())
	var reply struct {
		Choices []struct{ Message struct{ Content string } }
	}
	if json.Unmarshal(body, &reply) != nil || len(reply.Choices) != 1 || !strings.Contains(reply.Choices[0].Message.Content, "Paris") {
		ts.Fatalf("the answer is %s", body)
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	if err := cmd.Wait(); err != nil {
		ts.Fatalf("after an interrupt: %v\n%s", err, stderr.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs("serve.log"), stderr.Bytes(), 0o644))
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.3.2.1": true, "::1": true, "localhost": true, "0.0.0.0": false, "::": false, "10.0.0.1": false, "": false, "example.org": false,
	} {
		if loopback(host) != want {
			t.Errorf("%q: %v", host, !want)
		}
	}
}
