package bubbles

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Work is what is believed of a job on a device: its class, the part of the time that it keeps the device
// busy, what its plan leaves, and as a guest its law.
type Work struct {
	Class string
	Busy  float64
	Spare workload.Spare
	Law   string
}

// Busy is how busy runs were seen to keep their devices.
type Busy struct{ seen []kept } // by job, ascending

// kept is how busy the run of an attempt kept them.
type kept struct {
	job     plan.JobID
	attempt int32
	busy    unit.Milli
}

// Of is what is believed of a job, by the run that it has or, for none, as it would run: as it was seen, else
// as its owner and its menu say. Who says nothing is always busy.
func (b *Busy) Of(v plan.View, job plan.JobID, run plan.RunID) Work {
	p := v.ProfileOf(job)
	w := Work{Class: v.Class(v.Job(job).Class), Busy: 1, Law: cmp.Or(p.Law, control.ForGuests)}
	if whole := p.Compute + p.Communicate; p.Compute > 0 && whole > 0 {
		w.Busy = float64(p.Compute) / float64(whole)
	}
	if run == plan.None {
		return w
	}
	model, several := v.Where(run)
	if n := v.Run(run).Workers; n > 1 {
		if one, all := v.Rate(job, model, 1, false), v.Rate(job, model, n, several); one > 0 && all > 0 {
			w.Busy *= min(1, float64(all)/float64(one)/float64(n)) // what each does of what one alone would
		}
	}
	w.Spare = v.Spare(run)
	w.Busy *= 1 - w.Spare.Idle()
	if at, known := b.index(job); known && b.seen[at].attempt == v.Job(job).Attempt {
		w.Busy = float64(b.seen[at].busy) / 1000
	}
	return w
}

func (b *Busy) index(job plan.JobID) (int, bool) {
	return slices.BinarySearchFunc(b.seen, job, func(k kept, job plan.JobID) int { return cmp.Compare(k.job, job) })
}

// Sees notes how busy a job's run was seen to keep its devices; 0 is not seen.
func (b *Busy) Sees(v plan.View, job plan.JobID, busy unit.Milli) {
	if busy == 0 {
		return
	}
	at, known := b.index(job)
	if !known {
		b.seen = slices.DeleteFunc(b.seen, func(k kept) bool { return v.Job(k.job).Phase.Over() })
		at, _ = b.index(job)
		b.seen = slices.Insert(b.seen, at, kept{})
	}
	b.seen[at] = kept{job, v.Job(job).Attempt, busy}
}

// Remember encodes what was seen.
func (b *Busy) Remember() []byte {
	var m []byte
	for _, k := range b.seen {
		m = figures.Put(m, int64(k.job), int64(k.attempt), int64(k.busy))
	}
	return m
}

// Recall reads what Remember wrote.
func (b *Busy) Recall(memory []byte) error {
	b.seen = nil
	r := figures.Read(memory)
	for r.More() {
		b.seen = append(b.seen, kept{plan.JobID(r.Next()), int32(r.Next()), unit.Milli(r.Next())})
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of how busy runs are: %w", err)
	}
	return nil
}
