package supervise

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/run/local/cgroup"
)

// Exit codes of a supervisor that did not come to run its worker; it is 0 when the
// end of the worker was recorded, whatever it was.
const (
	ExitBroken = 1 // see supervisor.log
	ExitTaken  = 3 // another supervisor lives, or the attempt was used
)

// Main supervises the worker in dir: it returns when the worker has ended, with the exit
// code of the process. It takes over the whole process.
func Main(dir string) int {
	var code int
	var err error
	switch os.Getenv(stageVariable) {
	case stageWorker:
		return stage(dir)
	case stageSupervisor:
		err = superviseIn(dir)
	default:
		code, err = keep(dir)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: supervise %s: %v\n", time.Now().UTC().Format(time.RFC3339), dir, err)
		return ExitBroken
	}
	return code
}

// supervisor is what a supervisor knows of its worker.
type supervisor struct {
	law     lawful
	dir     string
	spec    Spec
	record  *recorder
	group   cgroup.Group
	worker  *staged
	reaper  *reaper
	log     *logWriter
	logged  chan struct{} // closed when the worker's output has ended
	orders  chan Order
	signals chan os.Signal

	sampler    *sampler
	sampleNext *time.Timer
	oomBefore  int64
	startedAt  time.Time
	summaryAt  time.Time
	limit      limit
	suspended  bool
	stopping   stopping
}

// limit is the time limit of a worker; its timer stands while the worker is suspended.
type limit struct {
	timer *time.Timer
	left  time.Duration // at from
	from  time.Time
}

// stopping is how far stopping a worker has come.
type stopping struct {
	why       Class       // empty while it is not being stopped
	next      *time.Timer // the next step
	saving    bool        // waits for a checkpoint
	saveAfter int         // one more than so many
	killed    bool        // by us
}

// superviseIn runs the worker in dir from its first record to its last.
func superviseIn(dir string) error {
	s, _, err := newSupervisor(dir)
	if err != nil {
		return err
	}
	signal.Notify(s.signals, unix.SIGTERM, unix.SIGINT)
	signal.Ignore(unix.SIGHUP, unix.SIGPIPE)
	return s.finish(s.run(inherited()))
}

func newSupervisor(dir string) (*supervisor, []Record, error) {
	runtime.LockOSThread() // what measuring costs is read off this thread
	record, records, err := openRecord(dir)
	return &supervisor{dir: dir, record: record, logged: make(chan struct{}), orders: make(chan Order, 16), signals: make(chan os.Signal, 4)}, records, err
}

// finish removes the group of the worker, which nobody would look for behind its last record, and
// writes that.
func (s *supervisor) finish(ended Record) error {
	defer s.record.file.Close()
	if err := s.group.Remove(); err != nil {
		s.say(err)
	}
	return s.end(ended)
}

// say writes to supervisor.log what is no reason to give up.
func (s *supervisor) say(err error) {
	fmt.Fprintf(os.Stderr, "%s: %v\n", time.Now().UTC().Format(time.RFC3339), err)
}

// run does everything between prepare and the worker's end, and returns the record of it.
func (s *supervisor) run(p pipes) Record {
	f := s.prepare(p)
	if f == nil {
		f = s.begin()
	}
	if f != nil {
		return s.dismiss(f)
	}
	return s.conclude(s.watch())
}

// conclude records how the worker exited, ends what it left behind and returns the last
// record.
func (s *supervisor) conclude(status syscall.WaitStatus) Record {
	exited := s.verdict(status)
	exited.Kind = Exited
	s.note(exited) // first of all: a job whose end is known is never run again
	s.observe()
	r := s.verdict(status)
	if strays := s.endStrays(); strays > 0 {
		r.Why += fmt.Sprintf("; %d of its processes cannot be ended", strays)
	}
	s.drain()
	return r
}

