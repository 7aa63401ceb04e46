package explain

import (
	"fmt"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/obstacle"
)

// decided is a job that a decider for all jobs gives no place, although there are devices
// enough.
func (q *question) decided() (cause, bool) {
	switch q.reason.Code {
	case plan.RoundPlan, plan.SliceOver, plan.LeaseOver:
		free := q.now.milli()
		return cause{code: q.reason.Code, words: fmt.Sprintf("%s; %s %s free, but the strategy, which decides for all jobs at once, gives it none of them: %s",
			q.wish(), plan.Amount(free), plan.Are(free), q.reason.Words(q.v)), needs: []string{"its turn in a later round, or another strategy"}}, true
	}
	return cause{}, false
}

// unhindered is a job that could start where it stands. Either its strategy does not
// want it there, or another goes first and nobody may pass.
func (q *question) unhindered() (cause, bool) {
	if q.left.total() < int64(q.n) {
		return cause{}, false
	}
	if q.reason.Code == plan.Behind {
		first := plan.JobID(q.reason.A)
		name := q.v.Name(first)
		why := "was submitted earlier"
		if q.v.Job(first).Priority > q.job.Priority {
			why = fmt.Sprintf("has priority %d, this one %d", q.v.Job(first).Priority, q.job.Priority)
		}
		return cause{code: plan.Behind, words: fmt.Sprintf("there is room for it, but %s goes first and nobody may pass it: it %s", name, why),
			needs: []string{name + " to start; muster why " + name + " says what keeps it"}}, true
	}
	free := q.left.milli()
	if q.job.Reason.Code == plan.Fragmented {
		return cause{code: plan.Fragmented, words: fmt.Sprintf("%s, and %s %s free, but not on nodes where the strategy would put it", q.wish(), plan.Amount(free), plan.Are(free)),
			needs: []string{"room closer together, or a strategy that spreads it"}}, true
	}
	return cause{code: plan.New, words: "nothing is in its way: the next decision may start it"}, true
}

// first is the waiting job of the same queue that goes first, if it goes before this
// one.
func (q *question) first() plan.JobID {
	if best := q.top(q.v.QueueOf(q.job.Tenant)); best != plan.None && q.before(best, q.id) {
		return best
	}
	return plan.None
}

// overtaken is a job whose room others have got since it waits that were not there
// before it: of higher priority, or of a queue that went before its own and holds more
// than its guarantee. Without them it would run. Smaller work that merely filled in is no cause.
func (q *question) overtaken() (cause, bool) {
	if q.fits >= int64(q.n) {
		return cause{}, false
	}
	for _, kind := range [...]func(o *plan.Job, milli int64) bool{
		func(o *plan.Job, _ int64) bool { return o.Priority > q.job.Priority },
		func(o *plan.Job, milli int64) bool {
			theirs, own := q.v.QueueOf(o.Tenant), q.v.QueueOf(q.job.Tenant)
			return theirs != own && milli >= q.wants() && (q.job.Preemptions > 0 || o.Submit > q.job.Submit && !q.onlyGuaranteed(theirs))
		},
	} {
		var list []ending
		for _, e := range q.endings() {
			if e.since < q.job.Since {
				continue
			}
			run := q.v.Run(e.run)
			if o := q.v.Job(run.Job); kind(&o, q.v.Shape(run.Job).Milli(run.Workers)) {
				list = append(list, e)
			}
		}
		if by := q.inTheWay(list); len(by) > 0 {
			return q.overtakenBy(by), true
		}
	}
	return cause{}, false
}

func (q *question) overtakenBy(runs []ending) cause {
	holders := q.holders(runs)
	var list []string
	for _, h := range holders {
		list = append(list, h.Job)
	}
	o := q.v.Job(q.v.Run(runs[0].run).Job)
	verb := "goes"
	if len(list) > 1 {
		verb = "go"
	}
	displaced := q.job.Preemptions > 0 && o.Since == q.job.Since
	c := cause{holders: holders, needs: []string{q.toEnd(holders)}}
	switch {
	case o.Priority > q.job.Priority && displaced:
		c.code, c.words = plan.Outranked, fmt.Sprintf("made way for %s, of priority %d; its own is %d", names(list), o.Priority, q.job.Priority)
	case o.Priority > q.job.Priority:
		c.code, c.words = plan.Outranked, fmt.Sprintf("%s, of priority %d, %s first and took the room; its own priority is %d", names(list), o.Priority, verb, q.job.Priority)
	case displaced:
		c.code, c.words = plan.Reclaimed, fmt.Sprintf("gave back to %s what %s had borrowed from %s", names(list), q.queueName(q.v.QueueOf(q.job.Tenant)), q.queueName(q.v.QueueOf(o.Tenant)))
	default:
		c.code = plan.Behind
		c.words = fmt.Sprintf("%s came later but %s first: %s was shorter of what it deserves than %s", names(list), verb, q.queueName(q.v.QueueOf(o.Tenant)), q.queueName(q.v.QueueOf(q.job.Tenant)))
	}
	return c
}

