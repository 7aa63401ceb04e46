package server

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// errSpent is why a context of budget ends.
var errSpent = errors.New("the budget of the processor is spent")

// budget is a context that ends when this process has used so much of the processor since.
// What others use meanwhile counts too: the kernel knows what a process used, not what a
// question did, and a server that is busy has less to give.
func budget(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	began := used()
	go func() {
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for used()-began < most {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
		}
		end(errSpent)
	}()
	return ctx, func() { end(nil) }
}

// used is the processor time that this process had.
func used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0 // it has no other error than a wrong argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