// prepare does all that can fail before the worker runs.
func (s *supervisor) prepare(p pipes) (f *failure) {
	var err error
	if s.spec, err = readSpec(s.dir); err != nil {
		return unready(err)
	}
	go s.listen(p)
	if err := s.makeFiles(); err != nil {
		return unready(err)
	}
	if err := checkPorts(s.spec.Ports); err != nil {
		return unready(err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return unready(fmt.Errorf("adopt orphans: %w", err))
	}
	if s.group, err = s.spec.Pool.Create(s.spec.groupName(), s.spec.Limits); err != nil {
		return unready(err)
	}
	if s.log, err = newLogWriter(s.dir, s.spec.LogBytes); err != nil {
		return unready(err)
	}
	worker, err := startStage(p)
	if err != nil {
		return unready(err)
	}
	s.attend(worker)
	// It fails only where the stage has ended already, which then says why.
	_ = s.group.Attach(s.worker.pid)
	return s.awaitReady()
}

// attend waits for the end of the worker from now on, and for what it writes.
func (s *supervisor) attend(worker *staged) {
	s.worker, s.reaper = worker, newReaper(worker.pid)
	s.sampler = newSampler(s.dir, s.group, s.reaper)
	s.sampler.gpus.devices = visibleGPUs(s.spec.Env)
	go func() { defer close(s.logged); s.log.copy(s.worker.output) }()
}

// awaitReady waits until the stage has done its part and records that.
func (s *supervisor) awaitReady() *failure {
	said, err := s.worker.saidInTime()
	switch {
	case err != nil:
		return unready(fmt.Errorf("prepare worker: %w", err))
	case said != ready:
		return parseFailure(said)
	}
	p, ok := readProcess(s.worker.pid)
	if !ok {
		return parseFailure("")
	}
	if err := s.record.add(Record{Kind: Prepared, PID: p.pid, Birth: p.birth, Boot: bootID(), Group: &s.group}); err != nil {
		return unready(err)
	}
	return nil
}

// listen hands on the orders of the control plane.
func (s *supervisor) listen(p pipes) {
	for lines := bufio.NewScanner(open(p.orders)); lines.Scan(); {
		s.orders <- Order(lines.Text())
	}
}

// makeFiles makes the files that the worker shares with us.
func (s *supervisor) makeFiles() error {
	for _, f := range []struct {
		path string
		mode os.FileMode
	}{{ControlPath(s.dir), 0o644}, {ProgressPath(s.dir), 0o600}, {TimingsPath(s.dir), 0o600}} {
		file, err := os.OpenFile(f.path, os.O_CREATE|os.O_RDWR, f.mode)
		if err != nil {
			return fmt.Errorf("make file for the worker: %w", err)
		}
		err = file.Chmod(f.mode) // whatever the umask
		if f.mode == 0o600 && os.Geteuid() == 0 {
			err = errors.Join(err, file.Chown(s.spec.User.UID, s.spec.User.GID))
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("make file for the worker: %w", err)
		}
	}
	return nil
}

// checkPorts looks whether the ports are free now.
func checkPorts(ports []int) error {
	for _, port := range ports {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			return fmt.Errorf("port %d is not free: %w", port, err)
		}
		l.Close()
	}
	return nil
}

// begin waits for the order to go and lets the worker go.
func (s *supervisor) begin() *failure {
	if f := s.awaitGo(); f != nil {
		return f
	}
	s.stepLaw() // a guest is held back from the first moment on
	// The record comes before its effect: no worker ever runs unrecorded.
	if err := s.record.add(Record{Kind: Started, PID: s.worker.pid}); err != nil {
		return unready(err)
	}
	s.oomBefore = machineOOMKills()
	s.startedAt = time.Now()
	if err := os.Remove(filepath.Join(s.dir, "secrets")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return unready(fmt.Errorf("remove secrets: %w", err))
	}
	if _, err := s.worker.goOn.Write([]byte{1}); err != nil {
		return unready(fmt.Errorf("start worker: %w", err))
	}
	if err := s.worker.status.SetReadDeadline(time.Time{}); err != nil {
		return unready(fmt.Errorf("start worker: %w", err))
	}
	// It says nothing more when it has become the command.
	switch said, err := s.worker.said(); {
	case err != nil:
		return unready(fmt.Errorf("start worker: %w", err))
	case said != "":
		return parseFailure(said)
	}
	s.limit.left = time.Duration(s.spec.TimeLimit) * time.Microsecond
	s.arm()
	return nil
}

