package server

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/workload"
)

// limiter gives every user a bucket of tokens, one per request, that refills.
type limiter struct {
	perSec, burst float64

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	tokens float64
	at     time.Time
	empty  bool // since the last token was asked for
}

// mostBuckets is when the full ones are given up, which are as good as new ones.
const mostBuckets = 10_000

func newLimiter(perSec, burst float64) *limiter {
	return &limiter{perSec: perSec, burst: max(1, burst), buckets: map[string]*bucket{}}
}

// take takes a token of the user's, or says how long until there is one; first is
// whether the one before was given.
func (l *limiter) take(user string, now time.Time) (wait time.Duration, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[user]
	if b == nil {
		if len(l.buckets) >= mostBuckets {
			maps.DeleteFunc(l.buckets, func(_ string, b *bucket) bool {
				return b.tokens+now.Sub(b.at).Seconds()*l.perSec >= l.burst
			})
		}
		b = &bucket{tokens: l.burst, at: now}
		l.buckets[user] = b
	}
	b.tokens = min(l.burst, b.tokens+max(0, now.Sub(b.at).Seconds())*l.perSec)
	b.at = now
	first, b.empty = !b.empty, b.tokens < 1
	if b.empty {
		return time.Duration((1 - b.tokens) / l.perSec * float64(time.Second)), first
	}
	b.tokens--
	return 0, first
}

// reading bounds what is read of files at once. Package spec bounds one file: a second and
// 200 MB. Small ones do not wait for large ones.
type reading struct{ small, large chan struct{} }

const largeBody = 64 << 10 // bytes

func newReading() reading {
	return reading{small: make(chan struct{}, 4), large: make(chan struct{}, 1)}
}

// jobs reads the jobs of a file when it is its turn, unless the caller goes away before.
func (x reading) jobs(ctx context.Context, name string, body []byte) ([]workload.Job, error) {
	slots := x.small
	if len(body) > largeBody {
		slots = x.large
	}
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	jobs, err := spec.Jobs(name, body)
	if err != nil {
		return nil, problems(err)
	}
	return jobs, nil
}

// keyLocks lets requests under the same idempotency key go one after the other: the
// second then finds the answer of the first.
type keyLocks struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// lock returns the unlock, or false when gone is closed first.
func (k *keyLocks) lock(key string, gone <-chan struct{}) (unlock func(), ok bool) {
	for {
		k.mu.Lock()
		wait, taken := k.held[key]
		if !taken {
			if k.held == nil {
				k.held = map[string]chan struct{}{}
			}
			mine := make(chan struct{})
			k.held[key] = mine
			k.mu.Unlock()
			return func() {
				k.mu.Lock()
				delete(k.held, key)
				k.mu.Unlock()
				close(mine)
			}, true
		}
		k.mu.Unlock()
		select {
		case <-wait:
		case <-gone:
			return nil, false
		}
	}
}
