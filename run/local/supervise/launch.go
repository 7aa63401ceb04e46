package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Launch starts a supervisor for the worker, detached, as "EXE supervise DIR". It
// may be called again for the same attempt: what is alive or was used stays as it
// is. Whether the worker got ready is told by its record; ended is closed when the
// process that was started is no more, and nil where none was.
func Launch(spec Spec, exe string) (ended <-chan struct{}, err error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("launch: %w", err)
	}
	if !filepath.IsAbs(exe) {
		return nil, fmt.Errorf("launch: program %q: expected an absolute path", exe)
	}
	dir := spec.MemberDir()
	if err := makeMemberDir(dir); err != nil {
		return nil, fmt.Errorf("launch %s: %w", dir, err)
	}
	release, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("launch %s: %w", dir, err)
	}
	defer release()
	records, torn, err := ReadRecords(dir, 0)
	if err != nil || torn || len(records) > 0 {
		return nil, err
	}
	if alive, err := Alive(dir); err != nil || alive {
		return nil, err
	}
	if err := writeSpec(dir, spec); err != nil {
		return nil, fmt.Errorf("launch %s: %w", dir, err)
	}
	if ended, err = start(dir, exe); err != nil {
		return nil, fmt.Errorf("launch %s: %w", dir, err)
	}
	return ended, nil
}

// makeMemberDir makes the directory. Workers of any user pass through it to their
// own files and cannot list it.
func makeMemberDir(dir string) error {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	// Both levels above are new as well at times, and the umask may have cut the mode.
	attempt := filepath.Dir(dir)
	attempts := filepath.Dir(attempt)
	for _, d := range []string{attempts, attempt, dir} {
		if err := os.Chmod(d, 0o711); err != nil {
			return err
		}
	}
	return errors.Join(syncDir(attempts), syncDir(attempt))
}

// lockDir keeps two launches of one attempt apart while they write its files.
func lockDir(dir string) (release func() error, err error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d.Close, nil
}

// writeSpec writes the files of an attempt that has none; the spec comes last and
// stands for all.
func writeSpec(dir string, spec Spec) error {
	path := filepath.Join(dir, "spec.json")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(spec.Secrets) > 0 {
		if err := WriteFile(filepath.Join(dir, "secrets"), []byte(strings.Join(spec.Secrets, "\x00"))); err != nil {
			return err
		}
	}
	b, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return fmt.Errorf("write spec: %w", err)
	}
	return WriteFile(path, append(b, '\n'))
}

// WriteFile writes a durable file that only the owner can read; it appears whole.
func WriteFile(path string, b []byte) error {
	temporary := path + ".new"
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return errors.Join(os.Rename(temporary, path), syncDir(filepath.Dir(path)))
}

// start starts the supervisor in a session of its own, with nothing of the control
// plane's but its rights and its control group.
func start(dir, exe string) (<-chan struct{}, error) {
	out, err := os.OpenFile(filepath.Join(dir, "supervisor.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if err := keepFiles(); err != nil {
		return nil, err
	}
	c := exec.Command(exe, "supervise", dir)
	c.Dir, c.Env, c.Stdout, c.Stderr = "/", []string{}, out, out
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = c.Wait() // so that it leaves no zombie while the control plane lives; its record says the rest
	}()
	return ended, nil
}

// keepFiles keeps files that this process was born with from being passed on: a
// supervisor would hold them open for as long as its worker lives.
func keepFiles() error {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list open files: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
