package team

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func usableCores() int {
	return coresIn(os.DirFS("/"), allowedCPUs())
}

// allowedCPUs returns the CPUs in the affinity mask, in rising order.
func allowedCPUs() []int {
	var set unix.CPUSet
	var cpus []int
	if err := unix.SchedGetaffinity(0, &set); err == nil {
		for cpu := 0; len(cpus) < set.Count(); cpu++ {
			if set.IsSet(cpu) {
				cpus = append(cpus, cpu)
			}
		}
	}
	if len(cpus) == 0 { // More CPUs than the mask of x/sys holds.
		for cpu := range runtime.NumCPU() {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// coresIn counts the cores that are worth a worker each, given the file system at / and the CPUs the process may use.
func coresIn(root fs.FS, allowed []int) int {
	cores := map[string]bool{}
	for _, cpu := range fastCPUs(root, allowed) {
		cores[coreOf(root, cpu)] = true
	}
	n := len(cores)
	if quota := cpuQuota(root); quota < float64(n) {
		n = int(math.Round(quota))
	}
	return max(n, 1)
}

// coreOf names the physical core of a CPU by the list of its hyper-threads.
func coreOf(root fs.FS, cpu int) string {
	dir := "sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/topology/"
	for _, name := range []string{"core_cpus_list", "thread_siblings_list"} {
		if s := readLine(root, dir+name); s != "" {
			return s
		}
	}
	return strconv.Itoa(cpu)
}

// fastCPUs returns those of allowed that belong to the fast kind of cores, or all where there is one kind.
func fastCPUs(root fs.FS, allowed []int) []int {
	// Intel's hybrids list their performance cores.
	if fast := intersect(allowed, readLine(root, "sys/devices/cpu_core/cpus")); len(fast) > 0 {
		return fast
	}
	// Elsewhere a capacity of 1024 is the fastest core's. Middle cores have 700 to 900, efficiency cores 150 to 450.
	capacity := make([]int, len(allowed))
	largest := 0
	for i, cpu := range allowed {
		c, err := strconv.Atoi(readLine(root, "sys/devices/system/cpu/cpu"+strconv.Itoa(cpu)+"/cpu_capacity"))
		if err != nil {
			return allowed
		}
		capacity[i] = c
		largest = max(largest, c)
	}
	var fast []int
	for i, cpu := range allowed {
		if capacity[i] > largest/2 {
			fast = append(fast, cpu)
		}
	}
	if len(fast) == 0 {
		return allowed
	}
	return fast
}

// intersect returns the members of cpus that a list like "0-3,8" holds. What it cannot read it leaves out.
func intersect(cpus []int, list string) []int {
	var out []int
	for _, cpu := range cpus {
		for _, part := range strings.Split(list, ",") {
			first, last, isRange := strings.Cut(part, "-")
			if !isRange {
				last = first
			}
			lo, err1 := strconv.Atoi(first)
			hi, err2 := strconv.Atoi(last)
			if err1 == nil && err2 == nil && lo <= cpu && cpu <= hi {
				out = append(out, cpu)
				break
			}
		}
	}
	return out
}

// cpuQuota returns the CPUs' worth of time that the control groups grant: the least of the process's own group and those
// above it that can be seen; +Inf for no limit.
func cpuQuota(root fs.FS) float64 {
	quota := math.Inf(1)
	groups := readFile(root, "proc/self/cgroup")
	for _, line := range strings.Split(readFile(root, "proc/self/mountinfo"), "\n") {
		// id parent major:minor root mountpoint options [tags] - type source options
		front, back, ok := strings.Cut(line, " - ")
		f, b := strings.Fields(front), strings.Fields(back)
		if !ok || len(f) < 5 || len(b) < 3 {
			continue
		}
		var group string
		var limit func(fs.FS, string) float64
		switch {
		case b[0] == "cgroup2":
			group, ok = groupPath(groups, "")
			limit = limitV2
		case b[0] == "cgroup" && hasItem(b[2], "cpu"):
			group, ok = groupPath(groups, "cpu")
			limit = limitV1
		default:
			continue
		}
		if !ok {
			continue
		}
		// The mount may show a part of the hierarchy, f[3]; a group outside it cannot be seen, only the mount's top.
		rel, under := strings.CutPrefix(path.Clean("/"+group), strings.TrimSuffix(f[3], "/"))
		if !under || (rel != "" && rel[0] != '/') {
			rel = ""
		}
		mount := strings.Trim(f[4], "/")
		for dir := path.Join("/", rel); ; dir = path.Dir(dir) {
			quota = min(quota, limit(root, path.Join(mount, dir)))
			if dir == "/" {
				break
			}
		}
	}
	return quota
}

// groupPath finds the process's group in /proc/self/cgroup: lines "id:controllers:path", of v2 the one without
// controllers.
func groupPath(groups, controller string) (string, bool) {
	for _, line := range strings.Split(groups, "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) == 3 && (f[1] == controller || controller != "" && hasItem(f[1], controller)) {
			return f[2], true
		}
	}
	return "", false
}

func hasItem(list, item string) bool {
	for _, s := range strings.Split(list, ",") {
		if s == item {
			return true
		}
	}
	return false
}

func limitV2(root fs.FS, dir string) float64 {
	f := strings.Fields(readLine(root, path.Join(dir, "cpu.max")))
	if len(f) != 2 {
		return math.Inf(1)
	}
	return ratio(f[0], f[1])
}

func limitV1(root fs.FS, dir string) float64 {
	return ratio(readLine(root, path.Join(dir, "cpu.cfs_quota_us")), readLine(root, path.Join(dir, "cpu.cfs_period_us")))
}

// ratio returns quota/period, or +Inf for "max", -1 and anything else that is no limit.
func ratio(quota, period string) float64 {
	q, err1 := strconv.ParseFloat(quota, 64)
	p, err2 := strconv.ParseFloat(period, 64)
	if err1 != nil || err2 != nil || !(q > 0) || !(p > 0) {
		return math.Inf(1)
	}
	return q / p
}

func readFile(root fs.FS, name string) string {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return "" // Absent on this kernel or hidden in this container: no limit from there.
	}
	return string(b)
}

func readLine(root fs.FS, name string) string { return strings.TrimSpace(readFile(root, name)) }
