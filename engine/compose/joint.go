package compose

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/figures"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/unit"
)

// Joint is the Scheduler around a part that decides for all jobs at once: it asks for
// wishes when something happened, and carries them out. What is as wished is left
// alone. A change that costs running time is made only if it pays back: see worth.
type Joint struct {
	parts   Parts
	decider allocate.Joint
	// Horizon bounds how far ahead a gain is counted against the price of a change.
	Horizon unit.Duration

	active   []plan.JobID // waiting or running, by id
	wishes   []allocate.Wish
	wish     []int32 // by job: its wish, counted from 1, while wishes are carried out
	found    []allocate.Candidate
	narrow   plan.Shape // of the wish that is being carried out
	learned  []bool     // by job
	memories []schedule.Remembering
	last     unit.Time // when wishes were asked for
	again    unit.Time
	asked    []byte // the question that is out, nil for none
	asks     []schedule.Ask
}

// DefaultHorizon is how far ahead the gain of a change counts.
const DefaultHorizon = unit.Hour

var (
	_ schedule.Scheduler   = (*Joint)(nil)
	_ schedule.Rebuilder   = (*Joint)(nil)
	_ schedule.Remembering = (*Joint)(nil)
	_ schedule.Asker       = (*Joint)(nil)
	_ schedule.Answerer    = (*Joint)(nil)
)

// NewJoint composes a Scheduler around a joint decider. Of the parts the Order, Sizer,
// Victims and Reserve are not asked: they are what it decides itself. One that is a
// Gate is that too.
func NewJoint(decider allocate.Joint, parts Parts) *Joint {
	gate, own := decider.(schedule.Gate)
	if own {
		parts.Gate = nil // the decider remembers for both
	}
	s := &Joint{
		parts: parts, decider: decider, Horizon: DefaultHorizon, last: -1, again: unit.Never,
		memories: rememberers(parts.Placer, decider, parts.Estimator, parts.Gate, parts.Planner, parts.Flow, parts.Rater, parts.Switcher),
	}
	if own {
		s.parts.Gate = gate
	}
	return s
}

// Rebuild forgets every cache; the engine names all live jobs in the next trigger.
func (s *Joint) Rebuild(v plan.View) {
	s.active, s.learned, s.asked, s.last = s.active[:0], nil, nil, -1
	s.grow(v)
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Finished {
			s.learn(v, id)
		}
	}
}

func (s *Joint) grow(v plan.View) {
	for len(s.learned) < v.Jobs() {
		s.learned, s.wish = append(s.learned, false), append(s.wish, 0)
	}
}

// Decide takes in what changed, asks for wishes and carries them out.
func (s *Joint) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	s.grow(d.View)
	for _, id := range why.Jobs {
		s.take(d, id)
	}
	s.parts.observed(d, why)
	if slow, ok := s.decider.(allocate.Slow); ok {
		for _, a := range why.Answers {
			if s.asked = nil; len(a.Reply) > 0 {
				slow.Learn(a.Reply)
			}
		}
	}
	if at := s.mayAsk(d.Now()); min(at, s.again) > d.Now() && len(why.Answers) == 0 {
		return min(at, s.again)
	}
	s.last = d.Now()
	s.pose(d.View)
	s.wishes, s.again = s.decider.Wishes(d.View, s.active, s.wishes[:0])
	if s.again <= d.Now() {
		panic(fmt.Sprintf("compose: a joint decider wants to decide again at %d, which is not after %d", s.again, d.Now()))
	}
	s.realise(d)
	s.rent(d)
	s.parts.shapeTraffic(d, why)
	return s.again
}

// mayAsk is the first instant at which the decider may be asked by its rhythm.
func (s *Joint) mayAsk(now unit.Time) unit.Time {
	if r, ok := s.decider.(allocate.Rhythm); ok && s.last >= 0 {
		return max(now, s.last.Add(r.Every()))
	}
	return now
}

