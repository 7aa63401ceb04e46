// Package antman places guaranteed jobs as if they were alone and lets opportunistic
// ones live in what those leave (AntMan, Xiao et al., OSDI 2020). A guaranteed gang
// gets devices to itself. An opportunistic job becomes the guest of the least used
// device that is not too busy and has memory for it, an idle one first; it reserves
// nothing, so that guaranteed work may come at any time; that goes to devices without a
// guest first. How much of the device a guest may use from second to second the law
// decides that its workers are under (package control): antman, or antman-fill, which
// runs them only while the host waits.
//
// After the paper: read is the authors' Kubernetes re-implementation, for the rule of
// placement; the constants of the laws are ours.
//
// A host that goes by a pipeline plan takes guests where the plan's idle windows are long enough:
// handing the device over in each of them must take no more than half of it, and slow the host no
// more than it may be. It is seen alone first. Where its rate has surely fallen by more, its guests end, and no others
// come if it goes faster without them (PipeFill, MLSys 2025, and FreeRide, 2024, fill such bubbles; the rule is ours). How busy a
// device of another host is follows from what its host declares of an iteration, computing over
// computing and communicating; the authors measure it over 30 seconds. A host that says
// nothing counts as always busy. Left out: the jobs that AntMan itself makes
// opportunistic when their tenant's quota is used up, which is the queues' affair here.
package antman

import (
	"cmp"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/bubbles"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "antman", System: "AntMan", Part: allocate.PlacePart, Status: "after",
	Source: "Xiao et al., OSDI 2020; alibaba/GPU-scheduler-for-deep-learning",
	Idea:   "guaranteed jobs on devices of their own, opportunistic ones as guests of the least used",
	Acts:   []strategy.Act{strategy.Filler},
	Goal:   "throughput", Needs: "who is opportunistic; the phases of an iteration, for how busy a device is",
	Live: "guests' workers are in the idle class of the processor, under the law antman-fill; not on GPUs, which have no such class",
}

// Config says when a device takes a guest.
type Config struct {
	// BusyBelow is the mean utilisation below which a device takes a guest.
	BusyBelow unit.Milli `yaml:"busy-below" least:"1" most:"1000"`
	// HeadroomMiB of device memory stays free for the guaranteed job to grow into.
	HeadroomMiB unit.MiB `yaml:"headroom-mib" least:"0"`
	// Harm is by how much guests may slow a host that goes by a plan, in thousandths.
	Harm unit.Milli `yaml:"harm" least:"0" most:"1000"`
	// Switch is what handing a device to a guest, or back, is believed to take.
	Switch unit.Duration `yaml:"switch" least:"0"`
}

// Default returns the configuration used where none is given.
func Default() Config {
	return Config{BusyBelow: 800, HeadroomMiB: 1024, Harm: 30, Switch: 2 * unit.Millisecond}
}

// load is how full a device is of guaranteed work: the part of its time used, the memory
// left, and what its host's plan leaves where it goes by one.
type load struct {
	used  unit.Milli
	free  unit.MiB
	spare workload.Spare
	shut  bool // its host was slowed by guests, or not seen alone yet
}

// eligible reports whether a device so full takes a guest that needs so much memory.
func (p *Placer) eligible(l load, memory unit.MiB) bool {
	idles := l.used < p.config.BusyBelow
	if !l.spare.IsZero() {
		idles = p.Opens(l.spare) && !l.shut
	}
	return idles && (l.used == 0 || l.free-p.config.HeadroomMiB >= memory) && l.free >= memory
}

// Placer is the strategy. Its fields beyond the configuration are scratch.
type Placer struct {
	config Config
	fewest fit.Fewest
	hosts  []host
	bubbles.Watch
}

// host is a device that takes a guest, and whose.
type host struct {
	load
	device plan.DeviceID
	job    plan.JobID
}

var _ allocate.Placer = (*Placer)(nil)

// New returns the placer; the configuration must be valid.
func New(c Config) *Placer {
	return &Placer{config: c, Watch: bubbles.Watch{Rule: bubbles.Rule{Harm: c.Harm, Switch: c.Switch}}}
}

// Takes reports whether a job is opportunistic: in a chain the rest is for others.
func (p *Placer) Takes(v plan.View, job plan.JobID) bool { return v.ProfileOf(job).Opportunistic }

// Finds reports whether a job may find room beside hosts.
func (p *Placer) Finds(v plan.View, job plan.JobID) bool { return v.ProfileOf(job).Opportunistic }

// Place puts guaranteed work, and what takes less or more than one device per worker,
// on the fewest nodes. Opportunistic workers go one by one to the least used devices
// and are scored by the part of the busiest that is left.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	if v.ProfileOf(need.Job).Opportunistic && need.Shape.Devices == 1 && need.Shape.Share == 1000 {
		if list, ok := p.asGuest(v, need, k, into); ok {
			return list
		}
		return into
	}
	return p.fewest.Candidates(v, need, k, into, func(found fit.Placement) int64 {
		for i := range found.Slots {
			found.Slots[i].On = undisturbed(v, &found.Slots[i], need.Shape)
		}
		return -int64(found.Nodes)
	})
}

