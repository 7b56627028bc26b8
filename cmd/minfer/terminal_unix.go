//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	return err == nil
}

// terminalState remembers the settings of a terminal and returns what puts them back.
func terminalState(f *os.File) (restore func()) {
	state, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	if err != nil {
		return func() {}
	}
	return func() { _ = unix.IoctlSetTermios(int(f.Fd()), setTermios, state) } // the program ends; nothing else is left to try
}

// interruptKey makes a terminal in raw mode send interrupts, but neither stop the program nor end it.
func interruptKey(f *os.File) {
	state, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	if err != nil {
		return
	}
	state.Lflag |= unix.ISIG
	state.Cc[unix.VSUSP], state.Cc[unix.VQUIT] = noKey, noKey
	_ = unix.IoctlSetTermios(int(f.Fd()), setTermios, state) // Ctrl-C stays a key
}