// pose puts the decider's question outside, one at a time.
func (s *Joint) pose(v plan.View) {
	slow, ok := s.decider.(allocate.Slow)
	if !ok || s.asked != nil {
		return
	}
	if question := slow.Question(v, s.active); question != nil {
		s.asked = question
		s.asks = append(s.asks, schedule.Ask{Question: question})
	}
}

// Asks hands over the questions of the last decision.
func (s *Joint) Asks() []schedule.Ask {
	asks := s.asks
	s.asks = nil
	return asks
}

// Answer solves a question that the decider put.
func (s *Joint) Answer(question []byte) ([]byte, error) {
	slow, ok := s.decider.(allocate.Slow)
	if !ok {
		return nil, fmt.Errorf("this strategy asks nothing")
	}
	return slow.Solve(question)
}

// take files a job by its phase.
func (s *Joint) take(d *plan.Draft, id plan.JobID) {
	j := d.Job(id)
	at, filed := slices.BinarySearch(s.active, id)
	lives := j.Phase == plan.Waiting || j.Phase == plan.Active
	if lives && !filed && (j.Phase == plan.Active || j.Attempt > 0 || s.parts.admit(d, id, &j)) {
		s.active = slices.Insert(s.active, at, id)
	}
	if !lives && filed {
		s.active = slices.Delete(s.active, at, at+1)
	}
	if j.Phase == plan.Finished {
		s.learn(d.View, id)
	}
}

func (s *Joint) learn(v plan.View, id plan.JobID) {
	if !s.learned[id] {
		s.learned[id] = true
		s.parts.Estimator.Learn(v, id)
	}
}

// realise carries the wishes out: first what gives room, then what takes it.
func (s *Joint) realise(d *plan.Draft) {
	for i := range s.wishes {
		s.wishes[i].Check()
		s.wish[s.wishes[i].Job] = int32(i) + 1
	}
	for id := range plan.RunID(d.RunSlots()) {
		if r := d.Run(id); r.Status != plan.Gone && r.Status != plan.Stopping {
			s.settle(d, id, &r)
		}
	}
	for i := range s.wishes {
		if w := &s.wishes[i]; w.Workers > 0 && !w.Suspend {
			s.grant(d, w)
		}
	}
	for _, id := range s.active {
		if s.wish[id] == 0 || s.wishes[s.wish[id]-1].Workers == 0 {
			s.explain(d, id)
		}
	}
	for i := range s.wishes {
		s.wish[s.wishes[i].Job] = 0
	}
}

// settleTime is after how long a decision that was taken a moment ago may be revised.
const settleTime = unit.Second

// settle lets a run go on, on the terms wished, or ends it.
func (s *Joint) settle(d *plan.Draft, id plan.RunID, r *plan.Run) {
	var w *allocate.Wish
	if i := s.wish[r.Job]; i > 0 {
		w = &s.wishes[i-1]
	}
	// What was decided a moment ago stands: else two wishes that follow from each other's
	// outcome would be carried out in turn for ever, within one instant.
	if now := d.Now(); r.Since == now && r.Status != plan.Suspended || r.Began == now {
		if w == nil || w.Suspend || w.Workers == 0 || !s.asWished(d.View, id, r, w) {
			s.again = min(s.again, now.Add(settleTime))
		}
		return
	}
	switch {
	case w == nil || w.Workers == 0 && !w.Suspend:
		reason := plan.Reason{Code: plan.RoundPlan}
		if w != nil {
			reason = w.Reason
		}
		d.Stop(id, reason, s.price(d.View, r.Job))
	case w.Suspend:
		if r.Status == plan.Running && s.slice(d.View, r) {
			d.Suspend(id, w.Reason)
		}
	case !s.asWished(d.View, id, r, w) && s.worth(d.View, id, r, w):
		d.Stop(id, w.Reason, s.price(d.View, r.Job))
	case w.Terms != (plan.Terms{}) && w.Terms != keptTerms(r.Terms, w.Terms):
		d.Regrant(id, keptTerms(w.Terms, r.Terms), w.Reason)
	}
}

