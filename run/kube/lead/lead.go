// Package lead has one of several schedulers lead, and the others wait: leader
// election over a Lease (coordination.k8s.io) with client-go's elector, and what that
// leaves open.
//
// The elector knows when it should stop, not when it must have stopped. A Term counts
// from before the last successful renewal was sent, because others may see it from
// then on, and it is over a margin before the first of them may take the lease. What
// is then still on its way is refused by the records: they carry the Fence of who
// wrote them last and are written with their resourceVersion as a precondition, so
// that a new leader which has put its fence into a record is not overwritten.
//
// Three things differ from the elector alone. The number of a fence grows even where
// somebody deletes the Lease (a Lease made anew waits its full time where there were
// leaders before, and goes on from the number in the records). A term is not silently
// followed by another of the same process: what it remembers is old by then. And the
// Lease is released after the work has ended, never while it still may write.
package lead

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ErrLost is returned by Run when the lease could not be kept. The process must exit:
// what it remembers may be old already.
var ErrLost = errors.New("leadership lost")

// Options say for which Lease a process stands, and how.
type Options struct {
	// Leases belongs to a client of its own: with one whose rate limit is used up by
	// bindings, the lease is renewed too late.
	Leases          coordination.LeasesGetter
	Namespace, Name string
	// Holder names this process to people, as its pod's name does; Run makes it unique.
	Holder string
	// Newest finds the newest fence that a leader has put into a record. It is asked
	// before a term begins, so that the term's fence is newer.
	Newest func(context.Context) (Fence, error)
	// Seen hears who holds the lease, whenever that changes. It may be nil.
	Seen   func(holder string)
	Timing Timing
	Log    *slog.Logger
}

// Timing is how fast leadership is lost and found.
type Timing struct {
	// Lease is how long a candidate waits after the last renewal that it saw. The API
	// has it in whole seconds.
	Lease time.Duration
	// Valid is how long a term goes on without a renewal. What remains of Lease is the
	// margin for what is on its way and for clocks that run at different rates.
	Valid time.Duration
	// Renew is how often the lease is renewed.
	Renew time.Duration
	// Retry is how often a candidate looks, at least; at most 2.2 times as long passes.
	// It bounds how fast a released lease is taken.
	Retry time.Duration
}

// DefaultTiming outlives an API server that is away for 7 seconds, or that lets requests
// hang for 3, and hands over within a second where the lease is released.
func DefaultTiming() Timing {
	return Timing{Lease: 15 * time.Second, Valid: 10 * time.Second, Renew: 2 * time.Second, Retry: 400 * time.Millisecond}
}

// Validate says what is wrong with the timing.
func (t Timing) Validate() error {
	switch {
	case t.Lease <= 0 || t.Lease%time.Second != 0:
		return fmt.Errorf("lease of %s: expected whole seconds", t.Lease)
	case t.Valid <= 0 || t.Valid > t.Lease*9/10:
		return fmt.Errorf("term valid for %s: expected at most nine tenths of the lease of %s", t.Valid, t.Lease)
	case t.Renew <= 0 || t.Renew > t.Valid/3:
		return fmt.Errorf("renewal every %s: expected at most a third of %s", t.Renew, t.Valid)
	case t.Retry <= 0 || t.Retry > t.Renew:
		return fmt.Errorf("retry after %s: expected at most the %s between renewals", t.Retry, t.Renew)
	}
	return nil
}

// Run waits until this process leads and does the work, until the work ends or the
// term does. The work's context ends with ctx and with the term. The lease is kept
// until the work has returned, and then released. Run returns nil when ctx ends before
// the process led, what the work returned, or ErrLost, also where the work has not
// returned by the time another may lead.
func Run(ctx context.Context, o Options, work func(context.Context, Term) error) error {
	l, elector, err := stand(o)
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	// Not ctx: its end would release the lease while the work still writes.
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	resign := func() {
		l.resign()
		stop()
		<-ended
	}
	var term Term
	select {
	case <-ctx.Done():
		resign()
		return nil
	case term = <-l.begun:
	}
	o.Log.Info("leading", "lease", o.Namespace+"/"+o.Name, "fence", term.Fence.String())
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- work(working, term) }()
	for left := o.Timing.Valid; left > 0; left = term.hold.left(time.Now()) {
		select {
		case err := <-done:
			resign()
			return err
		case <-l.deposed:
		case <-time.After(left):
		}
	}
	cancel(ErrLost)
	err = fmt.Errorf("%w: %s", ErrLost, l.why())
	o.Log.Error("leading no more", "error", err)
	select {
	case <-done:
	case <-time.After(o.Timing.Lease - o.Timing.Valid):
	}
	return err
}

// stand makes the candidate: client-go's elector over our lock.
func stand(o Options) (*lock, *leaderelection.LeaderElector, error) {
	if err := o.Timing.Validate(); err != nil {
		return nil, nil, err
	}
	if o.Leases == nil || o.Newest == nil || o.Log == nil {
		return nil, nil, errors.New("needs Leases, Newest and Log")
	}
	l := &lock{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name},
			Client:     o.Leases,
			LockConfig: resourcelock.ResourceLockConfig{Identity: o.Holder + "_" + string(uuid.NewUUID())},
		},
		timing: o.Timing, newest: o.Newest,
		begun: make(chan Term, 1), deposed: make(chan struct{}),
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: l, Name: o.Name, ReleaseOnCancel: true,
		LeaseDuration: o.Timing.Lease, RenewDeadline: o.Timing.Valid, RetryPeriod: o.Timing.Retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {}, // the lock knows it first, and since when
			OnStoppedLeading: func() {},                // the term knows it before the elector does
			OnNewLeader:      o.Seen,
		},
	})
	return l, elector, err
}
