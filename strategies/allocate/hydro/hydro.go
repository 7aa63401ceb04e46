// Package hydro tunes many trials of one model as few fused runs (Hydro, Hu et al.,
// OSDI 2023). Trials of a tuning group train together on one device as long as its
// memory holds them, spread evenly over as many devices as are to spare; the target
// model starts when half of its group's trials have ended; and trials for which no
// device is to spare live in the bubbles of pipelined jobs, one on each device.
//
// Read: the planner and executor of the artefact, for the limit and the even split;
// recalled: eager transfer and interleaving. Kinds of trials share the devices that are
// to spare by their numbers (ours). In the bubbles the law of guests sees to it that a
// trial computes only while its stage waits. Fusing operators and scaling the width of
// the trials are the trainer's affair, which is why what fused trials cost is declared
// here. Left out: fusion counts in proportion to the speed of unlike devices, and moving
// trials between runs once they have begun, which would cost restarts.
package hydro

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "hydro", System: "Hydro", Step: "allocate", Part: allocate.JointPart, Status: "read",
	Source: "Hu et al., OSDI 2023; S-Lab-System-Group/Hydro",
	Idea:   "trials of a tuning group fused on few devices, the rest in the bubbles of pipelines",
	Acts:   []strategy.Act{strategy.Merge, strategy.Filler},
	Goal:   "throughput", Needs: "the tuning group, the base model and the memory of a trial",
	Live: "cannot, because no trainer here fuses the operators of several trials",
}

// Config says what fused trials take.
type Config struct {
	// Fusions are the base models whose memory was measured; of others a trial takes
	// what it declares.
	Fusions []Fusion `yaml:"fusions"`
	// MinBubble is the least part of a pipeline's time that stands idle for a trial to be
	// put there.
	MinBubble unit.Milli `yaml:"min-bubble" least:"1" most:"1000"`
}

