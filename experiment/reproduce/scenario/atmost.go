package scenario

import (
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/solve"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
)

// errand is what one job asks of the day.
type errand struct {
	*item
	from unit.Time     // when it comes, from midnight
	left unit.Duration // of its true duration
}

// errands is the work at hand: what is left of what the week before left behind, and the
// day's own.
func (w *Warm) errands(sim *simulated.Simulation) (backlog, own []errand) {
	v := w.state.View()
	for id := range plan.JobID(v.Jobs()) {
		if !v.Job(id).Phase.Over() {
			backlog = append(backlog, errand{w.items[v.Name(id)], 0, sim.Left(id)})
		}
	}
	for i := range w.mix.day {
		it := &w.mix.day[i]
		own = append(own, errand{it, it.job.Submit, it.truth.Duration})
	}
	return backlog, own
}

// atMost is the largest part of the day's device time that the work at hand can keep
// busy, by a linear program: each job on no more devices than it ever takes, from when it
// comes to midnight, until its work is done or it fails; each device held by one job at
// a time, beside guests and services, which take no room in it. Work that has to be done
// twice comes on top of it. The duty of the work is by device time, of which each job has
// what it would take by midnight on the first model that it runs on.
func (w *Warm) atMost(jobs []errand) (part, duty float64, err error) {
	p := solve.Problem{Maximise: true}
	room := make([][]solve.Term, len(w.cluster.Models))
	whole, busy := 0.0, 0.0
	for _, j := range jobs {
		span := unit.Day - unit.Duration(j.from)
		work := j.left.Seconds()
		if j.kind == replica {
			span, work = min(span, j.truth.Duration), solve.Inf // it is there until it is ended
		} else if j.truth.FailAfter > 0 {
			span = min(span, j.truth.FailAfter)
		}
		most := max(j.job.Gang, slices.Max(append(j.job.Sizes, 0)))
		held := span.Seconds() * float64(most)
		var time, done []solve.Term
		for m := range w.cluster.Models {
			each := j.least(w, int32(m), most)
			if each == 0 || held <= 0 || work <= 0 {
				continue
			}
			if len(time) == 0 {
				whole, busy = whole+min(held, work/each), busy+j.duty()*min(held, work/each)
			}
			x := p.Var(0, min(held, work/each), j.duty())
			time, done = append(time, solve.Term{Var: x, Coef: 1}), append(done, solve.Term{Var: x, Coef: each})
			if !j.job.Opportunistic && j.kind != replica {
				room[m] = append(room[m], solve.Term{Var: x, Coef: 1})
			}
		}
		if len(time) > 1 {
			p.Row(-solve.Inf, held, time...)
			if !math.IsInf(work, 1) {
				p.Row(-solve.Inf, work, done...)
			}
		}
	}
	for m, n := range w.devices() {
		p.Row(-solve.Inf, n*unit.Day.Seconds(), room[m]...)
	}
	s, err := solve.Solve(&p, solve.Budget{})
	if err != nil || s.Status != solve.Optimal {
		return 0, 0, fmt.Errorf("what the day's work allows: %v, %w", s.Status, err)
	}
	return min(1, s.Objective/(float64(len(w.cluster.Devices))*unit.Day.Seconds())), busy / max(1, whole), nil
}

// least is the progress per second of one device of a model where a job makes least of
// it, and so keeps devices busy longest; 0 where it does not run there.
func (it *item) least(w *Warm, model, most int32) float64 {
	j := &it.job
	if len(j.Models) > 0 && !slices.Contains(j.Models, w.cluster.Models[model].Name) {
		return 0
	}
	if len(it.menu) == 0 {
		return it.each(w.cluster, model, j.Gang, int(j.Gang)) // on a node for each worker
	}
	least := math.Inf(1)
	for n := int32(1); n <= most; n++ {
		for nodes := 1; nodes <= 2; nodes++ {
			if each := it.each(w.cluster, model, n, nodes); each > 0 && (n == j.Gang || slices.Contains(j.Sizes, n)) {
				least = min(least, each)
			}
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}
