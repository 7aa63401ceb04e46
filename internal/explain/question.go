package explain

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/schedule/obstacle"
)

// question is what all causes look at.
type question struct {
	*Site
	id    plan.JobID
	job   plan.Job
	shape *plan.Shape
	n     int32 // workers at its smallest size
	brief bool  // only the cause is asked for, not who is to end

	never  plan.Reason // why it can never start here, by the rule that the scheduler asks too
	reason plan.Reason // as the scheduler records it
	now    *room       // as it is, on nodes that take runs
	fits   int64       // workers that there is room for in it
	mended *room       // if no device were cut; nil before it is asked for
	// What remains beside the windows alone, and beside claims as well.
	beside, left *room
}

func (s *Site) ask(id plan.JobID) *question {
	q := &question{Site: s, id: id, job: s.v.Job(id), shape: s.v.Shape(id)}
	v := s.v
	q.n, q.never = q.shape.Least(), obstacle.Never(v, s.ledger(), id)
	q.now, q.fits = s.room(q.job.Shape)
	q.beside, q.left = q.now, q.now
	if len(v.Windows()) > 0 {
		q.beside = q.now.copy().keep(q.held(nil))
		q.left = q.beside
	}
	if len(v.Claims()) > 0 {
		q.left = q.now.copy().keep(q.held(v.Claims()))
	}
	q.reason = q.recorded()
	return q
}

// recorded asks the rule by which the scheduler records. A job that was tried itself,
// and did not start where there is room, is behind nobody: its strategy does not want it
// there.
func (q *question) recorded() plan.Reason {
	o := obstacle.Question{View: q.v, Job: q.id, Ledger: q.ledger(), Ahead: plan.None, Claims: q.v.Claims(), Until: q.until(),
		Beside: func(claims bool, see func(v plan.View)) {
			if claims {
				see(q.left.v)
			} else {
				see(q.beside.v)
			}
		}}
	switch q.job.Reason.Code {
	case plan.Fragmented, plan.NoRoom:
	case plan.RoundPlan, plan.SliceOver, plan.LeaseOver:
		o.Own = q.job.Reason
	default:
		o.Ahead = q.first()
	}
	return o.Reason()
}

// wants is what the job wants of devices, in thousandths.
func (q *question) wants() int64 { return q.shape.Milli(q.n) }

// held is what is kept from the job for maintenance and for claims, reckoned as the
// composed scheduler does: a job within a guarantee goes before claims that are not.
func (q *question) held(claims []plan.Claim) []plan.Hold {
	if len(claims) == 0 && len(q.v.Windows()) == 0 {
		return nil
	}
	var c calendar.Calendar
	c.SetWindows(q.v.Windows())
	firm := q.guaranteed(q.id)
	for _, claim := range claims {
		if claim.Job == q.id || !firm || q.guaranteed(claim.Job) {
			c.Insert(len(c.Claims()), claim)
		}
	}
	c.Look(q.v, func(run plan.RunID) (unit.Time, bool) { return calendar.Expected(q.v, run) })
	return c.Holds(q.id, q.until(), nil)
}

// guaranteed reports whether a job's smallest size is within what a queue that it is
// in is guaranteed.
func (s *Site) guaranteed(id plan.JobID) bool {
	shape := s.v.Shape(id)
	return s.ledger().Guaranteed(s.ledger().Leaf(s.v.QueueOf(s.v.Job(id).Tenant)), shape.Models, shape.Milli(shape.Least()))
}

// until is when the job would end if it started now.
func (q *question) until() unit.Time { return q.v.Now().Add(calendar.Length(q.v, q.id, q.n)) }

// inTheWay are the first runs of a list with whose room there would be enough, without
// those whose end would not matter; none if there would not be enough in the end.
func (q *question) inTheWay(list []ending) (chosen []ending) {
	if len(list) == 0 {
		return nil
	}
	r := q.now.copy()
	missing := int64(q.n) - q.fits
	for _, e := range list {
		if missing <= 0 {
			break
		}
		missing -= r.release(e.run, true)
		chosen = append(chosen, e)
	}
	if missing > 0 {
		return nil
	}
	keep := chosen[:0:0]
	for _, e := range slices.Backward(chosen) {
		if back := r.release(e.run, false); missing-back > 0 {
			r.release(e.run, true)
			keep = append(keep, e)
		} else {
			missing -= back
		}
	}
	slices.Reverse(keep)
	return keep
}

// holders describes runs.
func (q *question) holders(list []ending) (holders []Holder) {
	for _, e := range list {
		milli := int64(0)
		q.v.GrantsOf(e.run, func(g plan.Grant) {
			if g.Device != plan.None {
				milli += int64(g.Reserve)
			}
		})
		job := q.v.Run(e.run).Job
		holders = append(holders, Holder{Job: q.v.Name(job), Queue: q.queueOf(job), Devices: float64(milli) / 1000, Until: e.at})
	}
	return holders
}

