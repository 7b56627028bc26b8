package team

import (
	"strconv"
	"testing"
	"testing/fstest"
)

// tree makes a file system of path-content pairs.
func tree(kv ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(kv); i += 2 {
		m[kv[i]] = &fstest.MapFile{Data: []byte(kv[i+1] + "\n")}
	}
	return m
}

func upTo(n int) []int {
	cpus := make([]int, n)
	for i := range cpus {
		cpus[i] = i
	}
	return cpus
}

// smt adds n CPUs, two to a core: i and i+n/2.
func smt(m fstest.MapFS, n int, file string) fstest.MapFS {
	for i := range n {
		list := strconv.Itoa(i%(n/2)) + "," + strconv.Itoa(i%(n/2)+n/2)
		m["sys/devices/system/cpu/cpu"+strconv.Itoa(i)+"/topology/"+file] = &fstest.MapFile{Data: []byte(list + "\n")}
	}
	return m
}

func capacities(c ...int) fstest.MapFS {
	m := fstest.MapFS{}
	for i, v := range c {
		m["sys/devices/system/cpu/cpu"+strconv.Itoa(i)+"/cpu_capacity"] = &fstest.MapFile{Data: []byte(strconv.Itoa(v) + "\n")}
	}
	return m
}

func TestCores(t *testing.T) {
	const (
		mount2  = "30 23 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw,nsdelegate"
		mount1  = "33 32 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct"
		partial = "33 32 0:29 /docker/ab /sys/fs/cgroup/cpu ro master:9 - cgroup cgroup rw,cpu"
	)
	self, mounts := "proc/self/cgroup", "proc/self/mountinfo"
	hybrid := smt(tree("sys/devices/cpu_core/cpus", "0-3,8-11"), 16, "core_cpus_list")
	for name, c := range map[string]struct {
		fs      fstest.MapFS
		allowed []int
		want    int
	}{
		"nothing known":           {tree(), upTo(6), 6},
		"no CPU":                  {tree(), nil, 1},
		"hyper-threads":           {smt(tree(), 16, "core_cpus_list"), upTo(16), 8},
		"hyper-threads, old name": {smt(tree(), 16, "thread_siblings_list"), upTo(16), 8},
		"affinity":                {smt(tree(), 16, "core_cpus_list"), []int{1, 2, 9}, 2},
		"hybrid":                  {hybrid, upTo(16), 4},
		"hybrid, slow cores only": {hybrid, []int{4, 5, 12}, 2},
		"big and little":          {capacities(1024, 900, 900, 900, 350, 350, 350, 350), upTo(8), 4},
		"equal capacities":        {capacities(1024, 1024), upTo(2), 2},
		"v2":                      {tree(self, "0::/a/b", mounts, mount2, "sys/fs/cgroup/a/b/cpu.max", "300000 100000"), upTo(8), 3},
		"v2 parent":               {tree(self, "0::/a/b", mounts, mount2, "sys/fs/cgroup/a/cpu.max", "200000 100000", "sys/fs/cgroup/a/b/cpu.max", "max 100000"), upTo(8), 2},
		"v2 max":                  {tree(self, "0::/", mounts, mount2, "sys/fs/cgroup/cpu.max", "max 100000"), upTo(8), 8},
		"v2 namespace":            {tree(self, "0::/", mounts, mount2, "sys/fs/cgroup/cpu.max", "160000 100000"), upTo(8), 2},
		"v2 above the namespace":  {tree(self, "0::/../x", mounts, mount2, "sys/fs/cgroup/cpu.max", "200000 100000"), upTo(8), 2},
		"v2 tenth of a core":      {tree(self, "0::/", mounts, mount2, "sys/fs/cgroup/cpu.max", "10000 100000"), upTo(8), 1},
		"v2 larger than machine":  {tree(self, "0::/", mounts, mount2, "sys/fs/cgroup/cpu.max", "1600000 100000"), upTo(8), 8},
		"v2 nonsense":             {tree(self, "0::/", mounts, mount2, "sys/fs/cgroup/cpu.max", "-5 0"), upTo(8), 8},
		"v1":                      {tree(self, "4:cpu,cpuacct:/j", mounts, mount1, "sys/fs/cgroup/cpu,cpuacct/j/cpu.cfs_quota_us", "250000", "sys/fs/cgroup/cpu,cpuacct/j/cpu.cfs_period_us", "50000"), upTo(8), 5},
		"v1 none":                 {tree(self, "4:cpu,cpuacct:/j", mounts, mount1, "sys/fs/cgroup/cpu,cpuacct/j/cpu.cfs_quota_us", "-1", "sys/fs/cgroup/cpu,cpuacct/j/cpu.cfs_period_us", "50000"), upTo(8), 8},
		"v1 part mounted":         {tree(self, "4:cpu:/docker/ab", mounts, partial, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"), upTo(8), 2},
		"v1 outside the part":     {tree(self, "4:cpu:/docker/abc", mounts, partial, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000", "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"), upTo(8), 2},
		"v1 other controller":     {tree(self, "4:cpuset:/", mounts, "33 32 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset", "sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "100000", "sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000"), upTo(8), 8},
		"damaged mounts":          {tree(self, "0:", mounts, "30 - \n - - -\n 1 2 3 4 / - cgroup2 a b"), upTo(8), 8},
	} {
		if got := coresIn(c.fs, c.allowed); got != c.want {
			t.Errorf("%s: %d cores, want %d", name, got, c.want)
		}
	}
	if n := DefaultThreads(); n < 1 || n > MaxWorkers {
		t.Errorf("here: %d", n)
	}
	if len(allowedCPUs()) == 0 {
		t.Error("no CPU allowed here")
	}
}
