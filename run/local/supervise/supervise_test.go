package supervise

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup"
)

func TestHowItEnds(t *testing.T) {
	t.Parallel()
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("\x01\x02 no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	orphan := filepath.Join(t.TempDir(), "orphan")
	if err := os.WriteFile(orphan, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	for _, c := range []struct {
		name    string
		script  string
		change  func(*Spec)
		class   Class
		code    int
		signal  string
		started int
		why     string // part of it
	}{
		{name: "done", script: "exit 0", class: Done, started: 1},
		{name: "failure", script: "exit 3", class: User, code: 3, started: 1, why: "exit code 3"},
		{name: "peer", script: "exit 75", class: Temporary, code: 75, started: 1},
		{name: "crash", script: "kill -SEGV $$", class: User, signal: "SIGSEGV", started: 1},
		{name: "killed", script: "kill -KILL $$", class: User, signal: "SIGKILL", started: 1},
		{name: "no command", change: func(s *Spec) { s.Command = []string{"no-such-thing"} }, class: User, code: 127, why: "no such program: no-such-thing (looked for in /usr/bin:/bin)"},
		{name: "no path", change: func(s *Spec) { s.Command, s.Env = []string{"no-such-thing"}, []string{"PATH="} }, class: User, code: 127, why: "no such program: no-such-thing"},
		{name: "no directory", change: func(s *Spec) { s.Dir = "/no/such" }, class: User, code: 127, why: "no such working directory: /no/such"},
		{name: "a file for a directory", change: func(s *Spec) { s.Dir = text }, class: User, code: 126, why: "not a directory"},
		{name: "no file", change: func(s *Spec) { s.Command = []string{"/no/such/program"} }, class: User, code: 127, why: "no such program: /no/such/program"},
		{name: "no interpreter", change: func(s *Spec) { s.Command = []string{orphan} }, class: User, code: 127, started: 1, why: "interpreter"},
		{name: "not executable", change: func(s *Spec) { s.Command = []string{text} }, class: User, code: 126, why: "no right to use the program " + text},
		{name: "no program", change: func(s *Spec) { s.Command = []string{garbage} }, class: User, code: 126, started: 1, why: "is no program"},
		{name: "port", change: func(s *Spec) { s.Ports = []int{taken.Addr().(*net.TCPAddr).Port} }, class: Temporary, why: "not free"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := shell(t, c.script)
			if c.change != nil {
				c.change(&s)
			}
			r := run(t, s)
			if r.Class != c.class || r.Code != c.code || r.Signal != c.signal || !strings.Contains(r.Why, c.why) {
				t.Errorf("ended %+v, expected class %s, code %d, signal %q, why ...%s...", r, c.class, c.code, c.signal, c.why)
			}
			if k := kinds(t, s.MemberDir()); count(k, Started) != c.started || count(k, Ended) != 1 {
				t.Errorf("records %v, expected %d started and one ended", k, c.started)
			}
		})
	}
}

func TestWorkerGetsExactlyWhatWasAsked(t *testing.T) {
	t.Parallel()
	s := spec(t, "env")
	s.Env = append(s.Env, "A=b c")
	s.Secrets = []string{"TOKEN=hunter2\nx"}
	dir, _ := launch(t, s)
	if info, err := os.Stat(filepath.Join(dir, "secrets")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secrets: %v, %v, expected mode 0600", info, err)
	}
	send(t, dir, Go)
	await(t, dir, Ended)
	if got, want := output(t, dir), strings.Join(s.Env, "\n")+"\nTOKEN=hunter2\nx\n"; got != want {
		t.Errorf("environment\n%s\nexpected\n%s", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "secrets")); !os.IsNotExist(err) {
		t.Errorf("secrets are still there: %v", err)
	}
	for _, name := range []string{"spec.json", "record"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || strings.Contains(string(b), "hunter2") {
			t.Errorf("%s tells a secret, or %v", name, err)
		}
	}
}

func TestWorkerRunsAsItsUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can switch users")
	}
	t.Parallel()
	s := shell(t, `id -u; id -g; id -G; umask; ulimit -n; pwd; ls /proc/self/fd | tr '\n' ' '; echo "step=3 of=9" >> $MUSTER_PROGRESS && cat $MUSTER_CONTROL && echo fine`)
	s.User = Identity{UID: 65534, GID: 65533, Groups: []int{65533, 65532}}
	s.Umask, s.Rlimits, s.Dir = 0o027, []Rlimit{{"nofile", 512, 700}}, "/tmp"
	// A file that this process passes on to its children, unlike those that Go opens.
	passed, err := syscall.Dup(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(passed) })
	// Workers of other users must be able to pass through the state directory.
	if err := os.Chmod(filepath.Dir(s.State), 0o755); err != nil {
		t.Fatal(err)
	}
	r := run(t, s)
	want := "65534\n65533\n65533 65532\n0027\n512\n/tmp\n0 1 2 3 fine\n"
	if got := output(t, s.MemberDir()); got != want || r.Class != Done || r.Report.Step != 3 {
		t.Errorf("output %q, expected %q; ended %+v", got, want, r)
	}
}

