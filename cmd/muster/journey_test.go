package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/journeytest"
	"github.com/musterdl/muster/internal/view"
)

// nobody is the account of the journey where the tests are root's: one without any rights,
// and without a name, as in a container.
const nobody = 54321

// newcomer is a control plane that is yet to be started by an account without rights, who
// then also calls it.
func newcomer(t *testing.T, flags ...string) *controlPlane {
	t.Helper()
	p := newPlane(t, append([]string{"--allow-root=false"}, flags...)...)
	if os.Geteuid() != 0 {
		return p
	}
	// The test's own program lies where only root comes.
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	p.program = filepath.Join(p.state, "muster")
	syscall.ForkLock.RLock() // a child that another test forks now would keep it open for writing, and so busy
	err = os.WriteFile(p.program, program, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(p.state, "closed") // as a directory of the PATH may be
	if err := errors.Join(os.Mkdir(closed, 0o700), os.Chown(p.state, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	p.account = &syscall.Credential{Uid: nobody, Gid: nobody}
	return p
}

// TestJourney is the first hour of somebody without rights: jobs of every kind end or fail
// with their reason, an array is called by its name, a job makes way and comes back, and
// who waits or follows a log does so through the death of the control plane.
func TestJourney(t *testing.T) {
	t.Parallel()
	p := newcomer(t, "--strategy", "srtf+declared", "--slots", "4", "--slot-cpu", "200m", "--grace", "2s")
	p.start()
	p.journeyOfKinds()
	p.journeyOfAnArray()
	p.journeyOfPreemption()
	p.journeyOfARestart()
}

// journeyOfKinds: what cannot be is refused, and the rest ends or fails as is told.
func (p *controlPlane) journeyOfKinds() {
	file := filepath.Join(p.state, "idle.yaml")
	if err := os.WriteFile(file, []byte("name: idle\n"), 0o644); err != nil {
		p.t.Fatal(err)
	}
	if code, said := p.mutter("submit", file); code != exitFailed || !strings.Contains(said, "command: found none") {
		p.t.Errorf("a job without a command: exit code %d, %s", code, said)
	}
	if code, out := p.say(journeytest.Fine.Args("run")...); code != 0 || out != "hello\n" {
		p.t.Errorf("exit code %d, %q", code, out)
	}
	var names []string
	for _, c := range journeytest.Failing {
		p.muster(c.Args("submit")...)
		names = append(names, c.Name)
	}
	_, said := p.say(append([]string{"wait"}, names...)...)
	for _, c := range journeytest.Failing {
		if !regexp.MustCompile(c.Name + ` failed after .*: .*` + regexp.QuoteMeta(c.Words)).MatchString(said) {
			p.t.Errorf("of %s is not said %q:\n%s", c.Name, c.Words, said)
		}
		if why := p.muster("why", c.Name); !strings.Contains(why, c.Words) || !strings.Contains(why, c.Last) {
			p.t.Errorf("why %s does not say %q and %q:\n%s", c.Name, c.Words, c.Last, why)
		}
	}
}

// journeyOfAnArray: all copies are waited for and ended by the name of their array.
func (p *controlPlane) journeyOfAnArray() {
	p.muster(journeytest.Sweep.Args("submit")...)
	if out := p.muster("wait", "sweep"); !strings.HasPrefix(out, "sweep finished") {
		p.t.Errorf("wait said %q", out)
	}
	p.muster(journeytest.Broken.Args("submit")...)
	if code, out := p.say("wait", "broken"); code != journeytest.Broken.Code || !strings.Contains(out, journeytest.Broken.Words) {
		p.t.Errorf("wait: exit code %d, %q", code, out)
	}
	p.muster(journeytest.Rest.Args("submit")...)
	if out := p.muster("cancel", "rest"); !strings.HasPrefix(out, "rest: 100 cancelled") {
		p.t.Errorf("cancel said %q", out)
	}
	if code, out := p.say("wait", "rest"); code != exitInterrupted {
		p.t.Errorf("wait: exit code %d, %q", code, out)
	}
}

// journeyOfPreemption: a short job takes the place of a long one, which comes back.
func (p *controlPlane) journeyOfPreemption() {
	p.muster(journeytest.Long.Args("submit")...)
	p.until("long", "running", func(j view.Job) bool { return j.Run == "running" })
	p.muster(journeytest.Short.Args("submit")...)
	p.until("short", "finished", func(j view.Job) bool { return j.Phase == "finished" })
	j := p.until("long", "running again", func(j view.Job) bool { return j.Run == "running" && j.Attempt > 1 })
	if j.Preemptions != 1 {
		p.t.Errorf("it was preempted %d times", j.Preemptions)
	}
	p.muster("cancel", "long")
}

// journeyOfARestart: those who wait for a job and follow its log notice the death of the
// control plane by a line, and nothing else.
func (p *controlPlane) journeyOfARestart() {
	const lines = 12
	p.muster("submit", "--name", "patient", "--", "sh", "-c", fmt.Sprintf("for i in $(seq %d); do echo line $i; sleep .3; done; exit 3", lines))
	var waited, followed bytes.Buffer
	wait, follow := p.command("wait", "patient"), p.command("logs", "-f", "patient")
	wait.Stdout, follow.Stdout = &waited, &followed
	for _, cmd := range []*exec.Cmd{wait, follow} {
		if err := cmd.Start(); err != nil {
			p.t.Fatal(err)
		}
	}
	time.Sleep(time.Second)
	p.kill()
	time.Sleep(300 * time.Millisecond)
	p.start()
	if err := follow.Wait(); err != nil {
		p.t.Error(err)
	}
	if err := wait.Wait(); wait.ProcessState.ExitCode() != 3 {
		p.t.Errorf("wait: %v", err)
	}
	want := ""
	for i := range lines {
		want += fmt.Sprintf("line %d\n", i+1)
	}
	if followed.String() != want {
		p.t.Errorf("the log followed is %q", &followed)
	}
	if !strings.Contains(waited.String(), "exit code 3 (rank 0 on ") {
		p.t.Errorf("wait said %q", &waited)
	}
}
