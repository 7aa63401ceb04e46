// Package salus keeps several jobs in one device's memory and lets them take turns
// (Salus: Yu and Chowdhury, MLSys 2020). Since what a job needs beyond its parameters
// is free between two iterations, switching costs next to nothing and any order of
// jobs can be had: the shortest first without restarting the long one, or all by turns.
//
// Jobs of one device are put in lanes (package reside): of a lane one computes at a
// time, so a lane reserves the largest ephemeral memory of its jobs, once. A job that
// waits joins where it goes first by the order: first come, shortest left, or least
// memory times time since somebody joined the lane (fair). Nobody who is resident is
// ever put out; with several lanes on a device these compute side by side (pack).
//
// Read: the public code's policies and admission rule. Ours: a job is loaded only when
// its turn comes, a lane grows while the invariant holds, turns end when jobs come or
// go or after a quantum (there after every iteration). Work of several devices, or of
// parts of one, is placed as a whole and not preempted; while some waits, devices
// that are empty are left to it. Left out: early release within an iteration.
package salus

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/remaining"
	"github.com/musterdl/muster/strategies/allocate/salus/reside"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "salus", System: "Salus", Step: "allocate", Part: allocate.JointPart, Status: "read",
	Source: "Yu and Chowdhury, MLSys 2020; SymbioticLab/Salus",
	Idea:   "jobs stay in memory side by side and take turns in lanes of their ephemeral memory",
	Acts:   []strategy.Act{strategy.Time},
	Goal:   "throughput", Needs: "memory, and how much of it stays between iterations",
	Live: "freezes and thaws runs, which keep their memory; several lanes are parts of the device (share); with swap it is refused, because no driver moves memory out",
}

// Config says in which order the jobs of a lane go.
type Config struct {
	// Order is that of the lanes: fifo, srtf or fair.
	Order string `yaml:"order" of:"fifo srtf fair"`
	// Lanes is how many there are on a device at most.
	Lanes int `yaml:"lanes" least:"1" most:"10"`
	// Quantum is how long a turn lasts in the fair order.
	Quantum unit.Duration `yaml:"quantum" above:"0"`
	// ReserveMiB is device memory that lanes leave alone.
	ReserveMiB unit.MiB `yaml:"reserve-mib" least:"0"`
	// Swap has runs whose turn it is not give up what memory they need not keep.
	Swap bool `yaml:"swap"`
}

// Default returns the configuration used where none is given.
func Default() Config {
	return Config{Order: "srtf", Lanes: 1, Quantum: 10 * unit.Second, ReserveMiB: 300}
}

// Acts implements strategy.Acting: lanes beside each other have a part of the device each.
func (c Config) Acts() (acts []strategy.Act) {
	if c.Lanes > 1 {
		acts = append(acts, strategy.Share)
	}
	if c.Swap {
		acts = append(acts, strategy.Swap)
	}
	return acts
}

// Decider is the strategy.
type Decider struct {
	config Config
	// since is the running time that each resident job had when its lane last began to
	// count, for the fair order.
	since map[plan.JobID]unit.Duration
	scratch
}

// scratch is memory that is used again by the next decision.
type scratch struct {
	members []member // of jobs of one device
	order   []*member
	devices []device
	shares  []plan.ShareTerms // of wishes
	slots   []plan.Slot
}

var (
	_ allocate.Joint       = (*Decider)(nil)
	_ strategy.Remembering = (*Decider)(nil)
)

// New returns the decider; the configuration must be valid.
func New(c Config) *Decider { return &Decider{config: c, since: map[plan.JobID]unit.Duration{}} }

// settling is after how long it looks again while a run is on its way between two
// states: it cannot be put aside then.
const settling = 5 * unit.Second

// Wishes keeps every run, says who computes in each lane, and starts who goes first.
func (s *Decider) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	n := len(jobs) // there is room for all, so that nothing moves
	s.order, s.members, s.shares, s.slots = s.order[:0], slices.Grow(s.members[:0], n), slices.Grow(s.shares[:0], n), slices.Grow(s.slots[:0], n)
	waits := false // work of several devices
	unsettled := false
	for _, id := range jobs {
		j, shape := v.Job(id), v.Shape(id)
		if j.Run != plan.None {
			r := v.Run(j.Run)
			unsettled = unsettled || r.Change != 0 || !r.Status.Steady()
		}
		if !laned(shape) {
			into = append(into, allocate.Wish{Job: id, Workers: workers(v, id), Reason: plan.Reason{Code: plan.Fits}})
			waits = waits || j.Run == plan.None && shape.Devices > 0
			continue
		}
		s.order = append(s.order, s.member(v, id))
	}
	s.forget(v)
	decide(s.readDevices(v), s.config.Lanes, s.order, room(v, waits))
	again := unit.Never
	for _, m := range s.order {
		again = min(again, s.turnEnds(v, m))
		if m.joined && s.config.Order == "fair" {
			s.restart(v, m)
		}
		if m.device != plan.None {
			into = append(into, s.wish(v, m))
		}
	}
	if unsettled {
		again = min(again, v.Now().Add(settling))
	}
	return into, again
}

// turnEnds is when the order may be another because of a member, though nobody comes or goes.
func (s *Decider) turnEnds(v plan.View, m *member) unit.Time {
	switch {
	case s.config.Order == "fair" && !m.runs:
		return v.Now().Add(s.config.Quantum)
	case s.config.Order == "srtf":
		return remaining.Outruns(v, m.job) // then it is not the shortest any more
	}
	return unit.Never
}

