package stand

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// item is a job with its truth.
type item struct {
	workload.Job
	workload.Truth
}

// come draws when the jobs come, so that in that time devices have a load of their total of
// device-seconds.
func come(all []item, r *rand.Rand, total float64, devices int, load float64) {
	for i := range all {
		all[i].Submit = unit.Time(0).Add(unit.Seconds(r.Float64() * total / float64(devices) / load))
	}
}

// list puts jobs in order of submission, names them and hands them out.
func list(all []item) *List {
	slices.SortStableFunc(all, func(a, b item) int { return cmp.Compare(a.Submit, b.Submit) })
	l := &List{}
	for i := range all {
		all[i].Name = fmt.Sprint("job", i)
		l.Add(all[i].Job, all[i].Truth)
	}
	return l
}

// progress follows what every job has done. Between two steps of the engine a job does
// its work at one rate, so what it has done at any instant is known exactly.
type progress struct {
	at   unit.Time
	done []float64 // by job, s of its true running time
}

// step takes in how far the jobs are now and tells of each that has done something since.
func (p *progress) step(at unit.Time, v plan.View, tell func(job plan.JobID, since unit.Time, before, now float64)) {
	for id := range plan.JobID(v.Jobs()) {
		if int(id) >= len(p.done) {
			p.done = append(p.done, 0)
		}
		if now := v.Work(id).Seconds(); now > p.done[id] {
			tell(id, p.at, p.done[id], now)
			p.done[id] = now
		}
	}
	p.at = at
}
