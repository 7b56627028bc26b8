package team

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

func steps(n, tasks, ns int) []Step {
	s := make([]Step, n)
	for i := range s {
		s[i] = &fn{tasks, func(*Worker, int) { work(ns) }}
	}
	return s
}

func mustRun(b *testing.B, tm *Team, s []Step) {
	if err := tm.Run(s); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkBarrier gives the cost of a step beyond its work: a run of 250 steps of 8 small tasks, per step. ns/op is a
// step's time; over/step is that less the work's time divided among the workers.
func BenchmarkBarrier(b *testing.B) {
	const nSteps = 250
	for _, taskNs := range []int{0, 500, 5000} {
		serial := serialTime(8, taskNs)
		for _, n := range []int{1, 2} {
			b.Run(fmt.Sprintf("task=%dns/workers=%d", taskNs, n), func(b *testing.B) {
				tm := New(n)
				defer tm.Close()
				s := steps(nSteps, 8, taskNs)
				mustRun(b, tm, s)
				b.ReportAllocs()
				b.ResetTimer()
				for done := 0; done < b.N; done += nSteps {
					mustRun(b, tm, s)
				}
				perStep := float64(b.Elapsed().Nanoseconds()) / float64((b.N+nSteps-1)/nSteps*nSteps)
				b.ReportMetric(perStep-serial/float64(n), "over/step")
			})
		}
	}
}

// serialTime measures n tasks of the given work, in ns.
func serialTime(n, ns int) float64 {
	best := 1e18
	for range 20 {
		start := time.Now()
		for range 100 * n {
			work(ns)
		}
		best = min(best, float64(time.Since(start).Nanoseconds())/100)
	}
	return best
}

// BenchmarkStart gives the time of a run of one step of 2 tasks (20 us each), with helpers spinning or parked.
func BenchmarkStart(b *testing.B) {
	for _, idle := range []time.Duration{0, 30 * time.Microsecond, 2 * time.Millisecond} {
		for _, n := range []int{1, 2} {
			b.Run(fmt.Sprintf("idle=%v/workers=%d", idle, n), func(b *testing.B) {
				tm := New(n)
				defer tm.Close()
				s := steps(1, 2, 20000)
				var total time.Duration
				for b.Loop() {
					for start := time.Now(); time.Since(start) < idle; {
						pause(10)
					}
					start := time.Now()
					mustRun(b, tm, s)
					total += time.Since(start)
				}
				b.ReportMetric(float64(total.Nanoseconds())/float64(b.N), "run-ns")
			})
		}
	}
}

// BenchmarkSingles gives the time of a chain of one-task steps, which one worker runs by itself.
func BenchmarkSingles(b *testing.B) {
	tm := New(2)
	defer tm.Close()
	s := steps(1000, 1, 0)
	for done := 0; done < b.N; done += len(s) {
		mustRun(b, tm, s)
	}
}

// BenchmarkBusy runs a decode-like program (250 steps of 16 tasks of 3 us) alone and beside processes that burn a core
// each, for several spin times. "one step" has the same tasks and no barrier: what the operating system leaves us.
func BenchmarkBusy(b *testing.B) {
	beside := func(b *testing.B, burners, workers int, spin time.Duration, s []Step) {
		for range burners {
			defer burn(b)()
		}
		tm := New(workers, Spin(spin))
		defer tm.Close()
		mustRun(b, tm, s)
		for b.Loop() {
			mustRun(b, tm, s)
		}
	}
	for _, burners := range []int{0, 1, 2} {
		b.Run(fmt.Sprintf("burners=%d/one step/workers=2", burners), func(b *testing.B) {
			beside(b, burners, 2, DefaultSpin, steps(1, 250*16, 3000))
		})
		for _, spin := range []time.Duration{0, 20 * time.Microsecond, DefaultSpin, time.Millisecond, time.Hour} {
			for _, n := range []int{1, 2} {
				if n == 1 && spin != DefaultSpin {
					continue
				}
				b.Run(fmt.Sprintf("burners=%d/spin=%v/workers=%d", burners, spin, n), func(b *testing.B) {
					beside(b, burners, n, spin, steps(250, 16, 3000))
				})
			}
		}
	}
}

// burnEnv makes this test binary burn a core instead of testing.
const burnEnv = "MINFER_TEAM_TEST_BURN"

// burn starts a process that burns a core and returns the function that ends it.
func burn(tb testing.TB) func() {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), burnEnv+"=1", "GOMAXPROCS=1")
	if err := cmd.Start(); err != nil {
		tb.Skipf("cannot start a second process: %v", err)
	}
	return func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func TestMain(m *testing.M) {
	if os.Getenv(burnEnv) != "" {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			work(1_000_000)
		}
		return
	}
	os.Exit(m.Run())
}