// laned reports whether a job can be in a lane: one worker on one whole device.
func laned(shape *plan.Shape) bool {
	return shape.Gang == 1 && shape.Devices == 1 && shape.Share == 1000
}

// workers is what a job has, or else asks for.
func workers(v plan.View, id plan.JobID) int32 {
	if run := v.Job(id).Run; run != plan.None {
		return v.Run(run).Workers
	}
	return v.Shape(id).Gang
}

// member is a job as the lanes see it.
func (s *Decider) member(v plan.View, id plan.JobID) *member {
	j, memory := v.Job(id), v.Shape(id).Memory
	stays := v.ProfileOf(id).Persistent
	if stays == 0 || !s.config.Swap {
		stays = memory
	}
	s.members = append(s.members, member{job: id, class: j.Shape, foot: reside.Footprint{Persistent: unit.MiB(min(stays, memory)), Ephemeral: unit.MiB(max(0, memory-stays))}, device: plan.None})
	m := &s.members[len(s.members)-1]
	if j.Run != plan.None {
		m.lane = v.Run(j.Run).Terms.Share.Turn
		v.GrantsOf(j.Run, func(g plan.Grant) { m.device = g.Device })
	}
	switch s.config.Order {
	case "fifo":
		m.rank = int64(j.Submit)
	case "srtf":
		if left, known := v.Left(id); known {
			m.rank = int64(left)
		} else {
			m.rank = math.MaxInt64
		}
	case "fair":
		if m.device != plan.None {
			m.rank = int64(max(1, memory)) * int64((v.Executed(id)-s.since[id])/unit.Millisecond)
		}
	}
	return m
}

// readDevices are all there are; closed to newcomers is one that others have a part of, or
// that is not in order.
func (s *Decider) readDevices(v plan.View) []device {
	if len(s.devices) != v.Devices() {
		s.devices = make([]device, v.Devices())
	}
	for i := range s.devices {
		id, is := plan.DeviceID(i), &s.devices[i]
		d := v.Device(id)
		closed := d.Status != plan.Steady || d.Geometry != 0 || v.Node(d.Node).Status != plan.Up
		v.GrantsOn(id, func(g plan.Grant) {
			closed = closed || g.Turn == 0 && v.Run(g.Run).Status != plan.Stopping
		})
		*is = device{id: id, memory: max(0, unit.MiB(d.Memory)-s.config.ReserveMiB), closed: closed,
			lanes: is.lanes[:0], names: is.names[:0], heads: is.heads[:0]}
	}
	return s.devices
}

// room says whether a job may be on a device: its model and memory, and the cores and
// host memory that are left beside what this decision has given away.
func room(v plan.View, waits bool) func(m *member, d plan.DeviceID, empty bool) bool {
	return func(m *member, d plan.DeviceID, empty bool) bool {
		shape, node := v.Shape(m.job), v.Device(d).Node
		n := v.Node(node)
		return !(empty && waits) && v.Allows(shape, node) && shape.Memory <= v.Device(d).Memory && shape.CPU <= n.FreeCPU && shape.Host <= n.FreeHost
	}
}

// turns says why a member computes, or does not.
var turns = map[bool]plan.ReasonCode{true: plan.SliceBegins, false: plan.SliceOver}

// wish is what a member of a lane gets.
func (s *Decider) wish(v plan.View, m *member) allocate.Wish {
	share := plan.ShareTerms{Guest: plan.None, Turn: m.lane, Swap: int32(m.foot.Ephemeral)}
	if s.config.Lanes > 1 {
		share.Milli, share.Ceiling = int32(1000/s.config.Lanes), 1000
	}
	s.shares, s.slots = append(s.shares, share), append(s.slots, plan.Slot{Node: v.Device(m.device).Node, Device: m.device, Workers: 1})
	n := len(s.shares)
	return allocate.Wish{Job: m.job, Workers: 1, Share: &s.shares[n-1], Suspend: !m.runs, Reason: plan.Reason{Code: turns[m.runs]},
		Slots: s.slots[n-1 : n : n]}
}

// restart begins to count anew in the lane that somebody joined.
func (s *Decider) restart(v plan.View, joined *member) {
	for _, m := range s.order {
		if m.device == joined.device && m.lane == joined.lane {
			s.since[m.job] = v.Executed(m.job)
		}
	}
}

// forget drops the counts of jobs that are gone.
func (s *Decider) forget(v plan.View) {
	maps.DeleteFunc(s.since, func(id plan.JobID, _ unit.Duration) bool { return v.Job(id).Phase.Over() })
}

// Remember encodes the counts, by job.
func (s *Decider) Remember() []byte {
	var b []byte
	for _, id := range slices.Sorted(maps.Keys(s.since)) {
		b = figures.Put(b, int64(id), int64(s.since[id]))
	}
	return b
}

// Recall reads what Remember wrote.
func (s *Decider) Recall(memory []byte) error {
	s.since = map[plan.JobID]unit.Duration{}
	r := figures.Read(memory)
	for r.More() {
		id, at := plan.JobID(r.Next()), unit.Duration(r.Next())
		s.since[id] = at
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of salus: %w", err)
	}
	return nil
}
