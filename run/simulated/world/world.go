// Package world is simulated nature: how fast a run really goes on the devices it
// has, beside its neighbours, over the links it shares; what a checkpoint keeps;
// when things break. Only run/simulated may import it, so that no strategy can
// know what no strategy could.
//
// A run's rate is its progress per second of running time, where 1 is the job's
// own reference: its gang, consolidated, undisturbed, on the reference device. It
// changes only when an allocation or a neighbour changes, and then only in the
// connected component of runs that share a device or a link.
package world

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/world/books"
	"github.com/musterdl/muster/run/simulated/world/links"
)

// Speeds are measured rates of kinds of work; package run/simulated/world/speed has them.
type Speeds interface {
	// Rate is the progress of a class on n workers over so many nodes of a device
	// model, relative to one worker on the reference device.
	Rate(class, model string, workers, nodes int) (float64, bool)
	sharing.Pairs
}

// Config is what nature is like.
type Config struct {
	Speeds Speeds // nil: no measured tables, only the cluster's declared model speeds
	// StragglerPart of the runs are slowed by StragglerSlowdown, drawn by Seed.
	StragglerPart, StragglerSlowdown float64
	// LinkJitter is by how much links fall short of what is written on them: each by the
	// size of a normal draw of this spread, by Seed.
	LinkJitter float64
	Seed       uint64
	// Slow are devices and links that are slow for a time, whoever is there; who sets the world up says
	// when each begins and ends.
	Slow []Slow
	// Switch is what handing a device to a guest, or back, takes in each window that a plan leaves
	// idle.
	Switch unit.Duration
	// Slices says that of a run that a planner spread, and that loses workers, those that are left also save where
	// layers are sliced over workers, as launchers do that keep processes; the trainer of our own does not.
	Slices bool
	// Services are the true laws of services that share a device, by device model; where
	// there is none, a service is work like any other.
	Services map[string]*sharing.Law
	// Answers, where it is set, is told whenever a replica of such a service answers
	// otherwise than before.
	Answers func(now unit.Time, job plan.JobID, a Answers)
}

// World knows the truth about every job and the progress of every run.
type World struct {
	config  Config
	c       *cluster.Cluster
	truth   []truth // by job
	runs    []run   // by slot
	net     *links.Net
	onDev   [][]plan.RunID
	mark    []int32 // by slot: generation it was last visited in
	round   int32
	queue   []plan.RunID // scratch of the component search
	scratch []float64    // rates of the component
	without []float64    // and without its guests
	plans   map[planKey]truePlan
	slow    slowness
	ended   books.Bubbles // of runs that ended
	busy    []float64     // by device model: device microseconds kept busy, of runs that ended
	shared  bool          // a run had less of a device than its job asks for
	// Guests are reckoned with, or not for a moment.
	guestless bool
}

type truth struct {
	workload.Truth
	class  string
	menu   plan.Menu
	phase  workload.Phase
	layers []workload.Layer
	drifts int                      // how many of its drifts have begun
	belief int8                     // whether they are as believed: 1 yes, -1 no, 0 was not looked at
	left   float64                  // reference microseconds of work not yet done and kept
	spent  unit.Duration            // running time so far, for failures of the user's making
	alive  map[plan.DeviceID]string // what the processes hold that are left of its last run, by their devices, and wait
	pieces int                      // how many different ones there are in all
}

type run struct {
	job     plan.JobID
	began   unit.Time
	updated unit.Time
	rate    float64
	solo    float64       // rate without neighbours on devices and links
	done    float64       // reference microseconds done since it began
	rested  unit.Duration // time spent suspended since it began
	live    bool
	paused  bool
	devices []plan.DeviceID // only where it shares one
	count   int32           // devices it is on
	model   int32
	need    float64        // of a device, what it uses at full rate
	limit   float64        // of a device, what it may use
	width   float64        // devices that it keeps busy at full rate, for the books
	spare   workload.Spare // what its plan truly leaves of its devices
	book    books.Book     // what it keeps busy
	busy    float64        // of a device, what it uses at full rate of a whole one
	lost    float64        // of what it holds now, by its guests
	lives   unit.Duration  // of its running time, that the workers which are left of it have saved
	linked  float64        // the part of its rate that links leave it, whoever is on its devices
	sends   links.Sender
	offered bool // its plan came with its offer, from a planner
	mixing
	replica *replica // nil where it is not one of a service whose law is known
}

