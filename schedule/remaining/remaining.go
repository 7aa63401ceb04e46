// Package remaining is what the orders by size share: how much of a job is still
// to be done as far as anybody believes, and how far a job has come of which
// nothing is believed. Both are step functions of time or only ever get better,
// with the instant of the next step, as the contract of schedule.Order asks.
package remaining

import (
	"math/bits"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// Of is the running time that job id still needs on the workers it asked for,
// going by its estimate, and until when that is believed; known is false for a job
// without an estimate. An estimate that has been overrun was wrong, and the job is
// not about to end: the estimate is doubled as often as it takes. Without that a
// long job with a short estimate would stay first in rank to its end.
func Of(v plan.View, id plan.JobID) (left unit.Duration, until unit.Time, known bool) {
	believed, _, _ := v.Believed(id)
	if believed <= 0 {
		return 0, unit.Never, false
	}
	behind := Done(v, id)
	workers, computes := computing(v, id)
	// One that has done all it was to do and does not compute was stopped at that very
	// moment: it would be first in rank and have nothing left to run.
	for believed < behind || believed == behind && !computes {
		believed *= 2
	}
	left, until = believed-behind, unit.Never
	if computes {
		// One microsecond more: a job that ends as estimated is not doubted.
		until = v.Now().Add(scale(left, v.Shape(id).Gang, workers) + 1)
	}
	return left, until, true
}

// Outruns is when a job will have outrun its estimate, as it goes now: until then what View.Left says
// only falls. It is Never for one that does not compute, and where nothing is believed.
func Outruns(v plan.View, id plan.JobID) unit.Time {
	left, known := v.Left(id)
	if _, computes := computing(v, id); !known || !computes {
		return unit.Never
	}
	rate := v.Run(v.RunOf(id)).RateMicro
	if rate <= 0 {
		return unit.Never
	}
	takes := min(float64(left)*plan.FullRate/float64(rate), float64(unit.Forever))
	return v.Now().Add(unit.Duration(takes) + 1) // one that ends as estimated is not doubted
}

// Key ranks a job by its priority, then by whether it has an estimate, and then by the size
// of what is left of it, or of one without an estimate by its level; and says until when
// that holds. Of a running job what is left only shrinks until its estimate is overrun.
func Key(v plan.View, id plan.JobID, size func(left unit.Duration) int64) (schedule.Key, unit.Time) {
	priority := -int64(v.Job(id).Priority)
	left, until, known := Of(v, id)
	if !known {
		level, until := Level(v, id)
		return schedule.Key{priority, 1, level}, until
	}
	return schedule.Key{priority, 0, size(left)}, until
}

// Reported is how much is left of a job by what it reports of its progress, and by how
// long it is believed to run in all (0: nobody believes anything): by the report the more,
// the further the job says it is. Known is false where it reports nothing. People are told
// by it; no order by size rests on what a job says of itself. Who does by it, as elastic, says so.
func Reported(v plan.View, id plan.JobID, believed unit.Duration) (left unit.Duration, known bool) {
	part := min(1, float64(v.Job(id).Progress)/1e6)
	if part <= 0 {
		return 0, false
	}
	total := float64(Done(v, id)) / part
	if believed > 0 {
		total = part*total + (1-part)*float64(believed)
	}
	return unit.Duration((1 - part) * total), true
}

// firstLevel is the service up to which all unknown jobs are alike: one minute on
// one device, in the State's unit of service.
const firstLevel = 1000 * int64(unit.Minute)

// Level is the attained service of job id in steps of doubling, and until when it
// keeps that level. Steps rather than the service itself, so that two unknown jobs
// of like age do not displace each other back and forth.
func Level(v plan.View, id plan.JobID) (level int64, until unit.Time) {
	served := v.Service(id)
	level = int64(bits.Len64(uint64(served / firstLevel)))
	if workers, computes := computing(v, id); computes {
		if rate := v.Shape(id).Milli(workers); rate > 0 {
			next := firstLevel << level
			return level, v.Now().Add(unit.Duration((next - served + rate - 1) / rate))
		}
	}
	return level, unit.Never
}

// Done is the running time behind a job, counted as if it had run on the workers
// it asked for throughout: an elastic job gets on faster or slower with others.
func Done(v plan.View, id plan.JobID) unit.Duration {
	s := v.Shape(id)
	if gang := s.Milli(s.Gang); s.Elastic() && gang > 0 {
		return unit.Duration(v.Service(id) / gang)
	}
	return v.Executed(id)
}

// computing reports whether a job is making progress, and on how many workers.
func computing(v plan.View, id plan.JobID) (workers int32, computes bool) {
	_, _, run := v.Believed(id)
	if run == plan.None {
		return 0, false
	}
	status, workers := v.Works(run)
	return workers, status == plan.Running
}

// scale is what d on a gang takes on so many workers, rounded up.
func scale(d unit.Duration, gang, workers int32) unit.Duration {
	if gang == workers || workers <= 0 {
		return d
	}
	return (d*unit.Duration(gang) + unit.Duration(workers) - 1) / unit.Duration(workers)
}
