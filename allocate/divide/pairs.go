package divide

import "math"

// Pairs divides units by the rule of AFS: each unit goes to the winner of a knock-out
// in the order of the jobs, in which one more unit for the job that would end sooner,
// and then for the other, is weighed against one more for the other from now on. A job
// that gains nothing by one more takes no part.
//
// Who beats whom is not transitive, so the knock-out is played in its order; but a tree over
// the jobs tells the runs of jobs of which none can beat whoever is in front, and these are
// passed by at once. A unit costs the logarithm of the number of jobs for every lead that
// changes.
func Pairs(jobs []Claimant, units int32, rate Rate) []int32 {
	k := knockout{jobs: jobs, shares: make([]int32, len(jobs)), sides: make([]contender, len(jobs))}
	for j, c := range jobs {
		k.sides[j] = contenderOf(Side{Left: c.Left, First: rate(j, 1), More: rate(j, 1)})
	}
	k.build()
	for ; units > 0; units-- {
		winner := k.play(1, -1)
		if winner < 0 {
			break
		}
		k.shares[winner]++
		s := k.sides[winner].Side
		s.Now, s.More = s.More, rate(winner, k.shares[winner]+1)
		k.sides[winner] = contenderOf(s)
		k.renew(winner)
	}
	return k.shares
}

// contender is a side with what First compares, worked out once.
type contender struct {
	Side
	remaining float64
	gain      float64 // over its present rate
	next      float64 // the same gain over its next rate
	lead      float64 // of one that has nothing: when it would end on one unit
}

func contenderOf(s Side) contender {
	return contender{Side: s, remaining: remaining(s), gain: (s.More - s.Now) / s.Now, next: (s.More - s.Now) / s.More, lead: s.Left / s.First}
}

// before is First: of two that have something the one that ends sooner is ahead if its gain over
// its present rate exceeds the other's over its next one.
func (x *contender) before(y *contender) bool {
	switch {
	case x.Now == 0 && y.Now == 0:
		return x.lead <= y.lead
	case y.remaining < x.remaining:
		return y.gain <= x.next
	}
	return x.gain > y.next
}

// leafJobs is how many jobs stand at a leaf of the tree.
const leafJobs = 16

// knockout is the jobs with a tree of what is best among runs of them.
type knockout struct {
	jobs   []Claimant
	shares []int32
	sides  []contender
	leaves int
	runs   []best // a heap-shaped tree: 1 is all jobs, 2i and 2i+1 are the halves of i
}

// best is what the contenders among a run of jobs have at most. Those who have nothing yet
// compare by their lead with each other.
type best struct {
	lead                  float64 // the least, of those who have nothing; none is infinite
	remaining, gain, next float64 // the least and the most, of those who have something
	idle, busy            bool    // whether there are any of either
}

func (k *knockout) build() {
	k.leaves = 1
	for k.leaves*leafJobs < len(k.jobs) {
		k.leaves *= 2
	}
	k.runs = make([]best, 2*k.leaves)
	for leaf := range k.leaves {
		k.runs[k.leaves+leaf] = k.leaf(leaf)
	}
	for i := k.leaves - 1; i > 0; i-- {
		k.runs[i] = join(k.runs[2*i], k.runs[2*i+1])
	}
}

// renew follows the change of one job up the tree.
func (k *knockout) renew(job int) {
	i := k.leaves + job/leafJobs
	k.runs[i] = k.leaf(job / leafJobs)
	for i /= 2; i > 0; i /= 2 {
		k.runs[i] = join(k.runs[2*i], k.runs[2*i+1])
	}
}

// plays reports whether a job takes part.
func (k *knockout) plays(job int) bool {
	return k.shares[job] < k.jobs[job].Most && k.sides[job].More > k.sides[job].Now
}

func (k *knockout) leaf(leaf int) best {
	b := best{lead: math.Inf(1), remaining: math.Inf(1)}
	for job := leaf * leafJobs; job < min((leaf+1)*leafJobs, len(k.jobs)); job++ {
		switch s := &k.sides[job]; {
		case !k.plays(job):
		case s.Now == 0:
			b.idle, b.lead = true, min(b.lead, s.lead)
		default:
			b.busy, b.remaining, b.gain, b.next = true, min(b.remaining, s.remaining), max(b.gain, s.gain), max(b.next, s.next)
		}
	}
	return b
}

func join(a, b best) best {
	return best{lead: min(a.lead, b.lead), remaining: min(a.remaining, b.remaining), gain: max(a.gain, b.gain), next: max(a.next, b.next),
		idle: a.idle || b.idle, busy: a.busy || b.busy}
}

// none reports whether it is plain that nobody of a run beats a contender. For one that has
// something, the gain of each over its present rate is at least that over its next one.
func (b *best) none(x *contender) bool {
	if x.Now == 0 {
		return (!b.idle || x.lead <= b.lead) && (!b.busy || b.gain <= x.next)
	}
	return (!b.idle || x.gain > 1) && (!b.busy || x.next > b.gain || x.remaining <= b.remaining && x.gain > b.next)
}

// play lets a run of jobs play on against whoever is in front, -1 for nobody, and returns who
// is in front then.
func (k *knockout) play(run, front int) int {
	b := &k.runs[run]
	if !b.idle && !b.busy || front >= 0 && b.none(&k.sides[front]) {
		return front
	}
	if run < k.leaves {
		return k.play(2*run+1, k.play(2*run, front))
	}
	first := (run - k.leaves) * leafJobs
	for job := first; job < min(first+leafJobs, len(k.jobs)); job++ {
		if k.plays(job) && (front < 0 || !k.sides[front].before(&k.sides[job])) {
			front = job
		}
	}
	return front
}
