package trainer

// ring is some workers of a job in a circle: each sends to the next and receives from the one
// before. Pipeline stages are neighbours on one: activations travel forward over the same
// connections, their gradients back.
type ring struct {
	rank, world int // this worker's number on it, and how many there are
	stride      int // between the ranks of two neighbours, as the job counts them
	next, prev  *link
}

// at is the rank in the job of a worker so many places further on.
func (r *ring) at(rank, places int) int {
	return rank + ((r.rank+places+r.world)%r.world-r.rank)*r.stride
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

// carry takes x from one worker of the ring to another, the shorter way round; those between
// hand it on. All others return at once, and whoever is not the first finds in x what came.
func (r *ring) carry(t tag, x []float32, from, to int) error {
	hops, here := (to-from+r.world)%r.world, (r.rank-from+r.world)%r.world
	ahead, behind := r.next, r.prev
	if 2*hops > r.world { // back is shorter
		hops, here = r.world-hops, (from-r.rank+r.world)%r.world
		ahead, behind = r.prev, r.next
	}
	if here > 0 && here <= hops {
		if err := behind.recv(t, x); err != nil {
			return err
		}
	}
	if here < hops {
		ahead.send(t, x)
	}
	return nil
}
