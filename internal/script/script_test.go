package script

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// paper is a log that several goroutines write.
type paper struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

func host(t *testing.T) (*Host, *paper) {
	log := &paper{}
	h := &Host{Log: slog.New(slog.NewTextHandler(log, nil))}
	t.Cleanup(h.Close)
	return h, log
}

// shell is a process that runs lines of the shell.
func (h *Host) shell(limit time.Duration, lines string) *Process {
	return h.Process([]string{"/bin/sh", "-c", lines}, limit)
}

const echo = `echo hello $$; while read line; do echo "you say $line"; done`

// TestEcho: a process is started once, its first line is kept, and each line is answered.
func TestEcho(t *testing.T) {
	h, _ := host(t)
	p := h.shell(10*time.Second, echo)
	first := ""
	for i := range 3 {
		hello, reply, err := p.Ask(fmt.Append(nil, i))
		if err != nil || string(reply) != fmt.Sprint("you say ", i) {
			t.Fatalf("%q, %v", reply, err)
		}
		if first == "" {
			first = string(hello)
		}
		if string(hello) != first || !strings.HasPrefix(first, "hello ") {
			t.Errorf("it began with %q, now %q", first, hello)
		}
	}
	if h.shell(10*time.Second, echo) != p {
		t.Error("the same command has another process")
	}
	pid := p.running.cmd.Process.Pid
	h.Close()
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there: %v", pid, err)
	}
	if _, _, err := p.Ask([]byte("after")); err == nil {
		t.Error("it is started after the end")
	}
}

// TestFailures: whatever a process does wrong, the question ends with an error that says
// so, the process is gone, and the next question starts another.
func TestFailures(t *testing.T) {
	long := bytes.Repeat([]byte("x"), 1<<17) // more than a pipe holds
	for lines, want := range map[string]string{
		"sleep 100":             "did not say hello: its time limit",
		"echo hello; sleep 100": "no reply: its time limit",
		"echo hello; while read line; do :; done":    "no reply: its time limit",
		"echo hello; sleep 100 & wait; echo rubbish": "no reply: its time limit",
		"exit 3":                          "did not say hello: it ended",
		"echo hello; read line; exit":     "no reply: it ended",
		"echo hello; exec >&-; sleep 100": "no reply: it ended, closed its standard output",
	} {
		t.Run(lines, func(t *testing.T) {
			t.Parallel()
			h, log := host(t)
			limit, question := 10*time.Second, []byte("x")
			if strings.Contains(want, "limit") {
				limit, question = time.Second, long
			}
			p := h.shell(limit, lines)
			for range 2 {
				if _, _, err := p.Ask(question); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want something about %q", err, want)
				}
				if p.running != nil {
					t.Error("there still is a process")
				}
			}
			if n := strings.Count(log.String(), "a script failed"); n != 2 {
				t.Errorf("%d failures are in the log:\n%s", n, log)
			}
		})
	}
	h, _ := host(t)
	if _, _, err := h.Process([]string{"/nowhere/at-all"}, time.Second).Ask(nil); err == nil || !strings.Contains(err.Error(), "/nowhere/at-all") {
		t.Errorf("a program that is not there: %v", err)
	}
	if _, _, err := h.Process(nil, time.Second).Ask(nil); err == nil || !strings.Contains(err.Error(), "--strategy script:") {
		t.Errorf("no program: %v", err)
	}
}

// TestGroup: what a script started is ended with it.
func TestGroup(t *testing.T) {
	h, _ := host(t)
	file := filepath.Join(t.TempDir(), "pid")
	p := h.shell(time.Second, "sleep 100 & echo $! > "+file+"; echo hello; wait")
	if _, _, err := p.Ask([]byte("x")); err == nil {
		t.Fatal("it replied")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); alive(t, pid); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d, which the script started, is still there", pid)
		}
	}
}

// alive reports whether a process runs; one that ended and was not waited for does not.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// TestBackOff: a process that failed is left alone, longer each time, until it does well.
func TestBackOff(t *testing.T) {
	h, _ := host(t)
	h.BackOff = 20 * time.Millisecond
	p := h.shell(5*time.Second, `echo hello; while read line; do [ "$line" = die ] && exit; echo $line; done`)
	for i, wait := range []time.Duration{20, 40, 80} {
		if _, _, err := p.Ask([]byte("die")); err == nil {
			t.Fatal("it did not die")
		}
		before := time.Until(p.again)
		if most := wait * time.Millisecond; before > most || i > 0 && before < most/4 {
			t.Errorf("failure %d: left alone for %s, want %s", i+1, before, most)
		}
		if _, _, err := p.Ask([]byte("x")); err == nil || !strings.Contains(err.Error(), "left alone") {
			t.Errorf("at once after a failure: %v", err)
		}
		time.Sleep(time.Until(p.again) + time.Millisecond)
	}
	for range 2 {
		if _, reply, err := p.Ask([]byte("x")); err != nil || string(reply) != "x" {
			t.Fatalf("%s, %v", reply, err)
		}
	}
	p.End(errors.New("rubbish"))
	if p.failures != 1 {
		t.Errorf("after it did well it counts %d failures", p.failures)
	}
}

// TestGiveUp: a simulation starts a process that always fails a few times and no more.
func TestGiveUp(t *testing.T) {
	h, log := host(t)
	h.GiveUp = 3
	file := filepath.Join(t.TempDir(), "starts")
	p := h.shell(5*time.Second, "echo >> "+file+"; echo hello; while read line; do echo rubbish; done")
	for i := range 6 {
		_, _, err := p.Ask([]byte("x"))
		if (err == nil) != (i < 3) {
			t.Errorf("question %d: %v", i, err)
		}
		if err == nil {
			p.End(errors.New("rubbish"))
		}
	}
	if starts, _ := os.ReadFile(file); len(starts) != 3 {
		t.Errorf("it was started %d times", len(starts))
	}
	if !strings.Contains(log.String(), "given up") {
		t.Errorf("the log does not say so:\n%s", log)
	}
}

// TestAllowed: a command that nobody allowed is not run, and what a script prints to its
// standard error is in the log.
func TestAllowed(t *testing.T) {
	h, log := host(t)
	h.Allowed = func(command []string) bool { return strings.Contains(command[2], "fine") }
	file := filepath.Join(t.TempDir(), "ran")
	if _, _, err := h.shell(time.Second, "touch "+file).Ask(nil); err == nil || !strings.Contains(err.Error(), "--script") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it ran")
	}
	if _, _, err := h.shell(5*time.Second, "echo fine >&2; echo hello; read line; echo there").Ask([]byte("x")); err != nil {
		t.Error(err)
	}
	h.Close() // then all that was printed has been read
	if !strings.Contains(log.String(), `msg="a script says"`) || !strings.Contains(log.String(), "line=fine") {
		t.Errorf("the log:\n%s", log)
	}
}
