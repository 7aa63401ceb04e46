package lead

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// vacant holds a lease that was made anew, for as long as a leader that still believes
// in the old one may be at work.
const vacant = "vacant"

// lock is the Lease as the elector sees it. It begins and extends the term with the
// very requests that take and renew the lease, and refuses what would hurt it.
type lock struct {
	*resourcelock.LeaseLock
	timing  Timing
	newest  func(context.Context) (Fence, error)
	begun   chan Term     // the term, once
	deposed chan struct{} // closed when the lease is seen to be another's

	mu       sync.Mutex
	floor    int64 // of the numbers in the records: the next is above it
	term     Term
	leads    bool
	resigned bool // the work is over: the lease may be released, and not be taken
	lost     string
}

// request bounds one request, so that there is time for three within a term.
func (l *lock) request(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.timing.Valid/3)
}

// Get reads the lease, and makes it where there is none. Its number is never below
// those in the records.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	ctx, cancel := l.request(ctx)
	defer cancel()
	r, raw, err := l.LeaseLock.Get(ctx)
	if apierrors.IsNotFound(err) && l.stands() {
		if err := l.found(ctx); err != nil {
			return nil, nil, err
		}
		r, raw, err = l.LeaseLock.Get(ctx)
	}
	if err != nil {
		return nil, nil, err
	}
	if !l.stands() && r.HolderIdentity != l.Identity() {
		return nil, nil, l.depose(fmt.Sprintf("the lease is held by %q", r.HolderIdentity))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.LeaderTransitions = max(r.LeaderTransitions, int(l.floor))
	return r, raw, nil
}

// found makes a lease that nobody holds. Where there were leaders before, one may
// still be at work, and candidates wait as if it had renewed just now.
func (l *lock) found(ctx context.Context) error {
	newest, err := l.newest(ctx)
	if err != nil {
		return fmt.Errorf("finding the newest fence: %w", err)
	}
	now := metav1.Now()
	r := resourcelock.LeaderElectionRecord{AcquireTime: now, RenewTime: now,
		LeaderTransitions: int(newest.Number), LeaseDurationSeconds: int(l.timing.Lease / time.Second)}
	if newest.Number > 0 {
		r.HolderIdentity = vacant
	}
	if err := l.LeaseLock.Create(ctx, r); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return nil
}

// Create is asked for when the lease is gone. A candidate makes it in Get, so this is
// the leader, and others may have begun to count from anew.
func (l *lock) Create(context.Context, resourcelock.LeaderElectionRecord) error {
	return l.depose("the lease was deleted")
}

// Update takes, renews or releases the lease.
func (l *lock) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	ctx, cancel := l.request(ctx)
	defer cancel()
	switch {
	case r.HolderIdentity == "":
		return l.release(ctx, r)
	case l.stands():
		return l.acquire(ctx, r)
	default:
		return l.renew(ctx, r)
	}
}

// acquire takes the lease, with a fence above the newest that the records know.
func (l *lock) acquire(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	newest, err := l.newest(ctx)
	if err != nil {
		return fmt.Errorf("finding the newest fence: %w", err)
	}
	if int64(r.LeaderTransitions) <= newest.Number {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.floor = newest.Number
		return fmt.Errorf("the records have fence %d: the lease is taken above it at the next try", newest.Number)
	}
	since := time.Now()
	if err := l.LeaseLock.Update(ctx, r); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resigned {
		return nil // the elector is about to release it
	}
	l.term = Term{Fence: Fence{Number: int64(r.LeaderTransitions), Holder: r.HolderIdentity},
		hold: &hold{since: since, valid: l.timing.Valid}}
	l.leads = true
	l.begun <- l.term
	return nil
}

// renew writes no more often than needed: the elector asks at the pace at which
// candidates look.
func (l *lock) renew(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	term, lost := l.term, l.lost
	l.mu.Unlock()
	since := time.Now()
	left := term.hold.left(since)
	switch {
	case lost != "" || left == 0:
		return errors.New("the term is over")
	case left > l.timing.Valid-l.timing.Renew:
		return nil
	}
	if err := l.LeaseLock.Update(ctx, r); err != nil {
		return err
	}
	term.hold.extend(since, time.Now())
	return nil
}

// release is done for those who have resigned. A lease that was lost runs out instead:
// the work may not have ended.
func (l *lock) release(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	ready := l.resigned && l.lost == ""
	l.mu.Unlock()
	if !ready {
		return errors.New("the lease is left to run out")
	}
	return l.LeaseLock.Update(ctx, r)
}

// resign ends the term, if there is one, after the work has ended.
func (l *lock) resign() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resigned = true
	if l.leads {
		l.term.hold.end()
	}
}

// depose ends the term because the lease is not ours any more.
func (l *lock) depose(why string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leads && l.lost == "" {
		l.lost = why
		l.term.hold.end()
		close(l.deposed)
	}
	return errors.New(why)
}

// why says how the lease was lost.
func (l *lock) why() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == "" {
		l.lost = fmt.Sprintf("the lease could not be renewed for %s", l.timing.Valid)
	}
	return l.lost
}

// stands reports whether the process has not led yet.
func (l *lock) stands() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.leads
}
