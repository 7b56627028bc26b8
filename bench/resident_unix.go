//go:build unix

package bench

import (
	"runtime"
	"syscall"
)

// peakResident is the most memory that the process has had resident, in bytes; 0 if the system does not say.
func peakResident() int {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int(u.Maxrss) // bytes there, kilobytes elsewhere
	}
	return int(u.Maxrss) * 1024
}
