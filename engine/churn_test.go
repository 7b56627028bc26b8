package engine

import (
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// TestChurn: an engine on which requests of every kind come and go holds no more memory, goroutines or cells afterwards
// than once it was warm. MINFER_LONG=1 makes it two minutes.
func TestChurn(t *testing.T) {
	lasting := 400 * time.Millisecond
	if os.Getenv("MINFER_LONG") != "" {
		lasting = 2 * time.Minute
	}
	e, _ := openFake(t, Options{Context: 300, Batch: 64, Sequences: 6})
	churn := func(lasting time.Duration, seed uint64) (told int) {
		var clients sync.WaitGroup
		var mu sync.Mutex
		for end, c := time.Now().Add(lasting), 0; c < 8; c++ {
			clients.Go(func() {
				for r := rand.New(rand.NewPCG(seed, uint64(c))); time.Now().Before(end); {
					for _, one := range randomTales(r, 8) {
						one.group = r.IntN(100)
						_, _, _, _ = one.tell(e) // TestTimelines looks at what comes out
					}
					s := e.NewSession()
					s.Close()
					mu.Lock()
					told += 8
					mu.Unlock()
				}
			})
		}
		clients.Wait()
		return told
	}
	held := func() (int, int) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc), runtime.NumGoroutine()
	}
	churn(lasting/4, 1)
	heap, goroutines := held()
	for round := range 4 {
		told := churn(lasting/4, uint64(2+round))
		now, running := held()
		t.Logf("%d requests; heap %d, at first %d; %d goroutines, at first %d", told, now, heap, running, goroutines)
		if now > heap+heap/10+1<<20 {
			t.Errorf("%d bytes are in use, at first %d", now, heap)
		}
		if running > goroutines+2 { // some are on their way out
			t.Errorf("%d goroutines, at first %d", running, goroutines)
		}
	}
	mustCount(t, e)
}