// mixing is how a run stands to others on its device.
type mixing struct {
	base     string // it may be merged with others of the same
	guest    bool
	merged   bool   // as a guest it trains in one process with its host
	law      string // that it is under as a guest
	settling bool   // the law has not found yet where it holds
}

// replica is what is known of a run that is a replica of a service whose law is known.
type replica struct {
	device *sharing.Device
	tenant sharing.Tenant
}

// New returns a world over a cluster.
func New(c *cluster.Cluster, config Config) *World {
	return &World{config: config, c: c, net: links.New(c, config.LinkJitter, config.Seed), onDev: make([][]plan.RunID, len(c.Devices)), busy: make([]float64, len(c.Models))}
}

// Known is the truth about a job: about one that is new, its Truth alone.
type Known struct {
	workload.Truth
	// Done is how much of the work, in microseconds of the true running time, runs
	// that have ended did and kept; Spent how long they computed in all.
	Done  float64
	Spent unit.Duration
	// Menu lists the true rates on other shapes; Phase is what an iteration truly is, and
	// Layers what the layers of its pipeline truly are. Where one is missing it is as
	// believed, and so is a figure of a layer that is zero.
	Menu   plan.Menu
	Phase  workload.Phase
	Layers []workload.Layer
}

// Expect makes room for what is true of so many jobs more, and for so many runs.
func (w *World) Expect(jobs, runs int) {
	w.truth, w.runs, w.mark = slices.Grow(w.truth, jobs), slices.Grow(w.runs, runs), slices.Grow(w.mark, runs)
}

// Know tells the world the truth about a job.
func (w *World) Know(id plan.JobID, class string, k Known) {
	for int(id) >= len(w.truth) {
		w.truth = append(w.truth, truth{})
	}
	w.truth[id] = truth{Truth: k.Truth, class: class, menu: k.Menu, phase: k.Phase, layers: k.Layers, left: max(0, float64(k.Duration)-k.Done), spent: k.Spent}
	t := &w.truth[id]
	for t.drifts < len(k.Drifts) && k.Drifts[t.drifts].From*float64(k.Duration) <= k.Done && k.Done > 0 {
		t.drifts++
	}
}

// Begin starts a run's progress and returns the runs whose end has moved, itself
// included.
func (w *World) Begin(now unit.Time, v plan.View, id plan.RunID) []plan.RunID {
	w.place(now, v, id)
	return w.rerate(now, id)
}

// place puts a run where its grants say.
func (w *World) place(now unit.Time, v plan.View, id plan.RunID) {
	r := v.Run(id)
	for int(id) >= len(w.runs) {
		w.runs = append(w.runs, run{})
		w.mark = append(w.mark, 0)
	}
	x := run{job: r.Job, began: now, updated: now, live: true, book: books.Open(now), busy: cmp.Or(w.truth[r.Job].Busy, 1), linked: 1}
	w.shape(v, id, &x)
	w.runs[id], w.shared = x, w.shared || v.Beside(id)
	w.enter(v, id)
	w.net.Join(id, &w.runs[id].sends)
}

// enter puts a run on the devices it shares, and those there too that had them to
// themselves until now.
func (w *World) enter(v plan.View, id plan.RunID) {
	for _, d := range w.runs[id].devices {
		v.GrantsOn(d, func(g plan.Grant) {
			if w.alive(g.Run) && !slices.Contains(w.onDev[d], g.Run) {
				w.onDev[d] = append(w.onDev[d], g.Run)
				if !slices.Contains(w.runs[g.Run].devices, d) {
					w.runs[g.Run].devices = append(w.runs[g.Run].devices, d)
				}
			}
		})
	}
}

