package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// emitted is what emit writes into the assembly of one function without parameters.
func emitted(emit func(neon)) string {
	f := NewFile("arm64")
	emit(neon{f.Func("f", "n int", "f")})
	_, body, _ := strings.Cut(f.asm.String(), "\n\t")
	return "\t" + body
}

// TestArm64Words: instructions are the words that Arm's architecture manual gives them.
func TestArm64Words(t *testing.T) {
	for _, c := range []struct {
		emit func(neon)
		want string
	}{
		{func(f neon) { f.v("fadd 4s", 0, 1, 2) }, "WORD $0x4e22d420 // fadd v0.4s, v1.4s, v2.4s"},
		{func(f neon) { f.v("fmul 4s", 31, 30, 29) }, "WORD $0x6e3ddfdf // fmul v31.4s, v30.4s, v29.4s"},
		{func(f neon) { f.v("fcvtl 4s 4h", 3, 7) }, "WORD $0x0e2178e3 // fcvtl v3.4s, v7.4h"},
		{func(f neon) { f.v("fcvtl2 2d 4s", 20, 16) }, "WORD $0x4e617a14 // fcvtl2 v20.2d, v16.4s"},
		{func(f neon) { f.v("fcvtn 4h 4s", 1, 2) }, "WORD $0x0e216841 // fcvtn v1.4h, v2.4s"},
		{func(f neon) { f.v("scvtf 4s", 5, 5) }, "WORD $0x4e21d8a5 // scvtf v5.4s, v5.4s"},
		{func(f neon) { f.v("shl 4s by 23", 3, 3) }, "WORD $0x4f375463 // shl v3.4s, v3.4s, #23"},
		{func(f neon) { f.v("tbx 16b from4", 4, 0, 16) }, "WORD $0x4e107004 // tbx v4.16b, {v0.16b-v3.16b}, v16.16b"},
		{func(f neon) { f.v("faddp d 2d", 0, 0) }, "WORD $0x7e70d800 // faddp d0, v0.2d"},
		{func(f neon) { f.v("fcvt s h", 0, 0) }, "WORD $0x1ee24000 // fcvt s0, h0"},
		{func(f neon) { f.mov(9, 8) }, "WORD $0x4ea81d09 // orr v9.16b, v8.16b, v8.16b"},
		{func(f neon) { f.element("fmla", 0, 1, 3, 31) }, "WORD $0x4fbf1820 // fmla v0.4s, v1.4s, v31.s[3]"},
		{func(f neon) { f.element("fmul", 2, 2, 0, 24) }, "WORD $0x4f989042 // fmul v2.4s, v2.4s, v24.s[0]"},
		{func(f neon) { f.element("dup", 10, 13, 0) }, "WORD $0x4e0405aa // dup v10.4s, v13.s[0]"},
		{func(f neon) { f.dupWord(10, "R7") }, "WORD $0x4e040cea // dup v10.4s, w7"},
		{func(f neon) { f.ldr("q", 17, "R10", 240) }, "WORD $0x3dc03d51 // ldr q17, [x10, #240]"},
		{func(f neon) { f.str("s", 2, "R3", 4) }, "WORD $0xbd000462 // str s2, [x3, #4]"},
		{func(f neon) { f.ldr("h", 0, "R1", 2) }, "WORD $0x7d400420 // ldr h0, [x1, #2]"},
		{func(f neon) { f.ldur(16, "R1", 18) }, "WORD $0x3cc12030 // ldur q16, [x1, #18]"},
		{func(f neon) { f.ld2(0, "R4") }, "WORD $0x4c408880 // ld2 {v0.4s, v1.4s}, [x4]"},
	} {
		if have := strings.TrimSpace(emitted(c.emit)); have != c.want {
			t.Errorf("emitted %q, want %q", have, c.want)
		}
	}
}

// TestArm64Refused: what has no encoding stops the generator.
func TestArm64Refused(t *testing.T) {
	for name, emit := range map[string]func(neon){
		"distance beyond 12 bits": func(f neon) { f.ldr("q", 0, "R0", 16<<12) },
		"distance between units":  func(f neon) { f.ldr("s", 0, "R0", 2) },
		"negative distance":       func(f neon) { f.ldr("s", 0, "R0", -4) },
		"unscaled distance":       func(f neon) { f.ldur(0, "R0", 256) },
		"reserved register":       func(f neon) { f.ldr("s", 0, "R28", 0) },
		"unknown instruction":     func(f neon) { f.v("fmax 4s", 0, 0, 0) },
		"too few sources":         func(f neon) { f.v("fadd 4s", 0, 0) },
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

var wordLine = regexp.MustCompile(`(?m)^\tWORD \$0x([0-9a-f]{8}) // (.*)$`)

// TestArm64Assembler compares every word of the generated files with what GNU's assembler makes of the line beside it.
func TestArm64Assembler(t *testing.T) {
	const as, objcopy = "aarch64-linux-gnu-as", "aarch64-linux-gnu-objcopy"
	for _, tool := range []string{as, objcopy} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("binutils for aarch64 are not installed: %v", err)
		}
	}
	var text strings.Builder
	var words []uint32
	var lines []string
	for _, g := range generators {
		if !strings.HasPrefix(g.tags, "arm64") {
			continue
		}
		f := NewFile(g.tags)
		g.emit(f)
		for _, m := range wordLine.FindAllStringSubmatch(f.asm.String(), -1) {
			w, err := strconv.ParseUint(m[1], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			words, lines = append(words, uint32(w)), append(lines, m[2])
			text.WriteString(m[2] + "\n")
		}
	}
	dir := t.TempDir()
	source, object, binaryFile := filepath.Join(dir, "a.s"), filepath.Join(dir, "a.o"), filepath.Join(dir, "a.bin")
	if err := os.WriteFile(source, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range []*exec.Cmd{
		exec.Command(as, "-march=armv8.2-a+fp16+dotprod", "-o", object, source),
		exec.Command(objcopy, "-O", "binary", "-j", ".text", object, binaryFile),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	code, err := os.ReadFile(binaryFile)
	if err != nil {
		t.Fatal(err)
	}
	if len(code) != 4*len(words) || len(words) < 1000 {
		t.Fatalf("%d bytes of code for %d words", len(code), len(words))
	}
	wrong := 0
	for i, w := range words {
		if want := binary.LittleEndian.Uint32(code[4*i:]); w != want {
			if wrong++; wrong < 10 {
				t.Errorf("%s is %08x, want %08x", lines[i], w, want)
			}
		}
	}
	t.Logf("%d words compared", len(words))
}
