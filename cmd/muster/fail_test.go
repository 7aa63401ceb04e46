package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/internal/journeytest"
	"github.com/musterdl/muster/run/local/cgroup"
)

// TestRefusedAtSubmission: what could never run here is refused before it waits for
// anything, with what to do.
func TestRefusedAtSubmission(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start()
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	for text, want := range map[string]string{
		"name: idle\nworkers: 1\n":                               "job idle: command: found none, expected a program and its arguments",
		"jobs:\n- {name: fine, command: echo}\n- {name: idle}\n": "job idle: command: found none",
		"{name: array, array: 3}\n":                              "job array: command: found none",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, said := p.mutter("submit", file); code != 1 || !strings.Contains(said, "nothing was submitted") || !strings.Contains(said, want) || strings.Count(said, "found none") != 1 {
			t.Errorf("%s: exit code %d, %s", text, code, said)
		}
	}
	if list := p.muster("ls", "--all", "--json"); strings.Contains(list, `"name"`) {
		t.Errorf("jobs are there after all: %s", list)
	}
}

// TestRootRefused: a control plane of root takes no job of root's unless it is told to,
// says so when it starts, and names the flag.
func TestRootRefused(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can submit as root")
	}
	p := newPlane(t, "--allow-root=false")
	p.start()
	if log, err := os.ReadFile(filepath.Join(p.state, "muster.log")); err != nil || !strings.Contains(string(log), "--allow-root") {
		t.Errorf("muster up does not warn of it: %v\n%s", err, log)
	}
	code, said := p.mutter("submit", "--name", "first", "--", "echo", "hello")
	if code != 1 || !strings.Contains(said, "muster up --allow-root") || !strings.Contains(said, "job first: user: found root") {
		t.Errorf("exit code %d, %s", code, said)
	}
	if list := p.muster("ls", "--all", "--json"); strings.Contains(list, "first") {
		t.Errorf("it is there after all: %s", list)
	}
}

// TestOneArgument: a command of one argument that is no program is a line for a shell.
func TestOneArgument(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "a program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ given, want []string }{
		{[]string{"for i in 1 2; do echo $i; done"}, []string{"sh", "-c", "for i in 1 2; do echo $i; done"}},
		{[]string{"echo a b"}, []string{"sh", "-c", "echo a b"}},
		{[]string{"echo", "a b"}, []string{"echo", "a b"}},
		{[]string{"nosuchprogram"}, []string{"nosuchprogram"}},
		{[]string{"./a program"}, []string{"./a program"}},
		{[]string{program}, []string{program}},
		{[]string{program + " x"}, []string{"sh", "-c", program + " x"}},
	} {
		if got := shellLine(c.given, dir); !slices.Equal(got, c.want) {
			t.Errorf("%q is run as %q, expected %q", c.given, got, c.want)
		}
	}
	var f jobFlags
	f.job.Dir = dir
	if j, err := f.build([]string{"echo a; echo b"}); err != nil || j.Command[0] != "sh" {
		text, _ := json.Marshal(j)
		t.Errorf("the job is %s, %v", text, err)
	}
}

// TestFailuresAreTold: a job that failed says how in every view, and muster run exits as it
// did; a restart of the control plane forgets nothing of that.
func TestFailuresAreTold(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start()
	for _, c := range journeytest.Failing {
		if code, said := p.mutter(c.Args("run")...); code != c.Code || !strings.Contains(said, c.Words) {
			t.Errorf("muster run %s: exit code %d, expected %d; %s", c.Name, code, c.Code, said)
		}
	}
	told := func() {
		list := p.muster("ls", "--all")
		for _, c := range journeytest.Failing {
			j := p.show(c.Name)
			if f := j.Failure; f == nil || f.Attempt != 1 || f.Class != c.Class || f.Node == "" || f.ExitCode != c.Code && 128+int(unix.SignalNum(f.Signal)) != c.Code {
				t.Errorf("show %s --json: %+v", c.Name, f)
				continue
			}
			views := map[string]string{"show": p.muster("show", c.Name), "why": p.muster("why", c.Name), "why --json": p.muster("why", c.Name, "--json")}
			code, waited := p.say("wait", c.Name)
			if views["wait"] = waited; code != c.Code {
				t.Errorf("wait %s: exit code %d", c.Name, code)
			}
			for view, text := range views {
				if !strings.Contains(text, c.Words) || !strings.Contains(text, c.Last) {
					t.Errorf("%s %s does not say %q and %q:\n%s", view, c.Name, c.Words, c.Last, text)
				}
			}
			if !regexp.MustCompile(`(?m)^` + c.Name + ` .*` + regexp.QuoteMeta(c.Words[:10])).MatchString(list) {
				t.Errorf("ls does not say %q of %s:\n%s", c.Words, c.Name, list)
			}
		}
	}
	told()
	p.kill()
	p.start()
	told()
}

// TestMemoryFailureIsTold: what was ended for want of memory says how much it might use and
// did.
func TestMemoryFailureIsTold(t *testing.T) {
	t.Parallel()
	if !cgroup.Probe().Memory {
		t.Skip("memory is not limited here")
	}
	p := newPlane(t, "--slot-memory", "64MiB")
	p.start()
	code, said := p.mutter("run", "--name", "hog", "--", "sh", "-c", "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}")
	f := p.show("hog").Failure
	if code != 128+9 && code != 1 && code != 2 || f == nil || f.Class != "memory" || f.MemoryLimitMiB != 64 || f.MemoryPeakMiB < 48 || !strings.Contains(said, "out of memory") || !strings.Contains(said, "64MiB") {
		t.Errorf("exit code %d, %+v, %s", code, f, said)
	}
}

// TestExitCodes: one table says what the exit codes mean, and the program follows it.
func TestExitCodes(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start()
	nobody := []string{"--socket", filepath.Join(p.state, "none")}
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"help", "exit-codes"}}, {0, []string{"user"}}, {0, []string{"ls"}},
		{exitFailed, []string{"show", "nosuchjob"}}, {exitFailed, []string{"submit", "/no/such/file.yaml"}},
		{exitUsage, []string{"nosuch"}}, {exitUsage, []string{"help", "nosuch"}}, {exitUsage, []string{"ls", "--nosuch"}}, {exitUsage, []string{"ls", "--limit", "many"}},
		{exitUsage, []string{"show"}}, {exitUsage, []string{"user", "nosuch"}}, {exitUsage, []string{"run", "true"}}, {exitUsage, []string{"submit", "--share", "much", "--", "true"}},
		{exitUsage, []string{"submit"}},
		{exitUnreached, append([]string{"ls"}, nobody...)}, {exitUnreached, append(append([]string{"run"}, nobody...), "--", "true")},
	} {
		if code, said := p.mutter(c.args...); code != c.code {
			t.Errorf("muster %s: exit code %d, expected %d; %s", strings.Join(c.args, " "), code, c.code, said)
		}
	}
	if code, _ := p.mutter("submit", "--name", "long", "--", "sleep", "60"); code != 0 {
		t.Fatal(code)
	}
	p.muster("cancel", "long")
	if code, said := p.mutter("wait", "long"); code != exitInterrupted {
		t.Errorf("a job that was cancelled: exit code %d, %s", code, said)
	}
	text := mustMuster(t, "help", "exit-codes")
	for _, e := range exits {
		if !strings.Contains(text, e.code) || !strings.Contains(text, e.means) {
			t.Errorf("the page lacks %s: %s\n%s", e.code, e.means, text)
		}
	}
}
