package gavel

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/solve"
	"github.com/musterdl/muster/strategy"
)

// trial is one job of a round-level simulation.
type trial struct {
	rate    []float64 // steps per second, by type
	gang    int
	steps   float64
	arrival float64 // s
	end     float64
	done    float64
	got     []float64 // s, since the shares were last computed
	deficit []float64
	x       []float64
}

// gpus are the device types of the tables, the fastest first.
var gpus = []string{"v100", "p100", "k80"}

// table holds steps per second by type and job configuration.
type table map[string]map[string]float64

// tables reads rates as Gavel measured them: type, configuration, partner, rate; the
// partner null is the job alone.
func tables(open func(string) (io.ReadCloser, error)) (table, error) {
	f, err := open("gavel/simulation_throughputs.json.gz")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	var raw map[string]map[string]map[string]json.RawMessage
	if err := json.NewDecoder(z).Decode(&raw); err != nil {
		return nil, fmt.Errorf("gavel throughputs: %w", err)
	}
	t := table{}
	for kind, configurations := range raw {
		t[kind] = map[string]float64{}
		for name, partners := range configurations {
			var rate float64
			if err := json.Unmarshal(partners["null"], &rate); err != nil {
				return nil, fmt.Errorf("gavel throughputs: %s on %s: %w", name, kind, err)
			}
			t[kind][name] = rate
		}
	}
	return t, nil
}

func (t table) job(model string, gang int, steps, arrival float64) *trial {
	j := &trial{gang: gang, steps: steps, arrival: arrival, got: make([]float64, len(gpus)), deficit: make([]float64, len(gpus)), x: make([]float64, len(gpus))}
	for _, kind := range gpus {
		j.rate = append(j.rate, t[kind][fmt.Sprintf("('%s', %d)", model, gang)])
	}
	return j
}

