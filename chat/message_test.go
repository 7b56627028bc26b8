package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/minfer-go/minfer/chat"
)

// TestMessageJSON: messages keep what they are given, unknown keys and the order of keys included.
func TestMessageJSON(t *testing.T) {
	for _, same := range []string{
		`{"role":"user","content":"Hi"}`,
		`{"role":"user","content":null}`,
		`{"role":"user","content":[]}`,
		`{"role":"user","content":[{"type":"text","text":"<b>"},{"type":"image_url","image_url":{"url":"x","detail":"low"}}],"name":"Mia"}`,
		`{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{"z":1,"a":[2.50,1e3]}}}],"z":1,"a":{"y":1,"b":2}}`,
		`{"role":"tool","content":"5","tool_call_id":"1"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]}`,
	} {
		var m chat.Message
		if err := json.Unmarshal([]byte(same), &m); err != nil {
			t.Errorf("%s: %v", same, err)
			continue
		}
		have, err := m.MarshalJSON() // json.Marshal would write <, > and & as escapes
		if err != nil || string(have) != same {
			t.Errorf("%v\n have %s\n want %s", err, have, same)
		}
	}
	for _, bad := range []string{
		`{"content":"Hi"}`, `{"role":null}`, `{"role":"user","content":7}`, `{"role":"user","content":{"a":1}}`, `{"role":7}`,
		`{"role":"user","content":["x"]}`, `{"role":"user","tool_calls":"x"}`, `{"role":"user","name":[]}`, `{"role":"user","tool_calls":[{"function":7}]}`,
	} {
		var m chat.Message
		if err := json.Unmarshal([]byte(bad), &m); !errors.Is(err, chat.ErrMessage) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, bad := range []string{`[]`, `7`, `{"role":"user"`} {
		var m chat.Message
		if err := json.Unmarshal([]byte(bad), &m); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

// TestObjectOfManyKeys: reading takes time in proportion to the keys.
func TestObjectOfManyKeys(t *testing.T) {
	const keys = 300_000 // comparing all with all would take minutes
	var b strings.Builder
	for i := range keys {
		fmt.Fprintf(&b, `,"k%d":0`, i%(keys-1))
	}
	began := time.Now()
	var o chat.Object
	if err := json.Unmarshal([]byte("{"+b.String()[1:]+"}"), &o); err != nil || len(o) != keys-1 {
		t.Fatalf("%d keys, %v", len(o), err)
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestObject(t *testing.T) {
	var o chat.Object
	if err := json.Unmarshal([]byte(`{"b":1,"a":{"d":1,"c":2},"b":3}`), &o); err != nil {
		t.Fatal(err)
	}
	o.Set("e", json.RawMessage(`"<"`))
	o.Set("f", nil)
	if have, err := o.MarshalJSON(); err != nil || string(have) != `{"b":3,"a":{"d":1,"c":2},"e":"<","f":null}` {
		t.Errorf("%s, %v", have, err)
	}
	if v, ok := o.Get("a"); !ok || string(v) != `{"d":1,"c":2}` {
		t.Errorf("%s, %v", v, ok)
	}
	if _, ok := o.Get("nonesuch"); ok {
		t.Error("an absent key was found")
	}
}

// FuzzMessage: what is read is written so that it reads the same.
func FuzzMessage(f *testing.F) {
	f.Add([]byte(`{"role":"assistant","content":[{"type":"text","text":"a"}],"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}],"x":{"b":1,"a":2}}`))
	f.Add([]byte(`{"role":"user","content":"\ud83d\ude42","name":"n"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m chat.Message
		if json.Unmarshal(b, &m) != nil {
			return
		}
		first, err := m.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var again chat.Message
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		second, err := again.MarshalJSON()
		if err != nil || string(second) != string(first) {
			t.Fatalf("%v: %s became %s", err, first, second)
		}
	})
}
