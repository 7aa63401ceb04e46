package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
