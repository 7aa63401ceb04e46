package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/musterdl/muster/model/unit"
)

// parent is the directory that holds all groups of Muster on a machine.
const parent = "muster"

// mount is one hierarchy as the calling process sees it: its own group.
type mount struct {
	root string // where the hierarchy is mounted
	own  string // the directory of the calling process, at or below root
}

// layout says where groups are made: the directory of the parent for each purpose,
// empty where the machine has none.
type layout struct {
	unified, cpu, account, memory, freezer, pids string
	missing                                      []string
}

// machine finds the layout of this machine and makes ready to use it.
func machine() (layout, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return layout{}, fmt.Errorf("find control groups: %w", err)
	}
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return layout{}, fmt.Errorf("find control groups: %w", err)
	}
	return arrange(mounts(string(info), string(self))), nil
}

// mounts reads the mounted hierarchies by the name of their controller; version 2
// is the empty name.
func mounts(mountinfo, self string) map[string]mount {
	own := map[string]string{}
	for line := range strings.Lines(self) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(f) == 3 {
			for name := range strings.SplitSeq(f[1], ",") {
				own[name] = f[2]
			}
		}
	}
	found := map[string]mount{}
	for line := range strings.Lines(mountinfo) {
		f := strings.Fields(line)
		dash := slices.Index(f, "-")
		if dash < 6 || len(f) < dash+4 {
			continue
		}
		switch f[dash+1] {
		case "cgroup2":
			found[""] = newMount(f[4], f[3], own[""])
		case "cgroup":
			for name := range strings.SplitSeq(f[dash+3], ",") {
				if path, ok := own[name]; ok {
					found[name] = newMount(f[4], f[3], path)
				}
			}
		}
	}
	return found
}

// newMount finds the own group below a mount point. In a container the mount shows
// a part of the hierarchy only, and the own group may lie outside of it.
func newMount(point, part, own string) mount {
	rel := own
	if part != "/" {
		var inside bool
		if rel, inside = strings.CutPrefix(own, part); !inside {
			rel = ""
		}
	}
	if strings.HasPrefix(rel, "/..") {
		rel = ""
	}
	return mount{root: point, own: filepath.Join(point, rel)}
}

// arrange chooses a hierarchy for each purpose: version 2 where it has the
// controller, else version 1.
func arrange(found map[string]mount) layout {
	var l layout
	var has []string
	if m, ok := found[""]; ok {
		l.unified, has = unified(m)
	}
	v1 := func(name string) string {
		m, ok := found[name]
		if !ok {
			return ""
		}
		return filepath.Join(m.own, parent)
	}
	if !slices.Contains(has, "cpu") {
		if l.cpu = v1("cpu"); l.cpu == "" {
			l.missing = append(l.missing, "CPU is not limited: no cpu controller can be used here")
		}
	}
	if !slices.Contains(has, "memory") {
		if l.memory = v1("memory"); l.memory == "" {
			l.missing = append(l.missing, "memory is not limited: no memory controller can be used here")
		}
	}
	if !slices.Contains(has, "pids") {
		if l.pids = v1("pids"); l.pids == "" {
			l.missing = append(l.missing, unlimited(processes)+": no pids controller can be used here")
		}
	}
	if l.unified == "" {
		l.account, l.freezer = v1("cpuacct"), v1("freezer")
		if l.account == "" {
			l.missing = append(l.missing, "CPU time is not measured by group: no cpuacct controller")
		}
		if l.freezer == "" {
			l.missing = append(l.missing, "groups are not frozen: no freezer")
		}
	}
	return l
}

// unified finds the nearest group, from the own one up, that hands on CPU and memory,
// or else most controllers, and returns the parent directory in it.
func unified(m mount) (dir string, has []string) {
	for at := m.own; ; at = filepath.Dir(at) {
		d := filepath.Join(at, parent)
		got := enable(at)
		if len(got) > 0 && makeDir(d) == nil {
			got = enable(d)
		}
		if dir == "" || len(got) > len(has) {
			dir, has = d, got
		}
		if slices.Contains(has, "cpu") && slices.Contains(has, "memory") || at == m.root || len(at) <= len(m.root) {
			return dir, has
		}
	}
}

