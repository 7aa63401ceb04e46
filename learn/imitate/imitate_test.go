package imitate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterdl/muster/learn/mlp"
)

// lists ranks random members by a function that is not linear, with the largest first.
func lists(n int, seed uint64, score func(x []float64) float64) (all []List) {
	rng := rand.New(rand.NewPCG(seed, 9))
	for range n {
		list := make(List, 2+rng.IntN(8))
		for i := range list {
			list[i] = []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		}
		slices.SortFunc(list, func(a, b []float64) int {
			if score(a) > score(b) {
				return -1
			}
			return 1
		})
		all = append(all, list)
	}
	return all
}

// A linear teacher is learned by a linear scorer, up to the scale; one that is not needs
// hidden units, and then is learned too. What is measured was not shown.
func TestLearn(t *testing.T) {
	linear := func(x []float64) float64 { return 3*x[0] - x[1] }
	curved := func(x []float64) float64 { return math.Abs(x[0]) + .1*x[1] }
	for _, test := range []struct {
		name        string
		teacher     func([]float64) float64
		hidden      int
		least, most float64
	}{{"linear", linear, 0, .98, 1}, {"curved, without hidden units", curved, 0, 0, .65}, {"curved", curved, 6, .93, 1}} {
		s := mlp.Shape{Inputs: 3, Hidden: test.hidden}
		c := Config{Steps: 1500, Pairs: 32, Rate: .02, Seed: 5}
		w := Learn(s, s.Random(1), lists(200, 1, test.teacher), c)
		got := Agreement(s, w, lists(50, 2, test.teacher))
		if got < test.least || got > test.most {
			t.Errorf("%s: %.3f of the pairs agree, expected %g to %g", test.name, got, test.least, test.most)
		}
		if again := Learn(s, s.Random(1), lists(200, 1, test.teacher), c); !slices.Equal(again, w) {
			t.Errorf("%s: the same seed taught something else", test.name)
		}
	}
}

func TestNothingToLearn(t *testing.T) {
	s := mlp.Shape{Inputs: 1}
	if w := Learn(s, []float64{4}, []List{{{1}}, nil}, Config{Steps: 3, Pairs: 1, Rate: 1}); w[0] != 4 {
		t.Errorf("a list of one taught %v", w)
	}
}
