package stored

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Salvage puts pieces together that are of different moments, as a crash in the
// middle of writing them leaves them: what each job is and has attained, and its run
// where that occupies devices which are nobody else's. Promises and claims are not
// kept, they are decided again. The jobs whose runs could not be kept are returned.
func Salvage(c *cluster.Cluster, r Rest, pieces []Piece) (*plan.State, []plan.JobID, error) {
	for i := range pieces {
		r.Now = max(r.Now, pieces[i].Job.Since)
	}
	// What others use is told anew, and so may be which nodes are closed; runs that are
	// there are there, whatever their job may be confined to by now.
	for i := range r.OddDevices {
		if st := r.OddDevices[i].Status; st == plan.Reshaping || st == plan.Elsewhere {
			r.OddDevices[i].Status = plan.Steady
		}
		r.OddDevices[i].Change = 0
	}
	for i := range r.OddNodes {
		r.OddNodes[i].OtherCPU, r.OddNodes[i].OtherHost = 0, 0
		r.OddNodes[i].Trial.On = false // runs get other numbers
	}
	pieces = renumber(c, &r, pieces)
	s, err := begin(c, &r, pieces)
	if err != nil {
		return nil, nil, err
	}
	sets := s.NodeSets
	s.NodeSets = everywhere(len(sets), len(s.Nodes))
	closed := map[int]plan.NodeStatus{}
	for i := range s.Nodes {
		if st := s.Nodes[i].Status; st == plan.Cordoned || st == plan.Quarantined {
			closed[i] = st
			s.Nodes[i].Status = plan.Up
		}
	}
	s.Derive()
	for i := range s.Accounts {
		a := &s.Accounts[i]
		a.Used, a.Held, a.Since = s.View().Account(i).Used, 0, s.Now
	}
	var runs []Run
	for i := range pieces {
		for _, p := range pieces[i].Runs {
			if p.Run.Status != plan.Promised && p.Run.Status != plan.Gone {
				runs = append(runs, p)
			}
		}
		if j := &s.Jobs[pieces[i].ID]; j.Phase == plan.Active {
			j.Phase = plan.Waiting
		}
	}
	slices.SortFunc(runs, func(a, b Run) int {
		return cmp.Or(cmp.Compare(a.Run.Job, b.Run.Job), cmp.Compare(a.Run.Attempt, b.Run.Attempt))
	})
	var lost []plan.JobID
	for i := range runs {
		if !startAgain(s, &runs[i]) {
			lost = append(lost, runs[i].Run.Job)
		}
	}
	s.NodeSets = sets
	for i := range s.Nodes {
		if st, was := closed[i]; was {
			s.SetNode(plan.NodeID(i), st)
		}
	}
	settleBooks(s)
	return s, lost, s.Check()
}

// everywhere are sets of all nodes.
func everywhere(sets, nodes int) [][]uint64 {
	all := make([]uint64, (nodes+63)/64)
	for i := range all {
		all[i] = ^uint64(0)
	}
	list := make([][]uint64, sets)
	for i := range list {
		list[i] = all
	}
	return list
}

// startAgain makes a run anew as it was, and reports whether it could.
func startAgain(s *plan.State, p *Run) bool {
	was := s.Jobs[p.Run.Job]
	if was.Run != plan.None || was.Leaving != plan.None {
		return false
	}
	if p.Plan != nil {
		p.Run.Terms.Plan.ID = int32(len(s.Plans))
		s.Plans = append(s.Plans, *p.Plan)
	}
	j := &s.Jobs[p.Run.Job]
	j.Attempt, j.Phase = p.Run.Attempt-1, plan.Waiting
	shape := s.Shapes[j.Shape]
	d := s.Edit()
	run, why := d.Start(p.Run.Job, slotsOf(p.Grants, max(1, shape.Devices)), p.Run.Terms, was.Reason)
	if why.Code != plan.NoReason || len(d.Changes()) != 1 || len(d.Changes()[0].After) > 0 {
		d.Discard()
		s.Jobs[p.Run.Job] = was
		return false
	}
	d.Commit()
	s.Dispatch(run)
	if p.Run.Began != unit.Never {
		s.Began(run)
	}
	r := &s.Runs[run]
	r.Since, r.Began, r.Paused, r.Saved, r.Until, r.Kind = p.Run.Since, p.Run.Began, p.Run.Paused, p.Run.Saved, p.Run.Until, p.Run.Kind
	now := s.Jobs[p.Run.Job]
	s.Jobs[p.Run.Job] = was
	j = &s.Jobs[p.Run.Job]
	j.Run, j.Attempt, j.Phase, j.Admitted = now.Run, p.Run.Attempt, plan.Active, true
	if p.Run.Status == plan.Stopping {
		d := s.Edit()
		d.Stop(run, was.Reason, 0)
		d.Commit()
		j.Preemptions = was.Preemptions
	}
	return true
}

// slotsOf says on which devices the grants are, worker by worker.
func slotsOf(grants []Grant, perWorker int32) []plan.Slot {
	var slots []plan.Slot
	for i := range grants {
		g := &grants[i].Grant
		if g.Device == plan.None {
			slots = append(slots, plan.Slot{Node: g.Node, Device: plan.None, Workers: 1})
			continue
		}
		if n := len(slots); n == 0 || slots[n-1].Node != g.Node || slots[n-1].Reserve != g.Reserve {
			slots = append(slots, plan.Slot{Node: g.Node, Device: plan.None, Reserve: g.Reserve})
		}
		last := &slots[len(slots)-1]
		last.On = append(last.On, g.Device)
		last.Workers = int32(len(last.On)) / perWorker
	}
	return slots
}
