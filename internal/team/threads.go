package team

import "runtime"

// DefaultThreads returns the number of workers that suits this machine and process: at least 1, at most MaxWorkers and
// GOMAXPROCS.
//
// On Linux it is the number of physical cores that the process may run on: the affinity mask counts, a core's
// hyper-threads count once, and on machines with two kinds of cores only the fast ones count (unless the mask leaves
// none). A CPU quota of the process's control groups (v1 or v2, the strictest of the hierarchy) is a further bound,
// rounded to the nearest whole core: half a core more or less costs less than a worker that is often throttled.
//
// On Darwin it is the number of physical performance cores. Elsewhere it is runtime.NumCPU, hyper-threads included.
func DefaultThreads() int {
	n := min(usableCores(), runtime.GOMAXPROCS(0), MaxWorkers)
	return max(n, 1)
}
