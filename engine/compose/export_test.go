package compose

import (
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// WatchChooser has chose told whom the victims part chooses to give way, and to whom.
func (s *Scheduler) WatchChooser(chose func(by plan.JobID, victims []plan.JobID)) {
	s.room.Chooser = watched{s.room.Chooser, chose}
}

type watched struct {
	victims.Chooser
	chose func(by plan.JobID, victims []plan.JobID)
}

func (w watched) Choose(in victims.Input, try func(chosen []int) bool) ([]int, bool) {
	chosen, ok := w.Chooser.Choose(in, try)
	if ok {
		var jobs []plan.JobID
		for _, i := range chosen {
			jobs = append(jobs, in.Candidates[i].Job)
		}
		w.chose(in.Need.Job, jobs)
	}
	return chosen, ok
}
