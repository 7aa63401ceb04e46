package victims

import (
	"cmp"
	"slices"
)

// Bounds on the work of the heuristic: the nodes looked at closely, the windows of a
// set that are improved, and what may replace them.
const (
	leads      = 8
	windows    = 8
	mostOthers = 3 * exactUpTo / 2
)

// Bounds on the calls of try: for the sets found, for growing and for shrinking.
// With one for the empty set and one for all candidates they make 64.
const (
	firstTries = 8
	growths    = 16
	shrinks    = 38
)

// approximate chooses among many candidates. It finds sets that should do by the
// ledger alone: on each of the nodes where the whole need is cheapest to fit, the
// best of all sets of the ten most promising candidates; for a gang also one over
// several nodes, bundle by bundle, without those that are not needed after all, and
// with its windows replaced by the best of all sets of a few of its own and a few
// others. It tries these, the cheapest first. Where the caller accepts none, as a
// placer may that wants a gang close together, it takes more and more until try
// accepts, and gives back what need not go.
func (c *Cheapest) approximate(in *Input, try func(chosen []int) bool) ([]int, bool) {
	if !c.ledger.possible() {
		return nil, false
	}
	s := search{l: &c.ledger, in: in, greedy: &c.greedy, try: func(set []int32) bool { return try(c.positions(set)) }}
	if c.ledger.enough() && s.try(nil) {
		return c.chosen, true
	}
	s.seat()
	s.oneNode()
	if s.l.workers > 1 && !s.l.enough() {
		s.spread()
	}
	slices.SortStableFunc(s.options, s.compare)
	for _, set := range s.options[:min(firstTries, len(s.options))] {
		if s.try(set) {
			return c.chosen, true
		}
	}
	if set, ok := s.grow(); ok {
		return c.positions(s.shrink(set)), true
	}
	return nil, false
}

// positions turns a set into what try and the caller are given.
func (c *Cheapest) positions(set []int32) []int {
	c.chosen = c.chosen[:0]
	for _, candidate := range set {
		c.chosen = append(c.chosen, int(candidate))
	}
	slices.Sort(c.chosen)
	return c.chosen
}

// search is one choice among many candidates.
type search struct {
	*greedy
	l       *ledger
	in      *Input
	try     func(set []int32) bool
	options [][]int32
}

// compare orders two sets by price, number and the latest jobs, as Cheapest does.
func (s *search) compare(a, b []int32) int {
	if x := cmp.Or(cmp.Compare(s.sum(a), s.sum(b)), len(a)-len(b)); x != 0 {
		return x
	}
	return slices.Compare(s.jobs(b), s.jobs(a))
}

func (s *search) sum(set []int32) (sum int64) {
	for _, candidate := range set {
		sum = add(sum, s.in.Candidates[candidate].Price)
	}
	return sum
}

// jobs are the jobs of a set, the latest first.
func (s *search) jobs(set []int32) []int32 {
	var jobs []int32
	for _, candidate := range set {
		jobs = append(jobs, int32(s.in.Candidates[candidate].Job))
	}
	slices.SortFunc(jobs, func(a, b int32) int { return int(b) - int(a) })
	return jobs
}

func (s *search) toggle(set []int32) {
	for _, candidate := range set {
		s.l.toggle(candidate)
	}
}

// oneNode finds sets that make room for the whole need on one node.
func (s *search) oneNode() {
	s.found = s.found[:0]
	for n := range s.l.nodes {
		if int64(s.l.nodes[n].most) < s.l.workers {
			continue
		}
		if b, ok := s.bundle(int32(n), int32(s.l.workers)); ok {
			s.found = append(s.found, b)
		}
	}
	slices.SortFunc(s.found, func(a, b bundle) int {
		return cmp.Or(cmp.Compare(a.price, b.price), len(a.set)-len(b.set), cmp.Compare(a.node, b.node))
	})
	for _, b := range s.found[:min(leads, len(s.found))] {
		n := &s.l.nodes[b.node]
		pool := make([]int32, 0, exactUpTo)
		for _, seat := range s.seats[n.from:n.to][:min(exactUpTo, n.to-n.from)] {
			pool = append(pool, seat.candidate)
		}
		enough := func() bool { return int64(n.holds) >= s.l.workers }
		best := b.set
		if set, ok := s.best(pool, enough); ok && s.compare(set, best) < 0 {
			best = set
		}
		s.options = append(s.options, best)
	}
}

// best returns the best set of a pool that is enough together with those gone.
func (s *search) best(pool []int32, enough func() bool) ([]int32, bool) {
	sortByJob(s.in, pool)
	best, found := subset{}, false
	s.l.each(s.in, pool, enough, func(x subset) {
		if !found || x.compare(best) < 0 {
			best, found = x, true
		}
	})
	var set []int32
	for i, candidate := range pool {
		if best.mask&(1<<i) != 0 {
			set = append(set, candidate)
		}
	}
	return set, found
}

