package grammar

import (
	"errors"
	"testing"
)

// TestDFALimitCountsWhatIsFound: an automaton that branches widely is given up when MaxDFA states are found, long
// before that many are gone through.
func TestDFALimitCountsWhatIsFound(t *testing.T) {
	class, nc := decimalClasses()
	calls := 0
	_, err := buildDFA(class, nc, 1, func(s int, b byte) (int, bool) {
		calls++
		return s*nc + int(class[b]), true
	}, func(int) bool { return true })
	if !errors.Is(err, ErrLimit) {
		t.Fatal(err)
	}
	if calls > MaxDFA+2*nc {
		t.Errorf("%d transitions were built for %d states", calls, MaxDFA)
	}
	// At the limit it is built: a chain of MaxDFA states.
	chain := func(n int) error {
		_, err := buildDFA(class, nc, 1, func(s int, b byte) (int, bool) { return s + 1, s < n && b == '0' }, func(s int) bool { return s == n })
		return err
	}
	if err := chain(MaxDFA); err != nil {
		t.Error(err)
	}
	if err := chain(MaxDFA + 1); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
}
