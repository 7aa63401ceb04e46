// Package cgroup gives a worker its share of a machine by Linux control groups,
// version 1, version 2 or both mounted side by side. What a machine cannot
// enforce is no error: a group says in words what is missing and why, because
// Muster also runs where nobody is root.
//
// Groups are made below the group of the calling process (DIR/muster/NAME), so
// that whatever bounds the caller also bounds its workers. Version 2 forbids
// processes and limits in one group; there the nearest group above that can hand
// on its controllers is taken instead.
package cgroup

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/musterdl/muster/model/unit"
)

// Limits are what a group may use; 0 is no limit.
type Limits struct {
	CPU    unit.Milli // of one core
	Memory unit.MiB
	// Weight is what it counts where groups beside it want the same core: 1000 is usual.
	Weight unit.Milli `json:",omitempty"`
}

// Pool is a group around other groups, which together use no more than its cores; one
// without a name is none.
type Pool struct {
	Name string
	CPU  unit.Milli
}

// Group is one control group, spread over the hierarchies of the machine. It is a
// plain value that can be written down, so that whoever finds the processes of a
// dead owner can still end them.
type Group struct {
	Unified string `json:"unified,omitempty"` // directory in version 2; the others are version 1
	CPU     string `json:"cpu,omitempty"`
	Account string `json:"account,omitempty"`
	Memory  string `json:"memory,omitempty"`
	Freezer string `json:"freezer,omitempty"`
	Pids    string `json:"pids,omitempty"`
	// Missing says what the machine does not enforce or measure, and why.
	Missing []string `json:"missing,omitempty"`
}

// ErrInUse is returned when a new group has processes of an earlier one of its name.
var ErrInUse = errors.New("control group has processes already")

// Create makes the group of this name with these limits. A group left empty by an
// earlier owner is used again.
func Create(name string, limits Limits) (Group, error) { return Pool{}.Create(name, limits) }

// Create is the same inside the pool.
func (p Pool) Create(name string, limits Limits) (Group, error) {
	if name == "" || strings.Contains(name, "/") || strings.HasPrefix(name, ".") {
		return Group{}, fmt.Errorf("create control group: name %q: expected one path element", name)
	}
	if limits.CPU < 0 || limits.Memory < 0 {
		return Group{}, fmt.Errorf("create control group %s: limits %s and %s: expected 0 or more", name, limits.CPU, limits.Memory)
	}
	// Another owner may remove the last group and the directory above it meanwhile.
	for range 3 {
		g, err := p.create(name, limits)
		if !errors.Is(err, fs.ErrNotExist) {
			return g, err
		}
	}
	return p.create(name, limits)
}

func (p Pool) create(name string, limits Limits) (Group, error) {
	l, err := machine()
	if err != nil {
		return Group{}, fmt.Errorf("create control group %s: %w", name, err)
	}
	g := l.group(filepath.Join(p.Name, name))
	g.make() // and with it the pool, which nobody can remove any more
	if p.Name != "" {
		around := l.group(p.Name)
		for _, s := range around.settings(Limits{CPU: p.CPU}) {
			_ = write(s.path, s.value) // where it fails only the groups inside are limited
		}
		if around.Unified != "" {
			enable(around.Unified)
		}
	}
	if pids, err := g.Processes(); err == nil && len(pids) > 0 {
		return Group{}, fmt.Errorf("create control group %s: %w: %v", name, ErrInUse, pids)
	}
	for _, s := range append(g.settings(limits), g.bound()...) {
		err := write(s.path, s.value)
		switch {
		case err == nil || s.what == "":
		case errors.Is(err, fs.ErrNotExist):
			return g, fmt.Errorf("create control group %s: %w", name, err)
		default:
			g.miss(unlimited(s.what), err)
		}
	}
	return g, nil
}

// Find names the group that Create would make here, to end and remove what an
// earlier owner may have left of it.
func (p Pool) Find(name string) (Group, error) {
	l, err := machine()
	if err != nil {
		return Group{}, fmt.Errorf("find control group %s: %w", name, err)
	}
	return l.group(filepath.Join(p.Name, name)), nil
}

// make makes the directories of g.
func (g *Group) make() {
	for _, dir := range g.dirs() {
		if err := makeDir(dir); err != nil {
			g.drop(dir, err)
		}
	}
}

