package forecast_test

import (
	"container/heap"
	"errors"
	"io"

	"github.com/musterdl/muster/internal/forecast"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// fleet is a cluster of devices that are all alike and all near, under first come,
// first served with backfill: what the engine does with gangs of one-device workers,
// in a few lines and fast. The tests hold it against the engine.
type fleet struct {
	now     unit.Time
	free    int
	running ends
	waiting map[int][]waiter // by size, in order of submission
	sizes   []int
}

// waiter is a job that waits; asked is its place among the jobs asked about, or -1.
type waiter struct {
	seq, size int
	ran       unit.Duration
	asked     int
}

type ending struct {
	at   unit.Time
	size int
}

type ends []ending

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at < e[j].at }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func newFleet(now unit.Time, free int) *fleet {
	return &fleet{now: now, free: free, waiting: map[int][]waiter{}}
}

func (f *fleet) run(at unit.Time, size int) { heap.Push(&f.running, ending{at, size}) }

func (f *fleet) wait(w waiter) {
	if _, ok := f.waiting[w.size]; !ok {
		f.sizes = append(f.sizes, w.size)
	}
	f.waiting[w.size] = append(f.waiting[w.size], w)
}

// source yields jobs with their truths.
type source interface {
	Next() (workload.Job, workload.Truth, error)
}

// forward runs until all jobs that are asked about have started, or an instant.
func (f *fleet) forward(later source, until unit.Time, fates []forecast.Fate) error {
	left, seq := len(fates), 1<<40
	for i := range fates {
		fates[i] = forecast.Fate{Start: unit.Never, End: unit.Never}
	}
	next, truth, err := later.Next()
	for {
		f.start(fates, &left)
		if left == 0 {
			return nil
		}
		at := unit.Never
		if len(f.running) > 0 {
			at = f.running[0].at
		}
		if err == nil {
			at = min(at, next.Submit)
		}
		if at > until {
			break
		}
		f.now = at
		for len(f.running) > 0 && f.running[0].at == at {
			f.free += heap.Pop(&f.running).(ending).size
		}
		for err == nil && next.Submit == at {
			seq++
			f.wait(waiter{seq, int(next.Workers() / unit.Whole), truth.Duration, -1})
			next, truth, err = later.Next()
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// start starts the first that fits, again and again.
func (f *fleet) start(fates []forecast.Fate, left *int) {
	for {
		best := -1
		for i, size := range f.sizes {
			if w := f.waiting[size]; size <= f.free && len(w) > 0 && (best < 0 || w[0].seq < f.waiting[f.sizes[best]][0].seq) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		size := f.sizes[best]
		w := f.waiting[size][0]
		f.waiting[size] = f.waiting[size][1:]
		f.free -= size
		f.run(f.now.Add(w.ran), size)
		if w.asked >= 0 {
			fates[w.asked] = forecast.Fate{Start: f.now, End: f.now.Add(w.ran)}
			*left--
		}
	}
}
