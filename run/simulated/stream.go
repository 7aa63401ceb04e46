package simulated

import (
	"github.com/musterdl/muster/allocate/switching"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// groups are those in which the layers of a run are brought; nil where it is not streamed.
func groups(v plan.View, id plan.RunID) []int32 {
	if p := v.Run(id).Terms.Plan.ID; p != plan.None {
		return v.Pipeline(p).Groups
	}
	return nil
}

// setUp is what starting a run takes: its process and what it has saved, which processes need not that are
// kept and hold it; of
// one that is streamed, where a process stands by, what of its transfer does not hide
// behind its first pass.
func (s *Simulation) setUp(v plan.View, run plan.RunID) unit.Duration {
	id, p := v.Run(run).Job, &s.config.Prices
	j, ends := v.Job(id), groups(v, run)
	if v.Run(run).Terms.Plan.Keeps > 0 {
		if copies, all := s.world.Keeps(v, run); all {
			return p.Start + copies // nobody has measured apart what finding each other takes of a start
		}
	}
	if ends == nil {
		if j.Attempt > 1 {
			return p.Start + j.Checkpoint.Load
		}
		return p.Start
	}
	if p.HostGBps <= 0 {
		return 0
	}
	layers := switching.Layers(v, id)
	for i, l := range s.world.Layers(v, id) {
		layers[i].Compute = l.Forward // as it truly is
	}
	link := switching.Link{Fixed: p.Transfer, BytesPerSec: p.HostGBps * 1e9}
	path, of := switching.Path{Links: []switching.Link{link}, Sync: p.HandOver}, []int{}
	for _, end := range ends {
		of = append(of, int(end))
	}
	return path.Overhead(layers, of)
}

// saving is what a run that is asked to save takes to do so before it leaves, and whether it does: one that is
// streamed does it to host memory, and a service has nothing to save.
func (s *Simulation) saving(v plan.View, id plan.RunID) (takes unit.Duration, saves bool) {
	job, p := v.Run(id).Job, &s.config.Prices
	c := v.Job(job).Checkpoint
	switch truth := s.world.Known(job).Truth; {
	case !c.Asked():
		return 0, false
	case groups(v, id) == nil:
		return max(c.Save, truth.Saving), !truth.Deaf
	case p.HostGBps <= 0 || v.ProfileOf(job).RatePerSecMilli > 0:
		return p.Leave, true
	}
	return p.Leave + switching.Link{Fixed: p.Transfer, BytesPerSec: p.HostGBps * 1e9}.Time(switching.Persistent(v, job)), true
}
