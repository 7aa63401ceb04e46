package cgroup

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup/cgrouptest"
)

// The test binary is its own worker.
func TestMain(m *testing.M) {
	switch os.Getenv("CGROUP_TEST_WORKER") {
	case "":
		os.Exit(m.Run())
	case "spin":
		fmt.Scanln() // wait until attached
		//lint:ignore SA5002 a worker that only spins is what is to be held back
		for {
		}
	case "hog":
		fmt.Scanln()
		var held [][]byte
		for range 512 {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			held = append(held, b)
		}
		fmt.Println(len(held))
	case "family":
		c := exec.Command(os.Args[0])
		c.Env = []string{"CGROUP_TEST_WORKER=spin"}
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		fmt.Scanln()
		_ = c.Start()
		time.Sleep(time.Minute)
	}
}

// worker starts the test binary in a group and lets it go once attached.
func worker(t *testing.T, kind string, g Group) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = []string{"CGROUP_TEST_WORKER=" + kind}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if err := g.Attach(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in)
	return c
}

func group(t *testing.T, limits Limits) Group {
	t.Helper()
	g, err := Create(fmt.Sprintf("test-%d-%s", os.Getpid(), strings.ToLower(t.Name())), limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Kill(); err != nil {
			t.Error(err)
		}
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
		for _, dir := range g.dirs() {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s is still there", dir)
			}
		}
	})
	return g
}

// Two who probe at the same time find what one alone does.
func TestProbesSideBySide(t *testing.T) {
	alone := Probe().String()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if beside := Probe().String(); beside != alone {
				t.Errorf("beside others it says %s, alone %s", beside, alone)
			}
		})
	}
	all.Wait()
}

func TestProbeSaysWhatIsMissing(t *testing.T) {
	s := Probe()
	t.Log(s)
	if (!s.CPU || !s.Memory || !s.Freeze) && len(s.Missing) == 0 {
		t.Errorf("%+v lacks something and does not say why", s)
	}
}

func TestHalfACoreIsHalfACore(t *testing.T) {
	if s := Probe(); !s.CPU {
		t.Skip(s)
	}
	const share, within = 0.5, 0.15
	var used float64
	for range 3 { // a busy machine may give less than the share, never more
		g := group(t, Limits{CPU: 500})
		cgrouptest.Favour(t, g.CPU, g.Unified)
		worker(t, "spin", g)
		time.Sleep(100 * time.Millisecond)
		before, err := g.Usage()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		time.Sleep(time.Second)
		after, err := g.Usage()
		if err != nil {
			t.Fatal(err)
		}
		used = (after.CPU - before.CPU).Seconds() / time.Since(began).Seconds()
		t.Logf("500m used %.3f of a core", used)
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
		if used > share*(1-within) && used < share*(1+within) {
			return
		}
		if err := g.Remove(); err != nil {
			t.Fatal(err)
		}
	}
	t.Errorf("500m used %.3f of a core, expected %.2f within %.0f %%", used, share, within*100)
}

func TestHogIsEnded(t *testing.T) {
	if s := Probe(); !s.Memory {
		t.Skip(s)
	}
	g := group(t, Limits{Memory: 64})
	c := worker(t, "hog", g)
	err := c.Wait()
	if ws := c.ProcessState.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != syscall.SIGKILL {
		t.Errorf("hog ended with %v, expected SIGKILL", err)
	}
	u, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if u.OOMKills == 0 {
		t.Errorf("usage %+v counts no kill for memory", u)
	}
}

// TestNobodyTakesAllProcessNumbers: every group has a limit of processes, and a worker is held to
// it with all its children.
func TestNobodyTakesAllProcessNumbers(t *testing.T) {
	g := group(t, Limits{})
	if g.lacks(processes) {
		t.Skip(Probe())
	}
	file := filepath.Join(cmp.Or(g.Pids, g.Unified), "pids.max")
	most, err := value(file, "")
	all, errAll := value("/proc/sys/kernel/pid_max", "")
	if err != nil || errAll != nil || most < 1 || most > all*15/100 {
		t.Fatalf("pids.max is %d of %d, %v, %v: expected at most 15 %%", most, all, err, errAll)
	}
	if err := write(file, "1"); err != nil { // so that the test need not fork so often
		t.Fatal(err)
	}
	c := exec.Command("/bin/sh", "-c", "read go; sleep 100 & wait")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Attach(c.Process.Pid); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "go")
	if err := c.Wait(); err == nil {
		t.Error("it has two processes where one is allowed")
	}
}

