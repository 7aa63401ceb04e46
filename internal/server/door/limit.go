package door

import (
	"maps"
	"sync"
	"time"
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