// closedKinds are the ways in which nodes take no runs, with what reopens them.
var closedKinds = [...]struct {
	obstacle string
	code     plan.ReasonCode
	need     string
}{{isDown, plan.NodeLost, "%s to come back"}, {quarantined, plan.NodeSick, "%[1]s to be looked at, then muster uncordon %[1]s"},
	{inWindow, plan.Maintenance, "the maintenance of %s to be over"}, {cordoned, plan.ByUser, "muster uncordon %s"}}

// closedForGood is a job that what is left of the cluster could not hold if it were
// idle: nodes that take no runs are what it wants.
func (q *question) closedForGood() (cause, bool) {
	if !q.closes() {
		return cause{}, false
	}
	r := emptied(q.v, q.shape)
	up := r.total()
	if up >= int64(q.n) {
		return cause{}, false
	}
	c, ok := q.closed(r, up)
	if !ok {
		return cause{code: plan.NodeLost, words: fmt.Sprintf("devices are lost: what is left would hold %d of its %s, even if nothing ran", up, workers(int64(q.n))),
			needs: []string{"the lost devices to come back"}}, true
	}
	if q.n == 1 {
		c.words += "; no other node could hold it, even if nothing ran"
	} else {
		c.words += fmt.Sprintf("; the other nodes would hold %d of its %s even if nothing ran", up, workers(int64(q.n)))
	}
	return c, true
}

// closes reports whether any node takes no runs, or any device is out.
func (s *Site) closes() bool {
	for id := range plan.NodeID(s.v.Nodes()) {
		if s.v.Node(id).Status != plan.Up {
			return true
		}
	}
	for id := range plan.DeviceID(s.v.Devices()) {
		if s.v.Device(id).Status.Out() {
			return true
		}
	}
	return false
}

// closedNow is a job that would start on nodes that lie idle and take no runs, and
// that nobody else who waits would take first.
func (q *question) closedNow() (cause, bool) {
	if q.fits >= int64(q.n) || !q.closes() {
		return cause{}, false
	}
	all := q.now.copy().open(plan.Cordoned, plan.Quarantined, plan.Down)
	if all.total() < int64(q.n) {
		return cause{}, false
	}
	spare := all.milli() - q.wants()
	for id := range q.live {
		if q.takesFirst(id) {
			if spare -= q.v.Shape(id).Milli(q.v.Shape(id).Gang); spare < 0 {
				return cause{}, false // they would
			}
		}
	}
	c, ok := q.closed(q.now, q.fits)
	c.words += ": there would be room for it"
	if q.n > 1 {
		c.words += fmt.Sprintf("; elsewhere there is for %d of its %s", q.fits, workers(int64(q.n)))
	}
	return c, ok
}

// takesFirst reports whether another job waits that goes before this one and may take the same devices.
func (q *question) takesFirst(id plan.JobID) bool {
	if q.v.Job(id).Phase != plan.Waiting || id == q.id || !q.before(id, q.id) {
		return false
	}
	return q.v.Shape(id).Models&q.shape.Models != 0 && q.Never(id) == ""
}

// closed says which kind of closed nodes keeps most workers from a room that holds so
// many without them.
func (q *question) closed(r *room, up int64) (c cause, ok bool) {
	more := int64(0)
	open := r.copy().open(plan.Cordoned, plan.Quarantined, plan.Down)
	for _, kind := range closedKinds {
		gain, list, back := int64(0), []string(nil), unit.Time(0)
		for id := range plan.NodeID(q.v.Nodes()) {
			if q.v.Node(id).Status != plan.Up && q.obstacle(id) == kind.obstacle && open.holds(id) > 0 {
				gain, list = gain+int64(open.holds(id)), append(list, q.nodeName(id))
				back = max(back, q.v.Return(id, plan.UsualRepair))
			}
		}
		if gain <= more {
			continue
		}
		more, ok = gain, true
		verb := "is"
		if len(list) > 1 {
			verb = "are"
		}
		c = cause{code: kind.code, words: fmt.Sprintf("%s %s %s", names(list), verb, kind.obstacle), needs: []string{fmt.Sprintf(kind.need, names(list))}}
		if kind.obstacle == isDown && back != unit.Never {
			c.needs[0] += ", expected " + q.away(back)
		}
		if at := nextTrial(q.v); kind.obstacle == quarantined && at < unit.Never {
			c.needs[0] += "; one start is tried there " + q.away(at)
		}
	}
	if missing := int64(q.n) - up - more; ok && missing > 0 {
		c.needs = append(c.needs, fmt.Sprintf("and other nodes that are closed, for the %s that remain", workers(missing)))
	}
	return c, ok
}

// nextTrial is when a start is let in next on a quarantined node; never where nothing was ever said of it.
func nextTrial(v plan.View) unit.Time {
	at := unit.Never
	for id := range plan.NodeID(v.Nodes()) {
		if n := v.Node(id); n.Status == plan.Quarantined && n.Trial.At > 0 {
			at = min(at, n.Trial.At)
		}
	}
	return max(at, v.Now())
}

