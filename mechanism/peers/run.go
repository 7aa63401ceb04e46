package peers

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// happen lets an event happen.
func (r *run) happen(e event) {
	switch e.kind {
	case comes:
		r.workers[e.peer] = worker{here: true, serves: Anywhere, next: Anywhere, since: r.at}
		to := r.Peers[e.peer].Stage
		if to == Anywhere {
			to = r.slowest()
		}
		r.fetch(e.peer, to, r.at == 0) // who is there from the beginning has its weights
	case goes:
		w := &r.workers[e.peer]
		w.here, w.held = false, nil
		r.drop(e.peer)
	case ready:
		if w := &r.workers[e.peer]; w.here {
			w.serves = w.next
		}
	case refreshes:
		r.refresh()
		r.later(event{at: r.at.Add(refresh), kind: refreshes})
	case rebalances:
		r.rebalance()
		r.later(event{at: r.at.Add(r.Rebalance), kind: rebalances})
	case arrives:
		r.arrive(e.peer, e.ticket)
	case finishes:
		r.finish(e.peer, e.ticket)
	case overdue:
		if r.open(e.ticket) {
			r.cancel(e.ticket)
			r.report.Again++
			r.send(e.ticket.pass)
		}
	case averaged:
		if !r.redo() {
			r.close()
		}
	}
}

// begin opens a step.
func (r *run) begin() {
	r.passes = make([]pass, 2*r.Stages*r.Batch)
	r.fed, r.left = 0, len(r.passes)
	for range min(r.Window, r.Batch) {
		r.feed()
	}
}

// feed sends the next microbatch off.
func (r *run) feed() {
	if r.fed < r.Batch {
		r.fed++
		r.send(int32((r.fed - 1) * 2 * r.Stages))
	}
}

// send has the trainer choose a peer for a pass.
func (r *run) send(id int32) {
	p := &r.passes[id]
	p.state = out
	peer, there := r.router(id).Choose(r.stage(id), r.work(id))
	if !there {
		p.try = 0 // nobody's answer is awaited
		r.nowhere = append(r.nowhere, id)
		return
	}
	r.tries++
	p.try, p.peer = r.tries, peer
	t := ticket{id, p.try}
	r.later(event{at: r.at.Add(r.Hop), kind: arrives, peer: peer, ticket: t})
	if r.Deadline > 0 {
		r.later(event{at: r.at.Add(r.Deadline << min(p.tries, 20)), kind: overdue, ticket: t})
	}
	p.tries++
}

// open reports whether a try is the one that the trainer waits for.
func (r *run) open(t ticket) bool {
	return int(t.pass) < len(r.passes) && r.passes[t.pass].state == out && r.passes[t.pass].try == t.try
}

// fail tells the trainer that a peer did not take a pass: it is not asked again for a while.
func (r *run) fail(peer int32, t ticket) {
	if r.open(t) {
		r.router(t.pass).Ban(r.stage(t.pass), peer)
		r.report.Again++
		r.send(t.pass)
	}
}

// arrive puts a pass into the queue of its peer.
func (r *run) arrive(peer int32, t ticket) {
	w := &r.workers[peer]
	if !r.open(t) {
		return
	}
	if !w.here || w.serves != r.stage(t.pass) {
		if w.here || !r.Peers[peer].Silent {
			r.fail(peer, t)
		}
		return
	}
	r.count(w, r.work(t.pass))
	if w.queue = append(w.queue, t); len(w.queue) == 1 {
		r.start(peer)
	}
}

// count keeps the integral of what waits at a peer, as so much more comes.
func (r *run) count(w *worker, more float64) {
	w.sum += w.waits * r.at.Sub(w.since).Seconds()
	w.waits, w.since = w.waits+more, r.at
}

// start begins the first pass of the queue.
func (r *run) start(peer int32) {
	w := &r.workers[peer]
	w.began = r.at
	r.later(event{at: r.at.Add(r.takes(peer, w.queue[0].pass)), kind: finishes, peer: peer, ticket: w.queue[0]})
}

// finish ends the pass at work, if it is still that.
func (r *run) finish(peer int32, t ticket) {
	w := &r.workers[peer]
	if len(w.queue) == 0 || w.queue[0] != t {
		return
	}
	w.queue = w.queue[1:]
	r.count(w, -r.work(t.pass))
	r.router(t.pass).Observe(w.serves, peer, r.work(t.pass), r.at.Sub(w.began))
	if len(w.queue) > 0 {
		r.start(peer)
	}
	if r.open(t) {
		r.accept(peer, t.pass)
	}
}

