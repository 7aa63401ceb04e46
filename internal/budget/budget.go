// Package budget ends what takes more of the processor than it may. What a process used is
// counted, not how long it took: a machine that is busy with other things takes nothing away.
package budget

import (
	"context"
	"errors"
	"syscall"
	"time"
)

// ErrSpent is why a context of Within ends.
var ErrSpent = errors.New("the budget of the processor is spent")

// Within returns a context that ends when this process has used so much of the processor
// since. What else the process does meanwhile counts too, since the kernel does not know
// what a question used.
func Within(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	began := Used()
	go func() {
		look := time.NewTicker(10 * time.Millisecond)
		defer look.Stop()
		for Used()-began < most {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
		}
		end(ErrSpent)
	}()
	return ctx, func() { end(nil) }
}

// Used is the processor time that this process had.
func Used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0 // it has no other error than a wrong argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
