package pollux

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

// drawScatter makes distinct random points on a coarse lattice, so that ties abound.
func drawScatter(t *rapid.T, value func(point) float64) *scatter {
	s := &scatter{known: make(map[point]Step)}
	seen := make(map[point]bool)
	for range rapid.IntRange(4, 25).Draw(t, "points") {
		p := drawPoint(t)
		if !seen[p] {
			seen[p] = true
			s.add(p, Step{Seconds: value(p), SyncSeconds: -value(p)})
		}
	}
	s.sort()
	return s
}

func drawPoint(t *rapid.T) point {
	return point{rapid.Int64Range(1, 4).Draw(t, "nodes"), rapid.Int64Range(1, 6).Draw(t, "replicas"), 10 * rapid.Int64Range(1, 4).Draw(t, "local")}
}

// A linear function is its own interpolation, wherever there is one.
func TestScatterLinear(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		linear := func(p point) float64 { return 3 + 2*float64(p[0]) - 5*float64(p[1]) + 0.25*float64(p[2]) }
		s := drawScatter(t, linear)
		q := drawPoint(t)
		if step, ok := s.at(q); ok && math.Abs(step.Seconds-linear(q))+math.Abs(step.SyncSeconds+linear(q)) > 1e-9 {
			t.Fatalf("at %v: %v, expected %v", q, step, linear(q))
		}
	})
}

// The simplex found surrounds the point and no other measurement lies in its
// sphere; one is found exactly if brute force finds any simplex around the point.
func TestScatterDelaunay(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		s := drawScatter(t, func(p point) float64 { return float64(p[0]) })
		q := drawPoint(t)
		c, ok := s.surround(q)
		if surrounded := s.anySimplex(q); ok != surrounded {
			t.Fatalf("around %v: found %v, brute force %v", q, ok, surrounded)
		}
		if !ok {
			return
		}
		var total int64
		for i := range c.at {
			if c.num[i] < 0 {
				t.Fatalf("negative weight %v", c)
			}
			total += c.num[i]
		}
		if total != c.den {
			t.Fatalf("weights %v do not sum to %d", c.num, c.den)
		}
		for i := range s.samples {
			if s.inSphere(c, s.samples[i].at) {
				t.Fatalf("%v is inside the sphere of the simplex %v around %v", s.samples[i].at, c, q)
			}
		}
	})
}

func (s *scatter) anySimplex(q point) bool {
	columns := s.columns(q)
	for a := range columns {
		for b := range a {
			for c := range b {
				for d := range c {
					if _, ok := weigh(columns, [4]int{a, b, c, d}); ok {
						return true
					}
				}
			}
		}
	}
	return false
}

// inSphere compares distances to the centre, by Cramer's rule.
func (s *scatter) inSphere(c corners, p point) bool {
	var m [3][3]float64
	var right [3]float64
	origin := s.samples[c.at[0]].at
	for i := range 3 {
		corner := s.samples[c.at[i+1]].at
		for k := range 3 {
			m[i][k] = 2 * float64(corner[k]-origin[k])
			right[i] += m[i][k] * m[i][k] / 4
		}
	}
	det := determinant(m)
	var radius, distance float64
	for k := range 3 {
		n := m
		for i := range 3 {
			n[i][k] = right[i]
		}
		centre := determinant(n) / det
		off := float64(p[k]-origin[k]) - centre
		radius, distance = radius+centre*centre, distance+off*off
	}
	return distance < radius*(1-1e-9)-1e-9
}

func determinant(m [3][3]float64) float64 {
	return m[0][0]*(m[1][1]*m[2][2]-m[1][2]*m[2][1]) - m[0][1]*(m[1][0]*m[2][2]-m[1][2]*m[2][0]) + m[0][2]*(m[1][0]*m[2][1]-m[1][1]*m[2][0])
}

// In a box of eight equally good corners the preferred one weighs most: the centre
// lies between fewest replicas on most nodes and its opposite.
func TestScatterTie(t *testing.T) {
	s := &scatter{known: make(map[point]Step)}
	for _, n := range []int64{2, 4} {
		for _, r := range []int64{4, 6} {
			for _, m := range []int64{8, 10} {
				value := 0.0
				if n == 4 && r == 4 && m == 8 {
					value = 1
				}
				s.add(point{n, r, m}, Step{Seconds: value})
			}
		}
	}
	s.sort()
	if step, ok := s.at(point{3, 5, 9}); !ok || step.Seconds != 0.5 {
		t.Errorf("centre of the box: %v, %v, expected 0.5", step.Seconds, ok)
	}
}

func TestScatterOutside(t *testing.T) {
	s := drawn(t)
	for _, q := range []point{{0, 1, 1}, {1, 1, 1 << 16}, {60, 60, 9000}} {
		if step, ok := s.at(q); ok {
			t.Errorf("at %v: %v, expected none", q, step)
		}
	}
}

func drawn(t *testing.T) *scatter {
	t.Helper()
	s := &scatter{known: make(map[point]Step)}
	for _, p := range []point{{1, 1, 1}, {8, 1, 1}, {1, 8, 1}, {1, 1, 8}} {
		s.add(p, Step{Seconds: 1})
	}
	s.sort()
	return s
}
