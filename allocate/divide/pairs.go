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
	k := knockout{jobs: jobs, shares: make([]int32, len(jobs)), sides: make([]Contender, len(jobs))}
	for j, c := range jobs {
		k.sides[j] = NewContender(Side{Left: c.Left, First: rate(j, 1), More: rate(j, 1)})
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
		k.sides[winner] = NewContender(s)
		k.renew(winner)
	}
	return k.shares
}

// leafJobs is how many jobs stand at a leaf of the tree.
const leafJobs = 16

// knockout is the jobs with a tree of what is best among runs of them.
type knockout struct {
	jobs   []Claimant
	shares []int32
	sides  []Contender
	leaves int
	runs   []best // a heap-shaped tree: 1 is all jobs, 2i and 2i+1 are the halves of i
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
		k.runs[i] = join(&k.runs[2*i], &k.runs[2*i+1])
	}
}

// renew follows the change of one job up the tree.
func (k *knockout) renew(job int) {
	i := k.leaves + job/leafJobs
	k.runs[i] = k.leaf(job / leafJobs)
	for i /= 2; i > 0; i /= 2 {
		k.runs[i] = join(&k.runs[2*i], &k.runs[2*i+1])
	}
}

// plays reports whether a job takes part.
func (k *knockout) plays(job int) bool {
	return k.shares[job] < k.jobs[job].Most && k.sides[job].More > k.sides[job].Now
}

func (k *knockout) leaf(leaf int) best {
	b := best{lead: math.Inf(1)}
	for i := range b.bands {
		b.bands[i].remaining = math.Inf(1)
	}
	for job := leaf * leafJobs; job < min((leaf+1)*leafJobs, len(k.jobs)); job++ {
		switch s := &k.sides[job]; {
		case !k.plays(job):
		case s.Now == 0:
			b.idle, b.lead = true, min(b.lead, s.lead)
		default:
			f := &b.bands[s.band()]
			b.busy, b.next, f.remaining, f.gain = true, max(b.next, s.next), min(f.remaining, s.remaining), max(f.gain, s.gain)
		}
	}
	return b
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
		if k.plays(job) && (front < 0 || !k.sides[front].Before(&k.sides[job])) {
			front = job
		}
	}
	return front
}
