package tokenizer

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

func TestNFC(t *testing.T) {
	zalgo := "Z" + strings.Repeat("\u0334\u0301", 60)
	for in, want := range map[string]string{
		"":                                       "",
		"plain":                                  "plain",
		"e\u0301":                                "é",
		"\u0301":                                 "\u0301",
		"x\u0301e":                               "x\u0301e",
		"a\u0302\u0323":                          "ậ",
		"\u212b\u2126\u212a":                     "ÅΩK",
		"\u1100\u1161\u11a8":                     "각",
		"\uac00\u11a8":                           "각",
		"\u0958":                                 "\u0915\u093c", // a composition exclusion
		"\xffe\u0301\xff":                        "\xffé\xff",
		zalgo:                                    "Ź" + strings.Repeat("\u0334", 60) + strings.Repeat("\u0301", 59),
		"e" + strings.Repeat("\u0301", 50):       "é" + strings.Repeat("\u0301", 49),
		"\uff76" + strings.Repeat("\uff9e", 100): "\uff76" + strings.Repeat("\uff9e", 100),
		strings.Repeat("\u0323", 40) + "a\u0323": strings.Repeat("\u0323", 40) + "ạ",
		strings.Repeat("\u0301\u0323", 20) + "\xff": strings.Repeat("\u0323", 20) + strings.Repeat("\u0301", 20) + "\xff",
	} {
		if got := nfc(in); got != want {
			t.Errorf("nfc(%+q) = %+q, want %+q", in, got, want)
		}
	}
}

// TestNFCAlone compares the composition here with that of the library for every
// character between others, and finds no inserted character in long runs.
func TestNFCAlone(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) || r > 0x323FF && r < 0xE0000 || r > 0xE01FF {
			continue // no characters are assigned there
		}
		s := "a" + string(r) + "\u0323" + string(r) + "e\u0301"
		want := norm.NFC.String(s)
		if got := composeNFC(s); got != want {
			t.Fatalf("%+q: %+q, want %+q", s, got, want)
		}
		if p := norm.NFKC.PropertiesString(string(r)); p.LeadCCC() == 0 && p.TrailCCC() == 0 || r == 0x34F {
			continue
		}
		if got := nfc(strings.Repeat(string(r), 33)); strings.Contains(got, "\u034f") {
			t.Fatalf("%+q: a character was inserted", r)
		}
	}
}

func TestNFCProperties(t *testing.T) {
	chars := rapid.SampledFrom([]rune("aeoK \u0301\u0302\u0323\u0334\u0345\u05b4\u093c\u0915\u1100\u1161\u11a8\uac00\u212b\u09c7\u09be\u3099かé\u1e9b\u0f71\u0f72"))
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(chars, 0, 20).Draw(t, "s"))
		want := norm.NFC.String(s) // too short for the stream-safe limit
		if got := nfc(s); got != want {
			t.Fatalf("nfc(%+q) = %+q, want %+q", s, got, want)
		}
		if got := composeNFC(s); got != want {
			t.Fatalf("composeNFC(%+q) = %+q, want %+q", s, got, want)
		}
	})
}
