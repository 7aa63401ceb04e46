package liquid

import (
	"math/bits"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// BatchDescription is what batch mode says about itself.
var BatchDescription = strategy.Description{
	Name: "liquid-batch", System: "Liquid", Step: "allocate", Part: allocate.JointPart, Status: "after",
	Source:     "Gu et al., TPDS 2022; PasaLab/Liquid",
	Idea:       "all waiting jobs at once, by a genetic search over where their tasks are",
	Challenges: []string{"C6"}, Goal: "throughput",
	Needs: "which ranks are parameter servers, and the bandwidth of a worker; without them all talk to all",
	Live:  "as simulated; racks are from the topology labels of Kubernetes' nodes, and this machine is one",
	Inner: "network cost: the traffic of the tasks over the distance between their nodes",
}

// BatchConfig tunes batch mode.
type BatchConfig struct {
	// RacksPerDomain is how many racks, by id, make a domain; 0 makes all racks one.
	RacksPerDomain int32 `yaml:"racks-per-domain" least:"0"`
	// Every is the time between two batches.
	Every unit.Duration `yaml:"every" above:"0"`
	// Work bounds the search: how many sites it looks at, for tasks to put there. The
	// default takes about 10 ms.
	Work int `yaml:"work" least:"0"`
	// Seed draws the search.
	Seed uint64 `yaml:"seed"`
}

// DefaultBatch returns the configuration used where none is given.
func DefaultBatch() BatchConfig {
	return BatchConfig{Every: 15 * unit.Second, Work: 200_000, Seed: 1}
}

func (c BatchConfig) network() Config { return Config{RacksPerDomain: c.RacksPerDomain} }

// BatchPolicy is batch mode: running jobs keep what they have, and of those that wait,
// in order, as many as there is room for, and as their queues let run, are placed together.
type BatchPolicy struct{ config BatchConfig }

var (
	_ allocate.Joint     = (*BatchPolicy)(nil)
	_ allocate.Rhythm    = (*BatchPolicy)(nil)
	_ allocate.Gathering = (*BatchPolicy)(nil)
)

// NewBatch returns the policy; the configuration must be valid.
func NewBatch(c BatchConfig) *BatchPolicy { return &BatchPolicy{config: c} }

// Every is the time between two batches.
func (p *BatchPolicy) Every() unit.Duration { return p.config.Every }

// Gathers says that jobs wait for their batch.
func (p *BatchPolicy) Gathers() {}

// Wishes keeps what runs and places what waits.
func (p *BatchPolicy) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	room := int32(0)
	for id := range plan.NodeID(v.Nodes()) {
		if n := v.Node(id); n.Status == plan.Up {
			room += n.FreeDevices
		}
	}
	held := v.Ledgers().Held()
	var gangs []Gang
	var batched []plan.JobID
	var rest []allocate.Wish
	for _, id := range jobs {
		j, shape := v.Job(id), v.Shape(id)
		w := allocate.Wish{Job: id, Workers: shape.Gang, Reason: plan.Reason{Code: plan.RoundPlan}}
		switch {
		case j.Run != plan.None:
			w.Workers = v.Run(j.Run).Workers
			into = append(into, w)
		case shape.Devices != 1 || shape.Share < 1000: // the composition's placer
			rest = append(rest, w)
		case shape.Gang <= room && countRunning(v, &held, id, shape):
			room -= shape.Gang
			gangs = append(gangs, gangOf(v, allocate.Need{Job: id, Workers: shape.Gang}))
			batched = append(batched, id)
		}
	}
	places, _, _ := Batch(sitesFor(v, batched, p.config.network()), gangs, published, p.config.Work, p.config.Seed)
	for i, id := range batched {
		w := allocate.Wish{Job: id, Workers: gangs[i].Tasks, Reason: plan.Reason{Code: plan.RoundPlan}}
		if places != nil {
			w.Slots = slotsOf(v, id, places[i])
		}
		into = append(into, w)
	}
	return append(into, rest...), unit.Never
}

// countRunning counts a job as running, if its queue lets it run, and reports whether it does.
func countRunning(v plan.View, held *queue.Ledger, id plan.JobID, shape *plan.Shape) bool {
	models, _ := v.MayTake(held, id, shape.Models, shape.Milli(shape.Gang))
	if models == 0 {
		return false
	}
	j := v.Job(id)
	held.Use(held.Leaf(v.QueueOf(j.Tenant)), j.User, int32(bits.TrailingZeros64(models)), shape.Milli(shape.Gang))
	return true
}

// sitesFor are the nodes with as much room as there is for a worker of each of the jobs.
func sitesFor(v plan.View, jobs []plan.JobID, c Config) []Site {
	sites := make([]Site, v.Nodes())
	for i := range sites {
		for k, id := range jobs {
			if s := siteOf(v, plan.NodeID(i), v.Shape(id), c); k == 0 || s.Room < sites[i].Room {
				sites[i] = s
			}
		}
	}
	return sites
}

// slotsOf turns the sites of tasks, in the order of their ranks, into slots; none if a
// node would not hold the job's part of it.
func slotsOf(v plan.View, id plan.JobID, where []int32) (slots []plan.Slot) {
	at := map[int32]int{}
	for _, site := range where {
		i, known := at[site]
		if !known {
			i = len(slots)
			at[site] = i
			slots = append(slots, plan.Slot{Node: plan.NodeID(site), Device: plan.None})
		}
		slots[i].Workers++
	}
	for _, s := range slots {
		if v.Holds(s.Node, v.Shape(id)) < s.Workers {
			return nil
		}
	}
	return slots
}
