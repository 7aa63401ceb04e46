package calendar_test

import (
	"fmt"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// horizon is after everything of a random case whose end is known.
const horizon = 3000

// free is what a node has at an instant, counted from what runs, by device.
func (l *loop) free(id plan.NodeID, at unit.Time) (devices, cpu, host int64) {
	v := l.s.View()
	n := v.Node(id)
	cpu, host = int64(n.FreeCPU), int64(n.FreeHost)
	busy := map[plan.DeviceID]bool{}
	for run := range plan.RunID(v.RunSlots()) {
		if v.Run(run).Status == plan.Gone {
			continue
		}
		over := max(calendar.Ends(v, run), v.Now()+1) <= at
		v.GrantsOf(run, func(g plan.Grant) {
			switch {
			case g.Node != id:
			case over:
				cpu, host = cpu+int64(g.CPU), host+int64(g.Host)
			case g.Device != plan.None:
				busy[g.Device] = true
			}
		})
	}
	return int64(n.Count) - int64(len(busy)), cpu, host
}

// beside takes off what the claims, one left out, and the windows want at an instant.
func (l *loop) beside(id plan.NodeID, at unit.Time, except plan.JobID) (devices, cpu, host int64, open bool) {
	devices, cpu, host = l.free(id, at)
	for _, cl := range l.cal.Claims() {
		from, now := cl.At, l.s.Now
		if cl.At == unit.Never || cl.Due <= now {
			from = now
		}
		if cl.Job == except || at < from || at >= max(cl.At, now).Add(cl.Length) {
			continue
		}
		for _, p := range cl.Parts {
			if p.Node == id {
				devices, cpu, host = devices-int64(p.Devices), cpu-int64(p.CPU), host-int64(p.Host)
			}
		}
	}
	for _, w := range l.cal.Windows() {
		if w.Node == id && w.From <= at && at < w.To {
			return 0, 0, 0, false
		}
	}
	return devices, cpu, host, true
}

// workers is how many workers a node could take at an instant for a length, tried
// one by one and microsecond by microsecond.
func (l *loop) workers(id plan.NodeID, shape *plan.Shape, at unit.Time, length unit.Duration) int32 {
	n := l.s.Nodes[id]
	if n.Status != plan.Up || shape.Models&(1<<n.Model) == 0 {
		return 0
	}
	most := shape.Gang
	for t := at; t < min(at.Add(length), horizon); t++ {
		devices, cpu, host, open := l.beside(id, t, plan.None)
		for most > 0 {
			want := int64(most) * int64(shape.Devices)
			if shape.Devices > 0 && shape.Share < 1000 {
				want = 0
				for left := most; left > 0; want++ { // fill device after device
					milli, memory := int32(1000), int32(16<<10)
					for left > 0 && milli >= shape.Share && memory >= shape.Memory {
						milli, memory, left = milli-shape.Share, memory-shape.Memory, left-1
					}
				}
			}
			if open && (want == 0 || want <= devices) && (shape.CPU == 0 || int64(most)*int64(shape.CPU) <= cpu) &&
				(shape.Host == 0 || int64(most)*int64(shape.Host) <= host) {
				break
			}
			most--
		}
	}
	return most
}

// checkEarliest compares a claim with the first instant found by trying them all.
func (l *loop) checkEarliest(claim calendar.Claim) error {
	shape := l.s.View().Shape(claim.Job)
	step := unit.Time(1)
	if l.unknown || claim.Length > 300 || claim.At > l.s.Now+300 && !l.sure {
		return nil // too long to be tried
	}
	for at := l.s.Now; at < horizon; at += step {
		total := int32(0)
		for id := range plan.NodeID(len(l.s.Nodes)) {
			total += l.workers(id, shape, at, claim.Length)
		}
		if total >= shape.Gang {
			if claim.At != at {
				return fmt.Errorf("job %d (%+v for %d) fits at %d, its claim is %+v beside %+v", claim.Job, *shape, claim.Length, at, claim, l.cal.Claims())
			}
			return l.checkParts(claim)
		}
		if at > l.s.Now+200 && claim.At == unit.Never {
			step = 100 // nothing of a small case lasts so long; try a few more
		}
	}
	if claim.At != unit.Never {
		return fmt.Errorf("job %d (%+v for %d) never fits, its claim is %+v", claim.Job, *shape, claim.Length, claim)
	}
	return nil
}

// checkParts proves that a claim is free when it says.
func (l *loop) checkParts(claim calendar.Claim) error {
	for _, p := range claim.Parts {
		for t := claim.At; t < min(claim.At.Add(claim.Length), horizon); t++ {
			devices, cpu, host, open := l.beside(p.Node, t, plan.None)
			if !open || p.Devices > 0 && devices < int64(p.Devices) || p.CPU > 0 && cpu < int64(p.CPU) || p.Host > 0 && host < int64(p.Host) {
				return fmt.Errorf("the claim %+v is not free on node %d at %d", claim, p.Node, t)
			}
		}
	}
	return nil
}

// checkHolds proves, for a job of whole devices, that no more is held of a node than
// the claims need, and no less.
func (l *loop) checkHolds(job plan.JobID, until unit.Time, holds []calendar.Hold) error {
	for id := range plan.NodeID(len(l.s.Nodes)) {
		var held calendar.Hold
		for _, h := range holds {
			if h.Node == id {
				held = h
			}
		}
		whole, cpu, host := l.free(id, l.s.Now)
		left, leftCPU, leftHost := whole, cpu, host
		for t := l.s.Now; t < min(until, horizon); t++ {
			d, c, h, open := l.beside(id, t, job)
			if !open {
				d, c, h = 0, 0, 0
			}
			left, leftCPU, leftHost = min(left, d), min(leftCPU, c), min(leftHost, h)
		}
		want := [3]int64{whole - max(0, left), cpu - max(0, leftCPU), host - max(0, leftHost)}
		if got := [3]int64{int64(held.Devices), int64(held.CPU), int64(held.Host)}; got != want {
			return fmt.Errorf("until %d job %d leaves %v of node %d alone, want %v", until, job, got, id, want)
		}
	}
	return nil
}
