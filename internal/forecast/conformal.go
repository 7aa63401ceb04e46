package forecast

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// ConformalConfig tunes how ranges are corrected.
type ConformalConfig struct {
	// Window is how many of a queue's latest judged promises count.
	Window int
	// Least is how many a queue needs before its own count; until then those of all
	// queues do.
	Least int
	// Rate is how far one miss, or hit, moves the level that is aimed at.
	Rate float64
}

// DefaultConformal returns the configuration used where none is given.
func DefaultConformal() ConformalConfig { return ConformalConfig{Window: 200, Least: 50, Rate: 0.01} }

// Conformal corrects ranges by how far off past ones were. The zero rate is plain
// split-conformal correction over a window.
type Conformal struct {
	config ConformalConfig
	queues map[string]*misses
	all    *misses
}

// misses is how far off the latest ranges were: what happened less each of the three
// levels, on the scale; and the levels that are aimed at so that one in ten falls
// below and one in ten above.
type misses struct {
	off       [3][]float64 // rings
	next      int
	low, high float64
}

func newMisses() *misses { return &misses{low: LowLevel, high: HighLevel} }

// NewConformal returns a corrector that has seen no promise.
func NewConformal(c ConformalConfig) *Conformal {
	return &Conformal{config: c, queues: map[string]*misses{}, all: newMisses()}
}

// Correct widens, narrows and shifts a raw range made at an instant for a queue.
func (c *Conformal) Correct(queue string, made unit.Time, raw Range) Range {
	m := c.queues[queue]
	if m == nil || len(m.off[0]) < c.config.Least {
		m = c.all
	}
	if len(m.off[0]) < c.config.Least {
		return raw
	}
	var z [3]float64
	for i, level := range [...]float64{m.low, MedianLevel, m.high} {
		z[i] = onScale(made, raw)[i] + m.quantile(i, level)
	}
	z[0], z[2] = min(z[0], z[1]), max(z[1], z[2])
	return Range{made.Add(unscale(z[0])), made.Add(unscale(z[1])), made.Add(unscale(z[2]))}
}

// Learn takes in what happened at last: raw is the range before its correction,
// given after.
func (c *Conformal) Learn(queue string, made unit.Time, raw, given Range, happened unit.Time) {
	m := c.queues[queue]
	if m == nil {
		m = newMisses()
		c.queues[queue] = m
	}
	for _, m := range [...]*misses{m, c.all} {
		z := onScale(made, raw)
		for i := range z {
			z[i] = scale(until(made, happened)) - z[i]
		}
		m.add(z, c.config.Window)
		m.steer(given, happened, c.config.Rate)
	}
}

func onScale(made unit.Time, r Range) [3]float64 {
	return [3]float64{scale(until(made, r.Low)), scale(until(made, r.Median)), scale(until(made, r.High))}
}

func (m *misses) add(off [3]float64, window int) {
	if len(m.off[0]) < window {
		for i := range off {
			m.off[i] = append(m.off[i], off[i])
		}
		return
	}
	for i := range off {
		m.off[i][m.next] = off[i]
	}
	m.next = (m.next + 1) % window
}

// steer moves the levels aimed at: outward after a miss on their side, inward by a
// little after none, so that in the long run one in ten misses whatever the queue
// does (Gibbs and Candes, equation 2).
func (m *misses) steer(given Range, happened unit.Time, rate float64) {
	early, late := 0., 0.
	if happened < given.Low {
		early = 1
	}
	if happened > given.High {
		late = 1
	}
	m.low = min(max(m.low+rate*(LowLevel-early), 0.005), 0.4)
	m.high = min(max(m.high-rate*(1-HighLevel-late), 0.6), 0.995)
}

// quantile is how far off the level i was at a level of the window.
func (m *misses) quantile(i int, level float64) float64 {
	sorted := slices.Clone(m.off[i])
	slices.Sort(sorted)
	at := level*float64(len(sorted)+1) - 1
	below := min(max(int(at), 0), len(sorted)-1)
	above := min(below+1, len(sorted)-1)
	part := min(max(at-float64(below), 0), 1)
	return sorted[below] + part*(sorted[above]-sorted[below])
}
