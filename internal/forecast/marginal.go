package forecast

import (
	"slices"
	"sort"

	"github.com/musterdl/muster/model/unit"
)

// Marginal is what one would say without running anything forward: as long as
// others waited. It is the basis where no engine can be run, and the baseline that
// sampled futures have to beat.
type Marginal struct {
	waits map[place]*waits
}

// place is where a job waits: a queue and a size, or a coarser group.
type place struct {
	queue string
	milli int64
}

// waits is all waits of a place, in order up to sorted.
type waits struct {
	all    []unit.Duration
	sorted bool
}

// leastWaits is how many jobs must have waited longer than the one at hand has for a
// group to be believed.
const leastWaits = 20

// NewMarginal returns a baseline that has seen no job.
func NewMarginal() *Marginal { return &Marginal{waits: map[place]*waits{}} }

// places lists the groups of a job, finest first.
func places(queue string, milli int64) [3]place {
	return [3]place{{queue, milli}, {queue, -1}, {"", -1}}
}

// Learn takes in how long a job waited that started.
func (m *Marginal) Learn(queue string, milli int64, waited unit.Duration) {
	for _, p := range places(queue, milli) {
		if m.waits[p] == nil {
			m.waits[p] = &waits{}
		}
		w := m.waits[p]
		w.all, w.sorted = append(w.all, waited), false
	}
}

// Start is the range of the start of a job that was submitted at an instant and has
// waited for so long: the quantiles of the waits that were longer.
func (m *Marginal) Start(queue string, milli int64, submitted unit.Time, waited unit.Duration) Range {
	var longer []unit.Duration
	for _, p := range places(queue, milli) {
		if w := m.waits[p]; w != nil {
			longer = w.longer(waited)
		}
		if len(longer) >= leastWaits {
			break
		}
	}
	if len(longer) == 0 {
		return Unknown()
	}
	return Range{submitted.Add(quantile(longer, LowLevel)), submitted.Add(quantile(longer, MedianLevel)), submitted.Add(quantile(longer, HighLevel))}
}

func (w *waits) longer(than unit.Duration) []unit.Duration {
	if !w.sorted {
		slices.Sort(w.all)
		w.sorted = true
	}
	return w.all[sort.Search(len(w.all), func(i int) bool { return w.all[i] > than }):]
}
