package supervise

import (
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWhoWasKilledFailed: a worker that somebody else killed failed by that, also while it is asked to stop;
// one that its supervisor killed, or stopped at its time limit, did not.
func TestWhoWasKilledFailed(t *testing.T) {
	for _, c := range []struct {
		why    Class
		ours   bool
		signal syscall.Signal
		want   Class
	}{
		{"", false, unix.SIGKILL, User},
		{Preempted, false, unix.SIGKILL, User},
		{Preempted, true, unix.SIGKILL, Preempted},
		{Preempted, false, unix.SIGTERM, Preempted},
		{TimeLimit, false, unix.SIGKILL, TimeLimit},
	} {
		s := &supervisor{sampler: &sampler{}, stopping: stopping{why: c.why, killed: c.ours}, oomBefore: machineOOMKills()}
		if is, how := s.classify(syscall.WaitStatus(c.signal), 0); is != c.want {
			t.Errorf("asked to stop for %q, killed by its supervisor %v, ended by %s: %s (%s), want %s", c.why, c.ours, unix.SignalName(c.signal), is, how, c.want)
		}
	}
}
