package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/model/unit"
)

// process is what /proc tells about one.
type process struct {
	pid, parent, session int
	zombie               bool
	memory               bool          // it has some: it does not end, and is not the kernel's
	birth                int64         // clock ticks since the boot
	cpu                  unit.Duration // with its waited-for children
	rss                  unit.MiB
}

// ticksPerSecond is the unit of times in /proc on every architecture Go runs on.
const ticksPerSecond = 100

// readProcess reads one process; false if there is none.
func readProcess(pid int) (process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	// The name before the last bracket may hold anything.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 22 {
		return process{}, false
	}
	number := func(field int) int64 { // as numbered in proc(5), from 3
		v, _ := strconv.ParseInt(f[field-3], 10, 64)
		return v
	}
	return process{
		// Where other threads go on, the state is only that of the first one.
		zombie: (f[0] == "Z" || f[0] == "X") && number(20) <= 1,
		memory: number(23) > 0,
		pid:    pid, parent: int(number(4)), session: int(number(6)), birth: number(22),
		cpu: unit.Duration(number(14)+number(15)+number(16)+number(17)) * unit.Second / ticksPerSecond,
		rss: unit.MiB(number(24) * int64(os.Getpagesize()) >> 20),
	}, true
}

// processes lists all living processes of this machine.
func processes() (all []process) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := readProcess(pid); ok && !p.zombie {
				all = append(all, p)
			}
		}
	}
	return all
}

// descendants lists the children of a process, their children and so on. The
// supervisor adopts orphans, so nothing its worker starts can get away.
func descendants(pid int) []process { return below(processes(), []int{pid}) }

// below lists the children of the parents among all, their children and so on.
func below(all []process, parents []int) (found []process) {
	for len(parents) > 0 {
		var next []int
		for _, p := range all {
			if slices.Contains(parents, p.parent) {
				found, next = append(found, p), append(next, p.pid)
			}
		}
		parents = next
	}
	return found
}

// signalAll sends a signal to all descendants of this process.
func signalAll(sig syscall.Signal) {
	for _, p := range descendants(os.Getpid()) {
		_ = syscall.Kill(p.pid, sig) // it may have ended meanwhile
	}
}

// killLeftovers ends what is left of a worker whose supervisor died, when the
// control group did not. It looks until it has found nothing twice: whose parent ends
// while it looks, the first look may miss.
func killLeftovers(dir string, prepared Record) error {
	if prepared.PID == 0 || prepared.Boot != bootID() {
		return nil
	}
	const patience = 10 * time.Second
	nothing := 0
	for end := time.Now().Add(patience); nothing < 2; time.Sleep(2 * time.Millisecond) {
		left, open := leftovers(dir, prepared)
		late := time.Now().After(end)
		switch {
		case len(left) > 0 && late:
			return fmt.Errorf("%d processes of the worker, the first of them %d, did not end within %s", len(left), left[0].pid, patience)
		case len(left) == 0 && (!open || late):
			nothing++
			continue
		}
		nothing = 0
		for _, p := range left {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
	return nil
}

// leftovers lists the processes of a worker: those of its session, unless another
// process has its number by now, those whose environment is that of the worker in dir,
// and all below them. Nobody adopts the children of a dead supervisor's worker, so one
// that left its session, its parents and its environment behind is not found. It is open
// whether that is all while a process is between two programs.
func leftovers(dir string, prepared Record) (left []process, open bool) {
	leader, lives := readProcess(prepared.PID)
	own := !lives || leader.birth == prepared.Birth
	all := processes()
	var pids []int
	for _, p := range all {
		ours := own && p.session == prepared.PID
		if !ours && p.birth >= prepared.Birth {
			var becomes bool
			ours, becomes = worksIn(p, dir)
			open = open || becomes
		}
		if ours {
			left, pids = append(left, p), append(pids, p.pid)
		}
	}
	return append(left, below(all, pids)...), open
}

// worksIn reports whether the environment that a process was started with names the
// files of the worker in dir, and so its job, its attempt and its rank. While it becomes
// another program it tells neither its environment nor its command line.
func worksIn(p process, dir string) (yes, becomes bool) {
	for range 2 { // it may have become that between the two
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p.pid))
		if err != nil || !p.memory {
			return false, false // it has ended, or is another user's or the kernel's
		}
		if len(environ) > 0 {
			return slices.ContainsFunc(strings.Split(string(environ), "\x00"), func(kv string) bool {
				_, value, _ := strings.Cut(kv, "=")
				return value == ControlPath(dir) || value == ProgressPath(dir)
			}), false
		}
		if line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.pid)); len(line) == 0 {
			return false, true
		}
	}
	return false, false
}

// bootID tells one boot of this machine from another.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// machineOOMKills counts the processes that the kernel of this machine ever ended
// for want of memory.
func machineOOMKills() int64 {
	b, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if v, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			return n
		}
	}
	return 0
}

// reaper waits for every child of the supervisor, adopted ones too.
type reaper struct {
	exited chan syscall.WaitStatus // of the worker
	// known is closed when that was recorded: until then the kernel keeps it for the other
	// supervisor.
	known chan struct{}
	none  chan struct{} // closed when there are no children any more
	cpuUs atomic.Int64  // used by those that ended
}

func newReaper(worker int) *reaper {
	r := &reaper{exited: make(chan syscall.WaitStatus, 1), known: make(chan struct{}), none: make(chan struct{})}
	go r.run(worker)
	return r
}

func (r *reaper) run(worker int) {
	defer close(r.none)
	for {
		pid, status, used, err := ended()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return // ECHILD: a worker with living children has them adopted by us
		}
		r.cpuUs.Add(used.Microseconds())
		if pid == worker {
			r.exited <- status
			<-r.known
		}
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
}

// ended waits until a child has ended and says which, how, and what CPU time it used. It
// stays a zombie.
func ended() (pid int, status syscall.WaitStatus, cpu time.Duration, err error) {
	var info struct { // siginfo_t, as waitid(2) fills it
		_, _, code, _, pid, _, status int32
		_                             [25]int32
	}
	var used unix.Rusage
	_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, uintptr(unsafe.Pointer(&used)), 0)
	if errno != 0 {
		return 0, 0, 0, errno
	}
	const exited, dumped = 1, 3 // CLD_EXITED, CLD_DUMPED
	switch status = syscall.WaitStatus(info.status); info.code {
	case exited:
		status <<= 8
	case dumped:
		status |= 0x80
	}
	return int(info.pid), status, time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
