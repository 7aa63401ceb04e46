// Package easyscale grows elastic jobs by proposals (EasyScale; Li et al., SC 2023). A
// job has a fixed number of logical workers, and so the same results on any devices. A
// job that is new starts on its least number of devices; every round each running one
// proposes, for each kind of device, the addition that gains most speed by device, and
// the proposals are taken by their gain while devices last. Nothing is taken from jobs
// that run.
//
// Read: the artefact's simulator. Speed comes of the waste formula: logical workers lie
// on devices in proportion to their speeds, in whole numbers, and who has less to do
// waits. Ours (after): splits are scaled to the slowest kind that a job has, not that
// the cluster has; new jobs start on the fastest kind with room, where the artefact
// tries the slowest alone; and each restart costs time, where the artefact's countdown
// runs once in a job's life. Its baseline runs one job at a time in the whole cluster.
//
// Left out: several kinds of device in one job. A run of ours goes at the rate of its
// slowest device and a live job's workers get equal parts of a batch, so a job is on one
// model at a time; what is ours instead is that one that may use several proposes to move
// where that gains more.
package easyscale

import (
	"math/bits"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/divide"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "easyscale", System: "EasyScale", Step: "allocate", Part: allocate.JointPart, Status: "after",
	Source:     "Li et al., SC 2023; sUntvoOk/EasyScale_info_for_SC23",
	Idea:       "jobs of a fixed number of logical workers start small and grow by the proposals that gain most by device",
	Challenges: []string{"C4"}, Goal: "throughput",
	Needs: "rates by worker count and device model",
	Live: "through the trainer's elastic restart, on one model at a time, because workers get equal parts of a batch; " +
		"results do not depend on the count only where the job's own code sees to it",
	Inner: "the predicted gain in speed per device that a proposal adds",
}

// Config tunes the rounds.
type Config struct {
	// Every is the time between two rounds.
	Every unit.Duration `yaml:"every" above:"0"`
	// MaxWaste is the largest part of a job's devices that a proposal may waste.
	MaxWaste float64 `yaml:"max-waste" least:"0" most:"1"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Every: unit.Minute, MaxWaste: .3} }

// Policy is the strategy. What it keeps is memory that is used again.
type Policy struct {
	config           Config
	view             plan.View // of the decision, with its jobs
	jobs             []plan.JobID
	tenants          []Tenant // by job of these
	running, waiting []int
	proposals        []divide.Proposal
}

var (
	_ allocate.Joint  = (*Policy)(nil)
	_ allocate.Rhythm = (*Policy)(nil)
)

// New returns the policy; the configuration must be valid.
func New(c Config) *Policy { return &Policy{config: c} }

// Every is the time between two rounds.
func (p *Policy) Every() unit.Duration { return p.config.Every }

// Wishes leaves running jobs what they have, starts new ones and grows the others.
func (p *Policy) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	free, again := freeDevices(v), unit.Never
	p.begin(v, jobs)
	tenants := p.tenants[:len(jobs)]
	running, waiting := p.running[:0], p.waiting[:0]
	for i, id := range jobs {
		tenants[i].read(v, id)
		switch {
		case tenants[i].Most == 0: // takes no whole device: whatever room there is
			into = append(into, wish(id, v.Shape(id).Gang, 0))
		default:
			if _, n := tenants[i].on(); n > 0 {
				running = append(running, i)
			} else {
				waiting = append(waiting, i)
			}
		}
	}
	p.running, p.waiting = running, waiting
	proposals := p.proposals[:0]
	for _, i := range waiting {
		if kind, ok := start(&tenants[i], free); ok {
			tenants[i].gain(kind, tenants[i].Least)
			free[kind] -= tenants[i].Least
			again = v.Now().Add(p.config.Every)
		}
	}
	for _, i := range running {
		proposals = propose(i, &tenants[i], free, p.config.MaxWaste, proposals)
	}
	p.proposals = proposals
	for _, a := range divide.Accept(proposals, free) {
		tenants[a.Job].gain(a.Kind, a.Units)
		again = v.Now().Add(p.config.Every)
	}
	for _, list := range [][]int{running, waiting} {
		for _, i := range list {
			kind, n := tenants[i].on()
			into = append(into, wish(jobs[i], n/v.Shape(jobs[i]).Devices, 1<<kind))
		}
	}
	return into, again
}

func wish(id plan.JobID, workers int32, models uint64) allocate.Wish {
	return allocate.Wish{Job: id, Workers: workers, Models: models, Reason: plan.Reason{Code: plan.RoundPlan}}
}

// begin makes room for so many jobs, each with its own memory.
func (p *Policy) begin(v plan.View, jobs []plan.JobID) {
	models := v.Room().Models()
	if p.view, p.jobs = v, jobs; len(p.tenants) > 0 && len(p.tenants[0].Counts) != models {
		p.tenants = nil
	}
	for i := len(p.tenants); i < len(jobs); i++ {
		p.tenants = append(p.tenants, Tenant{Counts: make([]int32, models), Speed: func(kind int, devices int32) (speed, waste float64) {
			return speedOf(p.view, p.jobs[i], int32(kind), devices)
		}})
	}
}

// read describes a job in devices, by model: with as many logical workers as its own gang.
func (t *Tenant) read(v plan.View, id plan.JobID) {
	shape := v.Shape(id)
	clear(t.Counts)
	t.Kinds, t.Most, t.Least = shape.Models, 0, 0
	if shape.Devices == 0 || shape.Share < 1000 {
		return
	}
	t.Most, t.Least = shape.Gang*shape.Devices, shape.Gang*shape.Devices
	for _, n := range shape.Sizes {
		if n > 0 {
			t.Least = min(t.Least, n*shape.Devices)
		}
	}
	if run := v.RunOf(id); run != plan.None {
		_, workers := v.Works(run)
		model := int32(bits.TrailingZeros64(shape.Models))
		v.GrantsOf(run, func(g plan.Grant) { model = v.Node(g.Node).Model })
		t.Counts[model] = workers * shape.Devices
		t.Most = max(t.Most, t.Counts[model])
	}
}

// speedOf is the believed rate on devices of one model, less what is wasted while workers
// with fewer logical ones wait for those with more.
func speedOf(v plan.View, id plan.JobID, model, devices int32) (speed, waste float64) {
	shape := v.Shape(id)
	n := devices / shape.Devices
	if n == 0 || devices%shape.Devices != 0 || !shape.MayHave(n) {
		return 0, 0
	}
	split, _ := Best(shape.Gang, []float64{1}, []int32{n})
	return float64(v.Rate(id, model, n, false)) * (1 - split.Waste), split.Waste
}

// freeDevices counts the wholly free devices that runs may be on, by model.
func freeDevices(v plan.View) []int32 {
	free := make([]int32, v.Room().Models())
	for id := range plan.NodeID(v.Nodes()) {
		if n := v.Node(id); n.Status == plan.Up {
			free[n.Model] += n.FreeDevices
		}
	}
	return free
}
