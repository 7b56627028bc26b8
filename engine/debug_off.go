//go:build !debug

package engine

// debugChecks: builds with the tag debug verify every graph against the legality table and that equal Params build equal graphs.
const debugChecks = false
