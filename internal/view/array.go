package view

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/musterdl/muster/plan"
)

// mostToCome are the phases, the one first of which most is to come.
var mostToCome = [...]plan.Phase{plan.Active, plan.Waiting, plan.Backoff, plan.Blocked, plan.Held, plan.Failed, plan.Refused, plan.Cancelled, plan.Finished}

// standings says how many stand how: phases first, what is over before what goes on, then how runs stand.
func standings(count map[string]int) (words []string) {
	say := func(state string) {
		if n := count[state]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, state))
		}
	}
	for _, p := range slices.Backward(mostToCome[:]) {
		say(p.String())
	}
	for s := range plan.Gone {
		say(s.String())
	}
	return words
}

// MakeArray turns the description of one copy of an array into that of the array of this
// name. Its phase is that of the copy with most to come: it is over when all are, and
// finished when all did.
func MakeArray(j *Job, v plan.View, ids iter.Seq[plan.JobID], name string) {
	speaker := j.Name
	j.Copies, j.ID = map[string]int{}, 0
	j.Course, j.Due = Course{}, nil // each copy has its own
	counts, states := map[plan.Phase]int{}, map[string]int{}
	n := 0
	started, ended := plan.JobID(plan.None), plan.JobID(plan.None)
	for id := range ids {
		c := v.Job(id)
		if n++; n == 1 {
			j.ID = int32(id)
		}
		counts[c.Phase]++
		states[v.Standing(id)]++
		j.Restarts, j.Preemptions = j.Restarts+c.Restarts, j.Preemptions+c.Preemptions
		if c.Phase == plan.Finished {
			j.Progress++
		} else {
			j.Progress += float64(c.Progress) / 1e6
		}
		if started == plan.None || c.Started < v.Job(started).Started {
			started = id
		}
		if ended == plan.None || c.Ended > v.Job(ended).Ended {
			ended = id
		}
	}
	j.Progress /= float64(n)
	phase := plan.Finished
	for _, p := range slices.Backward(mostToCome[:]) {
		if k := counts[p]; k > 0 {
			j.Copies[p.String()], phase = k, p
		}
	}
	words := standings(states)
	until := v.Now()
	if phase.Over() {
		until = v.Job(ended).Ended
		j.Ended = instant(until)
	}
	first, submitted := v.Job(started).Started, v.Job(started).Submit
	if j.Started = instant(first); first > until { // none has
		first = until
	}
	j.WaitedSec, j.RanSec = first.Sub(submitted).Seconds(), until.Sub(first).Seconds()
	if phase != plan.Finished {
		words = append(words, speaker+" "+j.State()+": "+j.Reason)
	}
	j.Never = j.Never && counts[plan.Active]+counts[plan.Backoff]+counts[plan.Held] == 0 // those may go on
	j.Name, j.Phase, j.Run, j.Where = name, phase.String(), "", nil
	j.Reason = strings.Join(words, ", ")
}
