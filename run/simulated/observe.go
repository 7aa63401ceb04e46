package simulated

import (
	"math"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
)

// tellRate reports how fast a run is seen to go, and how long its stages take, where that is news: where it goes as the
// engine believes, a report would change nothing.
func (s *Simulation) tellRate(id plan.RunID) {
	l, rate := &s.runs[id], s.world.RateMicro(id)
	if off := rate - s.engine.View().Run(id).RateMicro; rate > 0 && (off > 1 || off < -1) {
		s.emit(engine.Event{Kind: engine.Observed, Job: l.job, Attempt: l.attempt, Observation: engine.Observation{RateMicro: rate, Busy: s.world.Busy(id), Progress: s.progress(id),
			Timed: s.timed(id)}})
	}
}

// timed is how long the stages of a run take, where it has measured layers, and what its workers and their links were
// probed for, where it goes by a plan.
func (s *Simulation) timed(id plan.RunID) (t engine.Timed) {
	v := s.engine.View()
	by := v.Run(id).Terms.Plan.ID
	if t.Stages = s.world.Stages(v, id); len(t.Stages) > 0 || by != plan.None && v.Pipeline(by).JSON != nil {
		t.Slow, t.Links = s.world.Slowness(v, id), s.world.LinkSlowness(v, id)
	}
	return t
}

// stands notes since when a run computes at no rate: it is told when that has lasted.
func (s *Simulation) stands(at unit.Time, id plan.RunID) {
	l := &s.runs[id]
	stood := l.stands
	if l.stands = l.works() && s.world.RateMicro(id) == 0; l.stands && !stood {
		l.stood = at
		s.queueUp(at.Add(run.Standing), entry{kind: runStands, run: id, job: l.job, version: l.version})
	}
}

// tellStanding reports that a run stands, if it has since this was to be told.
func (s *Simulation) tellStanding(at unit.Time, id plan.RunID) {
	if l := &s.runs[id]; l.stands && l.stood.Add(run.Standing) == at && s.engine.View().Run(id).RateMicro > 0 {
		s.emit(engine.Event{Kind: engine.Observed, Job: l.job, Attempt: l.attempt, Observation: engine.Observation{Stood: at.Sub(l.stood), Progress: s.progress(id)}})
	}
}

// observeLater lets a run report in due time.
func (s *Simulation) observeLater(at unit.Time, id plan.RunID) {
	l := &s.runs[id]
	if s.config.ObserveEvery > 0 {
		s.queueUp(at.Add(s.config.ObserveEvery), entry{kind: runObserved, run: id, job: l.job, version: l.version})
	}
}

// observe reports how far a job has come, and its loss there if it has a curve, unless its
// run is suspended: then there is nothing new.
func (s *Simulation) observe(at unit.Time, id plan.RunID) {
	l := &s.runs[id]
	if l.status == plan.Running {
		s.rerated(at, id)
		seen := engine.Observation{Progress: s.progress(id)}
		if curve := s.world.Known(l.job).Loss; curve != [3]float64{} {
			seen.Loss = lossAt(curve, float64(seen.Progress)/1e4)
		}
		s.emit(engine.Event{Kind: engine.Observed, Job: l.job, Attempt: l.attempt, Observation: seen})
	}
	s.observeLater(at, id)
}

// lossAt is a loss curve when so many percent of the work are done.
func lossAt(c [3]float64, percent float64) float64 { return 1/(c[0]*percent+c[1]) + c[2] }

// rerated brings what a run has done up to now; from now on it goes at its present rate.
func (s *Simulation) rerated(at unit.Time, id plan.RunID) {
	l := &s.runs[id]
	l.done += float64(at.Sub(l.doneAt)) * float64(l.rateMicro) / plan.FullRate
	l.doneAt, l.rateMicro = at, 0
	if l.works() {
		l.rateMicro = s.world.RateMicro(id)
	}
}

// progress is the part of a job's work that it says is done, in millionths, as of the last time
// that its run was looked at; 0 where nobody reports.
func (s *Simulation) progress(id plan.RunID) int32 {
	known := s.world.Known(s.runs[id].job)
	if s.config.ObserveEvery <= 0 || known.Duration <= 0 {
		return 0
	}
	done := min(1, (known.Done+s.runs[id].done)/float64(known.Duration))
	if s.config.Says != nil {
		done = min(1, s.config.Says(s.runs[id].job, done))
	}
	return int32(math.Round(1e6 * done))
}

// resumeReports lets runs that were there before report from now on: when they last did
// is not known.
func (s *Simulation) resumeReports(at unit.Time, runs []plan.RunID) {
	for _, id := range runs {
		l := &s.runs[id]
		l.done, l.doneAt = float64(l.before)*float64(s.world.RateMicro(id))/plan.FullRate, at
		s.observeLater(at, id)
	}
}

// over reports whether a job's end was told: of one that is ended although work is left
// it is once its run has stopped.
func over(v plan.View, id plan.JobID) bool {
	j := v.Job(id)
	return j.Phase.Over() && !(j.Phase == plan.Finished && j.Reason.Code == plan.Shed && j.Leaving != plan.None)
}
