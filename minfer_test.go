package minfer_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/minfer-go/minfer"
	"github.com/minfer-go/minfer/backend"
	"github.com/minfer-go/minfer/engine"
	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/internal/builtin"
)

const fox = "Tell me a story about a brave fox."

// reply generates greedily and returns the whole reply.
func reply(t testing.TB, m *minfer.Model, prompt string, settings ...minfer.Setting) string {
	t.Helper()
	g, err := m.Generate(context.Background(), prompt, append([]minfer.Setting{minfer.Greedy(), minfer.MaxTokens(60)}, settings...)...)
	if err != nil {
		t.Fatal(err)
	}
	text, err := g.Text()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The built-in model tells the story that it was asked for, the same by any of its names.
func TestGenerate(t *testing.T) {
	m := open(t)
	story := reply(t, m, fox)
	if !strings.Contains(story, "fox") || len(story) < 80 {
		t.Errorf("a story: %q", story)
	}
	path := filepath.Join(t.TempDir(), "copy.gguf")
	if err := os.WriteFile(path, builtin.Tiny(), 0o600); err != nil {
		t.Fatal(err)
	}
	other, err := minfer.Open(context.Background(), path, minfer.WithThreads(2), minfer.WithContext(300), minfer.WithBackends("cpu"))
	if err != nil {
		t.Fatal(err)
	}
	if again := reply(t, other, fox); again != story {
		t.Errorf("from a file: %q\nbuilt in: %q", again, story)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if _, err := other.Generate(context.Background(), fox); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("a closed model: %v", err)
	}
}

// Pieces are the text, whole characters each, and the numbers belong to it.
func TestPieces(t *testing.T) {
	m := open(t)
	want := reply(t, m, fox)
	g, err := m.Generate(context.Background(), fox, minfer.Greedy(), minfer.MaxTokens(60))
	if err != nil {
		t.Fatal(err)
	}
	text, pieces := "", 0
	for piece := range g.Pieces() {
		if piece == "" || !strings.HasPrefix(want, text+piece) {
			t.Fatalf("piece %q after %q", piece, text)
		}
		text += piece
		pieces++
	}
	s := g.Stats()
	if text != want || pieces < 20 || g.Err() != nil || s.Generated < pieces || s.Prompt == 0 {
		t.Errorf("%d pieces, text %q, want %q; %v; stats %+v", pieces, text, want, g.Err(), s)
	}
}

func TestGenerateEnds(t *testing.T) {
	m := open(t, minfer.WithContext(200))
	start := func(ctx context.Context, settings ...minfer.Setting) *minfer.Generation {
		t.Helper()
		g, err := m.Generate(ctx, fox, append([]minfer.Setting{minfer.Greedy()}, settings...)...)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	g := start(t.Context(), minfer.MaxTokens(3))
	if _, err := g.Text(); err != nil || g.Reason() != engine.ReasonLength || g.Stats().Generated != 3 {
		t.Errorf("three tokens: %s, %v, %+v", g.Reason(), err, g.Stats())
	}
	g = start(t.Context(), minfer.MaxTokens(100), minfer.Stop("little"), minfer.Stop("fox"))
	if text, err := g.Text(); err != nil || g.Reason() != engine.ReasonStop || strings.Contains(text, "fox") {
		t.Errorf("stopped by a text: %q, %s, %v", text, g.Reason(), err)
	}
	g = start(t.Context(), minfer.MaxTokens(150))
	for range g.Pieces() {
		break // leaves the loop: the request ends
	}
	if n := g.Stats().Generated; n >= 150 {
		t.Errorf("left at once, it generated %d tokens", n)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	enough := errors.New("enough")
	g = start(ctx, minfer.MaxTokens(-1))
	for range g.Pieces() {
		cancel(enough)
	}
	if !errors.Is(g.Err(), enough) && g.Reason() != engine.ReasonLength {
		t.Errorf("cancelled: %s, %v", g.Reason(), g.Err())
	}
	if _, err := m.Generate(t.Context(), strings.Repeat(fox, 50)); !errors.Is(err, engine.ErrContextLength) {
		t.Errorf("a prompt beyond the context: %v", err)
	}
	if _, err := m.Generate(t.Context(), fox, minfer.Stop("")); err == nil {
		t.Error("an empty stop text is accepted")
	}
}

// Equal seeds give equal replies, other seeds others; markers in a raw prompt are markers.
func TestSeedsAndRaw(t *testing.T) {
	m := open(t)
	draw := func(seed uint64) string {
		t.Helper()
		g, err := m.Generate(t.Context(), fox, minfer.Seed(seed), minfer.MaxTokens(30))
		if err != nil {
			t.Fatal(err)
		}
		text, err := g.Text()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	one := draw(1)
	if draw(1) != one {
		t.Error("one seed gave two replies")
	}
	different := false
	for seed := range uint64(8) {
		different = different || draw(seed+2) != one
	}
	if !different {
		t.Error("nine seeds gave one reply")
	}
	raw := reply(t, m, "<|im_start|>user\n"+fox+"<|im_end|>\n<|im_start|>assistant\n", minfer.Raw())
	if want := reply(t, m, fox); raw != want {
		t.Errorf("the wrapped prompt, raw: %q\nwant %q", raw, want)
	}
}

// One model serves many callers at once, each as if alone.
func TestManyCallers(t *testing.T) {
	m := open(t, minfer.WithSequences(3), minfer.WithContext(1024))
	prompts := []string{fox, "What is the capital of France?", "Count from 3 to 9.", "Tell me a story about a small bird."}
	var want []string
	for _, p := range prompts {
		want = append(want, reply(t, m, p))
	}
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			g, err := m.Generate(t.Context(), prompts[i%4], minfer.Greedy(), minfer.MaxTokens(60))
			if err != nil {
				t.Error(err)
				return
			}
			if text, err := g.Text(); err != nil || text != want[i%4] {
				t.Errorf("caller %d: %q, %v; want %q", i, text, err, want[i%4])
			}
		})
	}
	wg.Wait()
}

func TestOpenRefusals(t *testing.T) {
	if _, err := minfer.Open(t.Context(), filepath.Join(t.TempDir(), "none.gguf")); err == nil || !strings.Contains(err.Error(), "none.gguf") {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := minfer.Open(t.Context(), "tiny", minfer.WithBackends("vulkan")); !errors.Is(err, backend.ErrUnknown) {
		t.Errorf("an unknown backend: %v", err)
	}
	if _, err := minfer.Open(t.Context(), "tiny", minfer.WithEngine(engine.Options{Batch: -1})); !errors.Is(err, engine.ErrOptions) {
		t.Errorf("a bad option: %v", err)
	}
	f, err := gguf.FromBytes("cut.gguf", builtin.Tiny()[:1000])
	if err == nil {
		_, err = minfer.Load(t.Context(), f)
	}
	if err == nil || !strings.Contains(err.Error(), "cut.gguf") {
		t.Errorf("a file that is cut off: %v", err)
	}
}
