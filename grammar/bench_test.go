package grammar

import "testing"

const personSchema = `{"type":"object","properties":{"name":{"type":"string","maxLength":80},"age":{"type":"integer",
"minimum":0,"maximum":150},"email":{"type":"string","format":"email"},"tags":{"type":"array","items":{"enum":["red","green","blue"]}},
"born":{"type":"string","format":"date"}},"required":["name","age"],"additionalProperties":false}`

// BenchmarkSchema measures a whole answer on the real vocabulary, token by token: Allowed and Accept of
// each token, and the mask of each position, cold (a fresh grammar) and warm.
func BenchmarkSchema(b *testing.B) {
	v := qwenVocab(b)
	var text []int32
	for _, s := range []string{
		"{\"", "name", "\":", " \"", "M", "ia", " Tan", "\",", " \"", "age", "\":", " ", "7", ",", " \"", "tags", "\":",
		" [\"", "red", "\",", " \"", "blue", "\"],", " \"", "born", "\":", " \"", "2", "0", "1", "9", "-", "0", "2", "-", "2", "8", "\"}",
	} {
		k := ids(v, s)
		if len(k) == 0 {
			b.Fatalf("no token %q", s)
		}
		text = append(text, k[0])
	}
	run := func(b *testing.B, m *Matcher, each func(*State, int32)) {
		s := m.Start()
		for _, id := range text {
			each(s, id)
			if err := s.Accept(id); err != nil {
				b.Fatal(err)
			}
		}
		if !s.Complete() {
			b.Fatal("the answer is not complete")
		}
	}
	compiled := func() *Matcher { return mustSchema(b, personSchema).Bind(v) }
	report := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(text)), "us/token")
	}
	b.Run("Compile", func(b *testing.B) {
		for b.Loop() {
			mustSchema(b, personSchema)
		}
	})
	allowed := func(s *State, id int32) {
		if !s.Allowed(id) {
			b.Fatalf("token %d is not allowed", id)
		}
	}
	b.Run("Allowed/cold", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			m := compiled()
			b.StartTimer()
			run(b, m, allowed)
		}
		report(b)
	})
	b.Run("Allowed/warm", func(b *testing.B) {
		m := compiled()
		for b.Loop() {
			run(b, m, allowed)
		}
		report(b)
	})
	b.Run("Mask/cold", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			m := compiled()
			b.StartTimer()
			run(b, m, func(s *State, _ int32) { s.Mask() })
		}
		report(b)
	})
	b.Run("Mask/warm", func(b *testing.B) {
		m := compiled()
		for b.Loop() {
			run(b, m, func(s *State, _ int32) { s.Mask() })
		}
		report(b)
	})
}

// TestRealVocabulary: on the real vocabulary, masks agree with Allowed at every position of an answer.
func TestRealVocabulary(t *testing.T) {
	v := qwenVocab(t)
	m := mustSchema(t, personSchema).Bind(v)
	s := m.Start()
	for i, b := range []byte(`{"name": "Zoë", "age": 7, "tags": ["red"]}`) {
		mask := s.Mask()
		for id := int32(i % 7); id < int32(v.Size()); id += 7 {
			if got, want := mask.Has(id), s.Allowed(id); got != want {
				t.Fatalf("position %d, token %q: mask says %v, Allowed %v", i, v.pieces[id], got, want)
			}
		}
		if err := s.AcceptBytes([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if !s.Complete() {
		t.Errorf("not complete after %d bytes", s.Bytes())
	}
}
