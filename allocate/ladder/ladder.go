// Package ladder is the mechanism of deciders that count devices: the worker counts that an
// elastic job may have, with the devices that each takes and how fast the job goes with them.
package ladder

import (
	"slices"

	"github.com/musterdl/muster/plan"
)

// Ladder is a job's legal worker counts with their rates, rung by rung; the first rung
// is nothing. Rates are in millionths of what the job does on what it asked for.
type Ladder struct {
	Devices []int32
	Count   []int32
	Micro   []float64
}

// Table is the ladders of the jobs of one decision: jobs that are alike have one.
type Table struct {
	widest []int32   // devices of the largest node, by model
	plain  []*Ladder // by shape: of jobs of which no more is known
	known  map[kind]*Ladder
}

// kind is what jobs of the same ladder have in common.
type kind struct{ shape, profile int32 }

// Survey begins a decision: it counts the devices that runs may be on.
func (t *Table) Survey(v plan.View) (devices int32) {
	t.widest = append(t.widest[:0], make([]int32, v.Room().Models())...)
	clear(t.plain)
	t.known = map[kind]*Ladder{}
	for id := range plan.NodeID(v.Nodes()) {
		n := v.Node(id)
		if n.Status != plan.Up {
			continue
		}
		t.widest[n.Model] = max(t.widest[n.Model], n.Count)
		for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
			if !v.Device(d).Status.Out() {
				devices++
			}
		}
	}
	return devices
}

// Of is a job's ladder, to be read.
func (t *Table) Of(v plan.View, id plan.JobID) *Ladder {
	shape, profile := v.Kind(id)
	if profile == plan.None {
		for int(shape) >= len(t.plain) {
			t.plain = append(t.plain, nil)
		}
		if t.plain[shape] == nil {
			t.plain[shape] = read(v, id, t.widest)
		}
		return t.plain[shape]
	}
	l := t.known[kind{shape, profile}]
	if l == nil {
		l = read(v, id, t.widest)
		t.known[kind{shape, profile}] = l
	}
	return l
}

// read reads a job's counts off its shape, with the rate on the best model that it
// may use, on one node where the largest of a model holds that. A worker that asks for a
// part of a device counts as one that asks for a
// whole one, as a wish cannot say which other job's part it is to lie beside.
func read(v plan.View, id plan.JobID, widest []int32) *Ladder {
	shape := v.Shape(id)
	l := &Ladder{Devices: []int32{0}, Count: []int32{0}, Micro: []float64{0}}
	if shape.Devices == 0 {
		return l
	}
	counts := append([]int32{shape.Gang}, shape.Sizes[:]...)
	slices.Sort(counts)
	for _, n := range slices.Compact(counts) {
		if n <= 0 {
			continue
		}
		micro := 0.0
		for m := range int32(v.Room().Models()) {
			if shape.Models&(1<<m) != 0 {
				micro = max(micro, float64(v.Rate(id, m, n, n*shape.Devices > widest[m])))
			}
		}
		if micro > 0 {
			l.Devices, l.Count, l.Micro = append(l.Devices, n*shape.Devices), append(l.Count, n), append(l.Micro, micro)
		}
	}
	return l
}

// Most is the devices of the last rung.
func (l *Ladder) Most() int32 { return l.Devices[len(l.Devices)-1] }

// Rung is the highest one that so many devices reach.
func (l *Ladder) Rung(devices int32) int {
	i, exact := slices.BinarySearch(l.Devices, devices)
	if !exact {
		i--
	}
	return i
}

// Rate is that of the rung, and between two of them on a straight line.
func (l *Ladder) Rate(devices int32) float64 {
	i := l.Rung(devices)
	if i+1 == len(l.Devices) {
		return l.Micro[i]
	}
	part := float64(devices-l.Devices[i]) / float64(l.Devices[i+1]-l.Devices[i])
	return l.Micro[i] + part*(l.Micro[i+1]-l.Micro[i])
}

// Down is the devices of the highest rung within so many.
func (l *Ladder) Down(devices int32) int32 { return l.Devices[l.Rung(devices)] }

// Up is the devices of the next rung.
func (l *Ladder) Up(devices int32) (next int32, ok bool) {
	if i := l.Rung(devices) + 1; i < len(l.Devices) {
		return l.Devices[i], true
	}
	return 0, false
}

// Workers is the count of the highest rung within so many devices.
func (l *Ladder) Workers(devices int32) int32 { return l.Count[l.Rung(devices)] }
