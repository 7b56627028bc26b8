package main

import (
	"os"

	"golang.org/x/sys/windows"
)

// isTerminal reports whether a file is a console.
func isTerminal(f *os.File) bool {
	var mode uint32
	return windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) == nil
}

// terminalState remembers the settings of a console and returns what puts them back.
func terminalState(f *os.File) (restore func()) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(f.Fd()), &mode) != nil {
		return func() {}
	}
	return func() { _ = windows.SetConsoleMode(windows.Handle(f.Fd()), mode) } // the program ends; nothing else is left to try
}

// interruptKey leaves Ctrl-C to the line editor.
func interruptKey(*os.File) {}
