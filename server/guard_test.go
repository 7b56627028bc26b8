package server

import (
	"net/http"
	"strings"
	"testing"

	"github.com/minfer-go/minfer/sample"
)

func TestKeys(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Keys = []string{"first", "second"} })
	for _, c := range []struct {
		path, header, value string
		want                int
	}{
		{"/v1/models", "Accept", "*/*", 401},
		{"/v1/models", "Authorization", "Bearer first", 200},
		{"/v1/models", "Authorization", "Bearer second", 200},
		{"/v1/models", "Authorization", "bearer first", 200},
		{"/v1/models", "Authorization", "Bearer", 401},
		{"/v1/models", "Authorization", "Bearer firs", 401},
		{"/v1/models", "Authorization", "Bearer firstx", 401},
		{"/v1/models", "Authorization", "Basic first", 401},
		{"/v1/models", "X-Api-Key", "second", 200},
		{"/v1/models", "X-Api-Key", "", 401},
		{"/metrics", "Accept", "*/*", 401},
		{"/api/tags", "Accept", "*/*", 401},
		{"/health", "Accept", "*/*", 200},
		{"/", "Accept", "*/*", 200},
		{"/page/chat.js", "Accept", "*/*", 200},
		{"/page/../v1/models", "Accept", "*/*", 401},
	} {
		status, h, body := r.do(http.MethodGet, c.path, "", c.header, c.value)
		if (status == 401) != (h.Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%s: %d %v", c.path, status, h)
		}
		if status != c.want {
			t.Errorf("%s, %s: %s: %d %s, want %d", c.path, c.header, c.value, status, body, c.want)
		}
		if status == 401 && c.path == "/v1/models" && parse(t, body).text("error", "code") != "invalid_api_key" {
			t.Error(body)
		}
	}
}

func TestHosts(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Loopback, o.Hosts, o.Origins = true, []string{"box.lan"}, []string{"https://app.example"}
	})
	open := newRig(t)
	keyed := newRig(t, func(o *Options) { o.Loopback, o.Keys = true, []string{"k"} })
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"localhost", "", 200},
		{"localhost:8080", "", 200},
		{"LOCALHOST.", "", 200},
		{"127.0.0.1:1", "", 200},
		{"127.9.9.9", "", 200},
		{"[::1]:8080", "", 200},
		{"[::ffff:127.0.0.1]:8080", "", 200},
		{"box.lan:80", "", 200},
		{"evil.example", "", 403},
		{"localhost.evil.example", "", 403},
		{"10.0.0.1", "", 403},
		{"127.0.0.1.evil.example", "", 403},
		{"localhost", "http://localhost:3000", 200},
		{"localhost", "https://app.example", 200},
		{"localhost", "https://evil.example", 403},
		{"localhost", "https://app.example.evil", 403},
		{"localhost", "null", 403},
	} {
		headers := []string{"Host", c.host}
		if c.origin != "" {
			headers = append(headers, "Origin", c.origin)
		}
		if status, _, body := r.do(http.MethodGet, "/v1/models", "", headers...); status != c.want {
			t.Errorf("host %s, origin %s: %d %s, want %d", c.host, c.origin, status, body, c.want)
		}
		if status, _, _ := open.do(http.MethodGet, "/v1/models", "", headers...); status != 200 {
			t.Errorf("host %s, origin %s, not loopback: %d", c.host, c.origin, status)
		}
		if status, _, _ := keyed.do(http.MethodGet, "/v1/models", "", append(headers, "X-Api-Key", "k")...); status != 200 {
			t.Errorf("host %s, origin %s, with a key: %d", c.host, c.origin, status)
		}
	}
}

func TestCORS(t *testing.T) {
	some := newRig(t, func(o *Options) { o.Origins = []string{"https://app.example"} })
	all := newRig(t, func(o *Options) { o.Origins, o.Keys = []string{"*"}, []string{"k"} })
	for _, c := range []struct {
		r            *rig
		origin, want string
	}{
		{some, "https://app.example", "https://app.example"},
		{some, "https://other.example", ""},
		{all, "https://other.example", "*"},
		{newRig(t), "https://app.example", ""},
	} {
		status, h, _ := c.r.do(http.MethodOptions, "/v1/chat/completions", "", "Origin", c.origin, "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
		if status != http.StatusNoContent || h.Get("Access-Control-Allow-Origin") != c.want {
			t.Errorf("%s: %d %v", c.origin, status, h)
		}
		if (h.Get("Access-Control-Allow-Headers") == "authorization,content-type") != (c.want != "") {
			t.Errorf("%s: %v", c.origin, h)
		}
	}
	if _, h, _ := some.do(http.MethodGet, "/v1/models", "", "Origin", "https://app.example"); h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("%v", h)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	m := sharedModel(t)
	for _, c := range []struct {
		change func(*Options, *Model)
		want   string
	}{
		{func(o *Options, _ *Model) { o.Keys = []string{""} }, "API key"},
		{func(o *Options, _ *Model) { o.Keys = []string{"a b"} }, "API key"},
		{func(o *Options, _ *Model) { o.Origins = []string{"app.example"} }, "origin"},
		{func(o *Options, _ *Model) { o.Origins = []string{"https://app.example/"} }, "origin"},
		{func(o *Options, _ *Model) { o.MaxBody = -1 }, "body limit"},
		{func(o *Options, _ *Model) { o.Drain = -1 }, "drain"},
		{func(o *Options, _ *Model) { o.Sampling.TopP = 2 }, "top"},
		{func(_ *Options, m *Model) { m.Name = "" }, "name"},
	} {
		o, model := Options{Sampling: sample.Default()}, m
		c.change(&o, &model)
		if _, err := New(t.Context(), model, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func TestModelName(t *testing.T) {
	for path, want := range map[string]string{
		"tiny": "tiny", "a/b/qwen.gguf": "qwen", "X.GGUF": "X", "m-00001-of-00003.gguf": "m", "m-1-of-3.gguf": "m-1-of-3", "v1.5": "v1.5",
	} {
		if have := ModelName(path); have != want {
			t.Errorf("%s: %s, want %s", path, have, want)
		}
	}
}
