package calendar

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// node is what a node has free, and what it will get back and when.
type node struct {
	up       bool // takes runs
	back     bool // does, or will when a window that has begun is over or it is repaired
	model    int32
	memory   int32 // MiB of each device
	whole    int32 // wholly free devices
	cpu      int32
	host     int32
	releases []release // by time; at Never what nobody knows the end of
	stamp    int64     // of what was read of it, and one more: 0 is not read yet
	ending   bool      // a run on it is expected to end at another instant than before
	version  int64     // counts what changed of all this, and of what stands in the calendar there
	first    int32     // of the entries that stand there
	last     int32     // behind the last of them
	line     line
}

// seen is what is known of a run.
type seen struct {
	stamp  int64     // of what was read of it, and one more: 0 is not read yet
	end    unit.Time // when it is expected to end; left
	steady bool      // it stays so until then
	devoid bool      // it holds no devices
}

// release is what a node gets back at an instant.
type release struct {
	at     unit.Time
	full   int32 // devices of which nothing is free before
	partly int32 // devices that are partly free before: shares may still be taken of them
	cpu    int32
	host   int32
}

// left marks a run that is stopping: what it holds counts as free already.
const left = unit.Time(math.MinInt64)

// Look reads what is free and what runs, each run with its expected end: Never if
// unknown; one in the past counts as the next instant. It is called before a
// decision asks anything, with nothing held, and again whenever runs were stopped or
// a draft rolled back; for runs that were started Started is enough. Only nodes are read
// again on which something changed, and ends is asked again only of a run about which, or
// about whose job, something did, or whose end was not steady: one that stays what it is until it
// has come. Look returns the next instant at which a run is expected to end.
func (c *Calendar) Look(v plan.View, ends func(run plan.RunID) (end unit.Time, steady bool)) (next unit.Time) {
	back := v.Now() < c.now // of another state than before, perhaps
	c.v, c.now, next = v, v.Now(), unit.Never
	c.changed()
	c.nodes, c.runs = lengthened(c.nodes, v.Nodes(), node{}), lengthened(c.runs, v.RunSlots(), seen{end: left})
	c.runs, c.devoid, c.away = c.runs[:v.RunSlots()], c.devoid[:0], c.away[:0]
	stamps := v.RunStamps()
	for id := range c.runs {
		x, stamp := &c.runs[id], int64(1)
		if id < len(stamps) {
			stamp += stamps[id]
		}
		if at := x.end; x.stamp == stamp && x.steady && (at == left || at > c.now && !back) {
			if at != left {
				next = min(next, at)
			}
		} else if at := c.ask(plan.RunID(id), stamp, ends); at > c.now {
			next = min(next, at)
		}
		if x.devoid {
			c.devoid = append(c.devoid, plan.RunID(id))
		}
	}
	for id := range plan.NodeID(v.Nodes()) {
		n, of := &c.nodes[id], v.Node(id)
		was := n.back
		if n.up = of.Status == plan.Up; n.stamp != of.Stamp+1 || n.ending {
			n.stamp, n.model = of.Stamp+1, of.Model
			if of.Count > 0 {
				n.memory = v.Device(of.First).Memory
			}
			c.read(id)
		}
		if n.back = n.up || c.reopens(id, of.Status) || c.away.expect(v, id, of.Status, c.Repair); n.back != was {
			n.version++
		}
	}
	return next
}

// ask reads a run anew, and returns when it is expected to end.
func (c *Calendar) ask(id plan.RunID, stamp int64, ends func(run plan.RunID) (end unit.Time, steady bool)) unit.Time {
	x, end, at := &c.runs[id], left, left
	x.stamp, x.steady, x.devoid = stamp, true, false
	if r := c.v.Run(id); r.Status != plan.Gone && r.Status != plan.Stopping {
		at, x.steady = ends(id)
		end, x.devoid = max(at, c.now+1), c.v.Shape(r.Job).Devices == 0
	}
	if end != x.end {
		x.end = end
		c.v.GrantsOf(id, func(g plan.Grant) { c.nodes[g.Node].ending = true })
	}
	return at
}