// bundled reads one of the physical experiment's traces.
func bundled(open func(string) (io.ReadCloser, error), t table, name string) ([]*trial, error) {
	f, err := open("gavel/physical_cluster_traces/" + name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var jobs []*trial
	for lines := bufio.NewScanner(f); lines.Scan(); {
		c := strings.Split(lines.Text(), "\t")
		if len(c) != 10 {
			return nil, fmt.Errorf("%s: %d columns, want 10", name, len(c))
		}
		steps, err1 := strconv.ParseFloat(c[5], 64)
		gang, err2 := strconv.Atoi(c[6])
		arrival, err3 := strconv.ParseFloat(c[9], 64)
		if err1 != nil || err2 != nil || err3 != nil {
			return nil, fmt.Errorf("%s: %q has no steps, scale or arrival", name, lines.Text())
		}
		jobs = append(jobs, t.job(c[0], gang, steps, arrival))
	}
	return jobs, nil
}

// continuous draws single-device jobs as the paper's simulations do: any
// configuration, Philly's spread of running times on the fastest type, Poisson
// arrivals; so many that devices shared blindly would be busy for the given part of
// the time.
func continuous(t table, n int, load float64, room []int, seed uint64) []*trial {
	r := rand.New(rand.NewPCG(seed, 0x6761))
	var models []string
	for name, rate := range t[gpus[0]] {
		if strings.HasSuffix(name, ", 1)") && rate > 0 {
			models = append(models, name[2:len(name)-len("', 1)")])
		}
	}
	slices.Sort(models)
	devices := 0
	for _, w := range room {
		devices += w
	}
	jobs := make([]*trial, n)
	busy := 0.0
	for i := range jobs {
		minutes := math.Pow(10, 1.5+1.5*r.Float64())
		if r.Float64() >= .8 {
			minutes = math.Pow(10, 3+r.Float64())
		}
		jobs[i] = t.job(models[r.IntN(len(models))], 1, 1, 0)
		jobs[i].steps = math.Ceil(60 * minutes * jobs[i].rate[0])
		blind := 0.0
		for k, w := range room {
			blind += float64(jobs[i].rate[k] * float64(w) / float64(devices))
		}
		busy += jobs[i].steps / blind
	}
	gap := busy / float64(n) / (load * float64(devices))
	for i := 1; i < n; i++ {
		jobs[i].arrival = jobs[i-1].arrival + float64(gap*r.ExpFloat64())
	}
	return jobs
}

// simulation runs trials in rounds as the published simulator does, restarts being
// free there: shares are computed anew after an arrival or an end, but not before
// resetSec have passed; a round ends when the last of its jobs does.
type simulation struct {
	policy   string
	room     []int
	roundSec float64
	window   []*trial // it ends when these have; nil is all

	now, last float64
	stale     bool
	active    []*trial
	turn      []int // the order of types
	chance    *rand.Rand

	least, divisions float64 // the sum of the least normalised rates, and of how many
}

const resetSec = 1920

func (s *simulation) run(jobs []*trial) error {
	next := 0
	if s.window == nil {
		s.window = jobs
	}
	for slices.ContainsFunc(s.window, func(j *trial) bool { return j.end == 0 }) {
		if len(s.active) == 0 {
			s.now, s.last = max(s.now, jobs[next].arrival), 0
		}
		for next < len(jobs) && jobs[next].arrival <= s.now {
			s.active = append(s.active, jobs[next])
			s.stale = true
			next++
		}
		if s.stale && (s.last == 0 || s.now-s.last >= resetSec) {
			if err := s.divide(); err != nil {
				return fmt.Errorf("at %g s: %w", s.now, err)
			}
		}
		before := len(s.active)
		s.round()
		if len(s.active) < before {
			s.stale = true
		}
	}
	return nil
}

// divide books what was owed and computes the shares anew.
func (s *simulation) divide() error {
	p := Problem{Policy: s.policy, Room: make([]float64, len(s.room))}
	for k, w := range s.room {
		p.Room[k] = float64(w)
	}
	for _, j := range s.active {
		for k := range j.got {
			j.deficit[k] += float64(j.x[k]*(s.now-s.last)) - j.got[k]
			j.got[k] = 0
		}
		p.Rate, p.Gang = append(p.Rate, j.rate), append(p.Gang, float64(j.gang))
		p.Steps, p.Done = append(p.Steps, j.steps-j.done), append(p.Done, j.done)
		p.AgeSec = append(p.AgeSec, s.now-j.arrival)
	}
	shares, err := Divide(p)
	for i, j := range s.active {
		if err == nil {
			j.x = shares.X[i]
		}
	}
	s.least, s.divisions = s.least+p.least(shares.X), s.divisions+1
	s.last, s.stale = s.now, false
	return err
}

// least is the smallest normalised rate of a division, whatever it was made for: what
// max-min makes large.
func (p Problem) least(x [][]float64) float64 {
	worst := math.Inf(1)
	for j, values := range p.normalised() {
		sum := 0.0
		for k, a := range values {
			if x != nil {
				sum += a * x[j][k]
			}
		}
		worst = min(worst, sum)
	}
	return worst
}

// innerRank compares, among four policies on the same jobs, the mean of what max-min makes
// large with the mean completion time; the mean over a few drawn sets of jobs.
func innerRank(t table, seed uint64) (float64, error) {
	const sets, jobs = 3, 20
	sum := 0.0
	for set := range uint64(sets) {
		var scores, goals []float64
		for _, policy := range []string{Agnostic, MaxMin, Makespan, FinishTimeFairest} {
			room := []int{2, 2, 2}
			all := continuous(t, jobs, .9, room, seed*sets+set)
			s := &simulation{policy: policy, room: room, roundSec: 360}
			if err := s.run(all); err != nil {
				return 0, fmt.Errorf("under %s: %w", policy, err)
			}
			jct, _ := hours(all)
			scores, goals = append(scores, s.least/s.divisions), append(goals, -jct)
		}
		sum += strategy.RankCorrelation(scores, goals) / sets
	}
	return sum, nil
}

// turns orders the types: the fastest first, or, for a policy that does not know
// which that is, by lot.
func (s *simulation) turns() []int {
	if s.turn == nil {
		s.turn, s.chance = []int{0, 1, 2}, rand.New(rand.NewPCG(0, 0x7475))
	}
	if s.policy == Agnostic {
		s.chance.Shuffle(len(s.turn), func(i, j int) { s.turn[i], s.turn[j] = s.turn[j], s.turn[i] })
	}
	return s.turn
}

// round runs one round and drops the jobs that end in it.
func (s *simulation) round() {
	r := Round{Credit: s.roundSec / 2, Room: s.room, Turn: s.turns()}
	for _, j := range s.active {
		r.X, r.Got, r.Deficit = append(r.X, j.x), append(r.Got, j.got), append(r.Deficit, j.deficit)
		r.Rate, r.Gang = append(r.Rate, j.rate), append(r.Gang, j.gang)
	}
	over := s.now
	left := s.active[:0:0]
	for i, k := range r.Assign() {
		j := s.active[i]
		if k < 0 {
			left = append(left, j)
			continue
		}
		steps := min(math.Floor(j.rate[k]*s.roundSec), j.steps-j.done)
		took := steps / j.rate[k]
		j.done += steps
		j.got[k] += took
		over = max(over, s.now+took)
		if j.done < j.steps {
			left = append(left, j)
		} else {
			j.end = s.now + took
		}
	}
	if over == s.now {
		over += s.roundSec // nobody can run: time passes all the same
	}
	s.active, s.now = left, over
}

// hours are the mean completion time and the end of the last.
func hours(jobs []*trial) (jct, makespan float64) {
	for _, j := range jobs {
		jct += (j.end - j.arrival) / float64(len(jobs)) / 3600
		makespan = max(makespan, j.end/3600)
	}
	return jct, makespan
}

// Measure runs the published experiments on the published tables: the example of
// section 3, the two bundled traces, and continuous arrivals at a load of 0.9 on
// 36:36:36 devices, whose jobs 200 to 350 of 500 are counted.
func Measure(open func(string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	figures := map[string]float64{}
	s, err := Divide(example())
	if err != nil {
		return nil, err
	}
	figures["example_ratio"] = s.Objective
	t, err := tables(open)
	if err != nil {
		return nil, err
	}
	small, large := []int{8, 16, 24}, []int{36, 36, 36}
	for _, r := range []struct{ policy, trace, name string }{
		{Agnostic, "max_min_fairness.trace", "agnostic"}, {MaxMin, "max_min_fairness.trace", "aware"},
		{FinishTimeFairest, "max_min_fairness.trace", "finish_time_fairness"}, {Makespan, "minimize_makespan.trace", "makespan"},
	} {
		jobs, err := bundled(open, t, r.trace)
		if err != nil {
			return nil, err
		}
		if err := (&simulation{policy: r.policy, room: small, roundSec: 360}).run(jobs); err != nil {
			return nil, fmt.Errorf("%s under %s: %w", r.trace, r.policy, err)
		}
		figures["jct_h_"+r.name], figures["end_h_"+r.name] = hours(jobs)
	}
	for _, r := range []struct{ policy, name string }{{Agnostic, "agnostic"}, {MaxMin, "aware"}} {
		jobs := continuous(t, 500, .9, large, seed)
		sim := &simulation{policy: r.policy, room: large, roundSec: 360, window: jobs[200:350]}
		if err := sim.run(jobs); err != nil {
			return nil, fmt.Errorf("continuous arrivals under %s: %w", r.policy, err)
		}
		figures["load_jct_h_"+r.name], _ = hours(sim.window)
	}
	if figures["twin_gap"], err = twinGap(t, seed); err != nil {
		return nil, err
	}
	figures["inner_rank_correlation"], err = innerRank(t, seed)
	return figures, err
}

// example is that of the paper's section 3: three jobs, one device of each of two types.
func example() Problem {
	return Problem{Policy: MaxMin, Rate: [][]float64{{4, 1}, {3, 1}, {2, 1}}, Gang: []float64{1, 1, 1}, Room: []float64{1, 1}}
}

// twinGap is how far the greedy twin's least rate is below the program's, as a part of
// its own: on 200 jobs drawn from the tables, for 36 devices of each type.
func twinGap(t table, seed uint64) (float64, error) {
	p := Problem{Policy: MaxMin, Room: []float64{36, 36, 36}}
	names := slices.Sorted(maps.Keys(t[gpus[0]]))
	for r := rand.New(rand.NewPCG(seed, 200)); len(p.Rate) < 200; {
		name, rate := names[r.IntN(len(names))], []float64(nil)
		for _, kind := range gpus {
			rate = append(rate, t[kind][name])
		}
		if strings.HasSuffix(name, ", 1)") && rate[0] > 0 {
			p.Rate, p.Gang = append(p.Rate, rate), append(p.Gang, 1)
		}
	}
	best, err := Divide(p)
	if err != nil {
		return 0, err
	}
	twin, err := Greedy(p)
	return solve.Twin{Model: best.Objective, Greedy: twin.Objective, Bound: best.Objective}.GreedyGap(), err
}
