package perceptron

import (
	"math"
	"testing"
)

// TestOutput: the straight way and one hidden unit, by hand.
func TestOutput(t *testing.T) {
	s := Shape{Inputs: 2, Hidden: 1}
	w := []float64{3, -1, .5, .25, .125, 10} // straight, then the unit: per input, bias, what it counts for
	if len(w) != s.Weights() {
		t.Fatalf("%d weights, said %d", len(w), s.Weights())
	}
	if got, want := s.Output(w, []float64{2, 4}), 3.*2-4+10*math.Tanh(.5*2+.25*4+.125); math.Abs(got-want) > 1e-12 {
		t.Errorf("the answer is %g, expected %g", got, want)
	}
	if got := (Shape{Inputs: 2}).Output(w[:2], []float64{2, 4}); got != 2 {
		t.Errorf("without hidden units the answer is %g, expected 2", got)
	}
}