// wanted are the controllers that limits need.
var wanted = []string{"cpu", "memory", "pids"}

// enable hands the wanted controllers on to the groups below dir and returns those
// that are. Where processes live in dir itself the kernel refuses, and so do
// missing rights: both only mean that it has to be done elsewhere.
func enable(dir string) (has []string) {
	below := words(filepath.Join(dir, "cgroup.subtree_control"))
	for _, c := range words(filepath.Join(dir, "cgroup.controllers")) {
		if slices.Contains(wanted, c) && !slices.Contains(below, c) {
			_ = write(filepath.Join(dir, "cgroup.subtree_control"), "+"+c)
		}
	}
	for _, c := range words(filepath.Join(dir, "cgroup.subtree_control")) {
		if slices.Contains(wanted, c) {
			has = append(has, c)
		}
	}
	return has
}

func words(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// group is the group of this name, not yet made.
func (l layout) group(name string) Group {
	in := func(dir string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(dir, name)
	}
	return Group{Unified: in(l.unified), CPU: in(l.cpu), Account: in(l.account), Memory: in(l.memory),
		Freezer: in(l.freezer), Pids: in(l.pids), Missing: slices.Clone(l.missing)}
}

// Support says what this machine enforces.
type Support struct {
	Version string // "v1", "v2", "hybrid" or "none"
	CPU     bool   // shares of CPU
	Memory  bool   // limits of memory, and why a worker died of it
	Freeze  bool   // suspending whole groups at once
	// Missing says what is not enforced, and why.
	Missing []string
}

// NotHeld says which limits of jobs are not held, and why; "" is none.
func (s Support) NotHeld() string {
	var what []string
	if !s.Memory {
		what = append(what, "memory")
	}
	if !s.CPU {
		what = append(what, "cores")
	}
	if len(what) == 0 {
		return ""
	}
	why := ""
	if len(s.Missing) > 0 {
		why = ": " + s.Missing[0]
	}
	return strings.Join(what, " and ") + " that jobs ask for are no limits here, as control groups do not hold them" + why
}

// probes counts those of this process, so that none takes the group of another away.
var probes atomic.Int64

// Probe finds out what can be enforced by making a group, moving a process into it
// and removing it again.
func Probe() Support {
	g, err := Create(fmt.Sprintf("probe-%d-%d", os.Getpid(), probes.Add(1)), Limits{CPU: unit.Whole, Memory: 64})
	if err != nil {
		return Support{Version: "none", Missing: []string{err.Error()}}
	}
	if err := g.tryAttach(); err != nil {
		g.miss("no process to try control groups with", err)
	}
	s := Support{Version: g.version(), CPU: !g.lacks("CPU"), Memory: !g.lacks("memory"), Freeze: g.CanFreeze(), Missing: g.Missing}
	if err := g.Remove(); err != nil {
		s.Missing = append(s.Missing, err.Error())
	}
	return s
}

// tryAttach moves a process that does nothing into g.
func (g *Group) tryAttach() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	p, err := os.StartProcess("/bin/cat", []string{"cat"}, &os.ProcAttr{Files: []*os.File{r}})
	if err != nil {
		w.Close()
		return err
	}
	err = g.Attach(p.Pid)
	w.Close()
	_, waited := p.Wait()
	return errors.Join(err, waited)
}

func (g Group) version() string {
	v1 := g.CPU != "" || g.Memory != "" || g.Account != "" || g.Freezer != ""
	switch {
	case g.Empty():
		return "none"
	case g.Unified != "" && v1:
		return "hybrid"
	case v1:
		return "v1"
	}
	return "v2"
}

// String says it in words.
func (s Support) String() string {
	yes := func(ok bool, what string) string {
		if ok {
			return what
		}
		return "no " + what
	}
	text := fmt.Sprintf("control groups %s: %s, %s, %s", s.Version, yes(s.CPU, "CPU shares"), yes(s.Memory, "memory limits"),
		yes(s.Freeze, "freezing"))
	if len(s.Missing) > 0 {
		text += " (" + strings.Join(s.Missing, "; ") + ")"
	}
	return text
}
