//go:build race

package tokenizer

// raceEnabled: the race detector slows code down unevenly and empties pools.
const raceEnabled = true
