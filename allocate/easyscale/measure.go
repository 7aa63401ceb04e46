package easyscale

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/allocate/divide"
	"github.com/musterdl/muster/strategy"
)

// The stand of the claim: the artefact's 32 V100, 16 P100 and 16 T4, with its relative
// speeds. Its workload has 68 jobs; ours has as many as the paper's class of traces, at
// the same rate of arrivals, of the same shapes, with log-normal running times.
var (
	park     = []int32{32, 16, 16}
	relative = []float64{3.1, 2.4, 1}
	// shapes are those of the artefact's workload: the kind that a user asks for, the
	// number of logical workers, and how many such jobs there are. One job that asks for
	// more P100 than there are is counted with the largest that fits.
	shapes = []struct {
		kind    int
		logical int32
		jobs    int
	}{{0, 32, 37}, {0, 16, 10}, {0, 8, 4}, {0, 4, 1}, {1, 16, 9}, {1, 8, 4}, {2, 8, 3}}
)

const (
	jobs    = 160
	spanS   = 4814. * jobs / 68
	safe    = 42. / 68 // part of the jobs whose results may not depend on the kind
	sigma   = 1.5
	everyS  = 60
	restart = 20
)

// stand is one draw of the workload; work is in steps of logical workers.
type stand struct {
	jobs    []divide.Arrival
	tenants []Tenant
	// once: a restart costs something the first time alone, as in the artefact, whose
	// countdown is never wound up again.
	once bool
}

// draw makes the workload: all work sums to the load's part of what the devices could
// do while jobs arrive. Jobs that may use all kinds do so if mixed.
func draw(seed uint64, load float64, mixed bool) *stand {
	rng := rand.New(rand.NewPCG(seed, 1))
	s, could, asked, all := &stand{}, 0.0, 0.0, 0
	for k, n := range park {
		could += float64(n) * relative[k]
	}
	for _, shape := range shapes {
		all += shape.jobs
	}
	for range jobs {
		shape := shapes[0]
		for i, u := 0, rng.IntN(all); u >= 0; i++ {
			shape, u = shapes[i], u-shapes[i].jobs
		}
		t := Tenant{Least: 1, Most: shape.logical, Counts: make([]int32, len(park)), Kinds: 1 << shape.kind, Speed: logical(shape.logical)}
		a := divide.Arrival{At: spanS * rng.Float64(), Work: float64(t.Most) * math.Exp(sigma*rng.NormFloat64())}
		if rng.Float64() < safe && mixed {
			t.Kinds, t.Mixed = 1<<len(park)-1, true
		}
		asked += a.Work
		s.jobs, s.tenants = append(s.jobs, a), append(s.tenants, t)
	}
	slices.SortFunc(s.jobs, func(a, b divide.Arrival) int { return cmp.Compare(a.At, b.At) })
	for i := range s.jobs {
		s.jobs[i].Work *= load * could * spanS / asked
	}
	return s
}

// logical is the speed of so many logical workers.
func logical(workers int32) func(counts []int32) (speed, waste float64) {
	return func(counts []int32) (speed, waste float64) {
		s, _ := Best(workers, relative, counts)
		return s.Speed, s.Waste
	}
}

// rule fills in the counts of jobs and names those that it changed.
type rule func(now float64, active []int, free []int32) (changed []int)

// play returns the mean JCT and the makespan under a rule.
func (s *stand) play(decide rule) (jct, makespan float64) {
	ran := make([]bool, len(s.jobs))
	ends := divide.Run(s.jobs, everyS, func(now float64, active []int, _ []float64, pace []divide.Pace) {
		free := slices.Clone(park)
		for _, j := range active {
			for k, n := range s.tenants[j].Counts {
				free[k] -= n
			}
		}
		for _, j := range decide(now, active, free) {
			t := &s.tenants[j]
			pace[j].Rate, _ = t.Speed(t.Counts)
			if ran[j] != s.once {
				pace[j].Pause = restart
			}
			ran[j] = true
		}
	})
	return divide.MeanJCT(s.jobs, ends), slices.Max(ends)
}