func TestKillReachesOtherSessions(t *testing.T) {
	g := group(t, Limits{})
	if g.Empty() {
		t.Skip(Probe())
	}
	c := worker(t, "family", g)
	var pids []int
	for range 200 {
		if pids, _ = g.Processes(); len(pids) == 2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if len(pids) != 2 || !slices.Contains(pids, c.Process.Pid) {
		t.Fatalf("group holds %v, expected %d and its child", pids, c.Process.Pid)
	}
	if _, err := Create(filepath.Base(g.dirs()[0]), Limits{}); err == nil {
		t.Error("a group in use was created again")
	}
	found, err := Pool{}.Find(filepath.Base(g.dirs()[0]))
	if err != nil || fmt.Sprint(found.dirs()) != fmt.Sprint(g.dirs()) {
		t.Errorf("found %v, %v, expected %v", found, err, g)
	}
	if err := found.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d lives", pid)
		}
	}
}

func TestFrozenUsesNoCPUAndDies(t *testing.T) {
	g := group(t, Limits{})
	if !g.CanFreeze() {
		t.Skip(Probe())
	}
	worker(t, "spin", g)
	time.Sleep(50 * time.Millisecond)
	used := func() unit.Duration {
		u, err := g.Usage()
		if err != nil {
			t.Fatal(err)
		}
		return u.CPU
	}
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	before := used()
	time.Sleep(150 * time.Millisecond)
	if d := used() - before; d > 2*unit.Millisecond {
		t.Errorf("frozen group used %s", d)
	}
	if err := g.Thaw(); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if time.Sleep(20 * time.Millisecond); used()-before > 5*unit.Millisecond {
			break
		}
	}
	if used()-before <= 5*unit.Millisecond {
		t.Error("thawed group does not run")
	}
	if err := g.Freeze(); err != nil { // Cleanup kills it frozen
		t.Fatal(err)
	}
}

func TestCreateRefusesBadInput(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", "/", ".hidden"} {
		if _, err := Create(name, Limits{}); err == nil {
			t.Errorf("name %q was taken", name)
		}
	}
	if _, err := Create("x", Limits{CPU: -1}); err == nil {
		t.Error("a negative share was taken")
	}
}

func TestQuota(t *testing.T) {
	for _, c := range []struct {
		share         unit.Milli
		quota, period int64
	}{{500, 50_000, 100_000}, {4000, 400_000, 100_000}, {10, 1000, 100_000}, {1, 1000, 1_000_000}, {9, 9000, 1_000_000}} {
		if q, p := quota(c.share); q != c.quota || p != c.period {
			t.Errorf("quota(%s) = %d/%d, expected %d/%d", c.share, q, p, c.quota, c.period)
		}
	}
}

func TestMounts(t *testing.T) {
	const info = `30 25 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw shared:5 - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
short line
`
	const self = "4:cpu,cpuacct:/user.slice\n3:memory:/docker/abc/worker\n1:name=systemd:/x\n0::/user.slice/a:b.scope\n"
	got := mounts(info, self)
	want := map[string]mount{
		"":        {"/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/user.slice/a:b.scope"},
		"cpu":     {"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/user.slice"},
		"cpuacct": {"/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct/user.slice"},
		"memory":  {"/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/worker"},
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("mounts:\n got %v\nwant %v", got, want)
	}
	if m := newMount("/cg", "/docker/abc", "/elsewhere"); m.own != "/cg" {
		t.Errorf("outside of the mount: own %q", m.own)
	}
	if m := newMount("/cg", "/", "/../other"); m.own != "/cg" {
		t.Errorf("outside of the namespace: own %q", m.own)
	}
}

