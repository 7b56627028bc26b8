package team

import (
	"runtime"

	"golang.org/x/sys/unix"
)

func usableCores() int {
	for _, name := range []string{"hw.perflevel0.physicalcpu", "hw.physicalcpu"} {
		if n, err := unix.SysctlUint32(name); err == nil && n > 0 {
			return int(min(n, MaxWorkers))
		}
	}
	return runtime.NumCPU()
}
