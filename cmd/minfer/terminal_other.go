//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly || windows)

package main

import "os"

// isTerminal knows no terminals on this system.
func isTerminal(*os.File) bool { return false }

// terminalState has nothing to put back.
func terminalState(*os.File) (restore func()) { return func() {} }

// interruptKey leaves Ctrl-C to the line editor.
func interruptKey(*os.File) {}