// drop goes on without a directory that cannot be used, and says in Missing what that costs.
func (g *Group) drop(dir string, err error) {
	_ = os.Remove(dir) // it may not have been made
	if g.Unified == dir {
		g.miss("the whole group is not ended or frozen at once", err)
		for _, p := range []struct{ dir, what string }{{g.CPU, "CPU"}, {g.Memory, "memory"}, {g.Pids, processes}} {
			if p.dir == "" && !g.lacks(p.what) {
				g.miss(unlimited(p.what), err)
			}
		}
		g.Unified = ""
	}
	for _, p := range []struct {
		dir  *string
		what string
	}{{&g.CPU, unlimited("CPU")}, {&g.Memory, unlimited("memory")}, {&g.Pids, unlimited(processes)},
		{&g.Account, "CPU time is not measured by group"}, {&g.Freezer, "groups are not frozen"}} {
		if *p.dir == dir {
			g.miss(p.what, err)
			*p.dir = ""
		}
	}
}

// processes is how Missing calls what pids.max limits.
const processes = "the number of processes"

// unlimited is what Missing says of what has no limit.
func unlimited(what string) string { return what + " is not limited" }

// miss adds to Missing.
func (g *Group) miss(what string, err error) {
	text := err.Error()
	if errors.Is(err, fs.ErrPermission) {
		text = "no permission (" + text + ")"
	}
	g.Missing = append(g.Missing, what+": "+text)
}

