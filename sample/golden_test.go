package sample

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// sharedFile returns a file of the reference data, or skips.
func sharedFile(t *testing.T, name string) string {
	t.Helper()
	root := os.Getenv("MINFER_SHARED")
	if root == "" {
		dir, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				break
			}
			up := filepath.Dir(dir)
			if up == dir {
				t.Skip("reference data: no go.mod above the test")
			}
			dir = up
		}
		root = filepath.Join(dir, "..", "shared")
	}
	path := filepath.Join(root, "golden", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("reference data is absent (set MINFER_SHARED): %v", err)
	}
	return path
}

// goldenLogits is the vector of the reference rows: an LCG, cubed.
func goldenLogits(n int, seed uint32) []float32 {
	l := make([]float32, n)
	s := seed
	for i := range l {
		s = s*1664525 + 1013904223
		u := float32(s>>8) / (1 << 24)
		x := float32(2*u) - 1
		l[i] = 8 * float32(float32(x*x)*x)
	}
	return l
}

// survivors runs the pipeline up to the draw and returns each token's
// probability there.
func survivors(t *testing.T, c Config, l []float32) map[int32]float64 {
	t.Helper()
	s, err := New(c, len(l))
	if err != nil {
		t.Fatal(err)
	}
	return survivorsOf(t, s, l)
}

func survivorsOf(t *testing.T, s *Sampler, l []float32) map[int32]float64 {
	t.Helper()
	row := append([]float32(nil), l...)
	s.cands = nil
	s.adjust(row)
	if _, err := s.choose(row, nil, true); err != nil {
		t.Fatal(err)
	}
	out := make(map[int32]float64)
	if len(s.cands) == 0 { // drawn from the whole row
		_, top, _ := argmax(row)
		if s.cfg.XTCProbability == 1 {
			top = s.xtcRow(row, top)
		}
		total := 0.0
		for i, v := range row {
			if v == negInf {
				continue
			}
			e := math.Exp((float64(v) - float64(top)) / s.cfg.Temperature)
			out[int32(i)] = e
			total += e
		}
		for i := range out {
			out[i] /= total
		}
		return out
	}
	for _, c := range s.cands {
		out[c.id] = c.e / s.total()
	}
	return out
}

func TestGoldenFilters(t *testing.T) {
	f, err := os.Open(sharedFile(t, "samplers/filters.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows := 0
	kinds := map[string]int{}
	for in := bufio.NewScanner(f); in.Scan(); rows++ {
		var row struct {
			Sampler string
			Params  struct{ K, P, T, N float64 }
			Seed    uint32
			N       int
			Left    int
			Top     [][2]float64
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		c := Neutral()
		p := row.Params
		switch row.Sampler {
		case "top_k":
			c.TopK = int(p.K)
		case "top_p":
			c.TopP = p.P
		case "min_p":
			c.MinP = p.P
		case "typical":
			c.TypicalP = p.P
		case "temp":
			c.Temperature = p.T
		case "xtc":
			c.XTCProbability, c.XTCThreshold = p.P, p.T
		case "top_n_sigma":
			c.TopNSigma = p.N
		default:
			t.Fatalf("row %d: unknown sampler %q", rows, row.Sampler)
		}
		kinds[row.Sampler]++
		got := survivors(t, c, goldenLogits(row.N, row.Seed))
		// The reference leaves what top-n-sigma drops in the list, at probability 0.
		if row.Sampler != "top_n_sigma" && len(got) != row.Left {
			t.Errorf("%s: %d candidates left, want %d", in.Text()[:60], len(got), row.Left)
		}
		for _, e := range row.Top {
			if q := got[int32(e[0])]; math.Abs(q-e[1]) > 1e-5 {
				t.Errorf("%s: token %v has probability %v, want %v", in.Text()[:60], e[0], q, e[1])
			}
		}
		if row.Sampler == "top_n_sigma" && len(row.Top) == 12 && row.Top[11][1] == 0 {
			n := 0
			for n < 12 && row.Top[n][1] > 0 {
				n++
			}
			if len(got) != n {
				t.Errorf("%s: %d candidates left, want %d", in.Text()[:60], len(got), n)
			}
		}
	}
	if rows == 0 || len(kinds) != 7 {
		t.Fatalf("%d rows of kinds %v", rows, kinds)
	}
}
