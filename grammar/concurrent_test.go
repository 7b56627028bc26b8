package grammar

import (
	"math/rand/v2"
	"sync"
	"testing"
)

// TestConcurrentStates: runs of one matcher on many goroutines see what one run alone sees.
func TestConcurrentStates(t *testing.T) {
	v := smallVocab()
	want := make([]string, 8)
	alone := mustSchema(t, personSchema).Bind(v)
	for i := range want {
		want[i] = string(randomRun(t, alone, rand.New(rand.NewPCG(uint64(i), 9)), 20, 0))
	}
	shared := mustSchema(t, personSchema).Bind(v)
	got := make([]string, len(want))
	var wg sync.WaitGroup
	for i := range want {
		wg.Go(func() {
			got[i] = string(randomRun(t, shared, rand.New(rand.NewPCG(uint64(i), 9)), 20, 0))
		})
	}
	wg.Wait()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("run %d: %q, alone %q", i, got[i], want[i])
		}
	}
}
