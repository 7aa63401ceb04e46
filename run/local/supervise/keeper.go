package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/run/local/cgroup"
)

// A worker has two supervisors, one the child of the other. The lower one does the work.
// The upper one, the keeper, holds the lock, the orders and the worker's output as well, and
// waits: where the other is killed, the kernel gives it the worker, living or ended, and it
// goes on. Where the keeper is killed, the other just goes on. So whichever one process is
// killed, no worker is lost and no end of one; both at once are found by Reap.

// keep starts the supervisor of the worker in dir, waits for its end, and takes over if it
// was killed. It returns the exit code of this process.
func keep(dir string) (code int, err error) {
	held, err := lock(dir)
	if errors.Is(err, ErrAlive) {
		return ExitTaken, nil
	}
	if err != nil {
		return 0, err
	}
	defer held.Close()
	if records, _, err := ReadRecords(dir, 0); err != nil || len(records) > 0 {
		return ExitTaken, err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	signal.Ignore(unix.SIGHUP, unix.SIGPIPE)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("adopt orphans: %w", err)
	}
	p, err := newPipes(dir, held)
	if err != nil {
		return 0, err
	}
	oomBefore := machineOOMKills()
	pid, err := startAgain(stageSupervisor, 1, 2, p.lock, p.orders, p.output, p.outputW, p.status, p.statusW)
	if err != nil {
		return 0, fmt.Errorf("start supervisor: %w", err)
	}
	p.closeWriters()
	if status := awaitChild(pid, signals); status.Exited() && status.ExitStatus() == 0 {
		return 0, nil
	}
	s, records, err := newSupervisor(dir)
	if err != nil {
		return 0, err
	}
	s.signals, s.oomBefore = signals, oomBefore
	return 0, s.takeOver(p, records)
}

// awaitChild waits for the end of a child and hands on to it what it is told.
func awaitChild(pid int, signals <-chan os.Signal) syscall.WaitStatus {
	ended := make(chan syscall.WaitStatus)
	go func() {
		var status syscall.WaitStatus
		for err := error(unix.EINTR); errors.Is(err, unix.EINTR); {
			_, err = syscall.Wait4(pid, &status, 0, nil)
		}
		ended <- status
	}()
	for {
		select {
		case s := <-signals:
			_ = unix.Kill(pid, s.(syscall.Signal)) // it may be ending
		case status := <-ended:
			return status
		}
	}
}

// takeOver goes on where a supervisor that was killed left off. A worker that had not begun,
// or whose end is recorded, is left to Reap.
func (s *supervisor) takeOver(p pipes, records []Record) (err error) {
	was := recall(records)
	s.group, s.suspended, s.startedAt = was.group, was.suspended, was.began
	worker := p.staged(was.pid, nil)
	if process, found := readProcess(was.pid); !was.runs || !found || process.parent != os.Getpid() {
		s.reaper = newReaper(was.pid)
		s.endStrays()
		return errors.New("the supervisor was killed before its worker began or after it ended")
	}
	if s.spec, err = readSpec(s.dir); err != nil {
		return err
	}
	if s.log, err = newLogWriter(s.dir, s.spec.LogBytes); err != nil {
		return err
	}
	s.attend(worker)
	s.note(Record{Kind: TakenOver, PID: os.Getpid()})
	go s.listen(p)
	s.sampler.report, s.sampler.usage = was.latest.Report, was.latest.Usage
	for _, r := range s.sampler.read() {
		if r.Kind != Checkpoint || r.Report != was.saved { // an answer that is told twice is no harm
			s.note(r)
		}
	}
	s.limit.left = time.Duration(s.spec.TimeLimit)*time.Microsecond - was.ran
	s.arm()
	if was.stop.Kind != "" {
		s.stop(was.stop.Class, was.stop.Why)
	}
	status := s.watch()
	if said, err := s.worker.said(); err == nil && said != "" { // it never became the command
		return s.finish(s.dismiss(parseFailure(said)))
	}
	return s.finish(s.conclude(status))
}

// recalled is what the records of a worker tell of it.
type recalled struct {
	pid       int
	group     cgroup.Group
	began     time.Time
	runs      bool // it began, and its end is not recorded
	suspended bool
	ran       time.Duration // without the time it was suspended
	latest    Record        // progress
	saved     Report
	stop      Record // the request, if there was one
}

func recall(records []Record) (was recalled) {
	var since time.Time
	for _, r := range records {
		at := time.UnixMicro(int64(r.At))
		switch r.Kind {
		case Prepared:
			was.pid, was.group = r.PID, *r.Group
		case Started:
			was.runs, was.began, since = true, at, at
		case Suspended:
			was.suspended, was.ran = true, was.ran+at.Sub(since)
		case Resumed:
			was.suspended, since = false, at
		case Progress:
			was.latest = r
		case Checkpoint:
			was.saved = r.Report
		case StopRequested:
			was.stop = r
		case Exited, Ended:
			was.runs = false
		}
	}
	if was.runs && !was.suspended {
		was.ran += time.Since(since)
	}
	return was
}

// pipes are the descriptors that both supervisors of a worker hold: the lock, and what leads
// from the control plane and from the worker to them.
type pipes struct{ lock, orders, output, outputW, status, statusW int }

func newPipes(dir string, lock *os.File) (pipes, error) {
	path := filepath.Join(dir, "orders")
	if err := unix.Mkfifo(path, 0o600); err != nil && !errors.Is(err, unix.EEXIST) {
		return pipes{}, fmt.Errorf("make orders: %w", err)
	}
	// Being a writer as well keeps it open between two orders.
	orders, err := unix.Open(path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return pipes{}, fmt.Errorf("open orders: %w", err)
	}
	var output, status [2]int
	if err := errors.Join(unix.Pipe2(output[:], unix.O_CLOEXEC), unix.Pipe2(status[:], unix.O_CLOEXEC)); err != nil {
		return pipes{}, fmt.Errorf("start supervisor: %w", err)
	}
	return pipes{int(lock.Fd()), orders, output[0], output[1], status[0], status[1]}, nil
}

// inherited are the pipes as the keeper hands them to its supervisor.
func inherited() pipes {
	p := pipes{3, 4, 5, 6, 7, 8}
	for fd := p.lock; fd <= p.statusW; fd++ {
		unix.CloseOnExec(fd)
	}
	return p
}

// closeWriters closes what only the worker writes to.
func (p pipes) closeWriters() {
	_, _ = unix.Close(p.outputW), unix.Close(p.statusW)
}

// staged is the worker behind these pipes.
func (p pipes) staged(pid int, goOn *os.File) *staged {
	return &staged{pid: pid, goOn: goOn, status: open(p.status), output: open(p.output)}
}

// open makes a file of a pipe, whose reading can be given a deadline.
func open(fd int) *os.File {
	_ = unix.SetNonblock(fd, true)
	return os.NewFile(uintptr(fd), "pipe")
}

// startAgain starts this program again in a session of its own, with these descriptors from
// its output on.
func startAgain(stage string, fds ...int) (pid int, err error) {
	files := []uintptr{0}
	for _, fd := range fds {
		files = append(files, uintptr(fd))
	}
	return syscall.ForkExec("/proc/self/exe", os.Args, &syscall.ProcAttr{
		Env: []string{stageVariable + "=" + stage}, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
}
