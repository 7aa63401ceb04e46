// Package optimus divides the cluster by marginal gain (Optimus, Peng et al., EuroSys
// 2018; code yhpeng-git/Optimus; status read).
//
// How fast a job is with more workers, or more parameter servers, and how much it has
// left to do are predicted; every ten minutes each job first gets what it can run with,
// then the next task always goes where it saves most time per share of the resource it
// takes most of. Workers are spread evenly on the fewest nodes, small jobs first.
//
// A Division knows both forms, with parameter servers and with workers that reduce among
// themselves; a job under Policy is one gang whose menu says how fast it is, servers
// included, so there it is the second. The models and their fitting are in package
// profile/perf; what is left is the estimator's to say, and of a job without an estimate
// we take as much as it has done. Left out: the balance of parameters over servers and
// the hand-over of stragglers, which are the training loop's.
package optimus

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/divide"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "optimus", System: "Optimus", Step: "allocate", Part: allocate.JointPart, Status: "read",
	Source: "Peng et al., EuroSys 2018; yhpeng-git/Optimus",
	Idea:   "the next device to the job whose remaining time falls most per dominant resource",
	Goal:   "throughput", Challenges: []string{"C4"}, Needs: "rates by workers (menu), and how much is left",
	Live:  "resizes by checkpoint and restart",
	Inner: "the predicted time saved per dominant resource of the next task",
}

// Config is the rhythm.
type Config struct {
	// Interval is the time between two decisions.
	Interval unit.Duration `yaml:"interval" above:"0"`
}

// Default returns the published configuration.
func Default() Config { return Config{Interval: 10 * unit.Minute} }

// Policy decides for all jobs at once. What it keeps is memory that is used again.
type Policy struct {
	config   Config
	legal    [][]int // by shape: sizes, of this decision
	jobs     []Job
	about    []about // by job of these
	widest   []int32
	division Division
	laying
}

// about is what is to be known of a job to say how long it still takes.
type about struct {
	v     plan.View
	id    plan.JobID
	shape *plan.Shape
	left  unit.Duration
}

// laying is what it takes to find places.
type laying struct {
	order, free, workers []int
	ofModel              [][]int // nodes
	spread               [2]divide.Spreader
}

var (
	_ allocate.Joint  = (*Policy)(nil)
	_ allocate.Rhythm = (*Policy)(nil)
)

// New returns the policy; the configuration must be valid.
func New(c Config) *Policy { return &Policy{config: c} }

// Every is the interval.
func (p *Policy) Every() unit.Duration { return p.config.Interval }

// Wishes divides the devices anew. A running job whose number of workers stays keeps its
// place.
func (p *Policy) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	if len(jobs) == 0 {
		return into, unit.Never
	}
	room, free := Demand{}, append(p.free[:0], make([]int, v.Nodes())...)
	p.free = free
	p.widest = append(p.widest[:0], make([]int32, v.Room().Models())...)
	for n := range plan.NodeID(v.Nodes()) {
		at := v.Node(n)
		p.widest[at.Model] = max(p.widest[at.Model], at.Count)
		if at.Status == plan.Up {
			for d := at.First; d < at.First+plan.DeviceID(at.Count); d++ {
				if !v.Device(d).Status.Out() {
					free[n]++
				}
			}
			asset := &v.Cluster().Nodes[n]
			room = Demand{room[0] + float64(free[n]), room[1] + float64(asset.CPU), room[2] + float64(asset.Memory)}
		}
	}
	clear(p.legal)
	p.describe(v, jobs)
	tasks := p.division.Divide(p.jobs[:len(jobs)], room)
	for i, id := range jobs {
		into = append(into, allocate.Wish{Job: id, Workers: int32(tasks[i].Workers), Reason: plan.Reason{Code: plan.RoundPlan}})
	}
	p.place(v, into[len(into)-len(jobs):], free)
	return into, v.Now().Add(p.config.Interval)
}

