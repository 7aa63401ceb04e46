// Package envelope is the mechanism behind cutting a device: the instance profiles of
// MIG, which layouts of them are legal, where the next one is best put, and what
// cutting another way costs. What kinds of fences there are is plan.Fence.
//
// After NVIDIA's documents on MIG (catalogue A2; the profile tables read there, the
// placement starts recalled). Left out: media engines and graphics profiles, MPS inside
// an instance.
package envelope

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
)

// Slots is a set of a device's memory slices, the first in the lowest bit.
type Slots uint8

// Profile is one size of MIG instance: so many compute and memory slices, and the
// memory slices at which one may begin.
type Profile struct {
	Name            string
	Compute, Memory int
	Starts          []int
}

// Table are the profiles of a model of device, ascending by compute, then memory.
type Table struct {
	Compute, Slices int // of the whole device
	Memory          unit.MiB
	Profiles        []Profile
	most            [][256]int8 // by profile and free slots: how many fit at most
}

// Instance is a profile, by its position in the table, at a start.
type Instance struct{ Profile, Start int }

// Layout is the instances of a device, in order of their starts.
type Layout []Instance

// sevenths and fourths are the profiles of the large devices (A100, H100, H200,
// B200) and of the A30. Names are made from the memory of the device.
var (
	sevenths = []Profile{
		{Compute: 1, Memory: 1, Starts: []int{0, 1, 2, 3, 4, 5, 6}},
		{Compute: 1, Memory: 2, Starts: []int{0, 2, 4, 6}},
		{Compute: 2, Memory: 2, Starts: []int{0, 2, 4}},
		{Compute: 3, Memory: 4, Starts: []int{0, 4}},
		{Compute: 4, Memory: 4, Starts: []int{0}},
		{Compute: 7, Memory: 8, Starts: []int{0}},
	}
	fourths = []Profile{
		{Compute: 1, Memory: 1, Starts: []int{0, 1, 2, 3}},
		{Compute: 2, Memory: 2, Starts: []int{0, 2}},
		{Compute: 4, Memory: 4, Starts: []int{0}},
	}
)

// divisible are the models that can be partitioned and the sizes they are sold in,
// which their profiles are named after.
var divisible = []struct {
	model     string
	gigabytes []int
}{{"A100", []int{40, 80}}, {"A800", []int{40, 80}}, {"H100", []int{80, 94, 96}}, {"H800", []int{80, 94}}, {"H200", []int{141}},
	{"GH200", []int{96, 144}}, {"B200", []int{180}}, {"GB200", []int{186}}, {"A30", []int{24}}}

// MIG returns the profiles of a model of device by its name, such as A100-SXM-80 or
// "H200", and the size that is closest to its memory; 0 is the smallest. Models that
// cannot be partitioned have none.
func MIG(model string, memory unit.MiB) (*Table, bool) {
	words := strings.FieldsFunc(strings.ToUpper(model), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, d := range divisible {
		if !slices.ContainsFunc(words, func(w string) bool {
			rest, ok := strings.CutPrefix(w, d.model)
			return ok && (rest == "" || !unicode.IsDigit(rune(rest[0])))
		}) {
			continue
		}
		gb := d.gigabytes[0]
		for _, g := range d.gigabytes[1:] {
			if off := memory - unit.MiB(g)<<10; memory > 0 && max(off, -off) < max(memory-unit.MiB(gb)<<10, unit.MiB(gb)<<10-memory) {
				gb = g
			}
		}
		if d.model == "A30" {
			return newTable(gb, 4, 4, fourths), true
		}
		return newTable(gb, 7, 8, sevenths), true
	}
	return nil, false
}

func newTable(gb, compute, slices int, profiles []Profile) *Table {
	t := &Table{Compute: compute, Slices: slices, Memory: unit.MiB(gb) << 10, most: make([][256]int8, len(profiles))}
	for i, p := range profiles {
		p.Name = fmt.Sprintf("%dg.%dgb", p.Compute, (2*gb*p.Memory+slices)/(2*slices))
		t.Profiles = append(t.Profiles, p)
		for free := range 1 << slices {
			t.most[i][free] = int8(t.count(i, Slots(free), 0))
		}
	}
	return t
}

// count is how many instances of a profile fit free slots, from one of its starts on.
func (t *Table) count(profile int, free Slots, from int) (most int) {
	for i := from; i < len(t.Profiles[profile].Starts); i++ {
		at := Instance{profile, t.Profiles[profile].Starts[i]}
		if s := t.Slots(at); s&free == s {
			most = max(most, 1+t.count(profile, free&^s, i+1))
		}
	}
	return most
}

// All are the slots of an empty device.
func (t *Table) All() Slots { return Slots(1<<t.Slices - 1) }

// Slots are those that an instance takes.
func (t *Table) Slots(in Instance) Slots {
	return Slots((1<<t.Profiles[in.Profile].Memory - 1) << in.Start)
}

// Most is how many instances of a profile would fit free slots.
func (t *Table) Most(profile int, free Slots) int { return int(t.most[profile][free&t.All()]) }

// Name is that of a part, such as 3g.20gb@4.
func (t *Table) Name(in Instance) string {
	return t.Profiles[in.Profile].Name + "@" + strconv.Itoa(in.Start)
}

// Part is what an instance offers, and where.
func (t *Table) Part(in Instance) cluster.Part {
	p := t.Profiles[in.Profile]
	return cluster.Part{Milli: unit.Milli(1000 * p.Compute / t.Compute), Memory: t.Memory * unit.MiB(p.Memory) / unit.MiB(t.Slices), Start: int32(in.Start)}
}

// Instance is that of a part, if it is one of this table.
func (t *Table) Instance(part cluster.Part) (in Instance, ok bool) {
	for p := range t.Profiles {
		in = Instance{p, int(part.Start)}
		if is := t.Part(in); is == part && slices.Contains(t.Profiles[p].Starts, in.Start) {
			return in, true
		}
	}
	return in, false
}

// Legal reports whether instances can be on one device together, and why not.
func (t *Table) Legal(l Layout) (ok bool, why string) {
	taken, compute := Slots(0), 0
	for _, in := range l {
		if in.Profile < 0 || in.Profile >= len(t.Profiles) {
			return false, fmt.Sprintf("there is no profile %d", in.Profile)
		}
		if !slices.Contains(t.Profiles[in.Profile].Starts, in.Start) {
			return false, t.Name(in) + " cannot begin there"
		}
		s := t.Slots(in)
		if s&taken != 0 {
			return false, t.Name(in) + " overlaps another instance"
		}
		taken, compute = taken|s, compute+t.Profiles[in.Profile].Compute
	}
	if compute > t.Compute {
		return false, fmt.Sprintf("%d compute slices of %d", compute, t.Compute)
	}
	return true, ""
}

// Layouts lists every legal layout that leaves room for no more, by instances from
// the first slot on, larger ones first.
func (t *Table) Layouts() []Layout {
	var all []Layout
	t.fill(nil, 0, func(l Layout) { all = append(all, slices.Clone(l)) })
	slices.SortFunc(all, func(a, b Layout) int {
		return slices.CompareFunc(a, b, func(a, b Instance) int {
			return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.Profile, a.Profile))
		})
	})
	return all
}

