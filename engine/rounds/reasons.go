package rounds

import "github.com/musterdl/muster/plan"

// reasons say why jobs wait where neither queues nor the calendar have a word. All jobs of a shape wait for the same
// reason until a run starts or ends.
type reasons struct {
	by   []because // shape
	turn int64     // of the draft for which they hold
}

// because says why the jobs of a shape wait. The decider gave own for them.
type because struct{ own, why plan.Reason }

// forget forgets them.
func (r *reasons) forget() { r.by = r.by[:0] }

// of returns why a job waits. The decider gave own for it, and obstacle finds out what is in the way.
func (r *reasons) of(d *plan.Draft, id plan.JobID, own plan.Reason, obstacle func(d *plan.Draft, id plan.JobID, own plan.Reason) plan.Reason) plan.Reason {
	if d.Turns() != r.turn {
		r.by, r.turn = r.by[:0], d.Turns()
	}
	shape, _ := d.Kind(id)
	for int(shape) >= len(r.by) {
		r.by = append(r.by, because{})
	}
	k := &r.by[shape]
	if k.why.Code == plan.NoReason || k.own != own {
		*k = because{own, obstacle(d, id, own)}
	}
	return k.why
}
