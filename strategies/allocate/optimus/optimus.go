// Package optimus divides the cluster by marginal gain (Optimus, Peng et al., EuroSys
// 2018; code yhpeng-git/Optimus; status read).
//
// How fast a job is with more workers, or more parameter servers, and how much it has
// left to do are predicted; every ten minutes each job first gets what it can run with,
// then the next task always goes where it saves most time per share of the resource it
// takes most of. Workers are spread evenly on the fewest nodes, small jobs first.
//
// Divide knows both forms, with parameter servers and with workers that reduce among
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

// Policy decides for all jobs at once.
type Policy struct {
	config Config
	legal  [][]int // by shape: sizes, of this decision
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
	divided, room := make([]Job, len(jobs)), Demand{}
	free := make([]int, v.Nodes())
	for n := range plan.NodeID(v.Nodes()) {
		if at := v.Node(n); at.Status == plan.Up {
			for d := at.First; d < at.First+plan.DeviceID(at.Count); d++ {
				if !v.Device(d).Status.Out() {
					free[n]++
				}
			}
			asset := &v.Cluster().Nodes[n]
			room = Demand{room[0] + float64(free[n]), room[1] + float64(asset.CPU), room[2] + float64(asset.Memory)}
		}
	}
	widest := make([]int32, v.Room().Models())
	for n := range plan.NodeID(v.Nodes()) {
		at := v.Node(n)
		widest[at.Model] = max(widest[at.Model], at.Count)
	}
	clear(p.legal)
	for i, id := range jobs {
		divided[i] = p.describe(v, id, widest)
	}
	tasks := Divide(divided, room)
	first := len(into)
	for i, id := range jobs {
		into = append(into, allocate.Wish{Job: id, Workers: int32(tasks[i].Workers), Reason: plan.Reason{Code: plan.RoundPlan}})
	}
	place(v, into[first:], free)
	return into, v.Now().Add(p.config.Interval)
}

// describe is a job as one gang; widest is the number of devices of the largest node of a model.
func (p *Policy) describe(v plan.View, id plan.JobID, widest []int32) Job {
	shape := v.Shape(id)
	left, known := v.Left(id)
	if !known {
		left = max(v.Work(id), p.config.Interval)
	}
	c := Job{Worker: Demand{float64(shape.Devices) * float64(shape.Share) / 1000, float64(shape.CPU), float64(shape.Host)}}
	c.Sizes = p.sizes(v, id)
	c.Left = func(workers, _ int) float64 {
		best := int64(0)
		for m := range int32(v.Room().Models()) {
			several := int32(workers)*max(1, shape.Devices) > widest[m]
			best = max(best, v.Rate(id, m, int32(workers), several))
		}
		if best == 0 {
			return math.Inf(1)
		}
		return left.Seconds() * plan.FullRate / float64(best)
	}
	return c
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
func place(v plan.View, wishes []allocate.Wish, free []int) {
	var order []int
	for i := range wishes {
		w, shape := &wishes[i], v.Shape(wishes[i].Job)
		if run := v.RunOf(w.Job); run != plan.None && workersOf(v, run) == w.Workers {
			v.GrantsOf(run, func(g plan.Grant) {
				if g.Device != plan.None {
					free[g.Node]--
				}
			})
		} else if w.Workers > 0 && shape.Devices > 0 && shape.Share == 1000 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wishes[a].Workers, wishes[b].Workers) })
	workers, ofModel := make([]int, len(free)), make([][]int, v.Room().Models())
	for n := range free {
		model := v.Node(plan.NodeID(n)).Model
		ofModel[model] = append(ofModel[model], n)
	}
	for _, i := range order {
		w := &wishes[i]
		perWorker := int(v.Shape(w.Job).Devices)
		best := int64(0)
		var chosen []int
		for m := range int32(v.Room().Models()) {
			clear(workers)
			sum := 0
			for _, n := range ofModel[m] {
				workers[n] = max(0, free[n]) / perWorker
				sum += workers[n]
			}
			if sum < int(w.Workers) {
				continue
			}
			on := divide.Spread(int(w.Workers), workers)
			if on == nil {
				continue
			}
			if r := v.Rate(w.Job, m, w.Workers, spans(on)); r > best {
				best, chosen = r, on
			}
		}
		for n, k := range chosen {
			if k > 0 {
				w.Slots = append(w.Slots, plan.Slot{Node: plan.NodeID(n), Device: plan.None, Workers: int32(k)})
				free[n] -= k * perWorker
			}
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