// fill extends a layout from a slot on, and yields it where nothing can be added.
func (t *Table) fill(l Layout, from int, yield func(Layout)) {
	if from == t.Slices {
		if free := t.free(l); !t.room(free) {
			yield(l)
		}
		return
	}
	for p := range t.Profiles {
		if in := (Instance{p, from}); slices.Contains(t.Profiles[p].Starts, from) {
			t.fill(append(l, in), from+t.Profiles[p].Memory, yield)
		}
	}
	t.fill(l, from+1, yield)
}

func (t *Table) free(l Layout) Slots {
	free := t.All()
	for _, in := range l {
		free &^= t.Slots(in)
	}
	return free
}

func (t *Table) room(free Slots) bool {
	for p := range t.Profiles {
		if t.Most(p, free) > 0 {
			return true
		}
	}
	return false
}

// Smallest is the profile with the least compute, then memory, that holds a part.
func (t *Table) Smallest(need cluster.Part) (profile int, ok bool) {
	for p := range t.Profiles {
		if part := t.Part(Instance{Profile: p}); part.Milli >= need.Milli && part.Memory >= need.Memory {
			return p, true
		}
	}
	return 0, false
}

// Loss is what taking slots costs the rest: by how much the weighted sum, over
// profiles, of how many would still fit shrinks. It is the fragmentation gradient of
// FGD (package fgd) on slots; the weights say what is asked for how often.
func (t *Table) Loss(free, take Slots, weights []int64) (loss int64) {
	for p, w := range weights {
		loss += w * int64(t.Most(p, free)-t.Most(p, free&^take))
	}
	return loss
}

// Best returns the start at which a profile loses least, the first of equals.
func (t *Table) Best(profile int, free Slots, weights []int64) (start int, loss int64, ok bool) {
	for _, s := range t.Profiles[profile].Starts {
		take := t.Slots(Instance{profile, s})
		if take&free != take {
			continue
		}
		if l := t.Loss(free, take, weights); !ok || l < loss {
			start, loss, ok = s, l, true
		}
	}
	return start, loss, ok
}

// Geometry is a layout as a cluster's model declares it, named after its parts. The
// last start comes first: of equal parts a new tenant takes the first, and small parts
// are in the way of large ones least at the end of a device.
func (t *Table) Geometry(l Layout) cluster.Geometry {
	g := cluster.Geometry{}
	var names []string
	for _, in := range slices.Backward(l) {
		names, g.Parts = append(names, t.Name(in)), append(g.Parts, t.Part(in))
	}
	g.Name = strings.Join(names, " ")
	return g
}

// Geometries are the undivided device and all layouts: what a model of device may
// declare.
func (t *Table) Geometries() []cluster.Geometry {
	all := []cluster.Geometry{{Name: "whole"}}
	for _, l := range t.Layouts() {
		all = append(all, t.Geometry(l))
	}
	return all
}

// InstanceTime is what creating or destroying one MIG instance takes (our figure).
const InstanceTime = 5 * unit.Second

// RecutTime is what cutting an otherwise idle device another way takes: parts that
// both geometries have in the same place stay.
func RecutTime(was, will []cluster.Part) unit.Duration {
	changes := len(was) + len(will)
	for _, part := range was {
		if slices.Contains(will, part) {
			changes -= 2
		}
	}
	return unit.Duration(changes) * InstanceTime
}
