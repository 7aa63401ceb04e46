package afs

import (
	"slices"

	"github.com/musterdl/muster/plan"
)

// ladder is a job's legal worker counts with their rates, rung by rung; the first rung
// is nothing.
type ladder struct {
	devices []int32
	count   []int32
	micro   []float64
}

// ladderOf reads a job's counts off its shape, with the rate on the best model that it
// may use. A worker that asks for a part of a device counts as one that asks for a
// whole one, as a wish cannot say which other job's part it is to lie beside.
func ladderOf(v plan.View, id plan.JobID, widest []int32) ladder {
	shape := v.Shape(id)
	l := ladder{devices: []int32{0}, count: []int32{0}, micro: []float64{0}}
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
			l.devices, l.count, l.micro = append(l.devices, n*shape.Devices), append(l.count, n), append(l.micro, micro)
		}
	}
	return l
}

func (l *ladder) most() int32 { return l.devices[len(l.devices)-1] }

// rung is the highest one that so many devices reach.
func (l *ladder) rung(devices int32) int {
	i, exact := slices.BinarySearch(l.devices, devices)
	if !exact {
		i--
	}
	return i
}

// rate is that of the rung, and between two of them on a straight line.
func (l *ladder) rate(devices int32) float64 {
	i := l.rung(devices)
	if i+1 == len(l.devices) {
		return l.micro[i]
	}
	part := float64(devices-l.devices[i]) / float64(l.devices[i+1]-l.devices[i])
	return l.micro[i] + part*(l.micro[i+1]-l.micro[i])
}

// down is the devices of the highest rung within so many.
func (l *ladder) down(devices int32) int32 { return l.devices[l.rung(devices)] }

// up is the devices of the next rung.
func (l *ladder) up(devices int32) (next int32, ok bool) {
	if i := l.rung(devices) + 1; i < len(l.devices) {
		return l.devices[i], true
	}
	return 0, false
}

// workers is the count of the highest rung within so many devices.
func (l *ladder) workers(devices int32) int32 { return l.count[l.rung(devices)] }