// whoEnds are those with whose room there would be enough: where that is so, of what queues hold
// above what they deserve, or else of what is not only what another queue is guaranteed.
func (q *question) whoEnds() []Holder {
	if q.brief {
		return nil
	}
	for _, from := range [...]func() []ending{q.ofAbove, q.notGuaranteed} {
		if list := q.inTheWay(from()); len(list) > 0 {
			return q.holders(list)
		}
	}
	return q.holders(q.inTheWay(q.endings()))
}

// queueOf is the name of the queue that a job is in; without queues, its tenant.
func (s *Site) queueOf(job plan.JobID) string {
	tenant := s.v.Job(job).Tenant
	if tree := s.v.Queues(); len(tree.Queues) > 0 {
		return tree.Queues[s.v.QueueOf(tenant)].Name
	}
	return s.v.Tenant(tenant)
}

// obstacles counts the nodes by what keeps the job's workers off each.
func (q *question) obstacles() []Obstacle {
	counts := map[string]int{}
	for id := range plan.NodeID(q.v.Nodes()) {
		counts[q.obstacle(id)]++
	}
	var list []Obstacle
	for _, name := range obstacleNames {
		if counts[name] > 0 {
			list = append(list, Obstacle{name, counts[name]})
		}
	}
	slices.SortStableFunc(list, func(a, b Obstacle) int { return b.Nodes - a.Nodes })
	if n := counts[hasRoom]; n > 0 {
		list = append(list, Obstacle{hasRoom, n})
	}
	return list
}

// The obstacles, as they are told.
const (
	isDown      = "down"
	quarantined = "quarantined after failed starts"
	cordoned    = "cordoned"
	inWindow    = "closed for maintenance"
	otherModel  = "another device model"
	outsideSet  = "outside the nodes that its constraints allow"
	littleRAM   = "too little device memory"
	lost        = "devices lost"
	tooSmall    = "too small for one worker"
	cut         = "devices cut into parts"
	full        = "no device free"
	scattered   = "free, but less than one worker needs"
	fewCores    = "too few cores free"
	littleHost  = "too little host memory free"
	littleFree  = "too little device memory free"
	windowAhead = "maintenance before the job would end"
	claimed     = "kept for a reservation"
	hasRoom     = "has room for a worker" // and is none: it comes last
)

var obstacleNames = [...]string{isDown, quarantined, cordoned, inWindow, otherModel, outsideSet, littleRAM, lost, tooSmall, cut, full, scattered,
	fewCores, littleHost, littleFree, windowAhead, claimed}

// obstacle is the first thing that keeps workers off a node.
func (q *question) obstacle(id plan.NodeID) string {
	n := q.v.Node(id)
	switch n.Status {
	case plan.Down:
		return isDown
	case plan.Quarantined:
		return quarantined
	case plan.Cordoned:
		if q.window(id) {
			return inWindow
		}
		return cordoned
	}
	switch {
	case q.shape.Models&(1<<n.Model) == 0:
		return otherModel
	case !q.v.InSet(q.shape, id):
		return outsideSet
	case q.now.holds(id) == 0:
		return q.full(id)
	case q.beside.holds(id) == 0:
		return windowAhead
	case q.left.holds(id) == 0:
		return claimed
	}
	return hasRoom
}

// window reports whether a node is closed by a window that has begun.
func (s *Site) window(id plan.NodeID) bool {
	return slices.ContainsFunc(s.v.Windows(), func(w plan.Window) bool { return w.Node == id && w.Open })
}

// full says why a node that takes runs has no room for a worker.
func (q *question) full(id plan.NodeID) string {
	n, c, shape := q.v.Node(id), &q.v.Cluster().Nodes[id], q.shape
	healthy, memory, free := int32(0), int32(0), int64(0)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if dev := q.v.Device(d); !dev.Status.Out() {
			healthy, memory, free = healthy+1, max(memory, dev.Memory), free+int64(dev.Free)
		}
	}
	if shape.Devices > 0 {
		switch {
		case n.Count >= shape.Devices && healthy < shape.Devices:
			return lost
		case memory < shape.Memory && n.Count > 0:
			return littleRAM
		case n.Count < shape.Devices:
			return tooSmall
		}
	}
	if int32(c.CPU) < shape.CPU || int32(c.Memory) < shape.Host {
		return tooSmall
	}
	for i, lack := range [...]string{fewCores, littleHost, littleFree} {
		if q.now.without(obstacle.Lacks[i]).holds(id) > 0 {
			return lack
		}
	}
	if q.cut(id) {
		if q.mended == nil {
			q.mended = q.now.mended()
		}
		if q.mended.holds(id) > 0 {
			return cut
		}
	}
	switch {
	case shape.Devices == 0:
		return fewCores
	case q.now.milliOn(id) > 0 || shape.Share < 1000 && free > 0:
		return scattered
	}
	return full
}

// cut reports whether a node has a device that is cut.
func (s *Site) cut(id plan.NodeID) bool {
	n := s.v.Node(id)
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if s.v.Device(d).Geometry != 0 {
			return true
		}
	}
	return false
}
