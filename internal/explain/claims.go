package explain

import (
	"fmt"

	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// limited is a claim of queues that the job may not pass: a limit of one that it is in,
// a limit on its user, or what another keeps for itself. The ledger names it, as it did
// to the scheduler.
func (q *question) limited() (cause, bool) {
	models, b := q.v.MayTake(q.ledger(), q.id, q.shape.Models, q.wants())
	never := q.never.Code != plan.NoReason
	if models != 0 && never {
		return q.tooFewLeft(), true
	}
	if models != 0 || b.Kind == queue.NoBar {
		return cause{}, false
	}
	list := q.v.Cluster().Models
	of := uint64(1)<<len(list) - 1
	if int(b.Model) < len(list) {
		of = 1 << b.Model
	}
	named, name := func(milli int64) string { return q.named(milli, of) }, q.queueName(b.Queue)
	c := cause{code: plan.Barred(b).Code}
	switch b.Kind {
	case queue.KeptByOne:
		c = q.keptBack(c, name, b.Left())
		if never {
			c.words, c.never, c.needs = underLimits+c.words, true, []string{name + " to keep less back, or a larger cluster"}
		}
		return c, true
	case queue.AtLimit:
		c.words = fmt.Sprintf("%s may hold %s and holds %s; the job wants %s", name, named(b.Most), plan.Amount(b.Held), plan.Amount(q.wants()))
	case queue.AtBorrow:
		c.words = fmt.Sprintf("%s is guaranteed %s, may borrow %s more and holds %s; the job wants %s",
			name, named(b.Most-b.Borrow), plan.Amount(b.Borrow), plan.Amount(b.Held), plan.Amount(q.wants()))
	default:
		user := q.v.User(q.job.User)
		if user == "" {
			user = "its user"
		}
		c.words = fmt.Sprintf("%s may hold %s in %s and holds %s there; the job wants %s", user, named(b.Most), name, plan.Amount(b.Held), plan.Amount(q.wants()))
	}
	if never {
		c.words = underLimits + c.words
		c.never, c.needs = true, []string{fmt.Sprintf("that limit raised to %s", plan.Amount(q.wants()))}
		return c, true
	}
	if q.brief {
		return c, true
	}
	c.holders = q.holders(q.ofQueue(b))
	c.needs = []string{q.toEnd(c.holders), fmt.Sprintf("or that limit raised to %s", plan.Amount(b.Held+q.wants()))}
	return c, true
}

// underLimits begins the sentence about a job that its queues never let start.
const underLimits = "can never start under its limits: "

// tooFewLeft is a job whose queues leave it models of devices of which the cluster has too few.
func (q *question) tooFewLeft() cause {
	models, b := q.v.MayEver(q.ledger(), q.id, q.shape.Models, q.wants())
	name := q.queueName(b.Queue)
	return cause{code: plan.Barred(b).Code, never: true, needs: []string{"the limits of " + name + " raised, or more of these devices"},
		words: fmt.Sprintf("%s%s; of the device models that %s leaves it, the whole cluster, if it were idle, would hold %d of its %s", underLimits,
			q.wish(), name, q.v.CapacityFor(q.job.Shape, models), workers(int64(q.n)))}
}

// keptBack is room that a queue keeps for itself although it is idle.
func (q *question) keptBack(c cause, name string, kept int64) cause {
	free := q.v.Room().FreeMilli(q.shape.Models)
	c.words = fmt.Sprintf("%s %s free, but %s keeps %s for itself and does not lend them; the job wants %s",
		q.kind(free), plan.Are(free), name, plan.Amount(kept), plan.Amount(q.wants()))
	c.needs = []string{fmt.Sprintf("%s more free, or %s to keep less back", q.kind(q.wants()+kept-free), name)}
	return c
}

// ofQueue are the first runs to end that count against a bound and whose end would
// leave enough of it.
func (q *question) ofQueue(b queue.Bar) (list []ending) {
	missing := q.wants() - (b.Most - b.Held)
	for _, e := range q.endings() {
		j := q.v.Job(q.v.Run(e.run).Job)
		if missing <= 0 {
			break
		}
		if !q.ledger().Counts(b.Queue, q.v.QueueOf(j.Tenant)) || b.Kind == queue.AtUser && j.User != q.job.User {
			continue
		}
		milli := int64(0)
		q.v.GrantsOf(e.run, func(g plan.Grant) {
			if g.Device != plan.None && (int(b.Model) == len(q.v.Cluster().Models) || q.v.Node(g.Node).Model == b.Model) {
				milli += int64(g.Reserve)
			}
		})
		if milli > 0 {
			list = append(list, e)
			missing -= milli
		}
	}
	return list
}

// maintenance is a window that the job would run into on nodes that have room for it.
func (q *question) maintenance() (cause, bool) {
	for _, w := range q.v.Windows() {
		if q.reason != (plan.Reason{Code: plan.Maintenance, A: int64(w.Node), B: int64(w.From)}) {
			continue
		}
		c := cause{code: plan.Maintenance, words: fmt.Sprintf("%s is closed for maintenance %s for %s, before the job would end", q.nodeName(w.Node), q.away(w.From), rough(w.To.Sub(w.From))),
			needs: []string{"that to be over, expected " + q.away(w.To)}}
		q.tooLong(&c, w.From)
		c.needs = append(c.needs, "or a job that saves its work or may be tried again: it runs until then, and goes on behind it")
		return c, true
	}
	return cause{}, false
}

// tooLong adds what the length of the job has to do with it.
func (q *question) tooLong(c *cause, from unit.Time) {
	gap := from.Sub(q.v.Now())
	if gap <= 0 {
		return
	}
	if length := q.until(); length == unit.Never {
		c.words += "; nobody has said how long this job runs, so it may take longer"
		c.needs = append(c.needs, "or an estimate or a time limit of at most "+rough(gap))
	} else {
		c.words += "; this job is expected to run " + rough(length.Sub(q.v.Now()))
		c.needs = append(c.needs, "or a run of at most "+rough(gap))
	}
}

// reserved is room that is kept for another job's place in the calendar.
func (q *question) reserved() (cause, bool) {
	for _, claim := range q.v.Claims() {
		closed := claim.Closed(q.v.Now())
		if q.reason != (plan.Reason{Code: plan.Reserved, A: int64(claim.Job), B: int64(claim.At)}) {
			continue
		}
		milli := int64(0)
		for _, p := range claim.Parts {
			milli += int64(p.Devices) * 1000
		}
		name, free := q.v.Name(claim.Job), q.now.milli()
		c := cause{code: plan.Reserved, holders: []Holder{{Job: name, Queue: q.queueOf(claim.Job), Devices: float64(milli) / 1000, Until: claim.At.Add(claim.Length)}}}
		c.words = fmt.Sprintf("%s %s free for it, but reserved for %s, which ", q.kind(free), plan.Are(free), name)
		c.needs = []string{name + " to start and to end"}
		if claim.At == unit.Never {
			c.words += "waits for runs whose end nobody knows"
		} else {
			c.words += "is to start " + q.away(claim.At)
		}
		if !closed {
			q.tooLong(&c, claim.At)
		}
		return c, true
	}
	return cause{}, false
}
