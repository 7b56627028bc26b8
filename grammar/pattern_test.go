package grammar

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestPatternMatches(t *testing.T) {
	tests := []struct {
		src     string
		yes, no []string
	}{
		{`^a*$`, []string{"", "aaa"}, []string{"abc", "ba"}},
		{`a+`, []string{"xxaayy", "a"}, []string{"", "xyz"}},
		{`^a|b$`, []string{"axx", "xxb"}, []string{"xa", "bx", ""}},
		{`^(?:a|bc){2,3}?$`, []string{"aa", "bcabc"}, []string{"a", "aaaa"}},
		{`(^foo)|(bar$)`, []string{"foox", "xbar"}, []string{"xfoo", "barx"}},
		{`^$`, []string{""}, []string{"a"}},
		{``, []string{"", "x"}, nil},
		{`a^b`, nil, []string{"ab", "a\nb", ""}},
		{`^\d{3}-\w\s\S$`, []string{"123-_ x", "000-a\u00a0é"}, []string{"12-a x", "123-é x"}},
		{`^[^\d\n-]+$`, []string{"abc", "é"}, []string{"a1", "-", ""}},
		{`^[\w.-]+@[a-z]$`, []string{"a.b-c@z"}, []string{"a b@z"}},
		{`^.$`, []string{"a", "é", "😀"}, []string{"\n", "\r", "\u2028", "ab"}},
		{`^\u00e9\xe9\u{1F600}\ud83d\ude00\cA\0$`, []string{"éé😀😀\x01\x00"}, []string{"é"}},
		{`^[\u{1F600}-\u{1F64F}]$`, []string{"😀"}, []string{"a"}},
		{`^\p{Lu}\p{Letter}\P{L}\p{Script=Greek}$`, []string{"Éé1α"}, []string{"éé1α", "ÉéXα", "Éé1a"}},
		{`^(?<year>\d{4})\/x{y}{$`, []string{"2026/x{y}{"}, []string{"2026"}},
		{`^[]$`, nil, []string{"", "a"}},
		{`^[^]$`, []string{"a", "\n"}, []string{""}},
		{`^[\b]$`, []string{"\b"}, []string{"b"}},
	}
	for _, tt := range tests {
		d, err := patternDFA(tt.src)
		if err != nil {
			t.Errorf("%q: %v", tt.src, err)
			continue
		}
		for _, s := range tt.yes {
			if !d.match(s) {
				t.Errorf("%q rejects %q", tt.src, s)
			}
		}
		for _, s := range tt.no {
			if d.match(s) {
				t.Errorf("%q accepts %q", tt.src, s)
			}
		}
	}
}

func TestPatternRefusals(t *testing.T) {
	tests := []struct {
		src  string
		want error
		text string
	}{
		{`^(?=a)`, ErrUnsupported, "lookahead"},
		{`^(?!a)`, ErrUnsupported, "lookahead"},
		{`(?<=a)`, ErrUnsupported, "lookbehind"},
		{`(?<!a)`, ErrUnsupported, "lookbehind"},
		{`(a)\1`, ErrUnsupported, "back reference"},
		{`(?<n>a)\k<n>`, ErrUnsupported, "back reference"},
		{`\bword`, ErrUnsupported, "word boundary"},
		{`(?i)a`, ErrUnsupported, "group modifier"},
		{`\p{Emoji_Nonsense}`, ErrUnsupported, "Emoji_Nonsense"},
		{`(`, ErrSyntax, "not closed"},
		{`a)`, ErrSyntax, "unmatched"},
		{`[a`, ErrSyntax, "not closed"},
		{`*a`, ErrSyntax, "repeats nothing"},
		{`a**`, ErrSyntax, "repeats a repetition"},
		{`a{3,2}`, ErrSyntax, "reversed"},
		{`[z-a]`, ErrSyntax, "reversed"},
		{`\a`, ErrSyntax, `\a`},
		{`\`, ErrSyntax, "end"},
		{`a{2001}`, ErrLimit, "MaxRepeat"},
		{strings.Repeat("(", MaxNesting) + strings.Repeat(")", MaxNesting), ErrLimit, "MaxNesting"},
		{`^(a|b)*a(a|b){20}$`, ErrLimit, "MaxDFA"},
	}
	for _, tt := range tests {
		if _, err := patternDFA(tt.src); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%q: %v, want %v naming %q", tt.src, err, tt.want, tt.text)
		}
	}
	if _, err := patternDFA(strings.Repeat("(", MaxNesting-1) + strings.Repeat(")", MaxNesting-1)); err != nil {
		t.Errorf("at MaxNesting: %v", err)
	}
	if _, err := patternDFA(`^a{2000}$`); err != nil {
		t.Errorf("at MaxRepeat: %v", err)
	}
}

// FuzzPattern compares with Go's regexp on the syntax that both share.
func FuzzPattern(f *testing.F) {
	f.Add(`^(a|b)*c{2,3}x?$`, "abccx")
	f.Add(`a|^b$|[^c-e]+$`, "b")
	f.Fuzz(func(t *testing.T, src, text string) {
		if len(src) > 40 || firstInvalidUTF8(text) >= 0 || strings.ContainsAny(src, `\(.[{`) && strings.ContainsAny(src, `?:\&.{}`) {
			return
		}
		re, err := regexp.Compile(src)
		if err != nil {
			return
		}
		d, err := patternDFA(src)
		if err != nil || strings.Contains(src, "[]") || strings.Contains(src, "[^]") {
			return
		}
		if got, want := d.match(text), re.MatchString(text); got != want {
			t.Fatalf("%q on %q: %v, want %v", src, text, got, want)
		}
	})
}
