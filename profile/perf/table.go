package perf

import (
	"math"
	"slices"
)

// Table is measured rates by number of workers.
type Table struct {
	rows []row
}

type row struct {
	workers, points int
	mean, squares   float64 // of the rates measured
}

// Add takes in a measured rate; several of equal workers are averaged.
func (t *Table) Add(workers int, rate float64) {
	at, ok := slices.BinarySearchFunc(t.rows, workers, func(r row, w int) int { return r.workers - w })
	if !ok {
		t.rows = slices.Insert(t.rows, at, row{workers: workers})
	}
	r := &t.rows[at]
	r.points++
	off := rate - r.mean
	r.mean += off / float64(r.points)
	r.squares += off * (rate - r.mean)
}

// oneMeasurement is the relative error taken for a rate measured once.
const oneMeasurement = .05

// Rate is a measured rate, or lies on the line between its measured neighbours. There is
// none beyond the table. A rate that grows ever more slowly lies between that line and
// what proportional growth from below, or the neighbour above, allows: half that
// distance is the error between points.
func (t *Table) Rate(workers int) (rate float64, by Trust, ok bool) {
	at, ok := slices.BinarySearchFunc(t.rows, workers, func(r row, w int) int { return r.workers - w })
	if ok {
		r := &t.rows[at]
		sigma := oneMeasurement
		if r.points > 1 {
			sigma = math.Sqrt(r.squares/float64(r.points-1)) / r.mean
		}
		return r.mean, Trust{Points: r.points, Sigma: sigma / math.Sqrt(float64(r.points))}, true
	}
	if at == 0 || at == len(t.rows) {
		return 0, Trust{Sigma: 1}, false
	}
	low, up := &t.rows[at-1], &t.rows[at]
	part := float64(workers-low.workers) / float64(up.workers-low.workers)
	rate = low.mean + part*(up.mean-low.mean)
	highest := max(rate, min(low.mean*float64(workers)/float64(low.workers), up.mean))
	sigma := oneMeasurement + math.Log(highest/rate)/2
	return rate, Trust{Points: low.points + up.points, Sigma: sigma}, true
}
