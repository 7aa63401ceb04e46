// Package colocate lets jobs that would wait live in what others leave of their devices, whole gangs too:
// a strategy of our own, after AntMan (OSDI 2020), Muri (SIGCOMM 2022) and Lucid (ASPLOS 2023). It believes of
// every pair how fast both would go: by what was measured of their classes where that is known, as far as
// both compute at the same time; else by the law that holds a guest back, and how busy each keeps a
// device. A job becomes a guest where it is believed to slow no host by more than it may, on devices whose
// owners were seen to go alone, one guest on each. What a host is then seen to do goes before what was
// believed: guests that surely slow it end at once, and none come again if it goes faster without them.
//
// A guest moves to devices of its own, in its turn, where what it would gain in the time that it has left
// pays for being saved and started twice. Services, whose requests wait for whoever computes, and devices that
// several owners share take no guests.
//
// From Muri it takes that gangs interleave as long as they need a device at different times, and from Lucid that
// this is known of classes in advance. Left out: Muri's groups of more than two, since memory rarely holds
// three; its matching of all jobs at once, where a job takes the best host of its moment; other resources
// than the device.
package colocate

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/bubbles"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "colocate", Part: allocate.SharePart, Status: "after",
	Source: "ours; after AntMan (OSDI 2020), Muri (SIGCOMM 2022) and Lucid (ASPLOS 2023)",
	Idea:   "jobs that would wait are guests of those that leave their devices idle, where neither is slowed by much",
	Acts:   []strategy.Act{strategy.Filler},
	Goal:   "throughput", Needs: "the phases of an iteration, for how busy a device is; pairs that were measured, where there are any",
	Live: "guests' workers are in the idle class of the processor, under their law; not on GPUs, which have no such class",
}

// Config says when a job becomes a guest, and when it is one no more.
type Config struct {
	// Harm is by how much guests may slow a host, in thousandths.
	Harm unit.Milli `yaml:"harm" least:"0" most:"1000"`
	// Switch is what handing a device to a guest, or back, is believed to take.
	Switch unit.Duration `yaml:"switch" least:"0"`
	// Restart is what a start takes besides loading what was saved.
	Restart unit.Duration `yaml:"restart" least:"0"`
	// MeasuredOnly has jobs be guests only beside classes with which theirs was measured.
	MeasuredOnly bool `yaml:"measured-only"`

	pairs sharing.Pairs
}

// Default returns the configuration used where none is given.
func Default() Config {
	return Config{Harm: 30, Switch: 2 * unit.Millisecond, Restart: 30 * unit.Second}
}

// Knowing is the configuration with what was measured of pairs beforehand; nil is nothing.
func (c Config) Knowing(pairs sharing.Pairs) Config {
	c.pairs = pairs
	return c
}

// Sharer is the strategy. Its fields beyond the configuration and what it has seen are scratch.
type Sharer struct {
	config Config
	bubbles.Watch
	busy bubbles.Busy

	hosts  []host // as of an instant
	places []place
	at     unit.Time
	fresh  bool
	room   []spot
	count  map[plan.NodeID]int32
}

var (
	_ allocate.Sharer      = (*Sharer)(nil)
	_ strategy.Remembering = (*Sharer)(nil)
)

// New returns the sharer; the configuration must be valid.
func New(c Config) *Sharer {
	return &Sharer{config: c, Watch: bubbles.Watch{Rule: bubbles.Rule{Harm: c.Harm, Switch: c.Switch, All: true}}, count: map[plan.NodeID]int32{}}
}

// host is a run that may have guests, and what is believed of it.
type host struct {
	run plan.RunID
	job plan.JobID
	bubbles.Work
}

// place is a device of a host, what that keeps of its memory, and its model.
type place struct {
	device plan.DeviceID
	node   plan.NodeID
	host   int32
	memory int32
	model  int32
}

// spot is a device that takes a guest, whose it is, and at what part of its own rate the guest would go.
type spot struct {
	device plan.DeviceID
	node   plan.NodeID
	host   plan.JobID
	part   unit.Milli
}

// Beside finds room for a gang of one device a worker: on the model of device where it goes fastest, and
// there on the fewest nodes. What a guest sends over links others wait for: who sends stays on one node.
func (s *Sharer) Beside(v plan.View, need allocate.Need, into []allocate.Candidate) []allocate.Candidate {
	if need.Shape.Devices != 1 || need.Shape.Share != 1000 || need.Shape.Memory == 0 || serves(v, need.Job) || !s.find(v, need) {
		return into
	}
	var best []spot
	for model := range int32(v.Room().Models()) {
		if found := s.gang(v, need, model); found != nil && (best == nil || slowest(found) > slowest(best)) {
			best = found
		}
	}
	if best == nil {
		return into
	}
	into = allocate.Extend(into)
	c := &into[len(into)-1]
	c.Score, c.Share = int64(slowest(best)), plan.NewShare()
	c.Share.Guest = best[0].host
	slices.SortFunc(best, func(a, b spot) int { return cmp.Compare(a.device, b.device) })
	for i := range best {
		c.Slots = append(c.Slots, plan.Slot{Node: best[i].node, Device: best[i].device, Workers: 1})
	}
	return into
}

