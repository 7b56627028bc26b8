//go:build race

package server

// raced: the race detector takes memory of its own.
const raced = true
