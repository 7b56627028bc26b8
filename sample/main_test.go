package sample

import (
	"flag"
	"os"
	"testing"
)

// TestMain runs more random cases than rapid's default: they are cheap here.
func TestMain(m *testing.M) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "rapid.checks" })
	if !set {
		checks := "800"
		if os.Getenv("MINFER_LONG") != "" {
			checks = "20000"
		}
		if err := flag.Set("rapid.checks", checks); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
