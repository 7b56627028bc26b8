package main

func init() {
	generators = append(generators, generator{base: "gemm_expand_neon_arm64", tags: "arm64 && !purego", emit: func(f *File) {
		for i := range weightForms {
			expandCodesNEON(f, &weightForms[i])
		}
		for _, typ := range []string{"F16", "BF16"} {
			expandFloatsNEON(f, typ)
		}
	}})
}

// beginExpandNEON begins the function of one type.
//
//	R0 records  R1 units  R2 units left
func beginExpandNEON(f *File, typ string) neon {
	name := "expandNEON" + typ
	v := neon{f.Func(name, "dst *byte, units *byte, count int", name+" expands count units: it is expand"+typ+" for several.")}
	v.Load("dst", "R0")
	v.Load("units", "R1")
	v.Load("count", "R2")
	return v
}

// expandCodesNEON emits the expansion of whole units of one type.
func expandCodesNEON(f *File, w *weightForm) {
	u := unpackerN{beginExpandNEON(f, w.name), w, false}
	u.constants()
	unit, record := u.NewLabel("unit"), recordBytes(w.class)
	u.Label(unit)
	u.ahead("R1", 0, w.unitBytes())
	u.blocks(func(b int, small, codes string, disp int) {
		for q := range quads {
			u.codes(codes, disp, q, func(g, codes int) { u.str("q", codes, "R0", g*vector+16*q) })
			u.blockScales("R1", small, b, q)
			for i := range (record - codeBytes) / vector {
				u.str("q", unpackedN+i, "R0", codeBytes+i*vector+16*q)
			}
		}
		u.add(record, "R0")
	})
	u.add(w.unitBytes(), "R1")
	u.countdown(1, "R2", unit)
	u.Ret()
}

// expandFloatsNEON emits the expansion of units of binary16 or bfloat16 numbers.
func expandFloatsNEON(f *File, typ string) {
	v := beginExpandNEON(f, typ)
	unit := v.NewLabel("unit")
	v.Label(unit)
	for i := range floatUnit {
		if i%2 == 0 {
			v.prefetch(1, "R1", prefetchAhead+32*i)
		}
		to := i % 4 * 4
		v.loadWeights(typ, to, "R1", 32*i)
		for q := range quads {
			v.str("q", to+q, "R0", vector*i+16*q)
		}
	}
	v.add(32*floatUnit, "R1")
	v.add(vector*floatUnit, "R0")
	v.countdown(1, "R2", unit)
	v.Ret()
}
