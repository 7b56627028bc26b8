package simd

import "github.com/minfer-go/minfer/quant"

// genericTile is the tokens in a group of the portable set: codes are read once for that many.
const genericTile = 4

func matFor(isa ISA) Mat {
	m := Mat{tile: genericTile, dot: dotGeneric, expand: expandGeneric, quantize: quantizeGeneric}
	accelerateMat(isa, &m)
	return m
}

func expandGeneric(f *form, _ quant.Type, dst, units []byte) {
	step := f.unitRecords() * recordBytes[f.class]
	for ; len(units) > 0; dst, units = dst[step:], units[f.unitBytes:] {
		f.expand(dst, units[:f.unitBytes])
	}
}

// sums are the running outputs of a panel for the tokens of a group.
type sums [maxTile][PanelRows]float32

func dotGeneric(t *dotTask) {
	var f sums
	if !t.first {
		for k := range t.width {
			copy(f[k][:], t.dst[k*t.stride:][:t.rows])
		}
	}
	if t.class == classFloat {
		dotFloats(&f, t)
	} else {
		dotCodes(&f, t)
	}
	for k := range t.width {
		copy(t.dst[k*t.stride:][:t.rows], f[k][:])
	}
}

func dotFloats(f *sums, t *dotTask) {
	size := recordBytes[classFloat]
	for b := range t.count {
		record := (*[floatUnit * vectorBytes]byte)(t.records[b*size:])
		for k := range t.width {
			x := (*[f32Record]byte)(t.acts[(b*t.width+k)*f32Record:])
			out := &f[k]
			for i := range floatUnit {
				v, w := f32At(x[4*i:4*i+4]), (*[vectorBytes]byte)(record[i*vectorBytes:])
				for r := range out {
					out[r] += float32(f32At(w[4*r:4*r+4]) * v)
				}
			}
		}
	}
}

// dotCodes is the sequence that Mat describes, product by product.
func dotCodes(f *sums, t *dotTask) {
	size := recordBytes[t.class]
	vector := func(record []byte, i int) (v [PanelRows]float32) {
		b := (*[vectorBytes]byte)(record[codeBytes+i*vectorBytes:])
		for r := range v {
			v[r] = f32At(b[4*r : 4*r+4])
		}
		return v
	}
	for b := range t.count {
		record := t.records[b*size : (b+1)*size]
		acts := t.acts[b*t.width*q8Record:][:t.width*q8Record]
		words := acts[t.width*BlockLen:]
		word := func(array, k int) []byte { return words[4*(array*t.width+k):] }
		scale0 := vector(record, 0)
		var scale1, min0, min1 [PanelRows]float32
		switch t.class {
		case classMin:
			min0 = vector(record, 1)
		case classHalf:
			scale1 = vector(record, 1)
		case classQ2:
			scale1, min0, min1 = vector(record, 1), vector(record, 2), vector(record, 3)
		}
		for k := range t.width {
			q, out := (*[BlockLen]byte)(acts[k*BlockLen:]), &f[k]
			d := f32At(word(wordScale, k))
			var low, high [PanelRows]int32
			dotHalf(&low, (*[codeBytes / 2]byte)(record), (*[BlockLen / 2]byte)(q[:]))
			dotHalf(&high, (*[codeBytes / 2]byte)(record[codeBytes/2:]), (*[BlockLen / 2]byte)(q[BlockLen/2:]))
			switch t.class {
			case classBlock:
				start := int32(le32(word(t.start, k)))
				for r := range out {
					out[r] += float32(float32(float32(low[r]+high[r]+start)*scale0[r]) * d)
				}
			case classMin:
				sum := f32At(word(wordSum, k))
				for r := range out {
					out[r] += float32(min0[r] * sum)
					out[r] += float32(float32(float32(low[r]+high[r])*scale0[r]) * d)
				}
			case classHalf:
				start0, start1 := int32(le32(word(wordLow32, k))), int32(le32(word(wordHigh32, k)))
				for r := range out {
					both := float32(float32(low[r]+start0)*scale0[r]) + float32(float32(high[r]+start1)*scale1[r])
					out[r] += float32(both * d)
				}
			case classQ2:
				sum0 := float32(int32(le32(word(wordLow32, k)))) * d
				sum1 := float32(int32(le32(word(wordHigh32, k)))) * d
				for r := range out {
					both := float32(float32(low[r])*scale0[r]) + float32(float32(high[r])*scale1[r])
					out[r] += float32(min0[r] * sum0)
					out[r] += float32(min1[r] * sum1)
					out[r] += float32(both * d)
				}
			}
		}
	}
}

// dotHalf adds the dot products of half a block's codes [4][16 rows][4] with q.
func dotHalf(sum *[PanelRows]int32, codes *[codeBytes / 2]byte, q *[BlockLen / 2]byte) {
	for g := range 4 {
		w := (*[4 * PanelRows]byte)(codes[g*4*PanelRows:])
		q0, q1, q2, q3 := int32(int8(q[4*g])), int32(int8(q[4*g+1])), int32(int8(q[4*g+2])), int32(int8(q[4*g+3]))
		for r := range sum {
			sum[r] += int32(w[4*r])*q0 + int32(w[4*r+1])*q1 + int32(w[4*r+2])*q2 + int32(w[4*r+3])*q3
		}
	}
}