// makeDir makes dir below its parent, which another owner may be removing: tried again then.
func makeDir(dir string) (err error) {
	for range 3 {
		if err = os.MkdirAll(dir, 0o755); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

// setting is one value to write; what is empty for those that are good to have only.
type setting struct{ path, value, what string }

// settings are the writes that give g its limits.
func (g *Group) settings(limits Limits) (settings []setting) {
	add := func(dir, file, value, what string) {
		settings = append(settings, setting{filepath.Join(dir, file), value, what})
	}
	quota, period := quota(limits.CPU)
	switch {
	case limits.CPU == 0:
	case g.CPU != "":
		add(g.CPU, "cpu.cfs_period_us", strconv.FormatInt(period, 10), "CPU")
		add(g.CPU, "cpu.cfs_quota_us", strconv.FormatInt(quota, 10), "CPU")
	case g.Unified != "" && !g.lacks("CPU"):
		add(g.Unified, "cpu.max", fmt.Sprintf("%d %d", quota, period), "CPU")
	}
	switch {
	case limits.Weight == 0:
	case g.CPU != "":
		add(g.CPU, "cpu.shares", strconv.FormatInt(max(2, int64(limits.Weight)*1024/1000), 10), "")
	case g.Unified != "":
		add(g.Unified, "cpu.weight", strconv.FormatInt(max(1, int64(limits.Weight)/10), 10), "")
	}
	bytes := strconv.FormatInt(int64(limits.Memory)<<20, 10)
	switch {
	case limits.Memory == 0:
	case g.Memory != "":
		add(g.Memory, "memory.limit_in_bytes", bytes, "memory")
		// Swapping would let a worker pass its limit, slowly.
		add(g.Memory, "memory.memsw.limit_in_bytes", bytes, "")
	case g.Unified != "" && !g.lacks("memory"):
		add(g.Unified, "memory.max", bytes, "memory")
		add(g.Unified, "memory.swap.max", "0", "")
		// A gang member without one of its processes only hangs: end all of it.
		add(g.Unified, "memory.oom.group", "1", "")
	}
	return settings
}

// bound is the write that keeps one worker from taking all the process numbers of the
// machine: it gets 15 % of them, threads counted, as systemd gives a unit.
func (g *Group) bound() []setting {
	dir := cmp.Or(g.Pids, g.Unified)
	most, err := value("/proc/sys/kernel/pid_max", "")
	if threads, errThreads := value("/proc/sys/kernel/threads-max", ""); errThreads == nil {
		most = min(most, threads)
	}
	if dir == "" || err != nil || g.lacks(processes) {
		return nil
	}
	return []setting{{filepath.Join(dir, "pids.max"), strconv.FormatInt(most*15/100, 10), processes}}
}

// SetLimits changes what the group may use; 0 leaves a limit as it is. Where something
// is not limited it is no error and no change.
func (g Group) SetLimits(limits Limits) error {
	for _, w := range g.settings(limits) {
		if err := write(w.path, w.value); err != nil && w.what != "" {
			return fmt.Errorf("changing the limits of a control group: %w", err)
		}
	}
	return nil
}

// SetIdle has the group run only where nobody else wants a processor. Kernels before
// 5.15 have no such class: there it gets the least weight, 2 against 1024.
// errors.ErrUnsupported is returned where the machine has no controller of CPU.
func (g Group) SetIdle() error {
	dir, weight, least := g.CPU, "cpu.shares", "2"
	if dir == "" && g.Unified != "" && !g.lacks("CPU") {
		dir, weight, least = g.Unified, "cpu.weight", "1"
	}
	if dir == "" {
		return fmt.Errorf("a control group in the idle class: %w", errors.ErrUnsupported)
	}
	err := write(filepath.Join(dir, "cpu.idle"), "1")
	if errors.Is(err, fs.ErrNotExist) {
		err = write(filepath.Join(dir, weight), least)
	}
	if err != nil {
		return fmt.Errorf("a control group in the idle class: %w", err)
	}
	return nil
}

// lacks reports whether a reason was already given why this is not limited.
func (g *Group) lacks(what string) bool {
	return slices.ContainsFunc(g.Missing, func(m string) bool { return strings.HasPrefix(m, unlimited(what)) })
}

// quota turns a share into microseconds of CPU time per period. The kernel takes
// no quota below a millisecond, so tiny shares get a longer period.
func quota(share unit.Milli) (quotaUs, periodUs int64) {
	periodUs = 100_000
	if share < 10 {
		periodUs = 1_000_000
	}
	return int64(share) * periodUs / 1000, periodUs
}

// dirs are the distinct directories of g, the unified one first.
func (g Group) dirs() (dirs []string) {
	for _, d := range []string{g.Unified, g.CPU, g.Account, g.Memory, g.Freezer, g.Pids} {
		if d != "" && !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	return dirs
}

// Empty reports whether the machine offers no hierarchy at all.
func (g Group) Empty() bool { return len(g.dirs()) == 0 }

// Attach moves a process, and so its future children, into the group. Moving takes
// the right to write where the process comes from as well, which only trying tells:
// a hierarchy that refuses is dropped and named in Missing.
func (g *Group) Attach(pid int) error {
	for _, dir := range g.dirs() {
		err := write(filepath.Join(dir, "cgroup.procs"), strconv.Itoa(pid))
		if errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("attach process %d: %w", pid, err)
		}
		if err != nil {
			g.drop(dir, err)
		}
	}
	return nil
}

// Processes lists the ids of the processes in the group.
func (g Group) Processes() (pids []int, err error) {
	for _, dir := range g.dirs() {
		b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed, so empty
		}
		if err != nil {
			return nil, fmt.Errorf("list control group: %w", err)
		}
		for _, f := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(f); err == nil && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids, nil
}

// CanFreeze reports whether Freeze works.
func (g Group) CanFreeze() bool { return g.Unified != "" || g.Freezer != "" }

// Freeze stops every process of the group until Thaw, without their noticing.
func (g Group) Freeze() error { return g.freeze("1", "FROZEN") }

// Thaw lets the processes of a frozen group go on.
func (g Group) Thaw() error { return g.freeze("0", "THAWED") }

func (g Group) freeze(v2, v1 string) error {
	switch {
	case g.Unified != "":
		return write(filepath.Join(g.Unified, "cgroup.freeze"), v2)
	case g.Freezer != "":
		return write(filepath.Join(g.Freezer, "freezer.state"), v1)
	}
	return fmt.Errorf("freeze: %w: no control group can", errors.ErrUnsupported)
}

// Kill ends every process of the group, frozen ones too, and waits until none is
// left. Children of the caller stay as zombies in version 1 until they are waited for.
func (g Group) Kill() error {
	const patience = 10 * time.Second
	if g.Unified != "" {
		// Kernels before 5.14 have no such file; the loop below does it then.
		_ = write(filepath.Join(g.Unified, "cgroup.kill"), "1")
	}
	for end := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		pids, err := g.Processes()
		if err != nil {
			return err
		}
		pids = slices.DeleteFunc(pids, gone)
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
		}
		if g.Unified == "" && g.Freezer != "" {
			_ = g.Thaw() // frozen processes of version 1 do not die
		}
		if time.Now().After(end) {
			return fmt.Errorf("kill control group: processes %v did not end within %s", pids, patience)
		}
	}
}

// gone reports whether a process has ended or is a zombie; one whose first thread
// has ended and others go on looks like a zombie and is not.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	const state, threads = 0, 17 // fields 3 and 20 of proc(5), counted from the state
	return len(f) > threads && (f[state] == "Z" || f[state] == "X") && (f[threads] == "0" || f[threads] == "1")
}

// Remove removes the empty group, and the directory above it if it was the last.
func (g Group) Remove() error {
	var errs []error
	for _, dir := range g.dirs() {
		if err := removeDir(dir); err != nil {
			errs = append(errs, fmt.Errorf("remove control group: %w", err))
		}
		for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
			// It fails while others use it.
			if err := syscall.Rmdir(up); err != nil || filepath.Base(up) == parent {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// removeDir removes dir; a process that just ended may still count for a moment.
func removeDir(dir string) (err error) {
	for range 200 {
		err = os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
	return err
}

// write writes to a control file, which must exist.
func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