// awaitGo waits for the control plane, which may be restarting.
func (s *supervisor) awaitGo() *failure {
	patience := time.NewTimer(time.Duration(s.spec.WaitGo) * time.Microsecond)
	defer patience.Stop()
	for {
		select {
		case o := <-s.orders:
			switch o {
			case Go:
				return nil
			case Abort, Halt, Kill:
				return &failure{class: Aborted, err: fmt.Errorf("told to %s before it started", o)}
			}
		case <-s.signals:
			return &failure{class: Aborted, err: errors.New("its supervisor was told to end before it started")}
		case <-s.reaper.exited:
			return parseFailure("")
		case <-patience.C:
			return &failure{class: Abandoned, err: fmt.Errorf("nobody said go within %s", s.spec.WaitGo)}
		}
	}
}

// dismiss ends a worker that never ran, and returns the record of it.
func (s *supervisor) dismiss(f *failure) Record {
	if s.worker != nil {
		_ = unix.Kill(s.worker.pid, unix.SIGKILL)
		s.endStrays()
		s.drain()
	}
	_ = os.Remove(filepath.Join(s.dir, "secrets"))
	return Record{Class: f.class, Code: f.code, Why: f.err.Error()}
}

// endStrays ends what the worker left behind and reports how many processes resist.
func (s *supervisor) endStrays() (left int) {
	const patience = 10 * time.Second
	close(s.reaper.known)
	// Its error says that some did not end; the count below says it again.
	_ = s.group.Kill()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		signalAll(unix.SIGKILL)
		select {
		case <-s.reaper.none:
			return 0
		case <-time.After(5 * time.Millisecond):
		}
	}
	return len(descendants(os.Getpid()))
}

// drain waits until all output is in the log; something that survived may hold it open.
func (s *supervisor) drain() {
	_ = s.worker.output.SetReadDeadline(time.Now().Add(time.Second))
	<-s.logged
	_ = s.log.close()
}

// end writes the last record. A full disk may have room again a little later; if
// not, whoever finds the lock free records the attempt as lost.
func (s *supervisor) end(r Record) (err error) {
	r.Kind = Ended
	for range 60 {
		if err = s.record.add(r); err == nil {
			return nil
		}
		time.Sleep(time.Second)
	}
	return err
}

// verdict says how the worker ended, as far as it was observed.
func (s *supervisor) verdict(status syscall.WaitStatus) Record {
	usage, _ := s.group.Usage()
	r := Record{Report: s.sampler.report, Usage: s.sampler.usage, Code: max(status.ExitStatus(), 0)}
	if status.Signaled() {
		r.Signal = unix.SignalName(status.Signal())
	}
	if r.Class, r.Why = s.classify(status, usage.OOMKills); r.Class == Memory {
		r.Usage.Peak = max(r.Usage.Peak, usage.Peak) // samples miss it
		r.Why += fmt.Sprintf("; it used %s at most", r.Usage.Peak)
		if r.Limit = s.spec.Limits.Memory; usage.OOMKills == 0 {
			r.Limit = 0 // it was the machine's
		}
	}
	return r
}

// classify says why a worker ended.
func (s *supervisor) classify(status syscall.WaitStatus, oomKills int64) (Class, string) {
	const temporary = 75 // EX_TEMPFAIL
	finished := s.sampler.report.Of > 0 && s.sampler.report.Step >= s.sampler.report.Of
	succeeded := status.Exited() && status.ExitStatus() == 0
	how := fmt.Sprintf("exit code %d", status.ExitStatus())
	if status.Signaled() {
		how = "ended by " + unix.SignalName(status.Signal())
	}
	killed := status.Signaled() && status.Signal() == unix.SIGKILL && !s.stopping.killed
	switch {
	case succeeded && (s.stopping.why == "" || finished):
		return Done, ""
	case s.stopping.why != "" && !(killed && s.stopping.why == Preempted):
		return s.stopping.why, how // one that somebody else killed may be why the others had to stop
	case oomKills > 0:
		return Memory, fmt.Sprintf("out of memory: %s at its limit of %s", how, s.spec.Limits.Memory)
	case killed && s.group.Memory == "" && machineOOMKills() > s.oomBefore:
		return Memory, "out of memory: " + how + " when this machine had none left"
	case status.Exited() && status.ExitStatus() == temporary:
		return Temporary, how
	}
	return User, how
}
