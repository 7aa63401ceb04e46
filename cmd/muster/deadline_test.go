package main

import (
	"errors"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mutter runs the command line where it may fail, and returns its exit code and what
// it says to people.
func (p *controlPlane) mutter(args ...string) (code int, problems string) {
	p.t.Helper()
	return p.call(func(cmd *exec.Cmd, said io.Writer) { cmd.Stderr = said }, args...)
}

// say is the same with what it says to the standard output.
func (p *controlPlane) say(args ...string) (code int, out string) {
	p.t.Helper()
	return p.call(func(cmd *exec.Cmd, said io.Writer) { cmd.Stdout = said }, args...)
}

func (p *controlPlane) call(hear func(cmd *exec.Cmd, said io.Writer), args ...string) (code int, said string) {
	p.t.Helper()
	cmd := p.command(args...)
	var text strings.Builder
	hear(cmd, &text)
	var failed *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &failed) {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), text.String()
}

// TestDeadlineRefused: a deadline that cannot be met is refused when it is submitted,
// with the earliest that can be, and that one is accepted and kept.
func TestDeadlineRefused(t *testing.T) {
	t.Parallel()
	for name, strategy := range map[string]string{
		"feasible": "order: edf\ngate: feasible\n",
		"chronus":  "joint: chronus\noptions:\n  chronus:\n    lease: 1s\n    fill: 1s\n    switch: 1s\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := planeOf(t, strategy, "--slots", "2", "--slot-cpu", "500m", "--grace", "1s")
			if code, said := p.mutter("submit", "--name", "possible", "--workers", "2", "--estimate", "4s", "--deadline", "1m", "--", "sleep", "2"); code != 0 || (said != "") != (name == "feasible") || name == "feasible" && !strings.Contains(said, "makes no promise about deadlines") {
				t.Fatalf("a deadline that can be met: exit code %d, %s", code, said)
			}
			code, said := p.mutter("submit", "--name", "late", "--workers", "2", "--estimate", "4s", "--deadline", "4s", "--", "sleep", "1")
			earliest := regexp.MustCompile(`late is refused: .* the earliest that could be is (\S+) after`).FindStringSubmatch(said)
			if code != 3 || earliest == nil {
				t.Fatalf("a deadline that cannot be met: exit code %d, %q", code, said)
			}
			span, err := time.ParseDuration(earliest[1])
			if err != nil || span < 4*time.Second || span > 20*time.Second {
				t.Errorf("the earliest deadline that can be is said to be %q, %v: expected what is left of the first job and 4 s", earliest[1], err)
			}
			if code, said := p.mutter("run", "--name", "later", "--workers", "2", "--estimate", "4s", "--deadline", "1s", "--", "true"); code != 3 || !strings.Contains(said, "earliest") {
				t.Errorf("muster run: exit code %d, %q", code, said)
			}
			span += 3 * time.Second // the offer was of that moment; on a busy machine some have passed
			p.muster("submit", "--name", "intime", "--workers", "2", "--estimate", "4s", "--deadline", span.String(), "--", "sleep", "1")
			p.muster("wait", "possible", "intime")
			// What a busy machine made the two run longer than they said is not the offer's.
			j, longer := p.show("intime"), max(0, p.show("possible").RanSec-4)
			if longer += max(0, j.RanSec-4); j.Phase != "finished" || j.WaitedSec+j.RanSec > span.Seconds()+longer {
				t.Errorf("submitted with %s it is %s after %.1f s; the two ran %.1f s longer than they said", span, j.Phase, j.WaitedSec+j.RanSec, longer)
			}
		})
	}
}