// accept takes in the answer to a pass, and sends what follows.
func (r *run) accept(peer, id int32) {
	p := &r.passes[id]
	p.state = done
	r.report.Work[peer] += r.work(id)
	if r.backward(id) {
		r.workers[peer].held = append(r.workers[peer].held, id)
	}
	r.left--
	switch {
	case p.again:
	case int(id+1)%(2*r.Stages) == 0:
		r.feed()
	default:
		r.send(id + 1)
	}
	if r.left == 0 {
		r.end()
	}
}

// cancel takes a pass that waits out of its peer's queue; one at work goes on, for nothing.
func (r *run) cancel(t ticket) {
	w := &r.workers[r.passes[t.pass].peer]
	if i := slices.Index(w.queue, t); i > 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
		r.count(w, -r.work(t.pass))
	}
}

// drop empties the queue of a peer that serves its stage no more. Who waits for an answer
// is told, but by silent peers that are gone.
func (r *run) drop(peer int32) {
	w := &r.workers[peer]
	queue := w.queue
	r.count(w, -w.waits)
	w.queue, w.serves = nil, Anywhere
	for _, t := range queue {
		if w.here || !r.Peers[peer].Silent {
			r.fail(peer, t)
		}
	}
}

// redo has the passes backward done again whose gradients have gone with a peer: the trainers
// still have what went in. It reports whether there are any.
func (r *run) redo() bool {
	for id := range r.passes {
		if p := &r.passes[id]; r.backward(int32(id)) && !r.workers[p.peer].here {
			p.again = true
			r.left++
			r.send(int32(id))
		}
	}
	return r.left > 0
}

// end averages a step's gradients, once all of them are there.
func (r *run) end() {
	if r.redo() {
		return
	}
	slowest := r.at
	for stage := range r.Stages {
		var links []unit.Mbps
		for i := range r.workers {
			if r.workers[i].serves == stage {
				links = append(links, r.Peers[i].Link)
			}
		}
		slowest = max(slowest, r.at.Add(average(r.WeightsKiB, links)))
	}
	r.later(event{at: slowest, kind: averaged})
}

// close ends a step whose gradients were averaged, and counts them by those who held them.
func (r *run) close() {
	held := make([]int, len(r.passes))
	for i := range r.workers {
		for _, id := range r.workers[i].held {
			held[id]++
		}
		r.workers[i].held = nil
	}
	for id, n := range held {
		if r.backward(int32(id)) {
			r.report.Missing += max(0, 1-n)
			r.report.Doubled += max(0, n-1)
		}
	}
	r.report.Steps = append(r.report.Steps, r.at)
	r.begin()
}

// fetch has a peer fetch the weights of a stage, and serve it then.
func (r *run) fetch(peer int32, stage int, has bool) {
	w := &r.workers[peer]
	w.next = stage
	if has {
		w.serves = stage
		return
	}
	at := r.at
	if r.WeightsKiB > 0 {
		at = at.Add(transfer(r.WeightsKiB, r.Peers[peer].Link))
	}
	r.later(event{at: at, kind: ready, peer: peer})
}

// slowest is the stage whose peers are slowest together, those that fetch its weights
// among them.
func (r *run) slowest() (stage int) {
	speeds := make([]float64, r.Stages)
	for i := range r.workers {
		if w := &r.workers[i]; w.here && w.next != Anywhere {
			speeds[w.next] += r.Peers[i].Speed
		}
	}
	return slices.Index(speeds, slices.Min(speeds))
}

// refresh tells the trainers who is there, and sends what nobody was there for.
func (r *run) refresh() {
	for _, router := range r.routers {
		for stage := range r.Stages {
			serves := func(peer int32) bool { return r.workers[peer].serves == stage }
			router.Retain(stage, serves)
			for i := range r.workers {
				if serves(int32(i)) {
					router.Announce(stage, int32(i))
				}
			}
		}
	}
	again := r.nowhere
	r.nowhere = nil
	for _, id := range again {
		r.send(id)
	}
}

// rebalance lets the peers publish their loads, and one of them move.
func (r *run) rebalance() {
	stages := make([][]Load, r.Stages)
	for i := range r.workers {
		if w := &r.workers[i]; w.serves != Anywhere {
			r.count(w, 0)
			stages[w.serves] = append(stages[w.serves], Load{int32(i), w.sum / r.Rebalance.Seconds(), r.Peers[i].Speed})
			w.sum = 0
		}
	}
	if peer, from, to, moves := Rebalance(stages); moves {
		r.move(peer, from, to)
	}
}

// move has a peer hand its gradients to another of its stage and serve a different one.
func (r *run) move(peer int32, from, to int) {
	w := &r.workers[peer]
	r.report.Moves++
	r.drop(peer)
	heir := int32(slices.IndexFunc(r.workers, func(o worker) bool { return o.serves == from }))
	r.workers[heir].held = append(r.workers[heir].held, w.held...)
	for _, id := range w.held {
		r.passes[id].peer = heir
	}
	w.held = nil
	r.fetch(peer, to, false)
}