// Fusion is what one trial of a base model takes on a device, and two fused ones.
type Fusion struct {
	Base   string   `yaml:"base"`
	OneMiB unit.MiB `yaml:"one-mib" above:"0"`
	TwoMiB unit.MiB `yaml:"two-mib"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{MinBubble: 100} }

// Validate says which fusion is none.
func (c Config) Validate() error {
	for i, f := range c.Fusions {
		if f.TwoMiB <= f.OneMiB {
			return fmt.Errorf("fusions[%d]: one trial takes %v and two %v: expected more", i, f.OneMiB, f.TwoMiB)
		}
	}
	return nil
}

// Decider is the strategy. Which trials are fused it reads from the State: those on one
// device.
type Decider struct{ config Config }

var _ allocate.Joint = (*Decider)(nil)

// New returns the strategy; the configuration must be valid.
func New(c Config) *Decider { return &Decider{config: c} }

// fused is trials that train together; where it runs the first is the host.
type fused struct {
	jobs   []plan.JobID
	device plan.DeviceID // None: not yet running
	host   plan.JobID    // the pipelined job in whose bubbles it lives; None
}

// round is one decision.
type round struct {
	*Decider
	v      plan.View
	spare  int32 // devices that nobody takes yet
	memory unit.MiB
	wishes []allocate.Wish
}

// Wishes gives everybody else what they ask for, first come, first served, and the
// trials what is to spare.
func (h *Decider) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	r := &round{Decider: h, v: v, wishes: into}
	for id := range plan.NodeID(v.Nodes()) {
		if n := v.Node(id); n.Status == plan.Up && n.Count > 0 {
			r.spare, r.memory = r.spare+n.Count, max(r.memory, unit.MiB(v.Device(n.First).Memory))
		}
	}
	var groups []string // of trials, by kind
	trials := map[string][]plan.JobID{}
	for _, id := range jobs {
		if p, shape := v.ProfileOf(id), v.Shape(id); p.Group == "" || shape.Gang*shape.Devices != 1 || shape.Share != 1000 {
			r.others(id)
		} else {
			key := p.Group + "\x00" + p.Base
			if trials[key] == nil {
				groups = append(groups, key)
			}
			trials[key] = append(trials[key], id)
		}
	}
	left := 0
	for _, key := range groups {
		left += len(trials[key])
		runs, _ := r.read(trials[key])
		r.spare -= int32(len(slices.DeleteFunc(runs, func(f *fused) bool { return f.host != plan.None })))
	}
	for _, key := range groups {
		r.tune(trials[key], left)
		left -= len(trials[key])
	}
	return r.wishes, unit.Never
}

// others lets a job run that is no trial; a target model only once half of the trials
// of its group have ended.
func (r *round) others(id plan.JobID) {
	shape := r.v.Shape(id)
	if group := r.v.ProfileOf(id).Group; group != "" && r.v.Job(id).Run == plan.None {
		ended, all := int32(0), int32(0)
		for o := range plan.JobID(r.v.Jobs()) {
			if s := r.v.Shape(o); r.v.ProfileOf(o).Group == group && s.Gang*s.Devices == 1 {
				if all++; r.v.Job(o).Phase == plan.Finished {
					ended++
				}
			}
		}
		if 2*ended < all {
			return
		}
	}
	if takes := shape.Gang * shape.Devices; takes <= r.spare {
		r.spare -= takes
	}
	r.wishes = append(r.wishes, allocate.Wish{Job: id, Workers: shape.Gang, Reason: plan.Reason{Code: plan.Fits, A: int64(shape.Milli(shape.Gang))}})
}

// tune gives the trials of one kind their places: those that run stay together, those
// that wait fill up fused runs evenly, new ones first where devices are to spare. Of
// those a kind has its part by the number of its trials, of all that are left to serve.
func (r *round) tune(trials []plan.JobID, left int) {
	runs, waiting := r.read(trials)
	limit := r.limit(trials[0])
	part := (int(max(r.spare, 0))*len(trials) + left - 1) / left
	sizes := split(len(trials), limit, len(runs)+part)
	for range min(len(sizes)-len(runs), part, len(waiting)) {
		runs = append(runs, &fused{device: plan.None, host: plan.None})
		r.spare--
	}
	for _, id := range waiting {
		var best *fused
		for _, f := range runs {
			if f.host == plan.None && len(f.jobs) < limit && (best == nil || len(f.jobs) < len(best.jobs)) {
				best = f
			}
		}
		if best == nil {
			if best = r.bubble(id, runs); best == nil {
				continue
			}
			runs = append(runs, best)
		}
		best.jobs = append(best.jobs, id)
	}
	for _, f := range runs {
		r.wish(f)
	}
}

// read puts together the trials that are on one device, the host first.
func (r *round) read(trials []plan.JobID) (runs []*fused, waiting []plan.JobID) {
	at := map[plan.DeviceID]*fused{}
	for _, id := range trials {
		run := r.v.Job(id).Run
		if run == plan.None {
			waiting = append(waiting, id)
			continue
		}
		device, host := plan.DeviceID(plan.None), r.v.Run(run).Terms.Share.Guest
		r.v.GrantsOf(run, func(g plan.Grant) { device = g.Device })
		f := at[device]
		if f == nil {
			f = &fused{device: device, host: plan.None}
			at[device], runs = f, append(runs, f)
		}
		if host != plan.None && r.v.ProfileOf(host).Stages > 1 && r.v.Job(host).Phase == plan.Active {
			f.host = host
		}
		if f.jobs = append(f.jobs, id); host == plan.None {
			last := len(f.jobs) - 1
			f.jobs[0], f.jobs[last] = f.jobs[last], f.jobs[0]
		}
	}
	return runs, waiting
}

func (r *round) limit(id plan.JobID) int {
	for _, f := range r.config.Fusions {
		if f.Base == r.v.ProfileOf(id).Base {
			return fuseLimit(r.memory, f.OneMiB, f.TwoMiB)
		}
	}
	declared := unit.MiB(r.v.Shape(id).Memory)
	return fuseLimit(r.memory, declared, 2*declared)
}

// wish says what a fused run's trials are to have: the first a device, the others to be
// its guests there once it is.
func (r *round) wish(f *fused) {
	for i, id := range f.jobs {
		w := allocate.Wish{Job: id, Workers: 1, Share: plan.NewShare(), Reason: plan.Reason{Code: plan.Fits, A: 1000}}
		if f.device != plan.None {
			w.Slots = []plan.Slot{{Node: r.v.Device(f.device).Node, Device: plan.None, Workers: 1, On: []plan.DeviceID{f.device}}}
		}
		switch {
		case f.host != plan.None:
			w.Share.Guest, w.Share.Ceiling = f.host, int32(bubbleOf(r.v, f.host))
			w.Reason = plan.Reason{Code: plan.Packed, A: int64(f.host)}
		case i > 0 && f.device == plan.None:
			continue // when its host is there
		case i > 0:
			w.Share.Guest, w.Share.Bond, w.Reason = f.jobs[0], plan.InOne, plan.Reason{Code: plan.Merged, A: int64(f.jobs[0])}
		}
		r.wishes = append(r.wishes, w)
	}
}

// bubble finds a device of a pipelined job without a guest, whose bubbles are worth it
// and where memory is left; nil where there is none.
func (r *round) bubble(id plan.JobID, runs []*fused) *fused {
	for d := range plan.DeviceID(r.v.Devices()) {
		host, left := plan.JobID(plan.None), r.v.Device(d).Memory-r.v.Shape(id).Memory
		r.v.GrantsOn(d, func(g plan.Grant) {
			run := r.v.Run(g.Run)
			left -= g.Persist + g.Peak
			switch {
			case run.Terms.Share.Guest != plan.None:
				left = -1 // it has one
			case run.Status == plan.Running && r.v.ProfileOf(run.Job).Stages > 1:
				host = run.Job
			}
		})
		taken := slices.ContainsFunc(runs, func(f *fused) bool { return f.device == d })
		if host != plan.None && !taken && left >= 0 && bubbleOf(r.v, host) >= r.config.MinBubble && r.v.Allows(r.v.Shape(id), r.v.Device(d).Node) {
			return &fused{device: d, host: host}
		}
	}
	return nil
}

// bubbleOf is the part of a pipelined job's devices' time that stands idle: by its
// predicted plan, else as 1F1B with even stages has it.
func bubbleOf(v plan.View, id plan.JobID) unit.Milli {
	p := v.ProfileOf(id)
	if run := v.Job(id).Run; run != plan.None && v.Run(run).Terms.Plan.ID != plan.None {
		if whole := v.Pipeline(v.Run(run).Terms.Plan.ID).Iteration; whole > 0 {
			work := unit.Duration(0)
			for _, l := range p.Layers {
				work += l.Forward + l.Backward
			}
			return unit.Milli(max(0, 1000-int64(work)*int64(p.Microbatches)*1000/(int64(whole)*int64(p.Stages))))
		}
	}
	return unit.Milli((p.Stages - 1) * 1000 / (p.Microbatches + p.Stages - 1))
}
