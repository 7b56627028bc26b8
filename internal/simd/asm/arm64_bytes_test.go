package main

import (
	"strings"
	"testing"
)

// TestArm64ByteWords: the instructions on bytes and memory are the words that Arm's architecture manual gives them.
func TestArm64ByteWords(t *testing.T) {
	for _, c := range []struct {
		emit func(neon)
		want string
	}{
		{func(f neon) { f.sdot(24, 28, 23, 3) }, "WORD $0x4fb7eb98 // sdot v24.4s, v28.16b, v23.4b[3]"},
		{func(f neon) { f.v("sdot 4s 16b", 21, 8, 8) }, "WORD $0x4e889515 // sdot v21.4s, v8.16b, v8.16b"},
		{func(f neon) { f.shift("16b", 7, 6, -4) }, "WORD $0x6f0c04c7 // ushr v7.16b, v6.16b, #4"},
		{func(f neon) { f.shift("16b", 13, 10, 4) }, "WORD $0x4f0c554d // shl v13.16b, v10.16b, #4"},
		{func(f neon) { f.shift("4s", 8, 6, -4) }, "WORD $0x6f3c04c8 // ushr v8.4s, v6.4s, #4"},
		{func(f neon) { f.shll(true, 9, 8) }, "WORD $0x6e613909 // shll2 v9.4s, v8.8h, #16"},
		{func(f neon) { f.lookup(6, 24, 6) }, "WORD $0x4e060306 // tbl v6.16b, {v24.16b}, v6.16b"},
		{func(f neon) { f.clear(5) }, "WORD $0x4f000405 // movi v5.4s, #0"},
		{func(f neon) { f.signedHalf("R6", 13) }, "WORD $0x0e022da6 // smov w6, v13.h[0]"},
		{func(f neon) { f.upper(0, 31) }, "WORD $0x6e1807e0 // ins v0.d[1], v31.d[0]"},
		{func(f neon) { f.lower(4, 4) }, "WORD $0x5e180484 // mov d4, v4.d[1]"},
		{func(f neon) { f.prefetch(1, "R1", 3072) }, "WORD $0xf9860020 // prfm pldl1keep, [x1, #3072]"},
		{func(f neon) { f.prefetch(2, "R0", 0) }, "WORD $0xf9800002 // prfm pldl2keep, [x0, #0]"},
	} {
		if have := strings.TrimSpace(emitted(c.emit)); have != c.want {
			t.Errorf("emitted %q, want %q", have, c.want)
		}
	}
	for name, emit := range map[string]func(neon){
		"shift beyond a byte": func(f neon) { f.shift("16b", 0, 0, 8) },
		"shift by nothing":    func(f neon) { f.shift("4s", 0, 0, 0) },
		"far prefetch":        func(f neon) { f.prefetch(1, "R0", 8<<12) },
		"uneven prefetch":     func(f neon) { f.prefetch(1, "R0", 4) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is emitted", name)
				}
			}()
			emitted(emit)
		}()
	}
}
