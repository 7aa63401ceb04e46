// Package tick is a second simulator, deliberately slow and plain, as the oracle of
// random tests. It shares nothing with the engine, the state, the strategies or the
// world, only the nouns: time goes on one tick after another, the whole queue is
// sorted for every job that starts, every run and device is looked at every time.
//
// It knows whole devices, gangs, first-fit placement, four orders, preemption by
// save and restore, who gives way to whom, start and restore delays, unlike devices, the
// slowdown of a gang that is spread, and nodes that fail and come back. Progress is added
// up tick by tick; where rates are sums of powers of two the sums are exact, and so are
// the instants.
package tick

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Order says who goes first.
type Order string

// The orders the oracle knows.
const (
	FIFO       Order = "fifo"        // by submission, smaller work fills in
	FIFOStrict Order = "fifo-strict" // by submission, nobody passes
	SRTF       Order = "srtf"        // by declared time less what was executed, preemptive
	LAS        Order = "2d-las"      // by queue of attained service, then first start, preemptive
)

// World is what to simulate. Every instant and duration is a multiple of Tick, and
// the jobs come in order of submission.
type World struct {
	Tick    unit.Duration
	Cluster *cluster.Cluster
	Jobs    []workload.Job
	Truths  []workload.Truth
	Order   Order
	Bounds  []unit.Duration // of LAS's queues, in service on one device
	Start   unit.Duration   // what any start costs
	Outages []Outage
}

// Outage is a node lost over [From, To).
type Outage struct {
	Node     int
	From, To unit.Time
}

// Job is what became of a job.
type Job struct {
	Start, End            unit.Time // first start; Never where there was none
	Preemptions, Restarts int32
	Ran                   unit.Duration // lost work included
}

// History is what became of all jobs.
type History struct {
	Jobs []Job
	// Tied says that a run started or ended in the very instant in which a node was
	// lost: which came first is a matter of taste.
	Tied bool
}

type status int

const (
	promised status = iota // waits until its devices are left
	starting
	running
	stopping
)

type run struct {
	job     *job
	status  status
	devices []int
	due     unit.Time // end of starting or stopping
	ran     unit.Duration
	did     unit.Duration // of one that is stopping: all that it ran, and
	kept    unit.Duration // of which the work is kept, as nobody knows before it has stopped
	cost    unit.Duration // device time that those lost who were stopped for it
	began   unit.Time     // when it began to compute
	rate    float64
	done    float64 // reference time, in ticks
}

type job struct {
	workload.Job
	truth           workload.Truth
	became          Job
	id, attempts    int
	queued, waiting bool      // has been submitted; is in the queue
	back            unit.Time // when it last came back to the queue
	run, leaving    *run
	left            float64 // reference time, in ticks
	executed        unit.Duration
	gave            *run // gave way in this decision
	stays           bool // is not made to give way in this decision, since that was in vain
}

type sim struct {
	World
	now    unit.Time
	jobs   []*job
	runs   []*run // alive
	holder []*run // by device: who has it, or is promised it
	before []*run // by device: who is still leaving it
	down   []bool // by node
	tied   bool
	took   map[pair]bool // the first took the second's room; until one of them has ended
}

type pair struct{ first, second *job }

// Run simulates until every job has ended, for at most so many ticks.
func Run(w World, ticks int) (History, error) {
	s := &sim{World: w, holder: make([]*run, len(w.Cluster.Devices)), before: make([]*run, len(w.Cluster.Devices)),
		down: make([]bool, len(w.Cluster.Nodes)), took: map[pair]bool{}}
	for i := range w.Jobs {
		s.jobs = append(s.jobs, &job{Job: w.Jobs[i], truth: w.Truths[i], id: i,
			became: Job{Start: unit.Never, End: unit.Never}, left: float64(w.Truths[i].Duration) / float64(w.Tick)})
	}
	for range ticks {
		s.outages()
		// What is decided may be due in the same instant.
		for again := true; again; {
			again = s.happen()
			again = s.decide() || again
			again = s.ready() || again
		}
		if !slices.ContainsFunc(s.jobs, func(j *job) bool { return j.became.End == unit.Never }) {
			return s.history(), nil
		}
		s.now = s.now.Add(s.Tick)
		s.work()
	}
	return History{}, fmt.Errorf("after %d ticks some job has not ended", ticks)
}

func (s *sim) history() History {
	h := History{Tied: s.tied}
	for _, j := range s.jobs {
		h.Jobs = append(h.Jobs, j.became)
	}
	return h
}

// work lets every running run compute for the tick that has just passed.
func (s *sim) work() {
	for _, r := range s.runs {
		if r.status == running {
			r.ran += s.Tick
			r.done += r.rate
		}
	}
}

