package victims

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/musterdl/muster/mechanism/heap"
	"github.com/musterdl/muster/plan"
)

// greedy makes room worker by worker, on the node where that is cheapest.
type greedy struct {
	seats   []seat // by node, those that offer the most room for their price first
	found   []bundle
	queue   heap.Heap[bundle]
	version []int32 // by node: how often it was looked at
	next    []int32 // candidates of the bundles that would be taken next
}

// seat is a candidate on a node, with its use there.
type seat struct {
	candidate int32
	use       int64
}

// bundle is candidates on one node that together make room for more workers.
type bundle struct {
	node    int32
	version int32
	set     []int32
	price   int64
	gain    int64 // workers on all nodes
}

// compare orders bundles: the least price per worker first, then the fewest victims per worker.
func (b *bundle) compare(o *bundle) int {
	return cmp.Or(compareRatios(b.price, b.gain, o.price, o.gain),
		compareRatios(int64(len(b.set)), b.gain, int64(len(o.set)), o.gain), cmp.Compare(b.node, o.node))
}

// compareRatios compares a/b with c/d exactly.
func compareRatios(a, b, c, d int64) int {
	hi, lo := bits.Mul64(uint64(a), uint64(d))
	hi2, lo2 := bits.Mul64(uint64(c), uint64(b))
	return cmp.Or(cmp.Compare(hi, hi2), cmp.Compare(lo, lo2))
}

// seat lists for every node the candidates on it.
func (s *search) seat() {
	l := s.l
	for i := range l.nodes {
		l.nodes[i].from, l.nodes[i].to = 0, 0
	}
	s.eachSeat(func(_ int32, n *nodeRoom, _ int64) { n.to++ })
	sum := int32(0)
	for i := range l.nodes {
		n := &l.nodes[i]
		n.from, n.to, sum = sum, sum, sum+n.to
	}
	s.seats = slices.Grow(s.seats[:0], int(sum))[:sum]
	s.eachSeat(func(candidate int32, n *nodeRoom, use int64) {
		s.seats[n.to] = seat{candidate, use}
		n.to++
	})
	all := s.in.Candidates
	for i := range l.nodes {
		slices.SortFunc(s.seats[l.nodes[i].from:l.nodes[i].to], func(a, b seat) int {
			x, y := &all[a.candidate], &all[b.candidate]
			return cmp.Or(compareRatios(x.Price, a.use, y.Price, b.use), cmp.Compare(b.use, a.use), cmp.Compare(y.Job, x.Job))
		})
	}
}

// eachSeat calls f for every candidate and node where its going is of use.
func (s *search) eachSeat(f func(candidate int32, n *nodeRoom, use int64)) {
	l := s.l
	for c := range s.in.Candidates {
		for i, to := l.first[c], l.first[c+1]; i < to; {
			n := &l.nodes[l.parts[i].node]
			gone := part{}
			for at := l.parts[i].node; i < to && l.parts[i].node == at; i++ {
				p := &l.parts[i]
				if p.device != plan.None {
					gone.milli += p.milli
				}
				gone.cpu += p.cpu
				gone.host += p.host
			}
			if n.most <= n.holds {
				continue
			}
			if use := l.use(n, &gone); use > 0 {
				f(int32(c), n, use)
			}
		}
	}
}

// use is how much there is in what goes of anything that is short for the workers
// that a node could hold, in thousandths of what one needs.
func (l *ledger) use(n *nodeRoom, gone *part) (use int64) {
	more := int32(min(int64(n.most), l.workers))
	if l.shape.Devices > 0 && (l.shape.Share < 1000 && n.units < more || l.shape.Share == 1000 && n.units < more*l.shape.Devices) {
		use += int64(gone.milli) * 1000 / l.shape.Milli(1)
	}
	if l.shape.CPU > 0 && n.cpu < more*l.shape.CPU {
		use += int64(gone.cpu) * 1000 / int64(l.shape.CPU)
	}
	if l.shape.Host > 0 && n.host < more*l.shape.Host {
		use += int64(gone.host) * 1000 / int64(l.shape.Host)
	}
	return use
}

// bundle finds candidates on a node that make it hold so many workers: the most room
// for the price first, without those that were not needed in the end.
func (s *search) bundle(node, want int32) (b bundle, ok bool) {
	n, before := &s.l.nodes[node], s.l.total
	b.node = node
	for _, seat := range s.seats[n.from:n.to] {
		if n.holds >= want {
			break
		}
		if !s.l.in[seat.candidate] {
			s.l.toggle(seat.candidate)
			b.set = append(b.set, seat.candidate)
		}
	}
	ok = n.holds >= want
	if ok && len(b.set) > 1 {
		order := slices.Clone(b.set)
		slices.SortFunc(order, s.dearest)
		for _, candidate := range order {
			if s.l.toggle(candidate); n.holds < want {
				s.l.toggle(candidate)
			}
		}
		b.set = slices.DeleteFunc(b.set, func(candidate int32) bool { return !s.l.in[candidate] })
	}
	b.price, b.gain = s.sum(b.set), s.l.total-before
	s.toggle(b.set)
	return b, ok && b.gain > 0
}

// start fills the queue with one bundle per node.
func (s *search) start() {
	s.queue = heap.Heap[bundle]{Items: s.queue.Items[:0], Before: func(a, b *bundle) bool { return a.compare(b) < 0 }}
	s.version = append(s.version[:0], make([]int32, len(s.l.nodes))...)
	for n := range s.l.nodes {
		if b, ok := s.more(int32(n)); ok {
			s.queue.Items = append(s.queue.Items, b)
		}
	}
	s.queue.Init()
}

// more is the bundle that makes room for one worker more on a node.
func (s *search) more(n int32) (bundle, bool) {
	if s.l.nodes[n].holds >= s.l.nodes[n].most {
		return bundle{}, false
	}
	b, ok := s.bundle(n, s.l.nodes[n].holds+1)
	b.version = s.version[n]
	return b, ok
}

// addBundles adds bundle after bundle to a set until there is room for so many workers, or
// no more to be had. A bundle may be worth less than when it was queued: others have
// made the room on its other nodes, or fewer workers are left than it makes room for.
func (s *search) addBundles(set []int32, target int64) []int32 {
	for s.l.total < target && len(s.queue.Items) > 0 {
		b := s.queue.Pop()
		if b.version != s.version[b.node] {
			continue
		}
		b, ok := s.more(b.node)
		if !ok {
			continue
		}
		b.gain = min(b.gain, target-s.l.total)
		if len(s.queue.Items) > 0 && b.compare(&s.queue.Items[0]) > 0 {
			s.queue.Push(b)
			continue
		}
		s.toggle(b.set)
		set = append(set, b.set...)
		s.renew(b.set)
	}
	s.next = s.next[:0]
	for _, b := range s.queue.Items[:min(2*exactUpTo, len(s.queue.Items))] {
		if b.version == s.version[b.node] {
			s.next = append(s.next, b.set...)
		}
	}
	return set
}

// renew queues the nodes of candidates anew.
func (s *search) renew(set []int32) {
	for _, candidate := range set {
		last := int32(plan.None)
		for _, p := range s.l.parts[s.l.first[candidate]:s.l.first[candidate+1]] {
			if p.node == last {
				continue
			}
			last = p.node
			s.version[last]++
			if b, ok := s.more(last); ok {
				s.queue.Push(b)
			}
		}
	}
}
