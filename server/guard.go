package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// A guard decides who may call.
type guard struct {
	keys     [][sha256.Size]byte
	origins  []string // of browsers
	any      bool     // every origin
	hosts    []string
	loopback bool
}

func newGuard(o Options) (guard, error) {
	g := guard{loopback: o.Loopback}
	for _, k := range o.Keys {
		if k == "" || strings.ContainsAny(k, " \t\r\n") {
			return g, fmt.Errorf("%w: an API key is empty or has white space", ErrOptions)
		}
		g.keys = append(g.keys, sha256.Sum256([]byte(k)))
	}
	for _, origin := range o.Origins {
		if origin == "*" {
			g.any = true
			continue
		}
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" {
			return g, fmt.Errorf("%w: %q is no origin such as https://example.org, nor *", ErrOptions, origin)
		}
		g.origins = append(g.origins, strings.ToLower(origin))
	}
	for _, h := range o.Hosts {
		g.hosts = append(g.hosts, strings.ToLower(h))
	}
	return g, nil
}

// open are the paths that need no key: they tell nothing and do no work.
var open = []string{"/", "/health", "/page/chat.js", "/page/chat.css"}

// guarded lets requests through that may come through, and answers those that ask what may.
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g := &s.guard
		origin := r.Header.Get("Origin")
		listed := origin != "" && (g.any || slices.Contains(g.origins, strings.ToLower(origin)))
		if len(g.origins) > 0 {
			w.Header().Add("Vary", "Origin")
		}
		if listed {
			allowed := origin
			if g.any {
				allowed = "*"
			}
			w.Header().Set("Access-Control-Allow-Origin", allowed)
			w.Header().Set("Access-Control-Expose-Headers", "Request-Id, Retry-After, X-Request-Id")
		}
		if e := g.check(r, listed); e != nil {
			recordOf(r.Context()).fail(e)
			if e.status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			writeError(w, shapeOf(r), e)
			return
		}
		if r.Method == http.MethodOptions {
			w.Header().Set("Allow", "GET, HEAD, POST, OPTIONS")
			if listed {
				w.Header().Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
				if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
					w.Header().Set("Access-Control-Allow-Headers", asked)
				}
				w.Header().Set("Access-Control-Max-Age", "600")
			}
			w.WriteHeader(http.StatusNoContent)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// check refuses a request, or returns nil.
func (g *guard) check(r *http.Request, listed bool) *apiError {
	forbidden := func(format string, args ...any) *apiError {
		return &apiError{status: http.StatusForbidden, kind: "invalid_request_error", code: "forbidden", message: fmt.Sprintf(format, args...)}
	}
	if len(g.keys) > 0 {
		if r.Method == http.MethodOptions || slices.Contains(open, r.URL.Path) || g.knows(r) {
			return nil
		}
		return &apiError{status: http.StatusUnauthorized, kind: "invalid_request_error", code: "invalid_api_key", message: "the API key is missing or wrong: send Authorization: Bearer KEY"}
	}
	if !g.loopback {
		return nil
	}
	// A web page that a browser on this machine shows must not reach the server: neither under a name of its own that
	// points here (DNS rebinding), nor from another origin.
	if !g.local(r.Host) {
		return forbidden("host %q is not this machine's; start the server with --allow-host or --api-key", clip(r.Host))
	}
	if origin := r.Header.Get("Origin"); origin != "" && !listed {
		u, err := url.Parse(origin)
		if err != nil || !g.local(u.Host) {
			return forbidden("origin %q may not call; start the server with --cors", clip(origin))
		}
	}
	return nil
}

// knows reports whether a request has one of the keys. All are compared, in constant time.
func (g *guard) knows(r *http.Request) bool {
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		given = r.Header.Get("X-Api-Key")
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(given)))
	found := 0
	for i := range g.keys {
		found |= subtle.ConstantTimeCompare(sum[:], g.keys[i][:])
	}
	return found == 1
}

// local reports whether a host, with or without a port, is a loopback address or one of the allowed names.
func (g *guard) local(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(name, "]"), "["), "."))
	if name == "localhost" || slices.Contains(g.hosts, name) {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Unmap().IsLoopback()
}