// happen lets everything happen that is due, and reports whether anything was.
func (s *sim) happen() bool {
	happened := false
	for _, j := range s.jobs {
		if j.Submit == s.now && !j.queued {
			j.queued, j.waiting, happened = true, true, true
		}
	}
	for _, r := range slices.Clone(s.runs) {
		switch {
		case r.status == running && r.done >= r.job.left:
			s.end(r)
			r.job.became.End, happened = s.now, true
			maps.DeleteFunc(s.took, func(p pair, _ bool) bool { return p.first == r.job || p.second == r.job })
		case r.status == stopping && r.due == s.now:
			s.end(r)
			happened = true
		case r.status == starting && r.due == s.now:
			r.status, r.began, happened = running, s.now, true
			r.job.became.Start = min(r.job.became.Start, s.now)
		}
	}
	return s.ready() || happened
}

// ready starts the promised runs whose devices have been left.
func (s *sim) ready() (due bool) {
	for _, r := range s.runs {
		if r.status != promised || r.job.leaving != nil || slices.ContainsFunc(r.devices, func(d int) bool { return s.before[d] != nil }) {
			continue
		}
		r.status, r.due = starting, s.now.Add(s.Start)
		if r.job.attempts > 1 {
			r.due = r.due.Add(r.job.Checkpoint.Load)
		}
		due = due || r.due == s.now
	}
	return due
}

// outages takes nodes down and brings them back.
func (s *sim) outages() {
	for _, o := range s.Outages {
		if o.To == s.now {
			s.down[o.Node] = false
		}
		if o.From != s.now {
			continue
		}
		s.tied = s.tied || slices.ContainsFunc(s.runs, func(r *run) bool {
			return r.status == running && r.done >= r.job.left || (r.status == starting || r.status == stopping) && r.due == s.now
		})
		s.down[o.Node] = true
		for _, r := range slices.Clone(s.runs) {
			if !slices.ContainsFunc(r.devices, func(d int) bool { return int(s.Cluster.Devices[d].Node) == o.Node }) {
				continue
			}
			if r.status == starting || r.status == running {
				r.job.became.Restarts++
				s.keep(r, false)
			}
			if r.job.run == r {
				r.job.waiting, r.job.back = true, s.now
			}
			s.end(r)
		}
	}
}

// keep leaves a run's job the work that survives the run's end: all of it
// when it was saved, else what the last periodic checkpoint covers.
func (s *sim) keep(r *run, saved bool) {
	kept := r.ran
	if every := r.job.Checkpoint.Every; !saved {
		kept = 0
		if every > 0 {
			kept = r.ran / every * every
		}
	}
	r.job.left -= r.rate * float64(kept/s.Tick)
	r.job.became.Ran += r.ran
	r.did, r.kept = r.ran, kept
	r.ran, r.done = 0, 0
}

// stop sends a job back to the queue; its run leaves its devices when it has saved.
func (s *sim) stop(r *run) {
	r.job.waiting, r.job.run, r.job.back = true, nil, s.now
	r.job.became.Preemptions++
	r.due = s.now
	if r.status == running && r.job.Checkpoint.OnRequest {
		r.due = r.due.Add(r.job.Checkpoint.Save)
	}
	s.keep(r, r.job.Checkpoint.OnRequest)
	r.status, r.job.leaving = stopping, r
	for _, d := range r.devices {
		s.holder[d], s.before[d] = nil, r
	}
}

// end takes a run off its devices and out of the world.
func (s *sim) end(r *run) {
	r.job.became.Ran += r.ran
	r.job.executed += r.kept
	for _, of := range [][]*run{s.holder, s.before} {
		for d := range of {
			if of[d] == r {
				of[d] = nil
			}
		}
	}
	if r.job.run == r {
		r.job.run = nil
	}
	if r.job.leaving == r {
		r.job.leaving = nil
	}
	s.runs = slices.DeleteFunc(s.runs, func(x *run) bool { return x == r })
}

// decide starts what can be, and reports whether anything was. Where a job whose run gave way
// is back on the same nodes then, all of it is decided again and that run stays.
func (s *sim) decide() (started bool) {
	for _, j := range s.jobs {
		j.gave, j.stays = nil, false
	}
	for back := s.bookmark(); ; {
		for started = false; s.startOne(); {
			started = true
		}
		var vain []*job
		for _, j := range s.jobs {
			if j.gave != nil && j.run != nil && slices.Equal(s.nodes(j.gave), s.nodes(j.run)) {
				vain = append(vain, j)
			}
		}
		if vain == nil {
			return started
		}
		back()
		for _, j := range vain {
			j.stays = true
		}
	}
}

// bookmark returns what puts everything back as it is now, but for who stays.
func (s *sim) bookmark() (back func()) {
	runs, holder, before, took := slices.Clone(s.runs), slices.Clone(s.holder), slices.Clone(s.before), maps.Clone(s.took)
	var wasJob []job
	var wasRun []run
	for _, j := range s.jobs {
		wasJob = append(wasJob, *j)
	}
	for _, r := range runs {
		wasRun = append(wasRun, *r)
	}
	return func() {
		s.runs, s.holder, s.before, s.took = slices.Clone(runs), slices.Clone(holder), slices.Clone(before), maps.Clone(took)
		for i, j := range s.jobs {
			stays := j.stays
			*j = wasJob[i]
			j.stays = stays
		}
		for i, r := range runs {
			*r = wasRun[i]
		}
	}
}