// lacking is a job for which there are devices enough, but of another model, or not
// enough of what it needs beside them.
func (q *question) lacking() (cause, bool) {
	if q.shape.Devices == 0 || q.reason.Code != plan.NoRoom {
		return cause{}, false
	}
	list := q.v.Cluster().Models
	free, all := q.now.milli(), uint64(1)<<len(list)-1
	for _, lack := range [...]struct {
		room  func() *room
		words func(r *room) string
	}{
		{func() *room { return q.now.without(func(s *plan.Shape) { s.Models = all }) }, func(r *room) string {
			others := r.milli() - free
			return fmt.Sprintf("%s; %s %s free, and of other models, which it may not use, %s", q.wish(), plan.Amount(free), plan.Are(free), q.named(others, all&^q.shape.Models))
		}},
		{func() *room { return q.now.without(obstacle.Lacks[0]) }, func(*room) string {
			return fmt.Sprintf("%s with %s for every worker; %s %s free, but with too few cores beside them", q.wish(), cores(int64(q.shape.CPU)), q.kind(free), plan.Are(free))
		}},
		{func() *room { return q.now.without(obstacle.Lacks[1]) }, func(*room) string {
			return fmt.Sprintf("%s with %s of host memory for every worker; %s %s free, but with too little host memory beside them", q.wish(), unit.MiB(q.shape.Host), q.kind(free), plan.Are(free))
		}},
		{func() *room { return q.now.without(obstacle.Lacks[2]) }, func(r *room) string {
			free := r.milli()
			return fmt.Sprintf("%s with %s of device memory; %s %s free, but with less memory", q.wish(), unit.MiB(q.shape.Memory), q.kind(free), plan.Are(free))
		}},
		{func() *room { return q.now.without(obstacle.Lacks[3]) }, func(*room) string {
			return fmt.Sprintf("%s; devices enough are free, but with too few cores or too little memory beside them", q.wish())
		}},
		{q.now.mended, func(*room) string {
			return q.wish() + "; devices enough are idle, but cut into parts"
		}},
	} {
		r := lack.room()
		if r.total() < int64(q.n) {
			continue
		}
		return q.needEnds(cause{code: plan.NoRoom, words: lack.words(r), holders: q.whoEnds()}), true
	}
	return cause{}, false
}

// needEnds adds whose ends would help, and which queues hold more than they deserve.
func (q *question) needEnds(c cause) cause {
	c.words += q.unequal()
	if len(c.holders) > 0 {
		c.needs = append(c.needs, q.toEnd(c.holders))
	}
	if now := q.left.total(); now > 0 {
		or := ""
		if len(c.needs) > 0 {
			or = "or "
		}
		c.needs = append(c.needs, or+fmt.Sprintf("a gang of at most %s, for which there is room now", workers(now)))
	}
	return c
}

// fragmented is a job for which enough is free, but not together.
func (q *question) fragmented() (cause, bool) {
	free := q.now.milli()
	if q.reason.Code != plan.Fragmented {
		return cause{}, false
	}
	most, where := int64(0), plan.NodeID(plan.None)
	for id := range plan.NodeID(q.v.Nodes()) {
		if milli := q.now.milliOn(id); q.v.Node(id).Status == plan.Up && milli > most {
			most, where = milli, id
		}
	}
	c := cause{code: plan.Fragmented, holders: q.whoEnds()}
	c.words = fmt.Sprintf("%s; %s %s free in all, ", q.wish(), plan.Amount(free), plan.Are(free))
	switch {
	case q.shape.Share < 1000:
		c.words += fmt.Sprintf("but in smaller parts: they hold %d of its %s", q.fits, workers(int64(q.n)))
	case q.n > 1:
		c.words += fmt.Sprintf("but scattered: they hold %d of the %s, which start together or not at all", q.fits, workers(int64(q.n)))
	case where == plan.None:
		c.words += "but none with the memory that it needs"
	default:
		c.words += fmt.Sprintf("but at most %s on one node (%s)", plan.Amount(most), q.nodeName(where))
	}
	return q.needEnds(c), true
}

// noRoom is what remains.
func (q *question) noRoom() (cause, bool) {
	c := cause{code: plan.NoRoom, holders: q.whoEnds()}
	free := q.now.milli()
	switch {
	case q.shape.Devices == 0:
		c.words = fmt.Sprintf("%s; there is room for %d of them", q.wish(), q.fits)
	case q.n > 1 && q.fits > 0:
		c.words = fmt.Sprintf("%s; %s %s free and would hold %d of its %s, but they start together or not at all", q.wish(), plan.Amount(free), plan.Are(free), q.fits, workers(int64(q.n)))
	default:
		c.words = fmt.Sprintf("%s; %s %s free", q.wish(), plan.Amount(free), plan.Are(free))
	}
	c = q.needEnds(c)
	for _, claim := range q.v.Claims() {
		if claim.Job == q.id && claim.At >= q.v.Now() && claim.At != unit.Never {
			c.needs = append(c.needs, "its turn in the calendar: it is to start "+q.away(claim.At))
		}
	}
	return c, true
}