// reopens reports whether a node takes runs again when a window that has begun is over.
func (c *Calendar) reopens(id plan.NodeID, status plan.NodeStatus) bool {
	return status == plan.Cordoned && slices.ContainsFunc(c.windows, func(w Window) bool { return w.Node == id && w.Open })
}

// expect notes when a node is expected back, and reports whether it is: a lost one, where anybody counts on repairs.
func (a *absences) expect(v plan.View, id plan.NodeID, status plan.NodeStatus, repair unit.Duration) bool {
	if status != plan.Down || repair == 0 {
		return false
	}
	until := v.Return(id, repair)
	if until != unit.Never {
		*a = append(*a, absence{id, until})
	}
	return until != unit.Never
}

// lengthened is a list of at least so many, the new ones as given.
func lengthened[T any](list []T, atLeast int, with T) []T {
	for len(list) < atLeast {
		list = append(list, with)
	}
	return list
}

// Started tells of a run that was promised since the last Look.
func (c *Calendar) Started(run plan.RunID, end unit.Time) {
	c.runs = lengthened(c.runs, int(run)+1, seen{end: left})
	c.runs[run] = seen{end: max(end, c.now+1), devoid: c.v.Shape(c.v.Run(run).Job).Devices == 0}
	if c.runs[run].devoid {
		c.devoid = append(c.devoid, run)
	}
	c.moved()
	last := plan.NodeID(plan.None)
	c.v.GrantsOf(run, func(g plan.Grant) {
		if g.Node != last {
			last = g.Node
			c.nodes[g.Node].stamp = c.v.Node(g.Node).Stamp + 1
			c.read(g.Node)
		}
	})
}

// read notes what a node has free, and when it gets back the rest: cores and host memory when
// the run ends that has them, a device when the last of the runs on it does. A device that is
// cut or lost never comes back.
func (c *Calendar) read(id plan.NodeID) {
	n, of := &c.nodes[id], c.v.Node(id)
	n.ending = false
	n.version++
	n.cpu, n.host, n.whole, n.releases = of.FreeCPU, of.FreeHost, 0, n.releases[:0]
	for d := of.First; d < of.First+plan.DeviceID(of.Count); d++ {
		dev, at := c.v.Device(d), left
		c.v.GrantsOn(d, func(g plan.Grant) {
			at = max(at, c.runs[g.Run].end)
			n.cores(c.runs[g.Run].end, &g)
		})
		switch {
		case dev.Status.Out() || dev.Geometry != 0:
		case dev.Whole():
			n.whole++
		case dev.Free > 0:
			n.releases = append(n.releases, release{at: at, partly: 1})
		default:
			n.releases = append(n.releases, release{at: at, full: 1})
		}
	}
	for _, run := range c.devoid {
		c.v.GrantsOf(run, func(g plan.Grant) {
			if g.Node == id {
				n.cores(c.runs[run].end, &g)
			}
		})
	}
	n.sort()
}

// cores notes when a worker gives its cores and its host memory back: those of one who is
// leaving count as free already.
func (n *node) cores(at unit.Time, g *plan.Grant) {
	if at != left && (g.CPU > 0 || g.Host > 0) {
		n.releases = append(n.releases, release{at: at, cpu: g.CPU, host: g.Host})
	}
}

// sort orders the releases and adds up those of one instant.
func (n *node) sort() {
	slices.SortFunc(n.releases, func(a, b release) int { return cmp.Compare(a.at, b.at) })
	kept := n.releases[:0]
	for _, r := range n.releases {
		if k := len(kept) - 1; k >= 0 && kept[k].at == r.at {
			kept[k].full += r.full
			kept[k].partly += r.partly
			kept[k].cpu += r.cpu
			kept[k].host += r.host
			continue
		}
		kept = append(kept, r)
	}
	n.releases = kept
}