// shape fills in what a run's placement and terms mean: how it stands to others, the
// devices it shares, the links it crosses, and how fast it goes by itself.
func (w *World) shape(v plan.View, id plan.RunID, x *run) {
	r, p := v.Run(id), v.ProfileOf(x.job)
	x.mixing.set(p, &r.Terms)
	traffic := r.Terms.Traffic
	x.sends.Class, x.sends.Weight, x.sends.Shift = traffic.Class, cmp.Or(float64(traffic.Weight), 1000), traffic.Shift
	x.sends.Phase = [2]unit.Duration{p.Compute, p.Communicate}
	if is := w.truth[x.job].phase; is != (workload.Phase{}) {
		x.sends.Phase = [2]unit.Duration{is.Compute, is.Communicate}
	}
	on := w.occupy(v, id, x)
	if x.sends.Shares, x.sends.Sends = nil, 0; r.Terms.Plan.ID == plan.None || !w.byPlan(v, id, x, on.kind) {
		x.sends.Demand = w.net.Crossing(x.sends.Demand, on.nodes)
	}
	w.setSpeed(v, id, x, on)
	w.serves(v, x, on.model, r.Terms.Share.Batch)
}

// set fills in how a run stands to others by what is known of its job and by its terms.
func (m *mixing) set(p *plan.Profile, terms *plan.Terms) {
	m.base, m.guest, m.law = p.Base, terms.Share.Guest != plan.None, p.Law
	m.merged = m.guest && terms.Share.Bond == plan.InOne
	if m.guest && m.law == "" && terms.Share.Bond == plan.InGaps {
		m.law = control.ForGuests // as drivers hold a guest whose job names no law
	}
}

// occupy reads off a run's grants which devices it has, what of them it may use, and what it
// sends over its nodes' links. It returns where the run is.
func (w *World) occupy(v plan.View, id plan.RunID, x *run) spot {
	shape, traffic := v.Shape(x.job), float64(v.Job(x.job).Traffic)
	on, last := spot{class: w.truth[x.job].class, speed: math.Inf(1)}, plan.NodeID(plan.None)
	x.devices, x.limit, x.width, x.count, x.sends.Demand = x.devices[:0], 1, 0, 0, x.sends.Demand[:0]
	v.GrantsOf(id, func(g plan.Grant) {
		if g.Node != last {
			last = g.Node
			on.add(w.c, g.Node)
			if traffic > 0 {
				x.sends.Demand = append(x.sends.Demand, maxmin.Use{Link: w.c.NodeLink(int32(g.Node))})
			}
		}
		if traffic > 0 {
			x.sends.Demand[len(x.sends.Demand)-1].Per += traffic
		}
		if g.Device == plan.None {
			return
		}
		x.count++
		x.width += float64(max(g.Reserve, shape.Share)) / 1000
		if g.Ceiling < 1000 {
			x.limit = min(x.limit, float64(g.Ceiling)/1000)
		}
		if g.Part > 0 {
			x.limit = min(x.limit, float64(v.PartOf(g).Milli)/1000)
		} else if g.Reserve < 1000 || v.Shared(g.Device) {
			x.devices = append(x.devices, g.Device)
		}
	})
	return on
}

