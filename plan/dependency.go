package plan

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/workload"
)

// Dependency says that After may start only once Before has ended, or it and the copies of an array that follow it.
type Dependency struct {
	Before, After JobID
	Copies        int32 // of the array that begins with Before; 0 is that job alone
	When          workload.When
	// Over is how many of them have ended, and Bad how many of these in another way than well.
	Over, Bad int32
}

// Of reports whether a job is among those that are waited for.
func (l *Dependency) Of(id JobID) bool { return l.Before <= id && id < l.Before+JobID(l.all()) }

func (l *Dependency) all() int32 { return max(1, l.Copies) }

// Count takes in that one of them is in a phase in which jobs end, or, by -1, that it is not after all.
func (l *Dependency) Count(phase Phase, by int32) {
	if !phase.Over() {
		return
	}
	if l.Over += by; phase != Finished {
		l.Bad += by
	}
}

// Fate is what has become of a Dependency.
type Fate uint8

// The fates of a Dependency.
const (
	Open   Fate = iota // it is not known yet
	Met                // After need not wait for them any more
	Broken             // nor that way, since it can never start
)

// Fate tells what has become of it by who has ended.
func (l *Dependency) Fate() Fate {
	switch {
	case l.Over < l.all() && (l.When != workload.Well || l.Bad == 0):
		return Open
	case l.When == workload.Any, (l.When == workload.Failed) == (l.Bad > 0):
		return Met
	}
	return Broken
}

// Ends is how a job ends of which this is broken: it is a failure that it cannot have what it needs, and none that
// nothing has failed that it was to mend.
func (l *Dependency) Ends() Phase {
	if l.When == workload.Failed {
		return Cancelled
	}
	return Failed
}

// Recount counts anew who of them has ended.
func (l *Dependency) Recount(jobs []Job) {
	l.Over, l.Bad = 0, 0
	for _, j := range l.among(jobs) {
		l.Count(j.Phase, 1)
	}
}

func (l *Dependency) among(jobs []Job) []Job { return jobs[l.Before:][:l.all()] }

// first is the first of them that has not ended.
func (l *Dependency) first(jobs []Job) JobID {
	return l.Before + JobID(slices.IndexFunc(l.among(jobs), func(j Job) bool { return !j.Phase.Over() }))
}

// CountLinks counts who has ended of those that others come after, where a State does not tell or is put together.
func CountLinks(s *State) error {
	for i := range s.Links {
		l := &s.Links[i]
		if l.Before < 0 || int(max(l.Before+JobID(l.all()), l.After+1)) > len(s.Jobs) {
			return fmt.Errorf("job %d comes after job %d and %d more, which are not there", l.After, l.Before, l.Copies)
		}
		l.Recount(s.Jobs)
	}
	return nil
}
