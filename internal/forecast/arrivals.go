package forecast

import (
	"io"
	"math/rand/v2"
	"sort"
	"strconv"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// ArrivalConfig tunes how future submissions are drawn.
type ArrivalConfig struct {
	// Days is how many of the last days are drawn from.
	Days int
	// Day is the period after which hours repeat: a day, or what is left of it in a
	// trace whose times were squeezed.
	Day unit.Duration
	// Block is how many hours in a row are taken from one day: long enough that a
	// burst stays together, short enough that days mix.
	Block unit.Duration
}

// DefaultArrivals returns the configuration used where none is given.
func DefaultArrivals() ArrivalConfig {
	return ArrivalConfig{Days: 14, Day: unit.Day, Block: 4 * unit.Hour}
}

// Future is one possible future, drawn from a seed: how long each live job still
// runs, and who comes when. It is a source of jobs: those of the same hours of past
// days, moved to the hours ahead.
type Future struct {
	history *History
	lives   map[int]unit.Duration // of the live jobs, in all
	chance  *rand.Rand
	now     unit.Time
	until   unit.Time
	to      unit.Time     // end of the block at hand
	back    unit.Duration // how long ago its jobs were submitted
	at, end int           // its jobs, in History.seen
	made    int
}

// Lasts is how long a live job runs in all.
func (f *Future) Lasts(id int) unit.Duration { return f.lives[id] }

// Next returns the next made-up job and how long it runs, io.EOF at the end.
func (f *Future) Next() (workload.Job, workload.Truth, error) {
	for f.at == f.end {
		if f.to >= f.until || !f.turn() {
			return workload.Job{}, workload.Truth{}, io.EOF
		}
	}
	id := f.at
	f.at++
	s := &f.history.seen[id]
	job := s.job
	job.Submit = job.Submit.Add(f.back)
	f.made++
	job.Name = "later-" + strconv.Itoa(f.made)
	job.After = nil // those are long over
	ran := s.ran
	if !s.over {
		ran = f.lives[id]
	}
	return job, workload.Truth{Duration: max(ran, 1)}, nil
}

// turn draws the day that the next block is taken from, of those whose same hours
// are over; before there is one it takes the hours just past, the empty ones before
// the first job included. It reports false where there is no past.
func (f *Future) turn() bool {
	c, all := f.history.arrivals, f.history.seen
	if len(all) == 0 || all[0].job.Submit >= f.now {
		return false
	}
	first := all[0].job.Submit
	from := f.to
	f.to = min(from.Add(c.Block), f.until)
	nearest := (int64(f.to.Sub(f.now)) + int64(c.Day) - 1) / int64(c.Day)
	furthest := min(int64(from.Sub(first))/int64(c.Day), nearest+int64(c.Days)-1)
	f.back = f.to.Sub(f.now)
	if nearest <= furthest {
		f.back = unit.Duration(nearest+f.chance.Int64N(furthest-nearest+1)) * c.Day
	}
	f.at, f.end = f.find(from.Add(-f.back)), f.find(f.to.Add(-f.back))
	return true
}

// find is the first job that was not submitted before an instant.
func (f *Future) find(at unit.Time) int {
	all := f.history.seen
	return sort.Search(len(all), func(i int) bool { return all[i].job.Submit >= at })
}
