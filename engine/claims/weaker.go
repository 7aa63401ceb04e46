package claims

import (
	"slices"

	"github.com/musterdl/muster/engine/law"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Ground says by which claim a job of a leaf may take milli of room from another's run, or
// that it may not.
func (c *Claims) Ground(v plan.View, leaf int32, job, other plan.JobID, milli int64) plan.ReasonCode {
	held, models := c.charged[other], v.Shape(job).Models
	if held.model != plan.None && (held.milli == 0 || models&(1<<held.model) == 0) {
		return plan.NoReason // a guest, or on devices that are no use
	}
	guarantee, priority := c.Stronger(leaf, held.leaf, held.model, models, milli)
	if guarantee {
		return plan.Reclaimed
	}
	o := v.Job(other)
	if !priority || v.Priority(job) <= o.Priority || c.disrupted(v, &o) {
		return plan.NoReason
	}
	return plan.Outranked
}

// disrupted reports whether a job was stopped as often as the queues allow for a priority. It notes when that
// is over.
func (c *Claims) disrupted(v plan.View, j *plan.Job) bool {
	days := v.Now().Sub(j.Submit) / unit.Day
	if c.config.Disruptions == 0 || int64(j.Preemptions) < int64(c.config.Disruptions)*(1+int64(days)) {
		return false
	}
	c.LookAgain(j.Submit.Add((days + 1) * unit.Day))
	return true
}

// Outranks reports whether a run would take its room back from a job at once, by its priority.
func (c *Claims) Outranks(v plan.View, run, job plan.JobID) bool {
	j := v.Job(job)
	return c.Shared() && v.Priority(run) > j.Priority && c.PriorityCounts(c.LeafOf(v, &j), c.charged[run].leaf)
}

// Keeps reports whether a run is not stopped for jobs of other queues that have no claim
// to its room: since it is protected, or holds what its queue is guaranteed.
func (c *Claims) Keeps(v plan.View, job plan.JobID) bool {
	if !c.Shared() {
		return false
	}
	if c.config.Protect > 0 && c.ProtectedUntil(v, job) > v.Now() {
		return true
	}
	x := c.charged[job]
	return x.milli > 0 && c.Guaranteed(x.leaf, 1<<x.model, 0)
}

// Spares works out what queues deserve, and returns whether that of a run still has it when that run
// ends for a job of a leaf.
func (c *Claims) Spares(other plan.JobID, leaf int32) bool {
	c.AimOnce()
	x := c.charged[other]
	return x.milli == 0 || c.MayYield(x.leaf, leaf, x.model, x.milli)
}

// MayTakeBack works out what anybody might have to give up to a job of a priority, and returns whether
// that and free room are enough for the smallest size of a shape: a bound that costs one look at what
// runs for all classes of a pass.
func (c *Claims) MayTakeBack(v plan.View, pass int64, shape *plan.Shape, priority int32) bool {
	need := shape.Milli(shape.Least()) - v.Room().FreeMilli(shape.Models)
	return c.CouldTakeBack(v, shape) && need <= sum(c.givable(v, pass, priority), shape.Models)
}

// CouldTakeBack is a wider bound that costs nothing.
func (c *Claims) CouldTakeBack(v plan.View, shape *plan.Shape) bool {
	need := shape.Milli(shape.Least()) - v.Room().FreeMilli(shape.Models)
	return c.Shared() && need <= sum(c.Lent(), shape.Models)
}

// sum adds up the models of a set.
func sum(of []int64, models uint64) (n int64) {
	for m, milli := range of {
		if models&(1<<m) != 0 {
			n += milli
		}
	}
	return n
}

// give is what could be taken back for a job of a priority, by model.
type give struct {
	priority int32
	milli    []int64
}

// givable is, by model, what unprotected runs hold that are above a guarantee or of
// lower priority where that counts.
func (c *Claims) givable(v plan.View, pass int64, priority int32) []int64 {
	if c.of != pass {
		c.of, c.gives = pass, c.gives[:0]
	}
	if i := slices.IndexFunc(c.gives, func(g give) bool { return g.priority == priority }); i >= 0 {
		return c.gives[i].milli
	}
	g := give{priority, make([]int64, v.Room().Models())}
	for b := range c.leaves {
		if c.Lends(int32(b)) {
			c.addGivable(v, int32(b), &g)
		}
	}
	c.gives = append(c.gives, g)
	return g.milli
}

// addGivable adds what runs of a leaf might have to give up.
func (c *Claims) addGivable(v plan.View, b int32, g *give) {
	over, preempt := c.OverGuarantee(b), c.Preempts(b)
	for _, id := range c.leaves[b].running {
		if !over && !(preempt && v.Priority(id) < g.priority) || v.RunOf(id) == plan.None {
			continue // none: it was stopped a moment ago
		}
		if c.waitsForProtection(v, id) {
			continue
		}
		if x := &c.charged[id]; x.milli > 0 {
			g.milli[x.model] += x.milli
		}
		for _, x := range c.more[id] {
			g.milli[x.model] += x.milli
		}
	}
}

// together is how exactly the end of a protection is kept: those that lose it within
// this time are looked at together.
const together = unit.Time(10 * unit.Second)

// ProtectedUntil is until when a job's run is not displaced for a guarantee or a priority.
func (c *Claims) ProtectedUntil(v plan.View, job plan.JobID) unit.Time {
	if c.byRank {
		if _, run, why := v.Stands(job); why == plan.TookRoomOf {
			return protection(v, run, 0) // else runs that take each other's room would keep it from a guarantee for ever
		}
	}
	return c.charged[job].protected
}

// LosesProtection notes when a run is protected no longer that may have to give way then.
func (c *Claims) LosesProtection(v plan.View, id plan.JobID) {
	leaf := c.charged[id].leaf
	if c.Shared() && (c.OverGuarantee(leaf) || c.Preempts(leaf)) {
		c.waitsForProtection(v, id)
	}
}

// waitsForProtection notes when a run is protected no longer, and returns whether it is now.
func (c *Claims) waitsForProtection(v plan.View, id plan.JobID) (is bool) {
	at := c.ProtectedUntil(v, id)
	if is = at > v.Now(); is {
		c.LookAgain(at)
	}
	return is
}

// FromRank is for how long ranks displace no run, as the operator protects runs.
func (c *Claims) FromRank() unit.Duration { return c.config.ProtectRank }

// PriorityTakes reports whether priority takes room for jobs of the leaf that a run is charged to.
func (c *Claims) PriorityTakes(run plan.JobID) bool {
	return c.Shared() && c.Preempts(c.charged[run].leaf)
}

// protection is when a run has computed for its time. A promise stands, or others would have been stopped
// for nothing. Never is not for now.
func protection(v plan.View, run plan.RunID, wait unit.Duration) unit.Time {
	r := v.Run(run)
	if !r.Status.Steady() {
		return unit.Never
	}
	wait = max(wait, law.AtLeast)
	if c := v.Job(r.Job).Checkpoint; !c.OnRequest {
		wait = max(wait, c.Every)
	}
	return (r.Began.Add(wait) + together - 1) / together * together
}
