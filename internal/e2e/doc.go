// Package e2e holds tests that talk to the server with the client libraries of other makers. It is a module of its own, so
// that nobody who uses minfer inherits them.
package e2e