// fifo starts gangs whole, in order, on the kind they ask for; who comes later waits.
// The artefact's own baseline runs a single job at a time in the whole cluster.
func (s *stand) fifo(atMost int) rule {
	return func(_ float64, active []int, free []int32) (changed []int) {
		for _, j := range active[:min(len(active), atMost)] {
			t := &s.tenants[j]
			k := bits.TrailingZeros64(t.Kinds)
			if t.total() > 0 {
				continue
			}
			if free[k] < t.Most {
				break
			}
			t.Counts[k], changed = t.Most, append(changed, j)
			free[k] -= t.Most
		}
		return changed
	}
}

// starter says where a job that has nothing starts.
type starter func(t *Tenant, free []int32) (kind int, ok bool)

// slowest is the artefact's: the slowest kind that the job may use, or it waits.
func slowest(t *Tenant, free []int32) (kind int, ok bool) {
	kind = -1
	for k := range free {
		if t.Kinds&(1<<k) != 0 && (kind < 0 || relative[k] < relative[kind]) {
			kind = k
		}
	}
	return kind, kind >= 0 && free[kind] > 0
}

// elastic starts new jobs on one device at every event, and grows jobs by proposals
// once a round.
func (s *stand) elastic(start starter) rule {
	last := math.Inf(-1)
	return func(now float64, active []int, free []int32) (changed []int) {
		for _, j := range active {
			if t := &s.tenants[j]; t.total() == 0 {
				if k, ok := start(t, free); ok {
					t.Counts[k]++
					free[k]--
					changed = append(changed, j)
				}
			}
		}
		if now < last+everyS {
			return changed
		}
		last = now
		var proposals []divide.Proposal
		for _, j := range active {
			if !slices.Contains(changed, j) {
				proposals = propose(j, &s.tenants[j], free, Default().MaxWaste, proposals)
			}
		}
		for _, p := range divide.Accept(proposals, free) {
			s.tenants[p.Job].Counts[p.Kind] += p.Units
			changed = append(changed, p.Job)
		}
		return changed
	}
}

// Measure plays the jobs on the artefact's devices: gangs one at a time, gangs in FIFO,
// elastic jobs on the kind they ask for, elastic jobs over kinds where they may, and the
// two again in the way the artefact starts and restarts them.
func Measure(seed uint64) map[string]float64 {
	m := map[string]float64{}
	for _, load := range []int{60, 90, 120} {
		put := func(name string, mixed, once bool, rule func(s *stand) rule) {
			s := draw(seed, float64(load)/100, mixed)
			s.once = once
			jct, makespan := s.play(rule(s))
			m[fmt.Sprintf("%s_jct_s_load%d", name, load)] = jct
			m[fmt.Sprintf("%s_makespan_s_load%d", name, load)] = makespan
		}
		fast := func(s *stand) rule { return s.elastic(start) }
		slow := func(s *stand) rule { return s.elastic(slowest) }
		put("single", false, false, func(s *stand) rule { return s.fifo(1) })
		put("fifo", false, false, func(s *stand) rule { return s.fifo(jobs) })
		put("homo", false, false, fast)
		put("heter", true, false, fast)
		put("artefact_homo", false, true, slow)
		put("artefact_heter", true, true, slow)
	}
	m["inner_rank_correlation"] = innerRank(seed)
	return m
}

// innerRank compares the gain of a proposal with the time that the job saves by each of
// the devices added, if nothing else changes until it ends; the mean over drawn moments.
func innerRank(seed uint64) float64 {
	const moments, active = 40, 12
	rng, sum := rand.New(rand.NewPCG(seed, 2)), 0.0
	s := draw(seed, .9, true)
	for range moments {
		free := slices.Clone(park)
		var proposals []divide.Proposal
		order := rng.Perm(len(s.jobs))[:active]
		for _, j := range order {
			t := &s.tenants[j]
			clear(t.Counts)
			if k, ok := start(t, free); ok {
				has := 1 + rng.Int32N(min(free[k], t.Most, 4))
				t.Counts[k], free[k] = has, free[k]-has
			}
		}
		for _, j := range order {
			proposals = propose(j, &s.tenants[j], free, Default().MaxWaste, proposals)
		}
		var gains, saved []float64
		for _, p := range proposals {
			t := &s.tenants[p.Job]
			now, _ := t.Speed(t.Counts)
			then, _ := t.with(p.Kind, p.Units)
			gains = append(gains, p.Gain)
			saved = append(saved, s.jobs[p.Job].Work*(1/now-1/then)/float64(p.Units))
		}
		sum += strategy.RankCorrelation(gains, saved) / moments
	}
	return sum
}
