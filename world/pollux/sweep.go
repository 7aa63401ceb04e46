package pollux

import (
	"fmt"
	"io"
)

// Sweep is one figure of the paper's simulations (its 8a to 8c): the mean completion
// time over the eight workloads as one thing varies.
type Sweep struct {
	// Name is short, X says what varies.
	Name, X string
	Curves  []Curve
}

// Curve is how one policy fares.
type Curve struct {
	Policy string
	Points []Point
}

// Point is our mean in seconds beside the artefact's.
type Point struct {
	X, Seconds, Published float64
}

// Sweeps plays the loads, the intervals and, without its avoidance, the interference of
// the artefact, Pollux with the genetic or the greedy search. It takes minutes.
func Sweeps(open func(path string) (io.ReadCloser, error), seed uint64, greedy bool) ([]Sweep, error) {
	x, err := newExperiment(open, seed)
	if err != nil {
		return nil, err
	}
	search := "genetic"
	if greedy {
		search = "greedy"
	}
	byLoad := func(policy string, published [4]float64) (Curve, error) {
		return x.curve(policy, []float64{.5, 1, 1.5, 2}, published[:], func(s *setting, load float64) {
			if s.load = workloads; load != 1 {
				s.load = fmt.Sprintf("%s-%.1f", workloads, load)
			}
		})
	}
	loads := Sweep{Name: "load", X: "jobs, relative to the published workloads"}
	for _, p := range []struct {
		policy    string
		published [4]float64
	}{
		{search, [4]float64{1534.0, 2751.1, 3685.4, 5289.2}},
		{"tiresias", [4]float64{2091.5, 4038.2, 6182.3, 10039.5}},
		{"optimus", [4]float64{2395.4, 5681.9, 7234.6, 9721.0}},
	} {
		c, err := byLoad(p.policy, p.published)
		if err != nil {
			return nil, err
		}
		loads.Curves = append(loads.Curves, c)
	}
	intervals := Sweep{Name: "interval", X: "seconds between decisions"}
	c, err := x.curve(search, []float64{30, 60, 120, 240, 480}, []float64{2729.1, 2751.1, 2805.9, 2968.5, 3354.2},
		func(s *setting, seconds float64) { s.cluster.TickSeconds = int(seconds) })
	if err != nil {
		return nil, err
	}
	intervals.Curves = []Curve{c}
	disturbed := Sweep{Name: "interference", X: "part of their speed that jobs on several nodes lose where they meet"}
	for _, p := range []struct {
		name      string
		mingle    bool
		published []float64
	}{{search, false, []float64{2751.1, 2751.1, 2751.1}}, {search + ", not avoided", true, []float64{2757.9, 3177.1, 3903.1}}} {
		c, err := x.curve(search, []float64{0, .25, .5}, p.published, func(s *setting, part float64) { s.cluster.Slowdown, s.mingle = part, p.mingle })
		if err != nil {
			return nil, err
		}
		c.Policy = p.name
		disturbed.Curves = append(disturbed.Curves, c)
	}
	return []Sweep{loads, intervals, disturbed}, nil
}

// curve plays the eight workloads at every value.
func (x *experiment) curve(policy string, values, published []float64, change func(s *setting, value float64)) (Curve, error) {
	c := Curve{Policy: policy}
	for i, value := range values {
		s := setting{policy: policy, load: workloads, cluster: Default()}
		change(&s, value)
		all, err := x.eight(s)
		if err != nil {
			return c, err
		}
		p := Point{X: value, Published: published[i]}
		for _, mean := range all {
			p.Seconds += mean / 8
		}
		c.Points = append(c.Points, p)
	}
	return c, nil
}
