package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Phases of a lazyObject node: a is the object, b the members so far (as far as they matter), s the set of
// properties seen, n the some rules satisfied, text the other names so far where they are tracked.
const (
	objectOpen  int32 = iota // after {
	objectFirst              // after { and white space
	objectName               // a member must follow
	objectAfter              // after a member
	objectComma              // after a comma
	objectClose              // } must follow
	objectClass              // after the quote of a name of member choice lo
	objectColon              // after a name; lo is the term of its value
	objectSpace              // after the colon
	objectValue              // after the colon and white space
)

// objectInfo is an object shape made ready for matching.
type objectInfo struct {
	*objShape
	id       int32
	names    []property // those that can occur
	required int
	keys     []string // JSON texts of the names without the opening quote, sorted
	keyName  []int    // index into names of each key
	members  []memberChoice
	tracked  bool // names of members must be told apart
}

// objectState is a position in an object.
type objectState struct {
	count     int32
	seen      string // a bit for each of names
	satisfied uint64
	extra     string // tracked names, each preceded by its length in two bytes
}

// tracks reports whether members without entries of their own must be told apart to be counted.
func (o *objShape) tracks() bool {
	required := 0
	for _, p := range o.named {
		required += int(b2i(p.required))
	}
	return len(o.some) > 0 || len(o.classes) > 0 && o.min > max(required, 1)
}

func (m *machine) addObject(o *objShape) error {
	if _, ok := m.objectOf[o]; ok {
		return nil
	}
	c := m.c
	if ok, err := c.objectHasValue(o); err != nil || !ok {
		return err
	}
	info := &objectInfo{objShape: o, id: int32(len(m.objects)), tracked: o.tracks()}
	type key struct {
		text string
		name int
	}
	var keys []key
	var all []string
	for _, p := range o.named {
		all = append(all, p.name)
		if !c.productive(p.term) {
			continue
		}
		for _, s := range spellings(p.name) {
			keys = append(keys, key{s[1:], len(info.names)})
		}
		info.names = append(info.names, p)
		info.required += int(b2i(p.required))
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.text, b.text) })
	for _, k := range keys {
		info.keys = append(info.keys, k.text)
		info.keyName = append(info.keyName, k.name)
	}
	for _, k := range o.classes {
		list, err := c.memberChoices(k, o.some)
		if err != nil {
			return err
		}
		for _, mc := range list {
			if !c.productive(mc.term) {
				continue
			}
			if mc.d, err = c.without(mc.d, all); err != nil {
				return err
			}
			if mc.d.empty() {
				continue
			}
			if info.tracked {
				if _, finite := mc.d.finite(mc.d.start, maxFinite); finite {
					return fmt.Errorf("minProperties or not over a finite set of names: %w", ErrUnsupported)
				}
			}
			m.dfaID(mc.d)
			info.members = append(info.members, mc)
		}
	}
	m.objectOf[o] = info.id
	m.objects = append(m.objects, info)
	return nil
}

func (o *objectInfo) begin() objectState {
	return objectState{seen: strings.Repeat("\x00", (len(o.names)+7)/8)}
}

func (o *objectInfo) state(k lazyNode) objectState { return objectState{k.b, k.s, k.n, k.text} }

func (o *objectInfo) node(m *machine, phase int32, s objectState, lo int32) int32 {
	return m.id(lazyNode{kind: lazyObject, phase: phase, a: o.id, b: s.count, s: s.seen, n: s.satisfied, text: s.extra, lo: lo})
}

func (s objectState) has(i int) bool { return s.seen[i/8]>>(i%8)&1 != 0 }

// counted returns s after one more member.
func (o *objectInfo) counted(s objectState) objectState {
	if o.max >= 0 || int(s.count) < o.min {
		s.count++
	}
	return s
}

// room reports whether, after one more member in state s, those that must come still fit.
func (o *objectInfo) room(s objectState) bool {
	if o.max < 0 {
		return true
	}
	must := 0
	for i, p := range o.names {
		must += int(b2i(p.required && !s.has(i)))
	}
	for j := range o.some {
		must += int(b2i(s.satisfied>>j&1 == 0))
	}
	return int(s.count)+must <= o.max
}

// afterName returns the state after property i, and whether it may come next.
func (o *objectInfo) afterName(s objectState, i int) (objectState, bool) {
	if s.has(i) {
		return s, false
	}
	seen := []byte(s.seen)
	seen[i/8] |= 1 << (i % 8)
	s = o.counted(s)
	s.seen = string(seen)
	return s, o.room(s)
}

// afterMember returns the state after a member of choice j, and whether it may come next.
func (o *objectInfo) afterMember(s objectState, j int) (objectState, bool) {
	s = o.counted(s)
	s.satisfied |= uint64(o.members[j].satisfies)
	return s, o.room(s)
}

func (o *objectInfo) complete(s objectState) bool {
	for i, p := range o.names {
		if p.required && !s.has(i) {
			return false
		}
	}
	return int(s.count) >= o.min && s.satisfied == 1<<len(o.some)-1
}

