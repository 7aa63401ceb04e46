package server

import (
	"context"
	"sync"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/workload"
)

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