// describe describes jobs, each as one gang.
func (p *Policy) describe(v plan.View, jobs []plan.JobID) {
	for i := len(p.jobs); i < len(jobs); i++ {
		p.about = append(p.about, about{})
		p.jobs = append(p.jobs, Job{Left: func(workers, _ int) float64 { return p.about[i].leftWith(workers, p.widest) }})
	}
	for i, id := range jobs {
		shape := v.Shape(id)
		left, known := v.Left(id)
		if !known {
			left = max(v.Work(id), p.config.Interval)
		}
		p.about[i] = about{v, id, shape, left}
		p.jobs[i].Worker = Demand{float64(shape.Devices) * float64(shape.Share) / 1000, float64(shape.CPU), float64(shape.Host)}
		p.jobs[i].Sizes = p.sizes(v, id)
	}
}

// leftWith is how long a job takes with so many workers; widest is the number of devices of the largest node of a model.
func (a *about) leftWith(workers int, widest []int32) float64 {
	best := int64(0)
	for m := range int32(a.v.Room().Models()) {
		several := int32(workers)*max(1, a.shape.Devices) > widest[m]
		best = max(best, a.v.Rate(a.id, m, int32(workers), several))
	}
	if best == 0 {
		return math.Inf(1)
	}
	return a.left.Seconds() * plan.FullRate / float64(best)
}

// sizes are the numbers of workers that a job may have: those of its shape.
func (p *Policy) sizes(v plan.View, id plan.JobID) []int {
	kind, _ := v.Kind(id)
	for int(kind) >= len(p.legal) {
		p.legal = append(p.legal, nil)
	}
	if p.legal[kind] == nil {
		shape := v.Shape(id)
		for n := int32(1); n <= shape.Most(); n++ {
			if shape.MayHave(n) {
				p.legal[kind] = append(p.legal[kind], int(n))
			}
		}
	}
	return p.legal[kind]
}

// place gives exact places: first those of running jobs of unchanged size, then, fewest
// workers first, on the model that is fastest for the job. What finds none is left to
// the composition's placer.
func (l *laying) place(v plan.View, wishes []allocate.Wish, free []int) {
	l.order = l.order[:0]
	for i := range wishes {
		w, shape := &wishes[i], v.Shape(wishes[i].Job)
		if run := v.RunOf(w.Job); run != plan.None && workersOf(v, run) == w.Workers {
			v.GrantsOf(run, func(g plan.Grant) {
				if g.Device != plan.None {
					free[g.Node]--
				}
			})
		} else if w.Workers > 0 && shape.Devices > 0 && shape.Share == 1000 {
			l.order = append(l.order, i)
		}
	}
	slices.SortStableFunc(l.order, func(a, b int) int { return cmp.Compare(wishes[a].Workers, wishes[b].Workers) })
	l.ofModel = slices.Grow(l.ofModel[:0], v.Room().Models())[:v.Room().Models()]
	for m := range l.ofModel {
		l.ofModel[m] = l.ofModel[m][:0]
	}
	for n := range free {
		model := v.Node(plan.NodeID(n)).Model
		l.ofModel[model] = append(l.ofModel[model], n)
	}
	l.workers = append(l.workers[:0], free...)
	for _, i := range l.order {
		l.placeOne(v, &wishes[i], free)
	}
}

// placeOne gives one job a place, if there is one.
func (l *laying) placeOne(v plan.View, w *allocate.Wish, free []int) {
	perWorker := int(v.Shape(w.Job).Devices)
	best := int64(0)
	var chosen []int
	for m := range int32(v.Room().Models()) {
		clear(l.workers)
		sum := 0
		for _, n := range l.ofModel[m] {
			l.workers[n] = max(0, free[n]) / perWorker
			sum += l.workers[n]
		}
		if sum < int(w.Workers) {
			continue
		}
		on := l.spread[0].Spread(int(w.Workers), l.workers)
		if r := v.Rate(w.Job, m, w.Workers, spans(on)); r > best {
			best, chosen = r, on
			l.spread[0], l.spread[1] = l.spread[1], l.spread[0] // the next is laid elsewhere
		}
	}
	for n, k := range chosen {
		if k > 0 {
			w.Slots = append(w.Slots, plan.Slot{Node: plan.NodeID(n), Device: plan.None, Workers: int32(k)})
			free[n] -= k * perWorker
		}
	}
}

func workersOf(v plan.View, run plan.RunID) int32 {
	_, workers := v.Works(run)
	return workers
}

func spans(on []int) bool {
	nodes := 0
	for _, k := range on {
		nodes += min(k, 1)
	}
	return nodes > 1
}
