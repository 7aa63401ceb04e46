package report

import "github.com/musterdl/muster/model/unit"

// Point is one bucket of a series: the time-weighted mean, the least and the
// greatest value from At to the next point.
type Point struct {
	At   unit.Time
	Mean float64
	Min  float64
	Max  float64
}

// level integrates a piecewise constant value exactly, whatever its length.
type level struct {
	begun bool
	at    unit.Time
	value float64
	area  float64 // value times seconds
	peak  float64 // the greatest value that lasted
}

func (l *level) observe(at unit.Time, value float64) {
	if l.begun && at > l.at {
		l.area += l.value * at.Sub(l.at).Seconds()
		l.peak = max(l.peak, l.value)
	}
	if !l.begun || at > l.at {
		l.at = at
	}
	l.begun, l.value = true, value
}

// finestWidth is the width of the buckets of a series that has just begun.
const finestWidth = unit.Millisecond

// series keeps a piecewise constant value in at most limit buckets of equal
// width. When they no longer reach, neighbours are merged and the width doubles,
// so that memory is bounded and the cost per observation is constant on average.
type series struct {
	level
	limit   int
	start   unit.Time
	width   unit.Duration
	buckets []bucket
}

type bucket struct {
	area     float64
	covered  unit.Duration
	min, max float64
}

func (s *series) observe(at unit.Time, value float64) {
	switch {
	case !s.begun:
		s.start, s.width = at, finestWidth
	case at > s.at:
		s.spread(at)
	}
	s.level.observe(at, value)
}

// spread puts the current value into the buckets from s.at to the instant to.
func (s *series) spread(to unit.Time) {
	for int64(to.Sub(s.start)-1)/int64(s.width) >= int64(s.limit) {
		s.halve()
	}
	for at := s.at; at < to; {
		i := int(at.Sub(s.start) / s.width)
		end := min(to, s.start.Add(unit.Duration(i+1)*s.width))
		if i == len(s.buckets) {
			s.buckets = append(s.buckets, bucket{min: s.value, max: s.value})
		}
		b := &s.buckets[i]
		b.area += s.value * end.Sub(at).Seconds()
		b.covered += end.Sub(at)
		b.min, b.max = min(b.min, s.value), max(b.max, s.value)
		at = end
	}
}

// halve merges neighbours.
func (s *series) halve() {
	for i := 0; i < len(s.buckets); i += 2 {
		b := s.buckets[i]
		if i+1 < len(s.buckets) {
			c := s.buckets[i+1]
			b = bucket{b.area + c.area, b.covered + c.covered, min(b.min, c.min), max(b.max, c.max)}
		}
		s.buckets[i/2] = b
	}
	s.buckets = s.buckets[:(len(s.buckets)+1)/2]
	s.width *= 2
}

// points returns the buckets, and a last point at the end of what was observed.
func (s *series) points() []Point {
	out := make([]Point, 0, len(s.buckets)+1)
	for i, b := range s.buckets {
		out = append(out, Point{s.start.Add(unit.Duration(i) * s.width), b.area / b.covered.Seconds(), b.min, b.max})
	}
	if n := len(out); n > 0 {
		last := out[n-1]
		last.At = s.at
		out = append(out, last)
	}
	return out
}

// thin merges neighbours until at most limit points are left: a picture shows no
// more than it has pixels, and lines over each other less.
func thin(points []Point, limit int) []Point {
	group := (len(points) + limit - 2) / (limit - 1)
	if group <= 1 {
		return points
	}
	var out []Point
	end := len(points) - 1 // the last point only says where the series ends
	for i := 0; i < end; i += group {
		p, area := points[i], 0.0
		next := min(i+group, end)
		for k := i; k < next; k++ {
			area += points[k].Mean * points[k+1].At.Sub(points[k].At).Seconds()
			p.Min, p.Max = min(p.Min, points[k].Min), max(p.Max, points[k].Max)
		}
		p.Mean = area / points[next].At.Sub(p.At).Seconds()
		out = append(out, p)
	}
	last := out[len(out)-1]
	last.At = points[end].At
	return append(out, last)
}
