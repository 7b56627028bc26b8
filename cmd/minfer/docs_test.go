package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// readDoc reads a file of the repository.
func readDoc(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// commands lists the program's own commands by their full names.
func commands(root *cobra.Command) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		all[c.CommandPath()] = c
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return all
}

// TestHelpIsComplete: every command says what it does, and every flag.
func TestHelpIsComplete(t *testing.T) {
	for name, c := range commands(newRoot()) {
		if c.Short == "" {
			t.Errorf("%s has no short help", name)
		}
		if c.Args == nil {
			t.Errorf("%s does not check its arguments", name)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no help", name, f.Name)
			}
		})
	}
}

var (
	section  = regexp.MustCompile("(?m)^## .*$")
	longFlag = regexp.MustCompile("`(?:-[a-zA-Z], )?--([a-z0-9][a-z0-9-]*)")
)

// TestUsagePage: docs/usage.md has a section for every command that names each of its flags, and names no other.
func TestUsagePage(t *testing.T) {
	page := readDoc(t, "docs", "usage.md")
	starts := section.FindAllStringIndex(page, -1)
	sections := map[string]string{}
	for i, s := range starts {
		end := len(page)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		sections[strings.TrimPrefix(page[s[0]:s[1]], "## ")] = page[s[1]:end]
	}
	all := map[string]bool{"help": true}
	for name, c := range commands(newRoot()) {
		title := "`" + name + "`"
		if !c.HasParent() {
			title = "`minfer MODEL [PROMPT]`"
		}
		text, ok := sections[title]
		if !ok {
			t.Errorf("docs/usage.md has no section %s", title)
			continue
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			all[f.Name] = true
			if !strings.Contains(text, "--"+f.Name) && f.Name != "help" {
				t.Errorf("docs/usage.md, section %s, does not name --%s", title, f.Name)
			}
		})
	}
	for _, doc := range [][]string{{"docs", "usage.md"}, {"docs", "chat.md"}, {"README.md"}} {
		for _, m := range longFlag.FindAllStringSubmatch(readDoc(t, doc...), -1) {
			if !all[m[1]] {
				t.Errorf("%v names --%s, which no command has", doc, m[1])
			}
		}
	}
}

// variable matches the environment variables that code reads and documents name.
var variable = regexp.MustCompile(`\bMINFER_[A-Z0-9_]*[A-Z0-9]\b`)

// TestVariables: README.md has exactly the variables that the program reads.
func TestVariables(t *testing.T) {
	read := map[string]string{} // name → a file that names it
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, name := range variable.FindAllString(string(b), -1) {
			read[name] = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	readme := variable.FindAllString(readDoc(t, "README.md"), -1)
	for name, path := range read {
		if !slices.Contains(readme, name) {
			t.Errorf("README.md does not name %s of %s", name, path)
		}
	}
	forTests := []string{"MINFER_SHARED", "MINFER_LONG"}
	for _, name := range readme {
		if read[name] == "" && !slices.Contains(forTests, name) {
			t.Errorf("README.md names %s, which nothing reads", name)
		}
	}
}
