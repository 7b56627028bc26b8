package model

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/minfer-go/minfer/gguf"
	"github.com/minfer-go/minfer/graph"
	"github.com/minfer-go/minfer/quant"
)

// maxComplaints bounds how many tensors an ErrTensors message lists of each kind.
const maxComplaints = 40

// A binder fills the graph.Weight fields of a weights struct from a file's tensors. A field's tags are
//
//	gguf:"attn_q.weight"   the tensor's name, after the prefixes of the structs around it
//	shape:"width,q"        its dimensions in GGUF order, as names of dims
//	optional:"yes"         may be absent: the field stays zero
//	tied:"NAME"            takes that tensor where its own is absent
//
// A slice of structs with a tag such as gguf:"blk.%d." becomes one element per layer.
type binder struct {
	f                         *gguf.File
	dims                      map[string]int
	used                      map[string]bool
	weights                   []graph.Weight
	missing, misshaped, types []string
}

// bind fills dst, a pointer to a weights struct, and lists its weights. Every missing, misshaped, unusable or
// unexpected tensor is named in one error.
func bind(f *gguf.File, dims map[string]int, dst any) ([]graph.Weight, error) {
	b := &binder{f: f, dims: dims, used: map[string]bool{}}
	b.structure(reflect.ValueOf(dst).Elem(), "")
	var extra []string
	for _, t := range f.Tensors() {
		if !b.used[t.Name] {
			extra = append(extra, t.Name)
		}
	}
	var parts []string
	for _, p := range []struct {
		what string
		list []string
	}{{"missing", b.missing}, {"misshaped", b.misshaped}, {"of a type that cannot run", b.types}, {"unexpected", extra}} {
		if n := len(p.list); n > maxComplaints {
			parts = append(parts, fmt.Sprintf("%s: %s and %d more", p.what, strings.Join(p.list[:maxComplaints], ", "), n-maxComplaints))
		} else if n > 0 {
			parts = append(parts, p.what+": "+strings.Join(p.list, ", "))
		}
	}
	if parts != nil {
		return nil, fmt.Errorf("%w: %s: %s", ErrTensors, f.Name(), strings.Join(parts, "; "))
	}
	return b.weights, nil
}

func (b *binder) structure(v reflect.Value, prefix string) {
	for i := range v.NumField() {
		field, tag := v.Field(i), v.Type().Field(i).Tag
		name := tag.Get("gguf")
		if name == "" {
			continue
		}
		if field.Kind() == reflect.Slice {
			n := b.dims["layers"]
			field.Set(reflect.MakeSlice(field.Type(), n, n))
			for l := range n {
				b.structure(field.Index(l), prefix+fmt.Sprintf(name, l))
			}
			continue
		}
		field.Set(reflect.ValueOf(b.weight(prefix+name, tag)))
	}
}

func (b *binder) weight(name string, tag reflect.StructTag) graph.Weight {
	t, ok := b.f.Tensor(name)
	if !ok && tag.Get("tied") != "" {
		name = tag.Get("tied")
		t, ok = b.f.Tensor(name)
	}
	if !ok {
		if tag.Get("optional") == "" {
			b.missing = append(b.missing, name)
		}
		return graph.Weight{}
	}
	var want []int
	for _, d := range strings.Split(tag.Get("shape"), ",") {
		n, known := b.dims[d]
		if !known {
			panic("model: shape tag of " + name + " names unknown dimension " + d)
		}
		want = append(want, n)
	}
	w := graph.Weight{Name: name, Type: t.Type, In: want[0], Out: 1}
	if len(want) == 2 {
		w.Out = want[1]
	}
	if !fits(t.Shape, want) {
		b.misshaped = append(b.misshaped, fmt.Sprintf("%s is %v, must be %v", name, t.Shape, want))
	}
	if !t.Type.CanDecode() {
		b.types = append(b.types, fmt.Sprintf("%s is %s", name, t.Type))
	} else if len(want) == 1 && t.Type != quant.F32 && t.Type != quant.F16 && t.Type != quant.BF16 {
		b.types = append(b.types, fmt.Sprintf("vector %s is %s", name, t.Type))
	}
	if !b.used[name] {
		b.used[name] = true
		b.weights = append(b.weights, w)
	}
	return w
}

// fits compares shapes, where trailing dimensions of 1 do not count.
func fits(have, want []int) bool {
	for len(have) > len(want) && have[len(have)-1] == 1 {
		have = have[:len(have)-1]
	}
	if len(have) != len(want) {
		return false
	}
	for i := range want {
		if have[i] != want[i] {
			return false
		}
	}
	return true
}
