// Package mig cuts devices into MIG instances as jobs ask for them: each worker gets
// the smallest instance that has its share of compute and its memory, and the device
// and start are those that lose least of what can still be cut for the mix of
// requests seen lately: FGD's fragmentation gradient (package fgd) on memory slices.
//
// Only idle instances are destroyed to make room; one in use stays where it is. So a
// device goes from one geometry of its model to another that has the parts in use in
// the same places (package envelope enumerates them); of those that do, the one that
// changes the fewest instances, since each costs seconds.
//
// After NVIDIA's documents on MIG; the policy is ours. Work that wants whole devices
// goes to the fewest nodes, and to idle cut devices made whole where no others are
// left. Models without known profiles are shared by fractions. Left out: waiting for a
// better moment to cut again, and moving tenants.
package mig

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "mig", System: "NVIDIA MIG", Part: allocate.PlacePart, Status: "after",
	Source: "NVIDIA MIG user guide and mig-parted; the policy is ours, after FGD (ATC 2023)",
	Idea:   "the smallest instance that holds a worker, cut where it spoils least of what is asked for",
	Acts:   []strategy.Act{strategy.Reshape},
	Goal:   "throughput", Needs: "shares and device memory of the jobs; geometries of the device model",
	Live:  "cannot, because no driver cuts devices: only simulation does",
	Inner: "the growth of what of the free slots recent requests could not use",
}

