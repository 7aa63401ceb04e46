package tiresias

import (
	"cmp"
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// gittins is the index over attained service: the chance that a job which has come
// so far ends within the next quantum, per expected service until then. It is
// looked up in steps of the quantum and learned anew at fixed instants, so that it
// follows from the finished jobs alone.
type gittins struct {
	quantum  int64
	textbook bool
	refresh  unit.Duration

	past   []int64 // samples known from the start
	ended  []sample
	built  int64 // the refresh the table is of; -1 is none
	sorted []int64
	sums   []float64 // prefix sums of sorted
	table  []int64   // by step: index in parts per billion per device-second, lazily
}

type sample struct {
	at      unit.Time
	service int64
}

func newGittins(c Config) *gittins {
	g := &gittins{quantum: int64(c.QuantumDeviceSec * perDeviceSec), textbook: c.Textbook, refresh: c.Refresh, built: -1}
	for _, s := range c.SamplesDeviceSec {
		g.past = append(g.past, int64(s*perDeviceSec))
	}
	return g
}

func (g *gittins) learn(at unit.Time, service int64) { g.ended = append(g.ended, sample{at, service}) }

// refreshed is when the table will next be built.
func (g *gittins) refreshed() unit.Time {
	return unit.Time(0).Add(unit.Duration(g.built+1) * g.refresh)
}

// index returns the rank of a job that has been served so much, larger first, and
// the service at which to look again.
func (g *gittins) index(v plan.View, served int64) (rank, again int64) {
	if epoch := int64(v.Now()) / int64(g.refresh); epoch != g.built {
		g.build(epoch)
	}
	step := served / g.quantum
	for int64(len(g.table)) <= step {
		g.table = append(g.table, g.at(int64(len(g.table))*g.quantum))
	}
	return g.table[step], (step + 1) * g.quantum
}

// build sorts what is known at the start of a refresh period.
func (g *gittins) build(epoch int64) {
	g.built, g.table = epoch, g.table[:0]
	g.sorted = append(g.sorted[:0], g.past...)
	for _, s := range g.ended {
		if int64(s.at)/int64(g.refresh) < epoch {
			g.sorted = append(g.sorted, s.service)
		}
	}
	slices.SortFunc(g.sorted, cmp.Compare)
	g.sums = append(g.sums[:0], 0)
	for i, s := range g.sorted {
		g.sums = append(g.sums, g.sums[i]+float64(s))
	}
}

// at computes the index at attained service a: over the n samples above a, of which
// m end within the quantum, P = m/n and E is the mean service of those m and a
// quantum of the others. Beyond all samples nothing is known and the rank is last.
func (g *gittins) at(a int64) int64 {
	first, _ := slices.BinarySearch(g.sorted, a+1)
	last, _ := slices.BinarySearch(g.sorted, a+g.quantum+1)
	n, m := len(g.sorted)-first, last-first
	if m == 0 {
		return 0
	}
	spent := g.sums[last] - g.sums[first]
	if g.textbook {
		spent -= float64(m) * float64(a)
	}
	spent += float64(g.quantum) * float64(n-m)
	return int64(math.Round(float64(m) / spent * perDeviceSec * 1e9))
}