// setSpeed fills in how fast a run goes by itself where it is, and what it then needs of its
// devices: less where workers wait for each other, or a plan leaves windows.
func (w *World) setSpeed(v plan.View, id plan.RunID, x *run, on spot) {
	r, shape, menu, several := v.Run(id), v.Shape(x.job), w.truth[x.job].menu, on.nodes > 1
	x.solo = w.soloRate(x.job, shape, r.Workers, on)
	if len(menu) > 0 {
		x.solo = w.straggle(x.job, float64(menu.Rate(w.c, on.kind, r.Workers, several))/plan.FullRate)
	}
	efficiency := w.efficiency(x.job, on.kind, r.Workers, several)
	x.model, x.width, x.need = on.kind, x.width*x.busy*efficiency, x.busy
	if shape.Share < 1000 {
		x.need *= float64(shape.Share) / 1000 // it was measured on that
	}
	truly := w.planned(v, id, x.job, r.Terms.Plan.ID)
	x.spare, x.offered = truly.spare, r.Terms.Plan.ID != plan.None && v.ProfileOf(x.job).Stages == 0
	if !x.offered {
		x.need *= efficiency
	} else {
		x.spare = menu.Spread(on.kind, r.Workers, several).Spare
		x.width *= 1 - x.spare.Idle() // where the layers were measured, the rate of the plan says so
	}
	x.need *= 1 - x.spare.Idle()
	part := min(1, x.limit/x.need)
	x.solo, x.width = x.solo*part*truly.rate*w.heldUp(v, id), x.width*part*min(1, truly.rate)
}

// efficiency is how busy a device is kept by one of several workers, of what one alone
// keeps it busy: where the menu tells both rates.
func (w *World) efficiency(job plan.JobID, model, workers int32, several bool) float64 {
	menu := w.truth[job].menu
	one, all := menu.Rate(w.c, model, 1, false), menu.Rate(w.c, model, workers, several)
	if workers < 2 || one == 0 || all == 0 {
		return 1
	}
	return min(1, float64(all)/float64(one)/float64(workers))
}

// spot is where a run is, as its speed depends on it.
type spot struct {
	nodes, perNode int    // how many, and the devices of the largest
	class, model   string // of work, and of the slowest device
	kind           int32  // which model that is
	speed          float64
}

// add takes in that a node is a part of the place.
func (s *spot) add(c *cluster.Cluster, node plan.NodeID) {
	n := &c.Nodes[node]
	s.nodes, s.perNode = s.nodes+1, max(s.perNode, int(n.Count))
	if m := &c.Models[n.Model]; m.Speed < s.speed {
		s.speed, s.model, s.kind = m.Speed, m.Name, n.Model
	}
}

// soloRate is the rate without neighbours: measured where there is a table for the
// class, else the slowest model's declared speed, the share of workers it has of
// those it asked for, and the job's own sensitivity to being spread.
func (w *World) soloRate(job plan.JobID, shape *plan.Shape, workers int32, on spot) float64 {
	t := &w.truth[job]
	least := 1
	if shape.Devices > 0 && on.perNode > 0 {
		least = (int(workers*shape.Devices) + on.perNode - 1) / on.perNode
	}
	rate := 1.0
	if w.config.Speeds != nil {
		here, ok := w.config.Speeds.Rate(on.class, on.model, int(workers), on.nodes)
		ref, ok2 := w.config.Speeds.Rate(on.class, "", int(shape.Gang), (int(shape.Gang)+7)/8)
		if ok && ok2 && ref > 0 {
			return w.straggle(job, here/ref)
		}
	}
	if on.speed > 0 && !math.IsInf(on.speed, 1) {
		rate = on.speed
	}
	rate *= float64(workers) / float64(shape.Gang)
	if extra := on.nodes - least; extra > 0 && t.Sensitivity > 0 {
		rate /= 1 + t.Sensitivity*math.Log2(1+float64(extra))
	}
	return w.straggle(job, rate)
}

// advance brings a run's progress up to now.
func (x *run) advance(now unit.Time) {
	if x.paused {
		x.rested += now.Sub(x.updated)
	} else {
		x.done += float64(now.Sub(x.updated)) * x.rate
	}
	x.updated = now
}