// leastSlice is how many times as long as its switch a slice must be.
const leastSlice = 10

// slice reports whether a run has computed for long enough to pay for being switched
// out and in again.
func (s *Joint) slice(v plan.View, r *plan.Run) bool {
	return s.parts.Switcher == nil || v.Now().Sub(r.Since) >= leastSlice*s.parts.Switcher.Switch(v, r.Job, plan.None)
}

// keptTerms are terms with the pipeline plan of others and what they get of the network:
// those are not for a joint decider to say, but for the planner, the flow policy and the
// shaper, who would set them again.
func keptTerms(t, of plan.Terms) plan.Terms {
	t.Plan, t.Shift, t.Class, t.Weight, t.Reserved = of.Plan, of.Shift, of.Class, of.Weight, of.Reserved
	return t
}

// price is the running time that stopping a job and starting it again costs.
func (s *Joint) price(v plan.View, id plan.JobID) unit.Duration {
	c := v.Job(id).Checkpoint
	return c.Save + c.Load
}

// asWished reports whether a run has the workers and the place that are wished.
func (s *Joint) asWished(v plan.View, id plan.RunID, r *plan.Run, w *allocate.Wish) bool {
	if r.Workers != w.Workers {
		return false
	}
	if w.Slots == nil {
		model, _ := where(v, id)
		return w.Models == 0 || w.Models&(1<<model) != 0
	}
	return onSlots(v, id, w.Slots)
}

// where is the device model of a run and whether it spans nodes.
func where(v plan.View, id plan.RunID) (model int32, several bool) {
	node := plan.NodeID(plan.None)
	v.GrantsOf(id, func(g plan.Grant) {
		several = several || node != plan.None && node != g.Node
		node, model = g.Node, v.Node(g.Node).Model
	})
	return model, several
}

// onSlots reports whether a run has as many workers on each node, and on each device
// that is named, as the slots say.
func onSlots(v plan.View, id plan.RunID, slots []plan.Slot) bool {
	perWorker := max(1, v.Shape(v.Run(id).Job).Devices)
	var nodes []plan.NodeID // one entry per worker
	var devices []plan.DeviceID
	n := int32(0)
	v.GrantsOf(id, func(g plan.Grant) {
		if n%perWorker == 0 {
			nodes = append(nodes, g.Node)
		}
		n++
		devices = append(devices, g.Device)
	})
	var wantNodes []plan.NodeID
	for i := range slots {
		for range slots[i].Workers {
			wantNodes = append(wantNodes, slots[i].Node)
		}
		if d := slots[i].Device; d != plan.None && !slices.Contains(devices, d) {
			return false
		}
		for _, d := range slots[i].On {
			if !slices.Contains(devices, d) {
				return false
			}
		}
	}
	slices.Sort(nodes)
	slices.Sort(wantNodes)
	return slices.Equal(nodes, wantNodes)
}

// worth reports whether a change of size or place is made. One that takes nothing away
// from anybody, to the same or more workers, must win more than it costs within the
// horizon; giving workers up is never held back, since others were promised them.
func (s *Joint) worth(v plan.View, id plan.RunID, r *plan.Run, w *allocate.Wish) bool {
	if w.Workers < r.Workers || r.Status != plan.Running && r.Status != plan.Suspended {
		return true
	}
	model, several := where(v, id)
	old := max(r.RateMicro, 1)
	rate := int64(0)
	for m := range int32(v.Room().Models()) {
		if w.Slots == nil && (w.Models == 0 || w.Models&(1<<m) != 0) || w.Slots != nil && v.Node(w.Slots[0].Node).Model == m {
			rate = max(rate, v.Rate(r.Job, m, w.Workers, several && model == m || len(w.Slots) > 1))
		}
	}
	ahead := s.Horizon
	if left, known := v.Left(r.Job); known {
		ahead = min(ahead, unit.Duration(int64(left)/old*plan.FullRate))
	}
	return float64(rate-old)*float64(ahead) > float64(s.price(v, r.Job))*float64(rate)
}

