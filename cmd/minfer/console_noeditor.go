//go:build js || wasip1 || plan9

package main

// newEditor has no editor on this system.
func newEditor(*console, bool) input { return nil }
