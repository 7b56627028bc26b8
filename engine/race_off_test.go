//go:build !race

package engine

// raced: the race detector allocates on its own.
const raced = false