// undisturbed are the devices of a node for a slot of guaranteed work, those without a
// guest first; nil where it makes no difference.
func undisturbed(v plan.View, slot *plan.Slot, shape *plan.Shape) []plan.DeviceID {
	n, want := v.Node(slot.Node), int(slot.Workers*shape.Devices)
	var without, with []plan.DeviceID
	for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
		if dev := v.Device(d); dev.Free < int32(unit.Whole) || dev.Status.Out() || dev.Geometry != 0 {
			continue
		}
		if len(bubbles.Guests(v, d, nil)) > 0 {
			with = append(with, d)
		} else {
			without = append(without, d)
		}
	}
	if slot.Device != plan.None || len(with) == 0 || len(with)+len(without) < want {
		return nil
	}
	return append(without, with...)[:want]
}

// asGuest appends the one best place for an opportunistic job.
func (p *Placer) asGuest(v plan.View, need allocate.Need, k int, into []allocate.Candidate) ([]allocate.Candidate, bool) {
	if k < 1 {
		return into, false
	}
	p.find(v, need.Shape)
	slices.SortFunc(p.hosts, func(a, b host) int { return cmp.Or(cmp.Compare(a.used, b.used), cmp.Compare(a.device, b.device)) })
	into = allocate.Extend(into)
	c := &into[len(into)-1]
	taken := map[plan.NodeID]int32{}
	// Whose guest it is matters to no rule but that it is one; alone on an idle device it
	// is its own.
	c.Share = plan.NewShare()
	c.Share.Guest = need.Job
	most := unit.Milli(0)
	model, found := p.kind(v, need)
	for _, h := range p.hosts {
		n := v.Device(h.device).Node
		if !found || v.Node(n).Model != model || taken[n] >= bubbles.Holds(v, n, need.Shape) {
			continue
		}
		taken[n]++
		c.Slots = append(c.Slots, plan.Slot{Node: n, Device: h.device, Workers: 1})
		if h.job != plan.None {
			c.Share.Guest = h.job
		}
		if most = max(most, h.used); int32(len(c.Slots)) == need.Workers {
			c.Score = int64(unit.Whole - most)
			slices.SortFunc(c.Slots, func(a, b plan.Slot) int { return cmp.Compare(a.Device, b.Device) })
			return into, true
		}
	}
	return into[:len(into)-1], false
}

// kind is the device model of which there are enough hosts for a gang, the least used: its
// workers wait for the slowest.
func (p *Placer) kind(v plan.View, need allocate.Need) (model int32, found bool) {
	room, left := map[plan.NodeID]int32{}, map[int32]int32{}
	for _, h := range p.hosts {
		n := v.Device(h.device).Node
		if _, known := room[n]; !known {
			room[n] = bubbles.Holds(v, n, need.Shape)
		}
		if room[n]--; room[n] < 0 {
			continue
		}
		model = v.Node(n).Model
		if left[model]++; left[model] == need.Workers {
			return model, true
		}
	}
	return 0, false
}

// find lists the devices that take a guest of this shape.
func (p *Placer) find(v plan.View, shape *plan.Shape) {
	p.hosts = p.hosts[:0]
	for id := range plan.NodeID(v.Nodes()) {
		n := v.Node(id)
		if n.Status != plan.Up || !v.Allows(shape, id) {
			continue
		}
		for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
			h, guests := p.hostOf(v, d)
			if dev := v.Device(d); guests == 0 && !dev.Status.Out() && dev.Geometry == 0 && p.eligible(h.load, unit.MiB(shape.Memory)) {
				p.hosts = append(p.hosts, h)
			}
		}
	}
}

// hostOf is how full a device is of guaranteed work, and how many guests it has.
func (p *Placer) hostOf(v plan.View, id plan.DeviceID) (h host, guests int) {
	h = host{load: load{free: unit.MiB(v.Device(id).Memory)}, device: id, job: plan.None}
	v.GrantsOn(id, func(g plan.Grant) {
		r := v.Run(g.Run)
		if r.Terms.Share.Guest != plan.None {
			guests++
			return
		}
		h.spare = v.Spare(g.Run)
		h.used, h.job = h.used+busy(v, r.Job, h.spare)*unit.Milli(g.Reserve)/unit.Whole, r.Job
		h.shut = h.shut || p.Shut(v, r.Job)
		h.free -= unit.MiB(g.Persist + g.Peak)
	})
	return h, guests
}

// busy is the part of its devices' time that a job keeps busy: by its plan, if it has one.
func busy(v plan.View, id plan.JobID, s workload.Spare) unit.Milli {
	if !s.IsZero() {
		return unit.Whole - unit.Milli(s.IdleMicro/1000)
	}
	p := v.ProfileOf(id)
	if whole := p.Compute + p.Communicate; p.Compute > 0 && whole > 0 {
		return unit.Milli(int64(p.Compute) * 1000 / int64(whole))
	}
	return unit.Whole
}
