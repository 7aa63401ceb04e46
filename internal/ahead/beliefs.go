package ahead

import (
	"cmp"
	"io"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule/remaining"
)

// Beliefs is how long a job that has not ended runs in all, on the workers it asked
// for and without restarts; what it has done already is part of that.
type Beliefs func(v plan.View, job plan.JobID) unit.Duration

// Unheard is what a job is believed to run of which nothing at all is known.
const Unheard = unit.Hour

// kind is what jobs have in common whose running times are thought to be alike.
type kind struct{ class, tenant int32 }

// mean is of times.
type mean struct {
	sum  float64
	jobs int
}

func (m *mean) add(d unit.Duration) { m.sum, m.jobs = m.sum+float64(d), m.jobs+1 }

// value is 0 of nothing.
func (m *mean) value() unit.Duration {
	if m.jobs == 0 {
		return 0
	}
	return unit.Duration(m.sum / float64(m.jobs))
}

// Believed is what the engine itself believes at an instant: a job's estimate, or
// what its owner declared. A job without either is thought to run as long as the
// finished ones of its class and tenant did on average, or else as all finished ones,
// or else for an hour. One that has run longer than that is not about to end: what was
// believed is doubled until it is no longer too little, which is what the orders by
// size do, and the kind of correction of outlived predictions that Tsafrir, Etsion
// and Feitelson (Backfilling using system-generated predictions rather than user
// runtime estimates, 2007) found to matter more than the predictions themselves.
func Believed(v plan.View, now unit.Time) Beliefs {
	of := map[kind]mean{}
	var all mean
	for id := range plan.JobID(v.Jobs()) {
		j := v.Job(id)
		if j.Phase != plan.Finished {
			continue
		}
		k := kind{j.Class, j.Tenant}
		m := of[k]
		m.add(unit.Duration(done(v, id)))
		of[k] = m
		all.add(unit.Duration(done(v, id)))
	}
	return func(v plan.View, id plan.JobID) unit.Duration {
		j := v.Job(id)
		believed := j.Estimate
		if believed <= 0 {
			believed = j.Declared
		}
		if believed <= 0 {
			m := of[kind{j.Class, j.Tenant}]
			if m.jobs == 0 {
				m = all
			}
			if believed = Unheard; m.jobs > 0 {
				believed = max(1, m.value())
			}
		}
		passed := behind(v, id, now)
		total := outlived(believed, passed)
		if left, known := remaining.Reported(v, id, total); known {
			return passed + max(1, left)
		}
		return total
	}
}

// outlived doubles what was believed until it is not less than what has passed.
func outlived(believed, passed unit.Duration) unit.Duration {
	for believed < passed {
		believed *= 2
	}
	return believed
}

// behind is how much of its work a job has done at an instant, counted as if it had
// run on the workers it asked for throughout.
func behind(v plan.View, id plan.JobID, now unit.Time) unit.Duration {
	j, shape := v.Job(id), v.Shape(id)
	served := v.Service(id)
	passed := v.Executed(id)
	if j.Run != plan.None && v.Run(j.Run).Status == plan.Running {
		since := max(0, now.Sub(v.Now()))
		served += int64(since) * shape.Milli(v.Run(j.Run).Workers)
		passed += since
	}
	if gang := shape.Milli(shape.Gang); gang > 0 {
		return unit.Duration(served / gang)
	}
	return passed
}

// done is how much of its work ended runs of a job did and kept, likewise.
func done(v plan.View, id plan.JobID) float64 {
	j, shape := v.Job(id), v.Shape(id)
	gang := shape.Milli(shape.Gang)
	switch {
	case len(v.Menu(id)) > 0:
		return float64(j.Work)
	case gang == 0:
		return float64(j.Executed)
	case j.Service%gang == 0: // as it is for all that is not elastic: exact
		return float64(j.Service / gang)
	}
	return float64(j.Service) / float64(gang)
}

// Arrival is a job still to come, and what is true of it.
type Arrival struct {
	Job   workload.Job
	Truth workload.Truth
}

// Arriving makes sources of a list of jobs to come, in order of submission.
func Arriving(list []Arrival) func() simulated.Source {
	return func() simulated.Source { return &arriving{list, nil} }
}

// arriving is a list, and what comes after it.
type arriving struct {
	left []Arrival
	then simulated.Source
}

// Next yields the next job.
func (a *arriving) Next() (workload.Job, workload.Truth, error) {
	if len(a.left) == 0 {
		if a.then == nil {
			return workload.Job{}, workload.Truth{}, io.EOF
		}
		return a.then.Next()
	}
	next := a.left[0]
	a.left = a.left[1:]
	return next.Job, next.Truth, nil
}

// Returns are the lost nodes coming back, each when it is expected to; one that nobody counts on stays away.
func Returns(v plan.View) (later []simulated.Later) {
	for id := range plan.NodeID(v.Nodes()) {
		if v.Node(id).Status != plan.Down {
			continue
		}
		if back := v.Return(id, plan.UsualRepair); back != unit.Never {
			later = append(later, simulated.Later{At: back, Event: engine.Event{Kind: engine.NodeUp, Node: id}})
		}
	}
	slices.SortStableFunc(later, func(a, b simulated.Later) int { return cmp.Compare(a.At, b.At) })
	return later
}
