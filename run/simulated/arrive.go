package simulated

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/mechanism/bound"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/world"
)

// arrival is the job that comes next.
type arrival struct {
	job   workload.Job
	truth workload.Truth
	done  bool
}

// mostExpected bounds the jobs for which there is room at once: more may never come.
const mostExpected = 2_000_000

// expect makes the tables that have a row for each job as long as they will be: to let them grow
// takes longer, and as much memory again.
func (s *Simulation) expect(jobs int) {
	jobs = min(jobs, mostExpected)
	s.engine.Expect(jobs)
	s.world.Expect(jobs, 0)
	s.spent, s.wait = slices.Grow(s.spent, jobs), slices.Grow(s.wait, jobs)
	if !s.config.NoBounds {
		s.rigid = slices.Grow(s.rigid, jobs)
	}
}

// read takes the next job from the source.
func (s *Simulation) read() error {
	job, truth, err := s.config.Jobs.Next()
	if errors.Is(err, io.EOF) {
		s.next.done = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading jobs: %w", err)
	}
	if s.config.From == nil {
		s.config.Prices.complete(&job)
	}
	s.next.job, s.next.truth = job, truth
	return nil
}

// arrivals submits the jobs that are due.
func (s *Simulation) arrivals(at unit.Time) error {
	for !s.next.done && s.next.job.Submit <= at {
		if len(s.next.job.After) > 0 && len(s.now) > 0 {
			return nil // what it comes after may be among these: they go first
		}
		s.specs = append(s.specs, s.next.job)
		job, truth := &s.specs[len(s.specs)-1], s.next.truth
		id, submit := plan.JobID(s.submitted), engine.Event{Kind: engine.Submit, Spec: job}
		if err := s.engine.Accept(&submit); err != nil {
			return fmt.Errorf("submission %d: %w", s.submitted+1, err)
		}
		s.submitted++
		s.world.Know(id, job.Class, world.Known{Truth: truth, Menu: s.menu(job, &truth), Phase: job.Phase, Layers: job.Pipeline.Layers})
		s.spent = append(s.spent, 0)
		s.wait = append(s.wait, true)
		s.waiting++
		if int(id) == len(s.rigid) && !s.config.NoBounds { // else those that were there before are missing, and there is no bound
			s.rigid = append(s.rigid, bound.Of(*job, truth))
		}
		s.measured(id, job)
		s.now = append(s.now, submit)
		if s.config.TellTruth {
			s.now = append(s.now, engine.Event{Kind: engine.Truth, Job: id, Span: truth.Duration})
		}
		if err := s.read(); err != nil {
			return err
		}
	}
	return nil
}

// menu is how fast a job truly goes on what: as its owner believes, where nothing else
// is known.
func (s *Simulation) menu(job *workload.Job, truth *workload.Truth) plan.Menu {
	if len(truth.Menu) > 0 {
		return plan.MenuOf(s.config.Cluster, truth.Menu)
	}
	return plan.MenuOf(s.config.Cluster, job.Menu)
}
