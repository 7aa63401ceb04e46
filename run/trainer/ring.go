package trainer

// ring is this worker's place among the workers of a job: rank r sends to r+1 and
// receives from r-1. Pipeline stages are neighbours on it: activations travel
// forward over the same connections, their gradients back.
type ring struct {
	rank, world int
	next, prev  *link // nil in a world of one
}

// sent is how many bytes this worker has put on the wire so far.
func (r *ring) sent() int64 {
	if r.world == 1 {
		return 0
	}
	return r.next.sent.Load() + r.prev.sent.Load()
}

// allReduce replaces x by its sum over all workers. Every element is summed in one
// place, in ring order, and then copied: all workers get the same bits, and a rerun
// gets them again.
func (r *ring) allReduce(x []float32) error {
	if r.world == 1 {
		return nil
	}
	chunk := func(i int) []float32 {
		i = (i%r.world + r.world) % r.world
		return x[i*len(x)/r.world : (i+1)*len(x)/r.world]
	}
	t := tag{kind: kindReduce}
	scratch := make([]float32, len(x)/r.world+1)
	for k := range r.world - 1 { // reduce-scatter: chunk rank+1 becomes complete here
		r.next.send(t, chunk(r.rank-k))
		sum := chunk(r.rank - k - 1)
		part := scratch[:len(sum)]
		if err := r.prev.recv(t, part); err != nil {
			return err
		}
		for i, v := range part {
			sum[i] += v
		}
	}
	for k := range r.world - 1 { // all-gather
		r.next.send(t, chunk(r.rank+1-k))
		if err := r.prev.recv(t, chunk(r.rank-k)); err != nil {
			return err
		}
	}
	return nil
}

// barrier returns when all workers have reached it.
func (r *ring) barrier() error { return r.allReduce(make([]float32, r.world)) }

// each calls f for the links that exist.
func (r *ring) each(f func(*link)) {
	for _, l := range []*link{r.next, r.prev} {
		if l != nil {
			f(l)
		}
	}
}

// leave ends a ring whose workers all finished; drop one in which something failed.
func (r *ring) leave() {
	done := make(chan struct{}, 2)
	n := 0
	r.each(func(l *link) {
		n++
		go func() { l.close(); done <- struct{}{} }() // both at once: the neighbours wait too
	})
	for range n {
		<-done
	}
}

func (r *ring) drop() { r.each((*link).abort) }