// fake makes groups as a version 2 kernel would show them: each with the
// controllers it has and those it hands on.
func fake(t *testing.T, groups map[string][2]string) string {
	t.Helper()
	root := t.TempDir()
	for dir, c := range groups {
		at := filepath.Join(root, dir)
		for file, text := range map[string]string{"cgroup.controllers": c[0], "cgroup.subtree_control": c[1], "cgroup.procs": "",
			"cpu.max": "", "memory.max": "", "memory.swap.max": "", "memory.oom.group": ""} {
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			mode := os.FileMode(0o644)
			if err := os.WriteFile(filepath.Join(at, file), []byte(text), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestArrange(t *testing.T) {
	all := "cpu io memory pids"
	for _, c := range []struct {
		name    string
		groups  map[string][2]string
		own     string
		v1      []string
		want    string // parent of v2, cpu, memory, freezer
		missing int
	}{
		{"delegated", map[string][2]string{"a": {all, all}, "a/muster": {all, all}}, "a", nil, "a/muster   ", 0},
		{"session, as root", map[string][2]string{"": {all, all}, "muster": {all, all}, "s": {all, ""}, "s/muster": {"", ""}}, "s", nil, "muster   ", 0},
		{"memory only", map[string][2]string{"a": {"memory", "memory"}, "a/muster": {"memory", "memory"}}, "a", nil, "a/muster   ", 2},
		{"hybrid", map[string][2]string{"": {"hugetlb", ""}}, "", []string{"cpu", "memory", "freezer", "cpuacct", "pids"}, "muster cpu/muster memory/muster ", 0},
		{"v1 without memory", nil, "", []string{"cpu", "freezer"}, " cpu/muster  freezer/muster", 3},
		{"nothing", nil, "", nil, "   ", 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := fake(t, c.groups)
			found := map[string]mount{}
			if c.groups != nil {
				found[""] = mount{root, filepath.Join(root, c.own)}
			}
			for _, name := range c.v1 {
				found[name] = mount{filepath.Join(root, name), filepath.Join(root, name)}
			}
			// A fake file takes every write; a kernel refuses where processes live.
			if c.name == "session, as root" {
				if err := os.Remove(filepath.Join(root, "s/cgroup.subtree_control")); err != nil {
					t.Fatal(err)
				}
			}
			l := arrange(found)
			rel := func(dir string) string { return strings.TrimPrefix(strings.TrimPrefix(dir, root), "/") }
			got := strings.Join([]string{rel(l.unified), rel(l.cpu), rel(l.memory), rel(l.freezer)}, " ")
			if got != c.want || len(l.missing) != c.missing {
				t.Errorf("got %q missing %q, expected %q and %d missing", got, l.missing, c.want, c.missing)
			}
		})
	}
}

func TestSettingsVersion2(t *testing.T) {
	g := Group{Unified: "/u"}
	got := fmt.Sprint(g.settings(Limits{CPU: 1500, Memory: 2}))
	want := fmt.Sprint([]setting{{"/u/cpu.max", "150000 100000", "CPU"}, {"/u/memory.max", "2097152", "memory"},
		{"/u/memory.swap.max", "0", ""}, {"/u/memory.oom.group", "1", ""}})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	g.Missing = []string{"CPU is not limited: because"}
	if got := g.settings(Limits{CPU: 1500}); got != nil {
		t.Errorf("a missing controller is set: %v", got)
	}
}

func TestARefusingHierarchyIsDroppedAndNamed(t *testing.T) {
	at := t.TempDir() // has no control files at all
	g := Group{Unified: at + "/u", Memory: at + "/m"}
	g.make()
	if err := g.Attach(os.Getpid()); err != nil {
		t.Fatal(err)
	}
	if !g.Empty() || !g.lacks("CPU") || !g.lacks("memory") || g.CanFreeze() {
		t.Errorf("%+v: expected all dropped and named", g)
	}
	g = Group{Unified: "/proc/nothing/of/this"}
	if g.make(); !g.Empty() || !g.lacks("CPU") || !g.lacks("memory") {
		t.Errorf("%+v: expected all dropped and named", g)
	}
}
