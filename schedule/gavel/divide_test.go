package gavel

import (
	"math"
	"testing"
)

func ones(n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = 1
	}
	return xs
}

// paper is the example of the paper's section 3: three jobs, one device of each of
// two types.
func paper() Problem {
	return Problem{Policy: MaxMin, Rate: [][]float64{{4, 1}, {3, 1}, {2, 1}}, Gang: ones(3), Room: ones(2)}
}

func TestPaper(t *testing.T) {
	s, err := Divide(paper())
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(s.Objective-12.0/11) > 1e-6 {
		t.Errorf("the least ratio is %.7f, want 12/11", s.Objective)
	}
	want := [][]float64{{5. / 11, 0}, {5. / 11, 1. / 11}, {1. / 11, 10. / 11}}
	for j := range want {
		for k := range want[j] {
			if math.Abs(s.X[j][k]-want[j][k]) > 1e-6 {
				t.Errorf("X = %.6f, want %.6f", s.X, want)
				return
			}
		}
	}
	g, err := Greedy(paper())
	t.Logf("greedy %v %v", g, err)
}

// TestPaperRounds: after 200 rounds every job has had what it should, within 2 % of
// the time.
func TestPaperRounds(t *testing.T) {
	p := paper()
	s, err := Divide(p)
	if err != nil {
		t.Fatal(err)
	}
	r := Round{X: s.X, Got: p.nothing(), Deficit: p.nothing(), Credit: .5, Rate: p.Rate, Gang: []int{1, 1, 1}, Room: []int{1, 1}, Turn: []int{0, 1}}
	for range 200 {
		for j, k := range r.Assign() {
			if k >= 0 {
				r.Got[j][k]++
			}
		}
	}
	for j := range s.X {
		for k := range s.X[j] {
			if got := r.Got[j][k] / 200; math.Abs(got-s.X[j][k]) > .02 {
				t.Errorf("job %d had %.3f of type %d, want %.3f", j, got, k, s.X[j][k])
			}
		}
	}
	t.Log(r.Got)
}
