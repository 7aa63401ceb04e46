// Package obstacle is the mechanism that says what keeps a waiting job from starting:
// one reason, by one rule, which the scheduler records and package explain tells. It
// changes nothing.
//
// The order is that of dominance: nothing that comes later needs asking while what comes
// first lasts. A job that the cluster can never hold comes first, then what its queues
// allow it, and where they do, room. Where there is room, others keep it: maintenance,
// claims in the calendar, or a better job that nobody may pass.
package obstacle

import (
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Question is about one waiting job.
type Question struct {
	View   plan.View
	Job    plan.JobID
	Ledger *queue.Ledger
	// Ahead is a better job that nobody may pass; plan.None is nobody.
	Ahead plan.JobID
	// Own is the reason of a decider for all jobs that has no place for this one: it stands
	// where there is room.
	Own plan.Reason
	// Beside shows the room beside what is kept for maintenance and, with claims, for the
	// places of others in the calendar; nil is for a calendar in which nothing stands.
	Beside func(claims bool, see func(v plan.View))
	// Claims are the places in the calendar, and Until is when the job would end.
	Claims []plan.Claim
	Until  unit.Time
}

// Reason is what keeps the job from starting at its least size. With nothing in its way
// it is plan.Fragmented: there is room, and not where its strategy wants it.
func (q *Question) Reason() plan.Reason {
	shape, never := q.View.Shape(q.Job), Never(q.View, q.Ledger, q.Job)
	if never.Code == plan.Unsatisfiable {
		return never
	}
	n, wants := int64(shape.Least()), wants(shape)
	if models, bar := q.View.MayTake(q.Ledger, q.Job, shape.Models, wants); models == 0 && bar.Kind != queue.NoBar {
		return plan.Barred(bar)
	}
	if never.Code != plan.NoReason {
		return never
	}
	free, why := Free(q.View, shape), Room(q.View, q.Job)
	if why.Code == plan.NoRoom || shape.Share == 1000 && shape.Devices > 0 && q.View.Room().Groups(shape.Models, int(shape.Devices)) < n {
		return why // fewer nodes have devices enough than it needs, whatever is beside them
	}
	switch fits := upTo(q.View, shape, n); {
	case fits >= n:
		return q.kept(shape, n, free)
	case wants == 0 || q.lacks(shape, n):
		return plan.Reason{Code: plan.NoRoom, A: wants, B: free}
	}
	return why
}

// Never is why a job can never start here, whatever ends and comes back: the whole cluster does not hold it when it
// is well and idle, or what its queues may ever have does not. Its code is plan.NoReason if the job can start. A job
// that can never start takes no turn and has no claim until the cluster or its queues are others, and whoever waits
// for it is told.
func Never(v plan.View, l *queue.Ledger, job plan.JobID) plan.Reason {
	shape := v.Shape(job)
	id, _ := v.Kind(job)
	wants, least := wants(shape), int64(shape.Least())
	if v.CapacityFor(id, shape.Models) < least {
		return plan.Reason{Code: plan.Unsatisfiable, A: wants, B: v.Room().All(shape.Models) * 1000}
	}
	if models, bar := v.MayEver(l, job, shape.Models, wants); models != shape.Models && v.CapacityFor(id, models) < least {
		return plan.Barred(bar)
	}
	return plan.Reason{}
}

// Room is the part of the rule that costs no look at nodes: fewer devices are free than a
// job wants; else plan.Fragmented, which more may be said about.
func Room(v plan.View, job plan.JobID) plan.Reason {
	shape := v.Shape(job)
	wants, free := wants(shape), Free(v, shape)
	if free < wants {
		return plan.Reason{Code: plan.NoRoom, A: wants, B: free}
	}
	return plan.Reason{Code: plan.Fragmented, A: free}
}

// InPieces reports whether a waiting job is within what its queue is guaranteed, and waits since
// what is free for it is enough, but in no one piece: whoever is in the way holds what is
// guaranteed as well.
func InPieces(v plan.View, l *queue.Ledger, job plan.JobID) bool {
	shape, j := v.Shape(job), v.Job(job)
	if !l.Guaranteed(l.Leaf(v.QueueOf(j.Tenant)), shape.Models, wants(shape)) {
		return false
	}
	q := Question{View: v, Job: job, Ledger: l, Ahead: plan.None}
	return q.Reason().Code == plan.Fragmented && upTo(v, shape, int64(shape.Least())) < int64(shape.Least())
}

// wants is what a shape takes of devices at its least size.
func wants(shape *plan.Shape) int64 { return shape.Milli(shape.Least()) }

// Free is what is free of devices that a shape may use, wherever they are: whole ones for
// those that ask for whole ones.
func Free(v plan.View, shape *plan.Shape) int64 {
	if shape.Share < 1000 {
		return v.Room().FreeMilli(shape.Models)
	}
	return v.Room().Free(shape.Models) * 1000
}

// Workers is how many workers of a shape all nodes together hold at this moment.
func Workers(v plan.View, shape *plan.Shape) (n int64) {
	for id := range plan.NodeID(v.Nodes()) {
		n += int64(v.Holds(id, shape))
	}
	return n
}

// upTo is the same of those nodes that may have room, until there are as many as are asked
// for.
func upTo(v plan.View, shape *plan.Shape, most int64) (n int64) {
	fit.EachNode(v, shape, 0, func(id plan.NodeID) bool {
		n += int64(v.Holds(id, shape))
		return n >= most
	})
	return n
}

// Lacks are what a job may lack beside its devices, each as what it would ask without; the
// last is all of them.
var Lacks = [...]func(s *plan.Shape){
	func(s *plan.Shape) { s.CPU = 0 }, func(s *plan.Shape) { s.Host = 0 }, func(s *plan.Shape) { s.Memory = 0 },
	func(s *plan.Shape) { s.CPU, s.Host, s.Memory = 0, 0, 0 },
}

// lacks reports whether free devices are enough where they are, but not what the job needs
// beside them: cores, host memory or device memory.
func (q *Question) lacks(shape *plan.Shape, n int64) bool {
	less := *shape
	Lacks[len(Lacks)-1](&less)
	return upTo(q.View, &less, n) >= n
}

// kept is what keeps a job from room that it would fit in.
func (q *Question) kept(shape *plan.Shape, n, free int64) (why plan.Reason) {
	if why = q.Own; why.Code == plan.NoReason {
		why = plan.Reason{Code: plan.Fragmented, A: free}
	}
	if q.Beside == nil {
		return q.behind(why)
	}
	windows, claims := q.View.Windows(), q.Claims // a question that goes into a function is kept on the heap
	open := beside{shape: shape, least: n}
	if len(windows) > 0 {
		q.Beside(false, func(v plan.View) {
			open.countAll(v)
			open.each(v, windows, claims)
		})
		for i, w := range windows {
			if !open.enough && !w.Open && w.From < q.Until && open.takes[i] < q.View.Holds(w.Node, shape) {
				return plan.Reason{Code: plan.Maintenance, A: int64(w.Node), B: int64(w.From)}
			}
		}
	}
	left := beside{shape: shape, least: n}
	q.Beside(true, func(v plan.View) {
		if left.countAll(v); !left.enough {
			left.each(v, windows, claims)
		}
	})
	if left.enough {
		return q.behind(why)
	}
	at := len(windows)
	for _, c := range claims {
		counts := c.Job != q.Job && (c.At < q.Until || c.Closed(q.View.Now()))
		for _, p := range c.Parts {
			if counts && left.takes[at] < open.of(q.View, at, p.Node) {
				return plan.Reason{Code: plan.Reserved, A: int64(c.Job), B: int64(c.At)}
			}
			at++
		}
	}
	return why
}

// beside is whether all nodes together take as many workers of a shape as are asked for,
// and how many each takes on which something stands in the calendar.
type beside struct {
	shape  *plan.Shape
	least  int64
	enough bool
	takes  []int32 // on the nodes of windows and then of the parts of claims, in their order
}

func (b *beside) countAll(v plan.View) { b.enough = upTo(v, b.shape, b.least) >= b.least }

// each counts only where something stands: everywhere else a node takes what it takes.
func (b *beside) each(v plan.View, windows []plan.Window, claims []plan.Claim) {
	for _, w := range windows {
		b.takes = append(b.takes, v.Holds(w.Node, b.shape))
	}
	for _, c := range claims {
		for _, p := range c.Parts {
			b.takes = append(b.takes, v.Holds(p.Node, b.shape))
		}
	}
}

// of is what the at-th of those nodes takes: as the view says where nothing was counted.
func (b *beside) of(v plan.View, at int, node plan.NodeID) int32 {
	if len(b.takes) == 0 {
		return v.Holds(node, b.shape)
	}
	return b.takes[at]
}

// behind is a job that there is room for, and another goes first.
func (q *Question) behind(otherwise plan.Reason) plan.Reason {
	if q.Ahead != plan.None {
		return plan.Reason{Code: plan.Behind, A: int64(q.Ahead)}
	}
	return otherwise
}
