package server_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/internal/server/door"
)

// While the disk is full submissions are refused, and readyz says so; when there is room
// again, it says that, before anybody has tried.
func TestReadySaysWhenSubmissionsAreRefused(t *testing.T) {
	dir, err := os.MkdirTemp("", "m") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("TMPDIR", dir)
	w := start(t, nil)
	ready := func(want int) {
		t.Helper()
		if status, answer := w.do("GET", "/readyz", "", ""); status != want {
			t.Errorf("readyz: %d %s, expected %d", status, answer, want)
		}
		if status, _ := w.do("GET", "/healthz", "", ""); status != 200 {
			t.Errorf("healthz: %d", status)
		}
	}
	ready(200)
	// Large ones fill the disk, small ones the rest, into which what the engine decides would fit.
	for _, size := range []int{20_000, 1} {
		status, answer := 0, ""
		for i := 0; i < 1000 && status != 503; i++ {
			status, answer = w.do("POST", "/v1/jobs", yamlKind, fmt.Sprintf("name: j%d-%d\nenv: {FILL: %s}\n", size, i, strings.Repeat("x", size)))
		}
		if status != 503 || !strings.Contains(answer, "no space left") {
			t.Fatalf("a full disk: %d %s", status, answer)
		}
	}
	ready(503)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	ready(200)
	if status, answer := w.do("POST", "/v1/jobs", yamlKind, "name: again\n"); status != 201 {
		t.Errorf("with room again: %d %s", status, answer)
	}
	ready(200)
}

// A socket is given to a group, by name or number.
func TestSocketGroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives a socket to any group")
	}
	w := start(t, nil)
	for group, want := range map[string]uint32{"12345": 12345, "daemon": 1} {
		if err := door.GiveSocket(w.socket, group); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(w.socket)
		if err != nil || info.Sys().(*syscall.Stat_t).Gid != want || info.Mode().Perm() != 0o660 {
			t.Errorf("given to %s the socket is %v of group %d (%v)", group, info.Mode(), info.Sys().(*syscall.Stat_t).Gid, err)
		}
	}
	if err := door.GiveSocket(w.socket, "nosuchgroup"); err == nil || !strings.Contains(err.Error(), "--socket-group nosuchgroup") {
		t.Errorf("a group that is not there: %v", err)
	}
}

// The metrics are as Prometheus wants them.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool here, which checks the metrics: it is in Debian's package prometheus")
	}
	w := start(t, nil)
	w.submit(job("a", 2), job("b", 4))
	w.until("a", "active", "running")
	_, text := w.do("GET", "/metrics", "", "")
	check := exec.CommandContext(t.Context(), promtool, "check", "metrics")
	check.Stdin, check.Dir = strings.NewReader(text), filepath.Dir(w.socket)
	if said, err := check.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, said)
	}
}
