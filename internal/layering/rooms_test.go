package layering

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is the path that all packages here share.
const module = "github.com/minfer-go/minfer"

// A room is a package and what it may import: packages of this module that stand above it in the table, and modules of
// others. Tests may import anything.
type room struct {
	pkg    string   // relative to the module, "." for its root
	may    []string // packages of this module
	others []string // other modules
}

// rooms is the layering, from what depends on nothing to what depends on all: imports go up this list only.
var rooms = []room{
	{"quant", nil, nil},
	{"internal/simd", []string{"quant"}, []string{"golang.org/x/sys"}},
	{"internal/team", nil, []string{"golang.org/x/sys"}},
	{"internal/layering", nil, nil},
	{"internal/builtin", nil, nil},
	{"gguf", []string{"quant"}, []string{"golang.org/x/sys"}},
	{"hub", []string{"gguf", "internal/builtin"}, nil},
	{"graph", []string{"quant"}, nil},
	{"internal/testmodel", []string{"quant", "gguf"}, nil},
	{"kv", nil, nil},
	{"backend", []string{"quant", "graph"}, nil},
	{"backend/cpu", []string{"quant", "internal/simd", "internal/team", "graph", "kv", "backend"}, nil},
	{"model", []string{"quant", "gguf", "graph"}, nil},
	{"tokenizer", []string{"gguf"}, []string{"golang.org/x/text"}},
	{"jinja", nil, nil},
	{"chat", []string{"gguf", "tokenizer", "jinja"}, nil},
	{"grammar", nil, nil},
	{"sample", nil, nil},
	{"engine", []string{"quant", "gguf", "graph", "kv", "backend", "model", "tokenizer", "grammar", "sample"}, nil},
	{"bench", []string{"quant", "gguf", "graph", "backend", "sample", "engine"}, nil},
	{"bench/compare", nil, nil},
	{"bench/load", nil, nil},
	{"server", []string{"quant", "gguf", "backend", "model", "tokenizer", "jinja", "chat", "grammar", "sample", "engine"}, nil},
	{".", []string{"quant", "gguf", "hub", "backend", "backend/cpu", "model", "tokenizer", "jinja", "chat", "grammar", "sample", "engine"}, nil},
	{
		"cmd/minfer",
		[]string{"quant", "gguf", "hub", "graph", "backend", "model", "tokenizer", "jinja", "chat", "grammar", "sample", "engine", "bench", "bench/load", "server", "."},
		[]string{"github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/reeflective/readline", "golang.org/x/sys"},
	},
}

// builds are the environments whose files are looked at: the imports of a package differ between them.
var builds = []struct {
	env  []string
	tags string
}{
	{[]string{"GOOS=linux", "GOARCH=amd64"}, ""},
	{[]string{"GOOS=linux", "GOARCH=amd64"}, "purego,debug"},
	{[]string{"GOOS=darwin", "GOARCH=arm64"}, ""},
	{[]string{"GOOS=windows", "GOARCH=amd64"}, ""},
	{[]string{"GOOS=plan9", "GOARCH=386"}, ""},
}

// A listed is what go list says of a package.
type listed struct {
	ImportPath, Doc  string
	GoFiles, Imports []string
}

// list returns the module's packages.
func list(t *testing.T, env []string, tags string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-tags", tags, "-json=ImportPath,Doc,GoFiles,Imports", module+"/...")
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if len(p.GoFiles) > 0 {
			all = append(all, p)
		}
	}
	if len(all) < 5 {
		t.Fatalf("go list found %d packages", len(all))
	}
	return all
}

// relative is the name of a package of this module in the table.
func relative(path string) (name string, ours bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

// faults lists what a package imports against the table.
func faults(path string, imports []string) []string {
	name, _ := relative(path)
	at := slices.IndexFunc(rooms, func(r room) bool { return r.pkg == name })
	if at < 0 {
		return []string{name + " is not in the table of rooms"}
	}
	var bad []string
	for _, imp := range imports {
		if ours, ok := relative(imp); ok {
			if !slices.Contains(rooms[at].may, ours) {
				bad = append(bad, name+" imports "+ours)
			}
			continue
		}
		first, _, _ := strings.Cut(imp, "/")
		if !strings.Contains(first, ".") {
			continue // standard library
		}
		allowed := func(m string) bool { return imp == m || strings.HasPrefix(imp, m+"/") }
		if !slices.ContainsFunc(rooms[at].others, allowed) {
			bad = append(bad, name+" imports "+imp)
		}
	}
	return bad
}

func TestImportsFollowTheRooms(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range builds {
		for _, p := range list(t, b.env, b.tags) {
			name, _ := relative(p.ImportPath)
			seen[name] = true
			for _, f := range faults(p.ImportPath, p.Imports) {
				t.Errorf("%v, tags %q: %s", b.env, b.tags, f)
			}
		}
	}
	for _, r := range rooms {
		if !seen[r.pkg] {
			t.Errorf("the table names %s, which does not exist", r.pkg)
		}
	}
}

// TestTableGoesUp checks the table itself: every package once, allowed imports only from rows above.
func TestTableGoesUp(t *testing.T) {
	above := map[string]bool{}
	for _, r := range rooms {
		for _, m := range r.may {
			if !above[m] {
				t.Errorf("%s may import %s, which is not above it", r.pkg, m)
			}
		}
		if above[r.pkg] {
			t.Errorf("%s stands in the table twice", r.pkg)
		}
		above[r.pkg] = true
	}
}

// TestFaultsAreSeen checks that the rule can fail.
func TestFaultsAreSeen(t *testing.T) {
	for _, c := range []struct {
		path    string
		imports []string
		want    string
	}{
		{module + "/quant", []string{"fmt", module + "/gguf"}, "quant imports gguf"},
		{module + "/kv", []string{"golang.org/x/sys/unix"}, "kv imports golang.org/x/sys/unix"},
		{module + "/gguf", []string{"golang.org/x/system"}, "gguf imports golang.org/x/system"},
		{module + "/engine", []string{module}, "engine imports ."},
		{module + "/new", nil, "new is not in the table of rooms"},
		{module + "/gguf", []string{"golang.org/x/sys/unix", module + "/quant", "encoding/json"}, ""},
	} {
		if have := strings.Join(faults(c.path, c.imports), "; "); have != c.want {
			t.Errorf("%s importing %v: %q, want %q", c.path, c.imports, have, c.want)
		}
	}
}

// TestRoomsAreDescribed: docs/architecture.md says what every package is for.
func TestRoomsAreDescribed(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rooms {
		name := r.pkg
		if name == "." {
			name = "minfer"
		}
		if !bytes.Contains(b, []byte("`"+name+"`")) {
			t.Errorf("docs/architecture.md does not describe %s", name)
		}
	}
}

// TestPackageComments: every package says what it is.
func TestPackageComments(t *testing.T) {
	for _, p := range list(t, nil, "") {
		if p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