// serves reports whether a job answers requests, which wait for whoever computes.
func serves(v plan.View, job plan.JobID) bool {
	p := v.ProfileOf(job)
	return p.SLO > 0 || p.RatePerSecMilli > 0
}

// slowest is the part of its rate of which a gang is sure on its spots.
func slowest(gang []spot) unit.Milli {
	least := gang[0].part
	for i := range gang {
		least = min(least, gang[i].part)
	}
	return least
}

// find lists the spots that take a job, and reports whether there may be enough.
func (s *Sharer) find(v plan.View, need allocate.Need) bool {
	s.room = s.room[:0]
	if !s.fresh || s.at != v.Now() {
		s.findHosts(v)
	}
	guest, asked, part := s.busy.Of(v, need.Job, plan.None), place{host: plan.None}, unit.Milli(0)
	for i := range s.places {
		p := &s.places[i]
		h := &s.hosts[p.host]
		if v.Alone(p.device) != h.run || v.Run(h.run).Status != plan.Running || !s.holds(v, p, need.Shape) {
			continue // also where it was ended in this decision, or has another guest
		}
		if p.host != asked.host || p.model != asked.model {
			asked, part = *p, s.pair(h.Work, guest, v.Cluster().Models[p.model].Name)
		}
		if part > 0 {
			s.room = append(s.room, spot{p.device, p.node, h.job, part})
		}
	}
	return len(s.room) >= int(need.Workers)
}

// findHosts lists the hosts there are, training that goes as it was seen to go alone, and their places.
func (s *Sharer) findHosts(v plan.View) {
	s.hosts, s.places, s.at, s.fresh = s.hosts[:0], s.places[:0], v.Now(), true
	for id := range plan.RunID(v.RunSlots()) {
		r := v.Run(id)
		if r.Status != plan.Running || r.Terms.Share.Guest != plan.None || serves(v, r.Job) || !s.Opens(v.Spare(id)) || s.Shut(v, r.Job) {
			continue
		}
		s.hosts = append(s.hosts, host{id, r.Job, s.busy.Of(v, r.Job, id)})
		v.GrantsOf(id, func(g plan.Grant) {
			if g.Device != plan.None && g.Turn == 0 && g.Persist+g.Peak > 0 {
				s.places = append(s.places, place{g.Device, g.Node, int32(len(s.hosts)) - 1, g.Persist + g.Peak, v.Node(g.Node).Model})
			}
		})
	}
}

// holds reports whether a device and its node have the memory and the cores for another worker beside its host.
func (s *Sharer) holds(v plan.View, p *place, shape *plan.Shape) bool {
	d, n := v.Device(p.device), v.Node(p.node)
	return p.memory+shape.Memory <= d.Memory && shape.CPU <= n.FreeCPU && shape.Host <= n.FreeHost &&
		n.Status == plan.Up && !d.Status.Out() && d.Geometry == 0 && v.Allows(shape, p.node)
}

// gang takes as many spots of a device model as a job has workers, the best for one alone, else on the node that
// holds the gang most tightly or on those that hold most of it; nil where there are not enough.
func (s *Sharer) gang(v plan.View, need allocate.Need, model int32) []spot {
	clear(s.count)
	var taken []spot
	for _, x := range s.room {
		if v.Node(x.node).Model == model && s.count[x.node] < bubbles.Holds(v, x.node, need.Shape) {
			taken = append(taken, x)
			s.count[x.node]++
		}
	}
	n := int(need.Workers)
	if len(taken) < n {
		return nil
	}
	if n == 1 {
		return []spot{slices.MinFunc(taken, func(a, b spot) int { return cmp.Or(cmp.Compare(b.part, a.part), cmp.Compare(a.device, b.device)) })}
	}
	if node := s.tightest(need.Workers); node != plan.None {
		taken = slices.DeleteFunc(taken, func(x spot) bool { return x.node != node })
	} else if v.Job(need.Job).Traffic > 0 {
		return nil
	}
	slices.SortFunc(taken, func(a, b spot) int {
		return cmp.Or(cmp.Compare(s.count[b.node], s.count[a.node]), cmp.Compare(a.node, b.node), cmp.Compare(b.part, a.part), cmp.Compare(a.device, b.device))
	})
	return taken[:n]
}

// tightest is the node that holds so many guests with the fewest spots left over, of like ones the first,
// in whatever order the map gives them.
func (s *Sharer) tightest(workers int32) plan.NodeID {
	best := plan.NodeID(plan.None)
	for node, n := range s.count {
		if n >= workers && (best == plan.None || cmp.Or(cmp.Compare(n, s.count[best]), cmp.Compare(node, best)) < 0) {
			best = node
		}
	}
	return best
}