func TestRefused(t *testing.T) {
	for name, change := range map[string]func(*Spec){
		"root":         func(s *Spec) { s.User = Identity{} },
		"root's group": func(s *Spec) { s.User = Identity{UID: 1000} },
		"job name":     func(s *Spec) { s.Job = "../x" },
		"no command":   func(s *Spec) { s.Command = nil },
		"relative":     func(s *Spec) { s.Dir = "here" },
		"env":          func(s *Spec) { s.Env = []string{"NOVALUE"} },
		"zero byte":    func(s *Spec) { s.Secrets = []string{"A=\x00"} },
		"rlimit":       func(s *Spec) { s.Rlimits = []Rlimit{{"files", 1, 1}} },
		"port":         func(s *Spec) { s.Ports = []int{70000} },
		"time":         func(s *Spec) { s.TimeLimit = -1 },
	} {
		s := shell(t, "exit 0")
		change(&s)
		if _, err := Launch(s, self()); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestStopWaitsForCheckpointThenTerminates(t *testing.T) {
	t.Parallel()
	s := shell(t, `trap 'echo ended; exit 0' TERM; echo up
while ! grep -q checkpoint $MUSTER_CONTROL; do sleep 0.02; done
echo "checkpoint step=7 path=/tmp/a b" >> $MUSTER_PROGRESS
while :; do sleep 0.02; done`)
	s.Stop.CheckpointWait = 10 * unit.Second
	dir := runTo(t, s, "up")
	send(t, dir, Halt)
	send(t, dir, Halt)
	r := await(t, dir, Ended)
	if r.Class != Preempted || r.Code != 0 || !strings.Contains(output(t, dir), "ended") {
		t.Errorf("ended %+v, output %q", r, output(t, dir))
	}
	k := kinds(t, dir)
	if save, stop := slices.Index(k, Checkpoint), slices.Index(k, StopRequested); save < stop || count(k, StopRequested) != 1 {
		t.Errorf("records %v, expected one stop-requested and then a checkpoint", k)
	}
	if c := await(t, dir, Checkpoint); c.Report.Step != 7 || c.Report.Path != "/tmp/a b" {
		t.Errorf("checkpoint %+v", c)
	}
	b, err := os.ReadFile(ControlPath(dir))
	if err != nil || string(b) != "checkpoint\nstop\n" {
		t.Errorf("control %q, %v", b, err)
	}
}

func TestIgnoringSIGTERMEndsAfterTheGrace(t *testing.T) {
	t.Parallel()
	s := shell(t, `trap '' TERM; echo up; while :; do sleep 0.02; done`)
	s.Stop.Grace = 200 * unit.Millisecond
	dir := runTo(t, s, "up")
	send(t, dir, Halt)
	r := await(t, dir, Ended)
	took := r.At.Sub(await(t, dir, StopRequested).At)
	if r.Class != Preempted || r.Signal != "SIGKILL" || took < s.Stop.Grace || took > 5*unit.Second {
		t.Errorf("ended %+v after %s", r, took)
	}
}

func TestFinishingWhileStoppedIsDone(t *testing.T) {
	t.Parallel()
	dir := runTo(t, shell(t, `trap 'echo step=9 of=9 >> $MUSTER_PROGRESS; exit 0' TERM; echo up; while :; do sleep 0.02; done`), "up")
	send(t, dir, Halt)
	if r := await(t, dir, Ended); r.Class != Done {
		t.Errorf("ended %+v", r)
	}
}

func TestStraysEndWithTheWorker(t *testing.T) {
	t.Parallel()
	s := shell(t, `(setsid sh -c 'echo $$; exec sleep 1000' &) ; (sleep 1000 & echo $!); sleep 1`)
	if r := run(t, s); r.Class != Done {
		t.Errorf("ended %+v", r)
	}
	var pids []int
	for line := range strings.Lines(output(t, s.MemberDir())) {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 {
		t.Fatalf("output %q, expected two process ids", output(t, s.MemberDir()))
	}
	for _, pid := range pids {
		if _, ok := readProcess(pid); ok {
			t.Errorf("process %d lives", pid)
		}
	}
}

func TestTimeLimitDoesNotCountSuspension(t *testing.T) {
	t.Parallel()
	s := shell(t, `echo up; while :; do sleep 0.02; done`)
	s.TimeLimit = 500 * unit.Millisecond
	dir := runTo(t, s, "up")
	send(t, dir, Suspend)
	await(t, dir, Suspended)
	time.Sleep(400 * time.Millisecond)
	send(t, dir, Resume)
	r := await(t, dir, Ended)
	paused := await(t, dir, Resumed).At.Sub(await(t, dir, Suspended).At)
	ran := await(t, dir, StopRequested).At.Sub(await(t, dir, Started).At) - paused
	if r.Class != TimeLimit || ran < s.TimeLimit-20*unit.Millisecond || ran > s.TimeLimit+300*unit.Millisecond {
		t.Errorf("ended %+v after running %s, expected %s", r, ran, s.TimeLimit)
	}
}

func TestSuspendedMakesNoProgress(t *testing.T) {
	t.Parallel()
	dir := runTo(t, shell(t, `echo up; i=0; while :; do i=$((i+1)); echo $i; sleep 0.01; done`), "up")
	send(t, dir, Suspend)
	await(t, dir, Suspended)
	time.Sleep(300 * time.Millisecond) // what it wrote before may still be on its way to the log
	before := output(t, dir)
	time.Sleep(150 * time.Millisecond)
	if after := output(t, dir); after != before {
		t.Errorf("%d bytes of output while suspended", len(after)-len(before))
	}
	send(t, dir, Suspend) // again: no harm
	send(t, dir, Halt)    // a suspended worker can be stopped
	if r := await(t, dir, Ended); r.Class != Preempted {
		t.Errorf("ended %+v", r)
	}
	if k := kinds(t, dir); count(k, Suspended) != 1 || count(k, Resumed) != 1 {
		t.Errorf("records %v", k)
	}
}

func TestMemoryHogIsClassedMemory(t *testing.T) {
	if s := cgroup.Probe(); !s.Memory {
		t.Skip(s)
	}
	t.Parallel()
	s := spec(t, self(), "hog")
	s.Limits.Memory = 64
	if r := run(t, s); r.Class != Memory || r.Signal != "SIGKILL" || r.Limit != 64 || r.Usage.Peak < 48 || !strings.Contains(r.Why, "out of memory: ended by SIGKILL at its limit of 64MiB; it used ") {
		t.Errorf("ended %+v", r)
	}
	// The same in a child whose parent goes on to report it as its own failure.
	s = shell(t, self()+" hog; exit 1")
	s.Limits.Memory = 64
	if r := run(t, s); r.Class != Memory || r.Code != 1 && r.Signal != "SIGKILL" {
		t.Errorf("ended %+v", r)
	}
}

func TestShareOfCPUIsKept(t *testing.T) {
	if s := cgroup.Probe(); !s.CPU {
		t.Skip(s)
	}
	t.Parallel()
	s := spec(t, self(), "burn")
	s.Limits.CPU = 500
	r := run(t, s)
	// A third of a second of work; the first tenth may come at once.
	if took := r.At.Sub(await(t, s.MemberDir(), Started).At); r.Class != Done || took < 550*unit.Millisecond {
		t.Errorf("ended %+v after %s, expected about 0.63 s", r, took)
	}
}

func TestUsageAndProgressAreReported(t *testing.T) {
	t.Parallel()
	s := shell(t, `echo "step=5 of=10 loss=2.5 rate=4" >> $MUSTER_PROGRESS; echo nonsense= = >> $MUSTER_PROGRESS; sleep 0.2; `+self()+` burn`)
	s.SummaryEvery = 50 * unit.Millisecond
	r := run(t, s)
	if want := (Report{Step: 5, Of: 10, Loss: 2.5, Rate: 4, Malformed: 1}); r.Report != want {
		t.Errorf("report %+v, expected %+v", r.Report, want)
	}
	if cpu := r.Usage.CPU.Seconds(); cpu < 0.333 || cpu > 0.7 || r.Usage.Peak == 0 {
		t.Errorf("usage %+v, expected about 0.35 s of CPU time and some memory", r.Usage)
	}
	if p := await(t, s.MemberDir(), Progress); p.Kind != Progress {
		t.Errorf("records %v, expected progress", kinds(t, s.MemberDir()))
	}
}

func TestSummariesAreFew(t *testing.T) {
	t.Parallel()
	s := shell(t, `for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do echo step=$i >> $MUSTER_PROGRESS; echo checkpoint step=$i >> $MUSTER_PROGRESS; sleep 0.02; done`)
	s.SummaryEvery = unit.Hour
	run(t, s)
	k := kinds(t, s.MemberDir())
	if count(k, Progress) != 0 || count(k, Checkpoint) < 1 || count(k, Checkpoint) > 15 {
		t.Errorf("records %v", k)
	}
	if got := summaryPause(10*unit.Second, 30*24*time.Hour); got != time.Minute {
		t.Errorf("summaries of a month every %s", got)
	}
	if got := summaryPause(10*unit.Second, time.Hour); got != 10*time.Second {
		t.Errorf("summaries of an hour every %s", got)
	}
}

func TestMeasuringTakesUnderOnePercent(t *testing.T) {
	for _, cost := range []time.Duration{0, time.Millisecond, time.Second} {
		p := pause(2*unit.Second, cost)
		if share := float64(cost) / float64(p+cost); share > 0.01 || p < 2*time.Second {
			t.Errorf("cost %s, pause %s: share %.4f", cost, p, share)
		}
	}
	s := &sampler{reaper: &reaper{}, io: map[int]storage{}}
	before := threadTime()
	s.measure()
	t.Logf("one measurement of %d processes by descent takes %s", len(descendants(os.Getpid())), threadTime()-before)
}

func TestSupervisorTakesUnderOnePercent(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("takes 20 s: set MUSTER_LONG=1")
	}
	t.Parallel()
	for name, group := range map[string]int{"one process": 0, "60 processes": 60} {
		s := shell(t, fmt.Sprintf(`for i in $(seq %d); do sleep 100 & done; echo up; while :; do echo step=1 >> $MUSTER_PROGRESS; sleep 0.1; done`, group))
		s.SampleEvery = 0 // the default
		dir := runTo(t, s, "up")
		pid := processOf(dir, stageSupervisor)
		before, _ := readProcess(pid)
		time.Sleep(10 * time.Second)
		after, ok := readProcess(pid)
		share := (after.cpu - before.cpu).Seconds() / 10
		t.Logf("%s: %.2f %% of a core, %s resident", name, 100*share, after.rss)
		if !ok || share > 0.01 {
			t.Errorf("%s: %.2f %% of a core", name, 100*share)
		}
	}
}