// Ends is when a run will have done its job's work or fail by its own making, as
// things stand, and whether it will have failed.
func (w *World) Ends(id plan.RunID) (at unit.Time, fails bool) {
	x := &w.runs[id]
	t := &w.truth[x.job]
	if x.paused || x.rate <= 0 {
		return unit.Never, false
	}
	at = x.updated.Add(unit.Duration(math.Ceil(max(0, t.left-x.done) / x.rate)))
	if t.FailAfter > 0 {
		if f := x.began.Add(max(0, t.FailAfter-t.spent)); f < at {
			return f, true
		}
	}
	return at, false
}

// Pause and Unpause stop and start a resident run's progress.
func (w *World) Pause(now unit.Time, id plan.RunID) []plan.RunID {
	w.runs[id].advance(now)
	w.runs[id].paused = true
	return w.rerate(now, id)
}

// Unpause lets a run go on.
func (w *World) Unpause(now unit.Time, id plan.RunID) []plan.RunID {
	w.runs[id].advance(now)
	w.runs[id].paused = false
	return w.rerate(now, id)
}

// Ending is what remains of a run.
type Ending struct {
	Ran  unit.Duration // running time
	Kept unit.Duration // of which the work is kept
	// BusySec is the device seconds it kept busy since the world began.
	BusySec float64
}

// End takes a run out. Its work is kept whole when saved (it finished, or could
// checkpoint before it was stopped), else back to the last periodic checkpoint, or to what
// was saved of a run that lost devices (Lose). It
// returns the runs whose end has moved.
func (w *World) End(now unit.Time, v plan.View, id plan.RunID, saved bool) (Ending, []plan.RunID) {
	x := &w.runs[id]
	x.advance(now)
	t := &w.truth[x.job]
	e := Ending{Ran: now.Sub(x.began) - x.rested}
	e.Kept = e.Ran
	done := x.done
	if !saved {
		e.Kept = 0
		if every := v.Job(x.job).Checkpoint.Every; every > 0 {
			e.Kept = e.Ran / every * every
		}
		e.Kept = max(e.Kept, x.lives)
		if e.Ran > 0 {
			done = part(done, float64(e.Kept), float64(e.Ran))
		}
	}
	t.left = max(0, t.left-done)
	t.spent += e.Ran
	x.book.Close(now)
	w.busy[x.model] += x.book.Busy()
	w.ended.Add(&x.book)
	e.BusySec = x.book.Busy() / float64(unit.Second)
	x.live = false
	w.tell(now, id)
	for _, d := range x.devices {
		w.onDev[d] = without(w.onDev[d], id)
	}
	w.net.Leave(id, &x.sends)
	return e, w.rerate(now, id)
}

// part is x*n/d, rounded once: an exact result stays exact, however large the product.
func part(x, n, d float64) float64 {
	product := x * n
	missing := math.FMA(x, n, -product)
	quotient := product / d
	return quotient + (math.FMA(-quotient, d, product)+missing)/d
}

func without(list []plan.RunID, id plan.RunID) []plan.RunID {
	if i := slices.Index(list, id); i >= 0 {
		return append(list[:i], list[i+1:]...)
	}
	return list
}

// joined is a list with those of another that are not in it.
func joined(list, more []plan.RunID) []plan.RunID {
	for _, id := range more {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// Duration is a job's true running time on its reference shape.
func (w *World) Duration(id plan.JobID) unit.Duration { return w.truth[id].Truth.Duration }

// alive reports whether a run has begun here and not ended.
func (w *World) alive(id plan.RunID) bool { return id >= 0 && int(id) < len(w.runs) && w.runs[id].live }

// RateMicro is the rate of a run as it is seen from outside, in millionths.
func (w *World) RateMicro(id plan.RunID) int64 {
	return int64(math.Round(w.runs[id].rate * plan.FullRate))
}

// Known is what is true of a job, with what its ended runs did and kept.
func (w *World) Known(id plan.JobID) Known {
	t := &w.truth[id]
	return Known{Truth: t.Truth, Done: float64(t.Duration) - t.left, Spent: t.spent, Menu: t.menu, Phase: t.phase, Layers: t.layers}
}