// grant resumes or starts a job as wished: at the size, or at the largest smaller one
// for which there is a place.
func (s *Joint) grant(d *plan.Draft, w *allocate.Wish) {
	j := d.Job(w.Job)
	if j.Run != plan.None {
		if d.Run(j.Run).Status == plan.Suspended {
			d.Resume(j.Run, w.Reason)
		}
		return
	}
	if j.Phase != plan.Waiting {
		return
	}
	shape := d.Shape(w.Job)
	if w.Slots != nil {
		s.found = append(s.found[:0], allocate.Candidate{Slots: w.Slots})
		if s.begin(d, w, w.Workers, shape) {
			return
		}
	}
	for n := w.Workers; n > 0 && w.Slots == nil; n = smaller(shape, n) {
		s.narrow = *shape
		narrow := &s.narrow
		if w.Models != 0 {
			narrow.Models &= w.Models
		}
		guest := w.Terms != (plan.Terms{}) && w.Terms.Guest != plan.None
		if !guest && !roomFor(d.View, narrow, n) && !s.parts.finds(d.View, w.Job) {
			continue
		}
		k := 1
		if s.parts.Rater != nil {
			k = ratedCandidates
		}
		s.found = s.parts.Placer.Place(d.View, allocate.Need{Job: w.Job, Attempt: j.Attempt, Workers: n, Shape: narrow}, k, s.found[:0])
		if len(s.found) > 0 && s.begin(d, w, n, narrow) {
			return
		}
	}
	s.explain(d, w.Job)
}

// begin starts a job on the best of the places found.
func (s *Joint) begin(d *plan.Draft, w *allocate.Wish, n int32, shape *plan.Shape) bool {
	c := &s.found[s.parts.rate(d.View, w.Job, n, shape, s.found)]
	t := w.Terms
	if t == (plan.Terms{}) {
		t = c.Terms
	}
	terms, _, _ := s.parts.terms(d, w.Job, t)
	_, why := s.parts.begin(d, w.Job, c, terms, w.Reason)
	return why.Code == plan.NoReason
}

// explain says why a job waits, when the kind of reason is a new one.
func (s *Joint) explain(d *plan.Draft, id plan.JobID) {
	if j := d.Job(id); j.Phase == plan.Waiting && j.Run == plan.None {
		if why := Why(d.View, id); why.Code != j.Reason.Code {
			d.Explain(id, why)
		}
	}
}

// rent sends for the nodes that the decider wants and gives back those it does not.
func (s *Joint) rent(d *plan.Draft) {
	r, ok := s.decider.(allocate.Renter)
	if !ok {
		return
	}
	want, unwanted := r.Rentals(d.View)
	for _, id := range want {
		d.Rent(id, plan.Reason{Code: plan.Rented, A: int64(id)})
	}
	for _, id := range unwanted {
		d.Return(id, plan.Reason{Code: plan.NotNeeded, A: int64(id)})
	}
}

// Remember encodes when the decider was and wants to be asked, and the memories of the
// parts.
func (s *Joint) Remember() []byte {
	return appendMemories(figures.Put(nil, int64(s.last), int64(s.again)), s.memories)
}

// Recall reads what Remember wrote. A question that was out is put again.
func (s *Joint) Recall(memory []byte) error {
	r := figures.Read(memory)
	last, again := unit.Time(r.Next()), unit.Time(r.Next())
	if r.Cut() {
		return fmt.Errorf("the memory of a joint scheduler begins with two instants, this one does not")
	}
	s.last, s.again, s.asked = last, again, nil
	return recallMemories(r, s.memories)
}
