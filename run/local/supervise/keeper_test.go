package supervise

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
)

// TestTakeOver kills the supervisor of a worker that goes on: the keeper sees it to its end,
// with what it prints, reports and is told.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	s := shell(t, `trap 'echo told; exit 7' TERM
echo step=1 of=9 >>$MUSTER_PROGRESS; echo checkpoint step=1 path=one >>$MUSTER_PROGRESS
(setsid sleep 1000 &); echo up; until [ -e go ]; do sleep 0.01; done
echo step=2 of=9 >>$MUSTER_PROGRESS; echo checkpoint step=2 path=two >>$MUSTER_PROGRESS
echo on; while :; do sleep 0.01; done`)
	s.Dir = t.TempDir()
	dir := runTo(t, s, "up")
	await(t, dir, Checkpoint)
	awaitGone(t, kill(dir, stageSupervisor))
	await(t, dir, TakenOver)
	if m := Look(dir); !m.Alive {
		t.Error("nobody holds the lock")
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); !strings.Contains(output(t, dir), "on") && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	send(t, dir, Halt)
	r := await(t, dir, Ended)
	if r.Class != Preempted || r.Code != 7 || r.Report.Step != 2 || r.Report.Of != 9 {
		t.Errorf("ended %+v", r)
	}
	if got := output(t, dir); !strings.HasPrefix(got, "up\non\n") || !strings.HasSuffix(got, "told\n") {
		t.Errorf("output %q", got)
	}
	records, _, err := ReadRecords(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	var saved []string
	for _, r := range records {
		if r.Kind == Checkpoint {
			saved = append(saved, r.Report.Path)
		}
	}
	if strings.Join(saved, " ") != "one two" {
		t.Errorf("checkpoints %v, expected each once", saved)
	}
	settle(t, dir)
}

// TestWhatOutlivesTheSupervisor: the end of a worker that the killed supervisor had not
// recorded, a time limit, a stop and a suspension.
func TestWhatOutlivesTheSupervisor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		limit  unit.Duration
		before func(dir string) // what happens until the supervisor is killed
		after  []Order
		class  Class
		code   int
		signal string
	}{
		"an end that nobody recorded": {script: `echo up; until [ -e go ]; do sleep 0.01; done; exit 5`, class: User, code: 5, before: func(dir string) {
			stopped := processOf(dir, stageSupervisor)
			_ = syscall.Kill(stopped, syscall.SIGSTOP)
			_ = os.WriteFile(filepath.Join(dir, "..", "..", "..", "go"), nil, 0o600)
			for p, ok := readProcess(workerOf(t, dir)); ok && !p.zombie; p, ok = readProcess(p.pid) {
				time.Sleep(time.Millisecond)
			}
		}},
		"a time limit": {script: `echo up; while :; do sleep 0.01; done`, limit: 500 * unit.Millisecond, class: TimeLimit, signal: "SIGTERM"},
		"a stop that the worker does not heed": {script: `trap '' TERM; echo up; while :; do sleep 0.01; done`, class: Preempted, signal: "SIGKILL", before: func(dir string) {
			send(t, dir, Halt)
			await(t, dir, StopRequested)
		}},
		"a suspension": {script: `echo up; while :; do sleep 0.01; done`, class: Preempted, signal: "SIGTERM", after: []Order{Resume, Halt}, before: func(dir string) {
			send(t, dir, Suspend)
			await(t, dir, Suspended)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shell(t, c.script)
			s.Dir, s.TimeLimit, s.Stop.Grace = s.State, c.limit, 200*unit.Millisecond
			dir := runTo(t, s, "up")
			if c.before != nil {
				c.before(dir)
			}
			awaitGone(t, kill(dir, stageSupervisor))
			await(t, dir, TakenOver)
			for _, o := range c.after {
				send(t, dir, o)
			}
			if r := await(t, dir, Ended); r.Class != c.class || r.Code != c.code || r.Signal != c.signal {
				t.Errorf("ended %+v", r)
			}
			settle(t, dir)
		})
	}
}

// TestDeathOfTheKeeper: the supervisor goes on, and no second one can begin.
func TestDeathOfTheKeeper(t *testing.T) {
	t.Parallel()
	dir := runTo(t, shell(t, `echo up; sleep 0.3; exit 4`), "up")
	awaitGone(t, kill(dir, ""))
	if _, err := start(dir, self()); err != nil {
		t.Fatal(err)
	}
	if r := await(t, dir, Ended); r.Class != User || r.Code != 4 {
		t.Errorf("ended %+v", r)
	}
	settle(t, dir)
}

func workerOf(t *testing.T, dir string) int { return await(t, dir, Started).PID }
