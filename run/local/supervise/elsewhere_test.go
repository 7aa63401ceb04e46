package supervise

import (
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// again are the tests that must hold on any machine, for anybody.
const again = "TestHowItEnds|TestStop|TestStrays|TestSuspended|TestUsage|TestDeath|TestKilledAt|TestGang"

// rerun runs them in another process.
func rerun(t *testing.T, attr *syscall.SysProcAttr, script string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can make another machine of this one")
	}
	if os.Getenv("SUPERVISE_TEST_RERUN") != "" {
		t.Skip("runs in a rerun already")
	}
	t.Parallel()
	dir, err := os.MkdirTemp("", "supervise") // not TempDir, which other users cannot enter
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	copyFile(t, self(), binary)
	c := exec.Command("/bin/sh", "-c", script, binary, "-test.run="+again, "-test.count=1", "-test.v")
	c.Env = append(os.Environ(), "SUPERVISE_TEST_RERUN=1", "TMPDIR="+dir)
	c.Dir, c.SysProcAttr = dir, attr
	out, err := c.CombinedOutput()
	if err != nil || strings.Count(string(out), "--- PASS") < 10 {
		t.Errorf("%v\n%s", err, out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutControlGroups(t *testing.T) {
	rerun(t, &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS},
		`grep -o " /sys/fs/cgroup[^ ]*" /proc/self/mountinfo | tac | xargs -n1 umount -l; ! grep -q " - cgroup" /proc/self/mountinfo && exec "$0" "$@"`)
}

func TestWithoutRoot(t *testing.T) {
	rerun(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, `exec "$0" "$@"`)
}

// inSession starts a command in a session of its own, and tells when it has ended.
func inSession(t *testing.T, c *exec.Cmd) (p process, ended chan error) {
	t.Helper()
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- c.Wait() }()
	p, ok := readProcess(c.Process.Pid)
	if !ok {
		t.Fatal("no process")
	}
	return p, ended
}

// Without control groups the session of a dead supervisor's worker is ended, and
// nobody else's that has its number by now.
func TestLeftoversOfASession(t *testing.T) {
	t.Parallel()
	p, ended := inSession(t, exec.Command("/bin/sh", "-c", "trap '' HUP; sleep 1000 & sleep 1000"))
	ours := Record{Kind: Prepared, PID: p.pid, Birth: p.birth, Boot: bootID()}
	another, earlier := ours, ours
	another.Birth--
	earlier.Boot = "another boot"
	for _, r := range []Record{another, earlier, {}} {
		if err := killLeftovers(t.TempDir(), r); err != nil {
			t.Error(err)
		}
	}
	select {
	case err := <-ended:
		t.Fatalf("another process was ended: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := killLeftovers(t.TempDir(), ours); err != nil {
		t.Fatal(err)
	}
	<-ended
	for _, other := range processes() {
		if other.session == p.pid {
			t.Errorf("process %+v is left", other)
		}
	}
}

// What a worker left is found even if it becomes another program all the time, and tells nothing of itself meanwhile.
func TestLeftoversThatBecomeOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 40 {
		c := exec.Command("/bin/sh", "-c", `exec /bin/sh -c "$AGAIN"`)
		c.Env = []string{`AGAIN=exec /bin/sh -c "$AGAIN"`, "MUSTER_CONTROL=" + ControlPath(dir)}
		p, ended := inSession(t, c)
		if err := killLeftovers(dir, Record{Kind: Prepared, PID: math.MaxInt32, Birth: p.birth, Boot: bootID()}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-ended:
		case <-time.After(time.Second):
			_ = c.Process.Kill()
			t.Fatal("it was not found")
		}
	}
}