func (o *objectInfo) more(s objectState) bool {
	for i := range o.names {
		if _, ok := o.afterName(s, i); ok {
			return true
		}
	}
	for j := range o.members {
		if _, ok := o.afterMember(s, j); ok && s.extra != boundNames {
			return true
		}
	}
	return false
}

func (m *machine) objectNode(k lazyNode) node {
	o := m.objects[k.a]
	s := o.state(k)
	var n node
	switch k.phase {
	case objectOpen:
		n.calls = append(n.calls, call{m.space, o.node(m, objectFirst, s, 0)})
	case objectComma:
		n.calls = append(n.calls, call{m.space, o.node(m, objectName, s, 0)})
	case objectFirst, objectName:
		if k.phase == objectFirst && o.complete(s) {
			n.edges = append(n.edges, edge{'}', '}', m.done})
		}
		m.memberEdges(&n, o, s)
	case objectAfter:
		if o.more(s) {
			n.edges = append(n.edges, edge{',', ',', o.node(m, objectComma, s, 0)})
		}
		if o.complete(s) {
			n.calls = append(n.calls, call{m.space, o.node(m, objectClose, s, 0)})
		}
	case objectClose:
		n.edges = append(n.edges, edge{'}', '}', m.done})
	case objectClass:
		mc := o.members[k.lo]
		next, _ := o.afterMember(s, int(k.lo))
		n.calls = append(n.calls, call{m.id(m.stringStart(strPart{d: mc.d})), o.node(m, objectColon, next, int32(mc.term))})
	case objectColon:
		n.edges = append(n.edges, edge{':', ':', o.node(m, objectSpace, s, k.lo)})
	case objectSpace:
		n.calls = append(n.calls, call{m.space, o.node(m, objectValue, s, k.lo)})
	case objectValue:
		n.calls = append(n.calls, call{m.value(termID(k.lo)), o.node(m, objectAfter, s, 0)})
	}
	return n
}

// memberEdges adds the quotes that begin the name of a property or of another member.
func (m *machine) memberEdges(n *node, o *objectInfo, s objectState) {
	for i := range o.names {
		if _, ok := o.afterName(s, i); ok {
			k := lazyNode{kind: lazyKey, a: o.id, b: s.count, s: s.seen, n: s.satisfied, text: s.extra, hi: int32(len(o.keys))}
			n.edges = append(n.edges, edge{'"', '"', m.id(k)})
			break
		}
	}
	for j := range o.members {
		if _, ok := o.afterMember(s, j); !ok {
			continue
		}
		if s.extra == boundNames {
			break
		}
		to := o.node(m, objectClass, s, int32(j))
		if o.tracked {
			d := o.members[j].d
			to = m.id(lazyNode{
				kind: lazyTracked, a: o.id, b: s.count, s: s.seen, n: s.satisfied, text: s.extra + "\xff",
				lo: int32(j), hi: d.start,
			})
		}
		n.edges = append(n.edges, edge{'"', '"', to})
	}
}

// keyNode: the keys lo..hi share their first phase bytes. Only names that may come next are followed.
func (m *machine) keyNode(k lazyNode) node {
	o := m.objects[k.a]
	s := o.state(k)
	var n node
	depth := int(k.phase)
	for lo := int(k.lo); lo < int(k.hi); {
		b := o.keys[lo][depth]
		end := lo + sort.Search(int(k.hi)-lo, func(i int) bool { return o.keys[lo+i][depth] > b })
		for i := lo; i < end; i++ {
			next, ok := o.afterName(s, o.keyName[i])
			if !ok {
				continue
			}
			to := k
			to.phase, to.lo, to.hi = k.phase+1, int32(lo), int32(end)
			id := int32(0)
			if depth+1 == len(o.keys[i]) {
				id = o.node(m, objectColon, next, int32(o.names[o.keyName[i]].term))
			} else {
				id = m.id(to)
			}
			n.edges = append(n.edges, edge{b, b, id})
			break
		}
		lo = end
	}
	return n
}

// boundNames is the extra of a state that is used for masks only: the names so far are not known, so
// that no further member of a class may begin.
const boundNames = "\xfe"

// trackedNode is inside a member name: lo is the member choice, hi the state of its automaton, text the
// names so far, 0xFF, and what was read of this name, with 0xFE at the end after a backslash. Phase
// tells how much of the name is kept.
func (m *machine) trackedNode(k lazyNode) node {
	t := m.tracked(k)
	var n node
	if t.escape {
		for _, e := range jsonEscapes {
			if t.after(byte(e.char)) != 0 {
				n.edges = append(n.edges, edge{e.letter, e.letter, lazyEdge})
			}
		}
		return n
	}
	for b := 0x20; b < 256; b++ {
		if b != '"' && b != '\\' && t.after(byte(b)) != 0 {
			n.addByte(byte(b), lazyEdge)
		}
	}
	if t.ends() {
		n.edges = append(n.edges, edge{'"', '"', lazyEdge})
	}
	if t.d.between(k.hi) && slices.ContainsFunc(jsonEscapes, func(e jsonEscape) bool { return t.after(byte(e.char)) != 0 }) {
		n.edges = append(n.edges, edge{'\\', '\\', lazyEdge})
	}
	return n
}

