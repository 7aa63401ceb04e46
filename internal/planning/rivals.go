package planning

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// rivals adds what differs from the best in one thing: the sequence, how the layers run, or
// two of the sizes.
func (c *Comparison) rivals(x *parallel.Simulator, best *parallel.Candidate) {
	s, like := best.Plan.Shape()
	if !like {
		return
	}
	for _, q := range c.task.Limits.Sequences {
		if other := s; s.Ranks > 1 { // on one rank all are alike
			other.Sequence = q
			c.rival(x, other)
		}
	}
	n := x.Model.Profile.Layers()
	if all, why := x.Ways(n/2, 0, s.Tensor, s.Samples); why == "" {
		for w := range all {
			other := s
			other.Ways = x.AllIn(int8(w), s.Tensor)
			c.rival(x, other)
		}
	}
	for _, apart := range append([]int{0}, x.On.Apart(x.On.Len(), s.Copies)...) {
		if other := s; s.Ranks > 1 { // else each copy is where it is
			other.Apart = apart
			c.rival(x, other)
		}
	}
	groups := s.Tensor * s.Ranks * s.Copies
	inNode := int(slices.MaxFunc(x.On.Nodes, func(a, b parallel.Node) int { return cmp.Compare(a.Count, b.Count) }).Count)
	for _, size := range [][2]int{{s.Tensor / 2, s.Ranks * 2}, {s.Tensor * 2, s.Ranks / 2}, {s.Tensor, s.Ranks / 2}, {s.Tensor, s.Ranks * 2}, {s.Tensor / 2, s.Ranks}, {s.Tensor * 2, s.Ranks}} {
		other := s
		if other.Tensor, other.Ranks = size[0], size[1]; other.Tensor < 1 || other.Tensor > inNode || other.Ranks < 1 || groups%(other.Tensor*other.Ranks) != 0 {
			continue
		}
		if other.Copies = groups / other.Tensor / other.Ranks; s.Apart > 0 && other.Copies%s.Apart != 0 {
			other.Apart = 0
		}
		if other.Experts > 1 { // over as many as there are, in a group of copies
			other.Experts = shape.Nearest(other.Experts, other.Copies/max(1, other.Apart))
		}
		other.Ways = nil
		if s.Ways != nil {
			other.Ways = x.AllIn(s.Ways[n/2], other.Tensor)
		}
		if x.Model.Batch%(other.Copies*other.Samples) == 0 && x.Model.Batch >= other.Copies*other.Samples {
			other.Microbatches = x.Model.Batch / other.Copies / other.Samples
			c.rival(x, other)
		}
	}
	if count := x.Experts(s.Tensor); count > 1 {
		for _, experts := range []int{0, max(1, s.Experts) / 2, 2 * max(1, s.Experts)} {
			if other := s; experts != 1 && (experts == 0 || count%experts == 0 && s.Copies%experts == 0) {
				other.Experts = experts
				c.rival(x, other)
			}
		}
	}
	if s.Microbatches%2 == 0 {
		s.Microbatches, s.Samples = s.Microbatches/2, 2*s.Samples
		c.rival(x, s)
	}
}

// rival adds one plan, simulated, with why it cannot be where it cannot.
func (c *Comparison) rival(x *parallel.Simulator, s parallel.Shape) {
	cuts, why := x.Cuts(&s, c.task.Cut)
	s.Cuts = cuts
	plan := s.Plan()
	if !c.task.Limits.Allow(&plan) {
		return
	}
	if why != "" {
		c.add(Row{Plan: text(x, &plan), Lost: string(why)})
		return
	}
	r, why := x.Simulate(&plan)
	row := c.row(x, &parallel.Candidate{Plan: plan, Result: r})
	if why != "" {
		row.StepSec, row.MFUPct, row.BubblePct, row.Crosses, row.made, row.Lost = 0, 0, 0, "", nil, string(why)
		row.InReserve = false
		if rank, over := fullest(&r, row.DeviceMiB-row.ReserveMiB); over {
			row.Lost = fmt.Sprintf("memory of rank %d", rank)
		}
	}
	c.add(row)
}

// fullest is the rank that needs most, and whether that is more than there is room for.
func fullest(r *parallel.Result, roomMiB float64) (rank int, over bool) {
	most := int64(0)
	for _, part := range r.Parts {
		for k, m := range part.Timing.Peak {
			if m.Total() > most {
				most, rank = m.Total(), k
			}
		}
	}
	return rank, roomMiB > 0 && float64(most)/1024 > roomMiB
}

// rank puts the best first and says of each other why it lost.
func (c *Comparison) rank() {
	slices.SortStableFunc(c.Rows, func(a, b Row) int {
		if (a.StepSec == 0) != (b.StepSec == 0) {
			return cmp.Compare(b.StepSec, a.StepSec)
		}
		return cmp.Or(cmp.Compare(a.StepSec, b.StepSec), cmp.Compare(a.PeakMiB, b.PeakMiB), cmp.Compare(a.SimulatedOnly, b.SimulatedOnly), cmp.Compare(a.Plan, b.Plan))
	})
	if c.Rows[0].StepSec == 0 {
		return
	}
	for i := range c.Rows[1:] {
		if row := &c.Rows[i+1]; row.Lost == "" {
			row.Lost = Lost(&c.Rows[0], row)
		}
	}
}

// Lost says why a plan is not the best: the part of the step that is longer by most.
func Lost(best, other *Row) string {
	if other.StepSec <= best.StepSec*(1+1e-9) {
		if more := other.PeakMiB/best.PeakMiB - 1; more > 0 {
			return fmt.Sprintf("as fast, %+.1f %% memory", 100*more)
		}
		return "as good"
	}
	passes := func(r *Row) (busy, idle float64) {
		end := r.StepSec - r.ExposedSec - r.UpdateSec
		return end * (1 - r.BubblePct/100), end * r.BubblePct / 100
	}
	busy, idle := passes(best)
	otherBusy, otherIdle := passes(other)
	parts := []struct {
		by   float64
		text string
	}{
		{otherIdle - idle, fmt.Sprintf("bubble %+.1f", other.BubblePct-best.BubblePct)},
		{otherBusy - busy, "passes " + more(otherBusy-busy)},
		{other.ExposedSec - best.ExposedSec, "exposed exchange " + more(other.ExposedSec-best.ExposedSec)},
		{other.UpdateSec - best.UpdateSec, "optimiser " + more(other.UpdateSec-best.UpdateSec)},
	}
	slices.SortStableFunc(parts, func(a, b struct {
		by   float64
		text string
	}) int {
		return cmp.Compare(b.by, a.by)
	})
	return parts[0].text
}

// more is a time that is added.
func more(sec float64) string { return fmt.Sprintf("%+.3g s", sec) }
