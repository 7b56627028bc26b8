package sample

import (
	"errors"
	"math"
	"slices"
	"testing"
)

// tb is what testing.TB and rapid.T share.
type tb interface {
	Helper()
	Fatal(args ...any)
}

func newSampler(t tb, c Config, vocab int) *Sampler {
	t.Helper()
	s, err := New(c, vocab)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustSample(t tb, s *Sampler, l []float32, m Mask) int32 {
	t.Helper()
	id, err := s.Sample(l, m)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// run samples n tokens from rows that change with the step and accepts them.
func run(t tb, s *Sampler, n int) []int32 {
	t.Helper()
	var out []int32
	for i := range n {
		id := mustSample(t, s, randomLogits(s.vocab, uint64(i)), nil)
		s.Accept(id)
		out = append(out, id)
	}
	return out
}

// stages are settings that between them run every stage, with and without a list.
func stages() map[string]Config {
	out := make(map[string]Config)
	for name, set := range benchConfigs() {
		c := Neutral()
		set(&c)
		out[name] = c
	}
	add := func(name string, set func(*Config)) {
		c := Neutral()
		set(&c)
		out[name] = c
	}
	add("xtc", func(c *Config) { c.XTCProbability, c.XTCThreshold = 0.7, 0.05 })
	add("xtc top-k", func(c *Config) { c.XTCProbability, c.XTCThreshold, c.TopK = 0.7, 0.05, 20 })
	add("dynatemp", func(c *Config) { c.DynatempRange, c.DynatempExponent = 0.5, 1.3 })
	add("dynatemp top-k", func(c *Config) { c.DynatempRange, c.TopK = 2, 30 })
	add("sigma top-k typical", func(c *Config) { c.TopNSigma, c.TopK, c.TypicalP = 1.5, 10, 0.8 })
	add("hot", func(c *Config) { c.Temperature = 3 })
	add("bias", func(c *Config) { c.LogitBias, c.Ban = []Bias{{3, 8}, {3, 1}, {5, -7}}, []int32{1, 2} })
	add("dry", func(c *Config) { c.DryMultiplier, c.DryAllowedLength, c.TopK = 1.2, 1, 8 })
	add("typical top-p min-p", func(c *Config) { c.TypicalP, c.TopP, c.MinP = 0.9, 0.8, 0.05 })
	return out
}

// Seeded runs are pinned: another architecture or another day gives the same
// tokens.
func TestPinnedSequences(t *testing.T) {
	for name, want := range pinned {
		c := stages()[name]
		if got := run(t, newSampler(t, c, 1000), 12); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestEqualSeedsEqualRuns(t *testing.T) {
	for name, c := range stages() {
		a, b := run(t, newSampler(t, c, 500), 30), run(t, newSampler(t, c, 500), 30)
		if !slices.Equal(a, b) {
			t.Errorf("%s: two runs differ", name)
		}
		c.Seed++
		if d := run(t, newSampler(t, c, 500), 30); c.Temperature > 0 && slices.Equal(a, d) {
			t.Errorf("%s: another seed gives the same run", name)
		}
	}
}

func TestLogitsAreRestored(t *testing.T) {
	for name, c := range stages() {
		s := newSampler(t, c, 500)
		for i := range 20 {
			l := randomLogits(500, uint64(i))
			l[7] = float32(math.Copysign(0, -1))
			before := slices.Clone(l)
			s.Accept(mustSample(t, s, l, nil))
			s.Accept(7)
			for j := range l {
				if math.Float32bits(l[j]) != math.Float32bits(before[j]) {
					t.Fatalf("%s: logit %d was %v, is %v", name, j, before[j], l[j])
				}
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	const n = 3000
	rows := make([][]float32, 4)
	for i := range rows {
		rows[i] = randomLogits(n, uint64(i))
	}
	for name, c := range stages() {
		s := newSampler(t, c, n)
		i := 0
		step := func() {
			i++
			s.Accept(mustSample(t, s, rows[i%len(rows)], nil))
		}
		for range 400 {
			step()
		}
		if a := testing.AllocsPerRun(100, step); a != 0 {
			t.Errorf("%s: %v allocations a step", name, a)
		}
	}
}

func TestSampleErrors(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	negNaN := math.Float32frombits(0xffc00000)
	for name, c := range stages() {
		c.LogitBias, c.Ban = nil, nil
		s := newSampler(t, c, 40)
		for range 3 {
			s.Accept(4)
		}
		before := s.State()
		for what, row := range map[string]struct {
			l    []float32
			want error
		}{
			"short":     {make([]float32, 39), ErrShape},
			"long":      {make([]float32, 41), ErrShape},
			"nil":       {nil, ErrShape},
			"NaN":       {fill(40, 0, 17, nan), ErrNaN},
			"-NaN":      {fill(40, 0, 39, negNaN), ErrNaN},
			"NaN, Inf":  {fill(40, inf, 3, nan), ErrNaN},
			"NaN, -Inf": {fill(40, negInf, 3, nan), ErrNaN},
			"all -Inf":  {fill(40, negInf, 0, negInf), ErrNoCandidate},
		} {
			if id, err := s.Sample(row.l, nil); !errors.Is(err, row.want) {
				t.Errorf("%s, %s: token %d, error %v, want %v", name, what, id, err, row.want)
			}
			if after := s.State(); after.RNG != before.RNG || after.Mu != before.Mu {
				t.Errorf("%s, %s: the failed call changed the state", name, what)
			}
		}
	}
}

// fill returns n logits v, but for one.
func fill(n int, v float32, at int, other float32) []float32 {
	l := slices.Repeat([]float32{v}, n)
	l[at] = other
	return l
}

func TestInfinities(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, c := range stages() {
		s := newSampler(t, c, 40)
		l := randomLogits(40, 9)
		l[20] = inf
		if id := mustSample(t, s, l, nil); id != 20 {
			t.Errorf("%s: token %d, want the one at +Inf", name, id)
		}
		// Only one token is not at -Inf.
		l = fill(40, negInf, 30, -5)
		if id := mustSample(t, s, l, nil); id != 30 {
			t.Errorf("%s: token %d, want the only one", name, id)
		}
		if l[0] != negInf {
			t.Errorf("%s: row changed", name)
		}
	}
	// The row is restored too when it had to be rewritten.
	for name, c := range stages() {
		s := newSampler(t, c, 40)
		for range 20 {
			l := randomLogits(40, 9)
			l[20], l[21], l[22] = inf, inf, negInf
			before := slices.Clone(l)
			mustSample(t, s, l, nil)
			mustSample(t, s, l, randomMask(40, 1, 0))
			if !slices.Equal(l, before) {
				t.Fatalf("%s: the row changed", name)
			}
		}
	}
	// Several at +Inf share.
	s := newSampler(t, Neutral(), 40)
	l := randomLogits(40, 9)
	l[3], l[8], l[9] = inf, inf, negInf
	seen := map[int32]int{}
	for range 300 {
		seen[mustSample(t, s, l, nil)]++
	}
	if len(seen) != 2 || seen[3] < 100 || seen[8] < 100 {
		t.Errorf("tokens at +Inf are drawn %v times", seen)
	}
	// Finite logits whose sum overflows are no infinities.
	l = fill(40, math.MaxFloat32/2, 5, math.MaxFloat32)
	for name, c := range stages() {
		if id := mustSample(t, newSampler(t, c, 40), l, nil); id != 5 && c.XTCProbability == 0 && c.Mirostat != 1 {
			t.Errorf("%s: token %d, want 5", name, id)
		}
	}
}

func TestTiesLowerIDFirst(t *testing.T) {
	l := slices.Repeat([]float32{1.5}, 100)
	c := Neutral()
	c.Temperature = 0
	if id := mustSample(t, newSampler(t, c, 100), l, nil); id != 0 {
		t.Errorf("greedy: token %d, want 0", id)
	}
	l[0], l[99], l[41] = -3, 2, 2
	if id := mustSample(t, newSampler(t, c, 100), l, nil); id != 41 {
		t.Errorf("greedy: token %d, want 41", id)
	}
	for _, set := range []func(*Config){
		func(c *Config) { c.TopK = 4 },
		func(c *Config) { c.TopP = 0.041 },
		func(c *Config) { c.TopK, c.TopP = 50, 0.081 },
		func(c *Config) { c.TypicalP = 0.039 },
		func(c *Config) { c.TopK, c.TypicalP = 50, 0.079 },
	} {
		c := Neutral()
		set(&c)
		l := slices.Repeat([]float32{1.5}, 100)
		l[0] = float32(math.Inf(-1))
		got := survivors(t, c, l)
		for id := int32(1); id <= 4; id++ {
			if math.Abs(got[id]-1.0/float64(len(got))) > 1e-9 {
				t.Errorf("%+v: survivors %v, want the lowest ids", c, got)
			}
		}
		if len(got) < 4 || len(got) > 5 {
			t.Errorf("%+v: %d survivors", c, len(got))
		}
	}
	// Both zeros are one value.
	z := []float32{float32(math.Copysign(0, -1)), 0, -1}
	c = Neutral()
	c.TopK = 1
	if id := mustSample(t, newSampler(t, c, 3), z, nil); id != 0 {
		t.Errorf("-0 and 0 are no tie: token %d", id)
	}
}

func TestPenalties(t *testing.T) {
	c := Neutral()
	c.RepeatPenalty, c.FrequencyPenalty, c.PresencePenalty = 2, 0.25, 0.5
	c.LogitBias = []Bias{{0, 3}, {2, 1}, {2, 1}}
	c.Ban = []int32{5}
	s := newSampler(t, c, 6)
	for _, id := range []int32{0, 1, 1, 3, 1, -1, 6} {
		s.Accept(id)
	}
	l := []float32{1, -2, 3, 0, 4, 9}
	s.adjust(l)
	want := []float32{(1+3)/2.0 - 0.75, -2*2 - 3*0.25 - 0.5, 5, -0.75, 4, negInf}
	if !slices.Equal(l, want) {
		t.Errorf("logits %v, want %v", l, want)
	}
	s.restore(l, 0)
	if !slices.Equal(l, []float32{1, -2, 3, 0, 4, 9}) {
		t.Errorf("restored to %v", l)
	}
}

func TestPenaltyWindow(t *testing.T) {
	c := Neutral()
	c.RepeatPenalty = 2
	s := newSampler(t, c, 1000)
	for i := range int32(1000) {
		s.Accept(i)
		l := slices.Repeat([]float32{1}, 1000)
		s.adjust(l)
		for id, v := range l {
			recent := int32(id) <= i && int32(id) > i-64
			if (v == 0.5) != recent || (v == 1) == recent {
				t.Fatalf("after %d tokens, logit of token %d is %v", i+1, id, v)
			}
		}
		s.restore(l, 0)
	}
}

func TestStateContinues(t *testing.T) {
	for name, c := range stages() {
		s := newSampler(t, c, 300)
		run(t, s, 90)
		blob, err := s.State().MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		clone := s.Clone()
		want := run(t, s, 40)
		if got := run(t, clone, 40); !slices.Equal(got, want) {
			t.Errorf("%s: a clone goes on differently", name)
		}
		other := newSampler(t, c, 300)
		run(t, other, 7)
		var st State
		if err := st.UnmarshalBinary(blob); err != nil {
			t.Fatal(err)
		}
		if err := other.Restore(st); err != nil {
			t.Fatal(err)
		}
		if got := run(t, other, 40); !slices.Equal(got, want) {
			t.Errorf("%s: a restored sampler goes on differently", name)
		}
		fresh := run(t, newSampler(t, c, 300), 20)
		s.Reset()
		if got := run(t, s, 20); !slices.Equal(got, fresh) {
			t.Errorf("%s: a reset sampler differs from a new one", name)
		}
	}
}

func TestStateRefusals(t *testing.T) {
	s := newSampler(t, Default(), 10)
	run(t, s, 5)
	good := s.State()
	for what, change := range map[string]func(*State){
		"zero generator": func(st *State) { st.RNG = [4]uint64{} },
		"mu NaN":         func(st *State) { st.Mu = math.NaN() },
		"mu Inf":         func(st *State) { st.Mu = math.Inf(-1) },
		"negative token": func(st *State) { st.History = []int32{-1} },
		"large token":    func(st *State) { st.History = []int32{10} },
		"long history":   func(st *State) { st.History = make([]int32, MaxHistory+1) },
	} {
		st := good
		change(&st)
		if err := s.Restore(st); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", what, err)
		}
		if now := s.State(); now.RNG != good.RNG || !slices.Equal(now.History, good.History) {
			t.Errorf("%s: the state changed", what)
		}
	}
	blob, _ := good.MarshalBinary()
	var st State
	for what, b := range map[string][]byte{
		"empty":   nil,
		"short":   blob[:len(blob)-1],
		"long":    append(slices.Clone(blob), 0),
		"header":  blob[:stateHeader-1],
		"version": append([]byte{2}, blob[1:]...),
		"count":   append(append(slices.Clone(blob[:stateHeader-4]), 0xff, 0xff, 0xff, 0xff), blob[stateHeader:]...),
	} {
		if err := st.UnmarshalBinary(b); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := (State{History: make([]int32, MaxHistory+1)}).MarshalBinary(); !errors.Is(err, ErrState) {
		t.Errorf("long history: %v", err)
	}
}

func FuzzStateUnmarshal(f *testing.F) {
	s, _ := New(Default(), 10)
	s.Accept(3)
	blob, _ := s.State().MarshalBinary()
	f.Add(blob)
	f.Add([]byte{})
	f.Add(append([]byte{1}, make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		var st State
		if err := st.UnmarshalBinary(b); err != nil {
			if !errors.Is(err, ErrState) {
				t.Fatal(err)
			}
			return
		}
		out, err := st.MarshalBinary()
		if err != nil || !slices.Equal(out, b) {
			t.Fatalf("%x decodes and encodes to %x (%v)", b, out, err)
		}
	})
}

var pinned = map[string][]int32{
	"bias":                {3, 625, 300, 958, 963, 626, 730, 3, 98, 387, 626, 3},
	"default":             {244, 765, 121, 824, 787, 176, 706, 670, 770, 367, 949, 978},
	"dry":                 {244, 765, 374, 608, 480, 435, 164, 107, 67, 655, 949, 978},
	"dynatemp":            {146, 765, 489, 958, 983, 732, 763, 783, 763, 477, 554, 241},
	"dynatemp top-k":      {762, 792, 720, 305, 552, 351, 786, 4, 278, 639, 329, 241},
	"everything":          {731, 347, 221, 838, 848, 556, 7, 364, 98, 362, 949, 645},
	"greedy":              {244, 765, 8, 171, 152, 120, 103, 168, 224, 157, 524, 978},
	"hot":                 {96, 376, 672, 927, 992, 759, 735, 833, 763, 566, 675, 290},
	"min-p":               {244, 765, 300, 489, 546, 455, 891, 475, 135, 253, 524, 978},
	"mirostat1":           {244, 765, 839, 162, 377, 751, 767, 576, 803, 61, 256, 978},
	"mirostat2":           {244, 765, 720, 285, 910, 956, 722, 290, 985, 446, 766, 978},
	"plain":               {154, 625, 489, 968, 978, 723, 753, 783, 763, 450, 621, 241},
	"sigma":               {244, 765, 114, 419, 197, 110, 316, 481, 753, 496, 524, 978},
	"sigma top-k typical": {244, 765, 323, 608, 812, 749, 164, 107, 491, 655, 524, 978},
	"top-p":               {244, 765, 197, 766, 166, 363, 974, 357, 689, 606, 554, 978},
	"typical":             {244, 765, 299, 882, 98, 40, 325, 742, 313, 185, 136, 978},
	"typical top-p min-p": {244, 765, 114, 489, 546, 455, 927, 475, 135, 253, 524, 978},
	"xtc":                 {388, 932, 602, 844, 471, 312, 308, 786, 852, 606, 248, 460},
	"xtc top-k":           {427, 577, 300, 145, 111, 443, 343, 991, 770, 496, 949, 717},
}

// Top-p stops when its share is reached, typical when it is exceeded.
func TestExactShare(t *testing.T) {
	l := []float32{0, 0, -900}
	for _, topK := range []int{0, 2} {
		c := Neutral()
		c.TopK, c.TopP = topK, 0.5
		if got := survivors(t, c, l); len(got) != 1 {
			t.Errorf("top-k %d, top-p 0.5 of two equal tokens: %v left, want 1", topK, got)
		}
		c.TopP, c.TypicalP = 1, 0.5
		if got := survivors(t, c, l); len(got) != 2 {
			t.Errorf("top-k %d, typical 0.5 of two equal tokens: %v left, want 2", topK, got)
		}
	}
}