// Phases of a lazyTracked node.
const (
	nameExact int32 = iota // text has everything
	nameUsed               // for masks: text has the names so far and this one, which begins like one of them
	nameFree               // for masks: this name differs from all so far, which are not kept
)

// lazyEdge is the target of a transition that is resolved when it is taken.
const lazyEdge = -1

// trackedName is the description of a lazyTracked node taken apart.
type trackedName struct {
	m      *machine
	k      lazyNode
	o      *objectInfo
	d      *dfa
	extra  string
	name   string
	escape bool
}

func (m *machine) tracked(k lazyNode) trackedName {
	cut := strings.LastIndexByte(k.text, 0xFF)
	t := trackedName{m: m, k: k, o: m.objects[k.a], extra: k.text[:cut]}
	t.d = t.o.members[k.lo].d
	t.name = strings.TrimSuffix(k.text[cut+1:], "\xfe")
	t.escape = strings.HasSuffix(k.text, "\xfe")
	return t
}

// after returns the state after one more byte of the name, 0 if no new name begins so.
func (t trackedName) after(char byte) int32 {
	to := t.d.step(t.k.hi, char)
	if to == 0 || len(t.name) >= maxTrackedName {
		return 0
	}
	if t.k.phase == nameFree || t.m.endless(t.d, to) || t.fresh(to, t.name+string([]byte{char})) {
		return to
	}
	return 0
}

// ends reports whether the name may end here.
func (t trackedName) ends() bool {
	return t.d.accept[t.k.hi] && (t.k.phase == nameFree || !slices.Contains(splitNames(t.extra), t.name))
}

// resolve returns the target of a lazyEdge.
func (m *machine) resolve(id int32, b byte) int32 {
	k := m.descr[id]
	t := m.tracked(k)
	switch {
	case t.escape:
		for _, e := range jsonEscapes {
			if e.letter == b {
				return m.id(t.with(byte(e.char)))
			}
		}
		return m.dead
	case b == '\\':
		k.text += "\xfe"
		return m.id(k)
	case b != '"':
		return m.id(t.with(b))
	}
	s := t.o.state(k)
	s.extra = t.extra
	next, _ := t.o.afterMember(s, int(k.lo))
	next.extra = boundNames
	if k.phase == nameExact {
		next.extra = t.extra + string(binary.BigEndian.AppendUint16(nil, uint16(len(t.name)))) + t.name
	}
	return t.o.node(m, objectColon, next, int32(t.o.members[k.lo].term))
}

// with returns the description after one more byte of the name.
func (t trackedName) with(char byte) lazyNode {
	k := t.k
	k.hi = t.d.step(k.hi, char)
	k.text = t.extra + "\xff" + t.name + string([]byte{char})
	return k.loosened()
}

// loosened drops the names from a description for masks once this name differs from all of them.
func (k lazyNode) loosened() lazyNode {
	if k.phase == nameExact {
		return k
	}
	cut := strings.LastIndexByte(k.text, 0xFF)
	name := strings.TrimSuffix(k.text[cut+1:], "\xfe")
	for _, used := range splitNames(k.text[:cut]) {
		if strings.HasPrefix(used, name) {
			return k
		}
	}
	k.phase = nameFree
	if strings.HasSuffix(k.text, "\xfe") {
		k.text = "\xff\xfe"
	} else {
		k.text = "\xff"
	}
	return k
}

// maxTrackedName bounds the bytes of a name that must be told apart from others.
const maxTrackedName = 1 << 12

func splitNames(extra string) []string {
	var out []string
	for len(extra) > 1 {
		n := int(extra[0])<<8 | int(extra[1])
		out = append(out, extra[2:2+n])
		extra = extra[2+n:]
	}
	return out
}

// endless reports whether infinitely many texts lead d from state s to acceptance.
func (m *machine) endless(d *dfa, s int32) bool {
	list := m.infinite[d]
	if list == nil {
		list = make([]int8, d.states())
		m.infinite[d] = list
	}
	if list[s] == 0 {
		list[s] = 1
		if _, finite := d.finite(s, maxFinite); finite {
			list[s] = -1
		}
	}
	return list[s] > 0
}

// fresh reports whether name, which led to state s, can be completed to one that did not occur.
func (t trackedName) fresh(s int32, name string) bool {
	used := splitNames(t.extra)
	rest, _ := t.d.finite(s, maxFinite)
	return slices.ContainsFunc(rest, func(r string) bool { return !slices.Contains(used, name+r) })
}

// maxFinite is the number of names above which a set of names is taken to have one more.
const maxFinite = 1 << 10
