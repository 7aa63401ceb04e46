package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/run/local/supervise"
)

// goesOn is a control plane with four slots, whose node is never quarantined.
func goesOn(p *controlPlane) *controlPlane {
	p.t.Helper()
	p.flags = []string{"--slots", "4", "--strategy", "fifo"}
	p.start()
	p.t.Cleanup(p.kill)
	return p
}

// neverQuarantined fails where a node was.
func (p *controlPlane) neverQuarantined() {
	p.t.Helper()
	log, err := os.ReadFile(filepath.Join(p.state, "muster.log"))
	if err != nil || strings.Contains(string(log), "quarantined") {
		p.t.Errorf("a node was quarantined for what is not its fault; %v\n%s", err, log[max(0, len(log)-3000):])
	}
}

// watchersOf are the processes that supervise the worker in dir.
func watchersOf(dir string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		var pid int
		line, _ := os.ReadFile(file) // it may have ended
		if _, err := fmt.Sscanf(file, "/proc/%d/", &pid); err == nil && strings.HasSuffix(string(line), "supervise\x00"+dir+"\x00") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// TestGoesOnAfterKilledStarts: three starts in a row that somebody kills close nothing.
func TestGoesOnAfterKilledStarts(t *testing.T) {
	t.Parallel()
	p := goesOn(stoppedPlane(t))
	for i := range 3 {
		name := fmt.Sprint("k", i)
		p.muster("submit", "--name", name, "--retries", "5", "--", "sleep", "0.5")
		dir := (&supervise.Spec{State: p.state, Job: name, Attempt: 1}).MemberDir()
		for deadline := time.Now().Add(time.Minute); ; {
			for _, pid := range watchersOf(dir) {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
			if m := supervise.Look(dir); m.Last.Kind == supervise.Ended {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: no end is recorded", dir)
			}
		}
	}
	p.muster("wait", "k0", "k1", "k2")
	p.neverQuarantined()
	judge(t, p.state)
}

// TestGoesOnAfterAFullDisk: a disk that is full for a while fails starts, and closes nothing: all jobs end when
// there is room again.
func TestGoesOnAfterAFullDisk(t *testing.T) {
	t.Parallel()
	p := stoppedPlane(t)
	if err := unix.Mount("tmpfs", p.state, "tmpfs", 0, "size=12m,mode=755"); err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(p.state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	goesOn(p)
	p.muster("submit", "--name", "many", "--array", "20", "--retries", "3", "--", "sleep", "0.5")
	p.until("many", "under way", func(j view.Job) bool { return j.Copies["active"] > 0 })
	full := filepath.Join(p.state, "filler")
	f, err := os.Create(full)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(f, io.LimitReader(zeros{}, 64<<20))
	if f.Close(); err == nil {
		t.Fatal("the disk did not fill")
	}
	hold := 3 * time.Second
	if os.Getenv("MUSTER_LONG") != "" {
		hold = 20 * time.Second
	}
	time.Sleep(hold)
	if err := os.Remove(full); err != nil {
		t.Fatal(err)
	}
	p.muster("wait", "many")
	p.neverQuarantined()
}

// zeros is a source of them.
type zeros struct{}

// Read fills b.
func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestGoesOnOnABusyMachine: with 60 processes that want its processors a start takes as long as it takes, and
// every job ends.
func TestGoesOnOnABusyMachine(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("takes all of the machine for half a minute: MUSTER_LONG=1")
	}
	// Whatever this thread starts has the lowest priority: all of it is busy for each other, and not for what runs beside.
	runtime.LockOSThread() // it ends with the test
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19); err != nil {
		t.Fatal(err)
	}
	p := goesOn(stoppedPlane(t))
	for range 60 {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = c.Process.Kill()
			_ = c.Wait() // killed, as it was meant to be
		})
	}
	p.muster("submit", "--name", "one", "--array", "12", "--", "true")
	p.muster("submit", "--name", "gang", "--array", "3", "--workers", "4", "--", "true")
	p.muster("wait", "one", "gang")
	p.neverQuarantined()
}

// TestGoesOnAfterQuarantine: a machine that cannot start jobs is quarantined, says so to everybody who asks, and is
// tried again: what waited ends without a hand.
func TestGoesOnAfterQuarantine(t *testing.T) {
	t.Parallel()
	p := goesOn(stoppedPlane(t))
	p.muster("submit", "--wait", "--name", "before", "--", "true")
	attempts := filepath.Join(p.state, "attempts")
	if err := os.Rename(attempts, attempts+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(attempts, nil, 0o600); err != nil { // a file where a folder should be
		t.Fatal(err)
	}
	p.muster("submit", "--name", "many", "--array", "4", "--", "true")
	for deadline := time.Now().Add(time.Minute); !strings.Contains(p.muster("nodes"), "quarantined"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(p.muster("nodes"))
		}
	}
	log, err := os.ReadFile(filepath.Join(p.state, "muster.log"))
	if err != nil {
		t.Fatal(err)
	}
	page := regexp.MustCompile(`report=(http\S+)`).FindStringSubmatch(string(log))[1]
	for where, text := range map[string]string{"ls": p.muster("ls"), "readyz": got(t, page+"readyz"), "log": string(log)} {
		if !strings.Contains(text, "starts failed") {
			t.Errorf("%s does not say that starts failed:\n%s", where, text)
		}
	}
	if text := got(t, page+"metrics"); !strings.Contains(text, `muster_nodes{status="quarantined"} 1`) {
		t.Errorf("the metrics do not count a node in quarantine")
	}
	if text := p.muster("why", "many-0"); !strings.Contains(text, "tried") {
		t.Errorf("why does not say that one start is tried again:\n%s", text)
	}
	if err := os.Remove(attempts); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(attempts+".away", attempts); err != nil {
		t.Fatal(err)
	}
	p.muster("wait", "many")
}

// got is what an address answers.
func got(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
