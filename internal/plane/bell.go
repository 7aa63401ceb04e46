package plane

import "sync"

// Bell tells watchers that something has changed. Its zero value has no watchers.
type Bell struct {
	mu       sync.Mutex
	watchers map[chan struct{}]bool
}

// Watch returns a channel that receives after every ring, and a function that ends the
// watch. A slow watcher misses rings, never the last.
func (b *Bell) Watch() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watchers == nil {
		b.watchers = map[chan struct{}]bool{}
	}
	b.watchers[c] = true
	return c, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.watchers, c)
	}
}

// Watched reports whether there is any watcher.
func (b *Bell) Watched() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.watchers) > 0
}

// Ring tells all watchers.
func (b *Bell) Ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.watchers {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
