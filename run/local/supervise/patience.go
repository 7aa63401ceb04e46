package supervise

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// patience is how long a stage may do nothing before it has said that it is ready. On a busy machine it may take much
// longer than that: time in which it computes, or waits for a processor, does not count.
const patience = 30 * time.Second

// saidInTime is said, or os.ErrDeadlineExceeded when the stage does not get on.
func (s *staged) saidInTime() (string, error) {
	const look = time.Second
	idle, last, at := time.Duration(0), running(s.pid), time.Now()
	for {
		if err := s.status.SetReadDeadline(time.Now().Add(look)); err != nil {
			return "", err
		}
		said, err := s.said()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return said, err
		}
		now, ran := time.Now(), running(s.pid)
		idle += max(0, now.Sub(at)-max(0, ran-last))
		if last, at = ran, now; idle >= patience {
			return "", fmt.Errorf("it did nothing for %s and was not ready: %w", idle.Round(time.Second), err)
		}
	}
}

// running is for how long the threads of a process have computed or waited for a processor, by the kernel's account; 0
// where it keeps none.
func running(pid int) (all time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is a good one
	for _, file := range files {
		b, _ := os.ReadFile(file) // nothing of a thread that has ended
		var computed, waited time.Duration
		_, _ = fmt.Sscan(string(b), &computed, &waited)
		all += computed + waited
	}
	return all
}