// spread finds a set over several nodes, and a better one near it.
func (s *search) spread() {
	s.start()
	set := s.addBundles(nil, s.l.workers)
	set = s.prune(set)
	s.options = append(s.options, slices.Clone(set))
	others := s.others()
	for at := 0; at < len(set) && at < windows*exactUpTo/2; at += exactUpTo / 2 {
		for from := 0; from < len(others); from += exactUpTo / 2 {
			set = s.improve(set, at, others[from:])
		}
	}
	set = s.prune(set) // what one window took may do for another
	s.toggle(set)
	s.options = append(s.options, set)
}

// others are the candidates that may replace some of a set: by turns one of the
// bundles that would have been next, and one that offers much for its price when its
// use on all nodes is counted.
func (s *search) others() []int32 {
	total := make([]int64, len(s.in.Candidates))
	for _, seat := range s.seats {
		total[seat.candidate] += seat.use
	}
	compare := func(a, b int32) int {
		return cmp.Or(compareRatios(s.in.Candidates[a].Price, total[a], s.in.Candidates[b].Price, total[b]), int(b-a))
	}
	var cheap []int32
	for i := range total {
		c := int32(i)
		if full := len(cheap) == mostOthers; total[c] == 0 || s.l.in[c] || full && compare(cheap[mostOthers-1], c) <= 0 {
			continue
		} else if full {
			cheap = cheap[:mostOthers-1]
		}
		at, _ := slices.BinarySearchFunc(cheap, c, compare)
		cheap = slices.Insert(cheap, at, c)
	}
	var others []int32
	for i := range mostOthers {
		for _, list := range [...][]int32{s.next, cheap} {
			if i < len(list) && len(others) < mostOthers && !s.l.in[list[i]] && !slices.Contains(others, list[i]) {
				others = append(others, list[i])
			}
		}
	}
	return others
}

// improve replaces a few of a set, at a place counted from the bundle taken last, by
// the best of these and a few others. The set is gone before and after.
func (s *search) improve(set []int32, at int, others []int32) []int32 {
	to := max(0, len(set)-at)
	from := max(0, to-exactUpTo/2)
	pool := slices.Clone(set[from:to])
	for _, candidate := range others {
		if len(pool) < exactUpTo && !s.l.in[candidate] && !slices.Contains(pool, candidate) {
			pool = append(pool, candidate)
		}
	}
	s.toggle(set[from:to])
	found, _ := s.best(pool, s.l.enough)
	with := slices.Concat(set[:from], found, set[to:])
	if s.compare(with, set) >= 0 {
		s.toggle(set[from:to])
		return set
	}
	s.toggle(found)
	return with
}

// prune puts those of a set back that are not needed, the dearest first; of equals
// those that hold the least, so that few remain.
func (s *search) prune(set []int32) []int32 {
	order := slices.Clone(set)
	slices.SortFunc(order, s.dearest)
	for _, candidate := range order {
		if s.l.toggle(candidate); !s.l.enough() {
			s.l.toggle(candidate)
		}
	}
	return slices.DeleteFunc(set, func(candidate int32) bool { return !s.l.in[candidate] })
}

func (s *search) dearest(a, b int32) int {
	grants := func(c int32) int32 { return s.l.first[c+1] - s.l.first[c] }
	x, y := &s.in.Candidates[a], &s.in.Candidates[b]
	return cmp.Or(cmp.Compare(y.Price, x.Price), cmp.Compare(grants(a), grants(b)), cmp.Compare(x.Job, y.Job))
}

// grow takes room for more and more workers, in the end all there is, until the
// caller accepts.
func (s *search) grow() ([]int32, bool) {
	s.start()
	var set []int32
	for extra, steps := int64(1), 0; steps < growths; extra, steps = extra*2, steps+1 {
		before := len(set)
		set = s.addBundles(set, s.l.workers+extra)
		if len(set) > before && s.try(set) {
			s.toggle(set)
			return set, true
		}
		if s.l.total < s.l.workers+extra {
			break // there is no more
		}
	}
	s.toggle(set)
	set = set[:0]
	for i := range s.in.Candidates {
		set = append(set, int32(i))
	}
	return set, s.try(set)
}

// shrink gives back of a set that try accepts what is not needed, the dearest first,
// in ever smaller pieces.
func (s *search) shrink(set []int32) []int32 {
	slices.SortFunc(set, s.dearest)
	s.toggle(set)
	left := shrinks
	for size := max(1, len(set)/2); size > 0; size /= 2 {
		for at := 0; at < len(set) && left > 0; {
			piece := slices.Clone(set[at:min(at+size, len(set))])
			s.toggle(piece)
			without := slices.Concat(set[:at], set[at+len(piece):])
			if s.l.enough() {
				if left--; s.try(without) {
					set = without
					continue
				}
			}
			s.toggle(piece)
			at += len(piece)
		}
	}
	s.toggle(set)
	return set
}
