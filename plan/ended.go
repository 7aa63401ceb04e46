package plan

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// EndedRun is a run that has ended. It computed on so many thousandths of devices from Began until it was
// told to stop, which is Never where it ended by itself, and was gone some time after that. Kept is the running time whose work was kept.
type EndedRun struct {
	Job               JobID
	Milli             int64
	Began, Told, Gone unit.Time
	Kept              unit.Duration
}

// EndedRuns are those that ended lately, the latest last.
type EndedRuns []EndedRun

// manyEnded is from how many on those of jobs that are over are forgotten, after a day.
const manyEnded = 1 << 12

// Add adds a run that has ended, of which so much was kept.
func (e *EndedRuns) Add(s *State, r *Run, kept unit.Duration) {
	if r.Began == unit.Never {
		return
	}
	if n := len(*e); n >= manyEnded && n&(n-1) == 0 { // each time that there are twice as many
		*e = slices.DeleteFunc(slices.Clone(*e), func(x EndedRun) bool {
			j := &s.Jobs[x.Job]
			return j.Phase.Over() && s.Now.Sub(j.Ended) >= unit.Day
		})
	}
	*e = append(*e, EndedRun{r.Job, s.Shapes[s.Jobs[r.Job].Shape].Milli(r.Workers), r.Began, r.told(), s.Now, kept})
}

// told is when a run was told to stop, Never where it was not.
func (r *Run) told() unit.Time {
	if r.Status == Stopping {
		return r.Since
	}
	return unit.Never
}

// EndedSince reports whether a run has ended by itself after an instant, as far as the State remembers.
func EndedSince(v View, at unit.Time) bool {
	for _, x := range slices.Backward(v.s.Ended) {
		if x.Gone <= at {
			return false
		}
		if x.Told == unit.Never {
			return true
		}
	}
	return false
}

// ServedBefore adds up what each job had been served before an instant, in thousandths of a device times
// microseconds, into a list by job. Whenever it is asked later, the answer is the same: of a run that was gone by
// then its kept work counts, and else its time until then, whether it was suspended or not.
func ServedBefore(v View, at unit.Time, by []int64) []int64 {
	if more := len(v.s.Jobs) - len(by); more > 0 {
		by = append(by, make([]int64, more)...)
	}
	clear(by)
	for i := range v.s.Ended {
		x := &v.s.Ended[i]
		if x.Gone < at {
			by[x.Job] += int64(x.Kept) * x.Milli
		} else {
			by[x.Job] += int64(max(0, min(at, x.Told, x.Gone).Sub(x.Began))) * x.Milli
		}
	}
	for i := range v.s.Runs {
		if r := &v.s.Runs[i]; r.Status != Gone && r.Began < at {
			by[r.Job] += int64(min(at, r.told()).Sub(r.Began)) * v.s.Shapes[v.s.Jobs[r.Job].Shape].Milli(r.Workers)
		}
	}
	return by
}
