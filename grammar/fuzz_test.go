package grammar

import "testing"

func FuzzParseGBNF(f *testing.F) {
	f.Add(jsonGBNF, "{}")
	f.Add(`root ::= [^a-c\u00e9]{2,3} (x | "b"+)? # c`+"\nx ::= .", "dd")
	f.Fuzz(func(t *testing.T, src, text string) {
		g, err := ParseGBNF(src)
		if err != nil {
			return
		}
		match := g.Match([]byte(text))
		if again := g.Match([]byte(text)); again != match {
			t.Fatalf("Match says %v, then %v", match, again)
		}
		s := g.Bind(smallVocab()).Start()
		checkMask(t, s)
		if s.AcceptBytes([]byte(text)) == nil && s.Complete() != match {
			t.Fatalf("Match says %v, the state of the same text %v", match, s.Complete())
		}
	})
}