// nodes is where each device of a run is.
func (s *sim) nodes(r *run) (at []int) {
	for _, d := range r.devices {
		at = append(at, int(s.Cluster.Devices[d].Node))
	}
	return at
}

// startOne sorts the queue and starts the first job that can be, and reports
// whether there was one. None passes a job that wants the same, and a job that was displaced
// displaces nobody in that instant, nor before its run has left.
func (s *sim) startOne() bool {
	queue := slices.DeleteFunc(slices.Clone(s.jobs), func(j *job) bool { return !j.waiting })
	slices.SortFunc(queue, s.compare)
	for n, j := range queue {
		if slices.ContainsFunc(queue[:n], func(first *job) bool { return s.alike(first, j) }) {
			continue
		}
		devices, cost := s.fit(j, nil), unit.Duration(0)
		displaced := j.became.Preemptions > 0 && (j.back == s.now || j.leaving != nil)
		if devices == nil && (s.Order == SRTF || s.Order == LAS) && !displaced {
			for _, v := range s.victims(j) {
				cost += v.price() * unit.Duration(len(v.devices))
				v.job.gave, s.took[pair{j, v.job}] = v, true
				s.stop(v)
			}
			devices = s.fit(j, nil)
		}
		if devices != nil {
			j.waiting, j.attempts = false, j.attempts+1
			j.run = &run{job: j, devices: devices, rate: s.rate(j, devices), cost: cost}
			s.runs = append(s.runs, j.run)
			for _, d := range devices {
				s.holder[d] = j.run
			}
			return true
		}
		if s.Order == FIFOStrict {
			return false
		}
	}
	return false
}

func (s *sim) compare(a, b *job) int { return slices.Compare(s.rank(a), s.rank(b)) }

// rank is a job's place in the order, smaller first.
func (s *sim) rank(j *job) []int64 {
	useful := j.executed // running time whose work is kept
	if j.run != nil {
		useful += j.run.ran
	}
	if j.leaving != nil {
		useful += j.leaving.did
	}
	served := useful * unit.Duration(j.Gang*j.Devices)
	switch s.Order {
	case SRTF:
		if j.Estimate > 0 {
			believed, computes := j.Estimate, j.run != nil && j.run.status == running
			for believed < useful || believed == useful && !computes { // it was overrun, so it was wrong
				believed *= 2
			}
			return []int64{-int64(j.Priority), 0, int64(believed - useful), int64(j.id)}
		}
		level := int64(0)
		for bound := unit.Minute; served >= bound; bound *= 2 {
			level++
		}
		return []int64{-int64(j.Priority), 1, level, int64(j.id)}
	case LAS:
		queue := int64(0)
		for _, bound := range s.Bounds {
			if served >= bound {
				queue++
			}
		}
		return []int64{queue, int64(j.became.Start), int64(j.Submit), int64(j.id)}
	}
	return []int64{-int64(j.Priority), int64(j.Submit), int64(j.id)}
}

// fit returns the first devices, by node and then by number, that can hold the
// gang, as if some runs were gone; nil where there are too few. A worker's devices
// are on one node. Devices that are being left may be promised.
func (s *sim) fit(j *job, without []*run) []int {
	var found []int
	for n := range s.Cluster.Nodes {
		var free []int
		for d := range s.Cluster.Devices {
			if int(s.Cluster.Devices[d].Node) == n && s.usable(d, j) && (s.holder[d] == nil || slices.Contains(without, s.holder[d])) {
				free = append(free, d)
			}
		}
		workers := min(len(free)/int(j.Devices), int(j.Gang)-len(found)/int(j.Devices))
		found = append(found, free[:workers*int(j.Devices)]...)
	}
	if len(found) < int(j.Gang*j.Devices) {
		return nil
	}
	return found
}

func (s *sim) usable(device int, j *job) bool {
	n := s.Cluster.Devices[device].Node
	return !s.down[n] && j.may(s.Cluster.Models[s.Cluster.Nodes[n].Model])
}

func (j *job) may(m cluster.Model) bool {
	return len(j.Models) == 0 || slices.Contains(j.Models, m.Name)
}

// alike says whether two jobs want the same devices.
func (s *sim) alike(a, b *job) bool {
	return a.Gang == b.Gang && a.Devices == b.Devices &&
		!slices.ContainsFunc(s.Cluster.Models, func(m cluster.Model) bool { return a.may(m) != b.may(m) })
}

// rate is the progress of a gang on these devices per tick: as fast as the slowest
// device, slower when it is spread over more nodes than it needs.
func (s *sim) rate(j *job, devices []int) float64 {
	speed, nodes, perNode := math.Inf(1), map[int32]bool{}, 0
	for _, d := range devices {
		n := s.Cluster.Devices[d].Node
		nodes[n] = true
		speed = min(speed, s.Cluster.Models[s.Cluster.Nodes[n].Model].Speed)
		perNode = max(perNode, int(s.Cluster.Nodes[n].Count))
	}
	extra := len(nodes) - (len(devices)+perNode-1)/perNode
	if extra > 0 {
		speed /= 1 + j.truth.Sensitivity*math.Log2(1+float64(extra))
	}
	return speed
}