// Config tunes the gradient.
type Config struct {
	// Recent is over about how many submissions the mix of requests is counted; older
	// ones count half.
	Recent int64 `yaml:"recent" least:"1"`
	// FirstFit takes the first device and start with room in the place of what loses
	// least: the null to compare with.
	FirstFit bool `yaml:"first-fit"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{Recent: 1000} }

// Placer is the strategy. All it remembers follows from the State it is asked about,
// which must be the same from call to call.
type Placer struct {
	config  Config
	cluster *cluster.Cluster
	models  []model
	seen    plan.JobID
	counted int64
	fewest  fit.Fewest
	gang    fit.Parts
}

// model is what the placer knows of a device model; without a table it is not cut.
type model struct {
	table   *envelope.Table
	slots   [][]envelope.Slots // by geometry and part
	weights []int64            // by profile: slices asked for lately
}

var _ allocate.Placer = (*Placer)(nil)

// New returns the placer; the configuration must be valid.
func New(c Config) *Placer { return &Placer{config: c} }

// Finds is always so: whole devices are free that are cut and idle, and parts that are
// not cut yet.
func (p *Placer) Finds(plan.View, plan.JobID) bool { return true }

// Place finds an instance for each worker; a runner-up keeps off the first node of
// every better candidate. The score is minus what is lost, in slices.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	p.learn(v)
	var except []plan.NodeID
	for range k {
		into = allocate.Extend(into)
		c := &into[len(into)-1]
		if !p.place(v, need, except, c) {
			return into[:len(into)-1]
		}
		except = append(except, c.Slots[0].Node)
	}
	return into
}

// place tries, in this order, models that are not cut, cut ones, and making cut
// devices whole: a gang is on one kind of them.
func (p *Placer) place(v plan.View, need allocate.Need, except []plan.NodeID, c *allocate.Candidate) bool {
	shape, plain := need.Shape, *need.Shape
	if shape.Share < 1000 {
		for m := range p.models {
			if p.models[m].table != nil {
				plain.Models &^= 1 << m
			}
		}
	}
	need.Shape = &plain
	if found, ok := p.fewest.Place(v, need, except, c.Slots); ok {
		c.Slots = found.Slots
		return true
	}
	c.Slots = c.Slots[:0]
	p.gang.Begin(shape, except)
	for left := need.Workers; left > 0; left-- {
		if shape.Share < 1000 && !p.worker(v, c) || shape.Share == 1000 && !p.whole(v, c) {
			return false
		}
	}
	return shape.Devices > 0
}

// learn notes the models of a cluster and counts what has been submitted since.
func (p *Placer) learn(v plan.View) {
	if c := v.Cluster(); p.cluster != c {
		p.cluster, p.models, p.seen, p.counted = c, make([]model, len(c.Models)), 0, 0
		for m := range c.Models {
			p.models[m] = newModel(&c.Models[m])
		}
	}
	for ; int(p.seen) < v.Jobs(); p.seen++ {
		shape := v.Shape(p.seen)
		if shape.Devices == 0 {
			continue
		}
		if p.counted++; p.counted == 2*p.config.Recent {
			p.counted /= 2
			for m := range p.models {
				for i := range p.models[m].weights {
					p.models[m].weights[i] /= 2
				}
			}
		}
		for m := range p.models {
			if t := p.models[m].table; t != nil && shape.Models&(1<<m) != 0 {
				if i, ok := t.Smallest(partFor(shape)); ok {
					p.models[m].weights[i] += int64(shape.Gang) * int64(t.Profiles[i].Memory)
				}
			}
		}
	}
}

func partFor(shape *plan.Shape) cluster.Part {
	return cluster.Part{Milli: unit.Milli(shape.Share), Memory: unit.MiB(shape.Memory)}
}

// newModel reads the declared geometries; if one has a part that is none of the known
// profiles, the model is left alone.
func newModel(c *cluster.Model) model {
	t, ok := envelope.MIG(c.Name, c.Memory)
	if !ok || len(c.Geometries) < 2 {
		return model{}
	}
	m := model{table: t, weights: make([]int64, len(t.Profiles))}
	for _, g := range c.Geometries {
		var slots []envelope.Slots
		for _, part := range g.Parts {
			in, ok := t.Instance(part)
			if !ok {
				return model{}
			}
			slots = append(slots, t.Slots(in))
		}
		m.slots = append(m.slots, slots)
	}
	return m
}

// spot is a place for an instance.
type spot struct {
	device int
	part   int
	cut    int16 // the geometry it is in
	slots  envelope.Slots
	loss   int64
	size   unit.Milli
	takes  unit.Duration // to cut
	free   envelope.Slots
}

// before prefers the first device, the smallest part, the first start, and then the quickest cut.
func (s *spot) before(than *spot) bool {
	return cmp.Or(cmp.Compare(s.device, than.device),
		cmp.Compare(bits.OnesCount8(uint8(s.slots)), bits.OnesCount8(uint8(than.slots))), cmp.Compare(s.slots, than.slots),
		cmp.Compare(s.takes, than.takes), cmp.Compare(s.cut, than.cut)) < 0
}

// better prefers the least loss, then the smallest part, the quickest cut, the
// fullest device, and the first.
func (s *spot) better(than *spot) bool {
	return cmp.Or(cmp.Compare(s.loss, than.loss), cmp.Compare(s.size, than.size), cmp.Compare(s.takes, than.takes),
		cmp.Compare(bits.OnesCount8(uint8(s.free)), bits.OnesCount8(uint8(than.free))),
		cmp.Compare(s.device, than.device), cmp.Compare(s.cut, than.cut)) < 0
}

// worker adds one worker where it loses least.
func (p *Placer) worker(v plan.View, c *allocate.Candidate) bool {
	best, found, better := spot{}, false, (*spot).better
	if p.config.FirstFit {
		better = (*spot).before
	}
	tried := map[fit.Cutting]bool{} // devices cut and taken alike are alike
	for n := range plan.NodeID(v.Nodes()) {
		node := v.Node(n)
		m := &p.models[node.Model]
		if m.table == nil || !p.gang.Holds(v, n) {
			continue
		}
		for d := node.First; d < node.First+plan.DeviceID(node.Count); d++ {
			now, ok := p.gang.Of(v, d)
			if !ok || tried[now] {
				continue
			}
			tried[now] = true
			if s, ok := m.spot(p.cluster, now, p.gang.Shape, better); ok {
				if s.device = int(d); !found || better(&s, &best) {
					best, found = s, true
				}
			}
		}
	}
	if found {
		p.gang.Take(v, c, plan.DeviceID(best.device), best.cut, best.part)
		c.Score -= best.loss
		c.Share = plan.NewShare()
		c.Share.Fence = plan.Partition
	}
	return found
}

// whole adds one worker on whole devices of the first node that has them.
func (p *Placer) whole(v plan.View, c *allocate.Candidate) bool {
	for n := range plan.NodeID(v.Nodes()) {
		if p.models[v.Node(n).Model].table != nil && p.gang.Holds(v, n) && p.gang.TakeWhole(v, c, n) {
			return true
		}
	}
	return false
}

// spot is the best way to have one more part on a device that is cut and taken so.
func (m *model) spot(c *cluster.Cluster, now fit.Cutting, shape *plan.Shape, better func(s, than *spot) bool) (best spot, found bool) {
	all := c.Models[now.Model].Geometries
	was, free := all[now.Geometry].Parts, m.table.All()
	for i, s := range m.slots[now.Geometry] {
		if now.Taken&(1<<i) != 0 {
			free &^= s
		}
	}
	for g := range all {
		if g == 0 || now.Fixed && g != int(now.Geometry) {
			continue
		}
		will := all[g].Parts
		kept := uint64(0)
		for i, part := range was {
			if at := slices.Index(will, part); at >= 0 && now.Taken&(1<<i) != 0 {
				kept |= 1 << at
			}
		}
		if bits.OnesCount64(kept) != bits.OnesCount64(now.Taken) {
			continue
		}
		part := choose(will, kept, partFor(shape))
		if part < 0 {
			continue
		}
		s := spot{part: part, cut: int16(g), loss: m.table.Loss(free, m.slots[g][part], m.weights), size: will[part].Milli,
			slots: m.slots[g][part], takes: envelope.RecutTime(was, will), free: free}
		if !found || better(&s, &best) {
			best, found = s, true
		}
	}
	return best, found
}

// choose is the part that the State gives a worker: the smallest that holds it and
// that nobody has, the first of equals; -1 where there is none.
func choose(parts []cluster.Part, taken uint64, need cluster.Part) int {
	best := -1
	for i, p := range parts {
		if taken&(1<<i) == 0 && p.Milli >= need.Milli && p.Memory >= need.Memory &&
			(best < 0 || cmp.Or(cmp.Compare(p.Milli, parts[best].Milli), cmp.Compare(p.Memory, parts[best].Memory)) < 0) {
			best = i
		}
	}
	return best
}
