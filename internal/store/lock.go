package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked says that another process has the journal open.
var ErrLocked = errors.New("the journal is in use")

// lock makes this process the only one to open the journal in dir, until the file is
// closed or the process ends, however it ends: the kernel drops the lock, so a stale
// one cannot exist. The process id in the file is for the message only.
func lock(dir string) (*os.File, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the journal's lock: %w", err)
	}
	if err := flock(f); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, fmt.Errorf("%w: %s is held by process %s: stop that control plane or use another folder", ErrLocked, path, holder(f))
	}
	if err := f.Truncate(0); err == nil {
		// On a full disk the process id cannot be written; the lock holds all the same.
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

// flock takes the lock. A process that was forked by the last holder, and has not yet
// become another program, shares its lock for a moment: that is waited out.
func flock(f *os.File) (err error) {
	for range 50 {
		if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// holder reads the process id from a lock file, which is empty for a moment after it was taken.
func holder(f *os.File) string {
	text := make([]byte, 32)
	n, _ := f.ReadAt(text, 0)
	if pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:n]))); err == nil {
		return strconv.Itoa(pid)
	}
	return "(number not yet written)"
}
