package plan

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
)

// Salvage puts pieces together that are of different moments, as a crash in the
// middle of writing them leaves them: what each job is and has attained, and its run
// where that occupies devices which are nobody else's. Promises and claims are not
// kept, they are decided again. The jobs whose runs could not be kept are returned.
func Salvage(c *cluster.Cluster, r Rest, pieces []Piece) (*State, []JobID, error) {
	for i := range pieces {
		r.Now = max(r.Now, pieces[i].Job.Since)
	}
	// What others use is told anew, and so may be which nodes are closed; runs that are
	// there are there, whatever their job may be confined to by now.
	for i := range r.OddDevices {
		if st := r.OddDevices[i].Status; st == Reshaping || st == Elsewhere {
			r.OddDevices[i].Status = Steady
		}
		r.OddDevices[i].Change = 0
	}
	for i := range r.OddNodes {
		r.OddNodes[i].OtherCPU, r.OddNodes[i].OtherHost = 0, 0
	}
	pieces = renumber(c, &r, pieces)
	s, err := begin(c, &r, pieces)
	if err != nil {
		return nil, nil, err
	}
	sets := s.NodeSets
	s.NodeSets = everywhere(len(sets), len(s.Nodes))
	closed := map[int]NodeStatus{}
	for i := range s.Nodes {
		if st := s.Nodes[i].Status; st == Cordoned || st == Quarantined {
			closed[i] = st
			s.Nodes[i].Status = Up
		}
	}
	s.derive()
	for i := range s.Accounts {
		a := &s.Accounts[i]
		a.Used, a.Held, a.Since = a.used(s.Now), 0, s.Now
	}
	var runs []PieceOfRun
	for i := range pieces {
		for _, p := range pieces[i].Runs {
			if p.Run.Status != Promised && p.Run.Status != Gone {
				runs = append(runs, p)
			}
		}
		if j := &s.Jobs[pieces[i].ID]; j.Phase == Active {
			j.Phase = Waiting
		}
	}
	slices.SortFunc(runs, func(a, b PieceOfRun) int {
		return cmp.Or(cmp.Compare(a.Run.Job, b.Run.Job), cmp.Compare(a.Run.Attempt, b.Run.Attempt))
	})
	var lost []JobID
	for i := range runs {
		if !s.startAgain(&runs[i]) {
			lost = append(lost, runs[i].Run.Job)
		}
	}
	s.NodeSets = sets
	for i := range s.Nodes {
		if st, was := closed[i]; was {
			s.SetNode(NodeID(i), st)
		}
	}
	s.settleBooks()
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
func (s *State) startAgain(p *PieceOfRun) bool {
	was := s.Jobs[p.Run.Job]
	if was.Run != None || was.Leaving != None {
		return false
	}
	if p.Plan != nil {
		p.Run.Terms.Plan.ID = int32(len(s.Plans))
		s.Plans = append(s.Plans, *p.Plan)
	}
	j := &s.Jobs[p.Run.Job]
	j.Attempt, j.Phase = p.Run.Attempt-1, Waiting
	shape := s.Shapes[j.Shape]
	d := s.Edit()
	run, why := d.Start(p.Run.Job, slotsOf(p.Grants, max(1, shape.Devices)), p.Run.Terms, was.Reason)
	if why.Code != NoReason || len(d.Changes()) != 1 || len(d.Changes()[0].After) > 0 {
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
	j.Run, j.Attempt, j.Phase, j.Admitted = now.Run, p.Run.Attempt, Active, true
	if p.Run.Status == Stopping {
		d := s.Edit()
		d.Stop(run, was.Reason, 0)
		d.Commit()
		j.Preemptions = was.Preemptions
	}
	return true
}

// slotsOf says on which devices the grants are, worker by worker.
func slotsOf(grants []PieceOfGrant, perWorker int32) []Slot {
	var slots []Slot
	for i := range grants {
		g := &grants[i].Grant
		if g.Device == None {
			slots = append(slots, Slot{Node: g.Node, Device: None, Workers: 1})
			continue
		}
		if n := len(slots); n == 0 || slots[n-1].Node != g.Node || slots[n-1].Reserve != g.Reserve {
			slots = append(slots, Slot{Node: g.Node, Device: None, Reserve: g.Reserve})
		}
		last := &slots[len(slots)-1]
		last.On = append(last.On, g.Device)
		last.Workers = int32(len(last.On)) / perWorker
	}
	return slots
}
