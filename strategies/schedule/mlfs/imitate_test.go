package mlfs

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterdl/muster/strategies/schedule/mlfs/perceptron"
)

// A scorer is taught MLF-H's rankings: it is shown lists as they were ranked, and the score
// of what was ahead should be the higher one. The loss is logistic over pairs of a list
// (RankNet, Burges et al., ICML 2005), brought down by Adam (Kingma and Ba, ICLR 2015), so
// that what is learned is an order and not anybody's scale.

// ranking is one that was seen: the features of its members, the first ahead.
type ranking [][]float64

// learnEffort is how long to learn.
type learnEffort struct {
	steps int     // of descent
	pairs int     // per step
	rate  float64 // of learning
	seed  uint64
}

// Adam's own constants.
const (
	momentum, scaling, floor = .9, .999, 1e-8
)

// imitate brings the loss down from the weights it is given and returns others. Lists with
// fewer than two members teach nothing.
func imitate(s perceptron.Shape, start []float64, lists []ranking, c learnEffort) []float64 {
	var useful []ranking
	for _, l := range lists {
		if len(l) > 1 {
			useful = append(useful, l)
		}
	}
	w := append([]float64(nil), start...)
	if len(useful) == 0 {
		return w
	}
	rng := rand.New(rand.NewPCG(c.seed, 2))
	grad, mean, square := make([]float64, len(w)), make([]float64, len(w)), make([]float64, len(w))
	for step := 1; step <= c.steps; step++ {
		clear(grad)
		for range c.pairs {
			list := useful[rng.IntN(len(useful))]
			ahead := rng.IntN(len(list) - 1)
			behind := ahead + 1 + rng.IntN(len(list)-1-ahead)
			// The derivative of log(1+exp(-difference)).
			pull := -1 / (1 + math.Exp(s.Output(w, list[ahead])-s.Output(w, list[behind]))) / float64(c.pairs)
			addGradient(s, w, list[ahead], pull, grad)
			addGradient(s, w, list[behind], -pull, grad)
		}
		for i, g := range grad {
			mean[i] = momentum*mean[i] + (1-momentum)*g
			square[i] = scaling*square[i] + (1-scaling)*g*g
			m := mean[i] / (1 - math.Pow(momentum, float64(step)))
			v := square[i] / (1 - math.Pow(scaling, float64(step)))
			w[i] -= c.rate * m / (math.Sqrt(v) + floor)
		}
	}
	return w
}

// agreement is the part of all pairs that weights rank as the lists do.
func agreement(s perceptron.Shape, w []float64, lists []ranking) float64 {
	same, pairs := 0, 0
	for _, list := range lists {
		for i := range list {
			for k := i + 1; k < len(list); k++ {
				if pairs++; s.Output(w, list[i]) > s.Output(w, list[k]) {
					same++
				}
			}
		}
	}
	return float64(same) / float64(max(1, pairs))
}

// rankings ranks random members by a function that is not linear, with the largest first.
func rankings(n int, seed uint64, score func(x []float64) float64) (all []ranking) {
	rng := rand.New(rand.NewPCG(seed, 9))
	for range n {
		list := make(ranking, 2+rng.IntN(8))
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
func TestImitate(t *testing.T) {
	linear := func(x []float64) float64 { return 3*x[0] - x[1] }
	curved := func(x []float64) float64 { return math.Abs(x[0]) + .1*x[1] }
	for _, test := range []struct {
		name        string
		teacher     func([]float64) float64
		hidden      int
		least, most float64
	}{{"linear", linear, 0, .98, 1}, {"curved, without hidden units", curved, 0, 0, .65}, {"curved", curved, 6, .93, 1}} {
		s := perceptron.Shape{Inputs: 3, Hidden: test.hidden}
		c := learnEffort{steps: 1500, pairs: 32, rate: .02, seed: 5}
		w := imitate(s, random(s, 1), rankings(200, 1, test.teacher), c)
		got := agreement(s, w, rankings(50, 2, test.teacher))
		if got < test.least || got > test.most {
			t.Errorf("%s: %.3f of the pairs agree, expected %g to %g", test.name, got, test.least, test.most)
		}
		if again := imitate(s, random(s, 1), rankings(200, 1, test.teacher), c); !slices.Equal(again, w) {
			t.Errorf("%s: the same seed taught something else", test.name)
		}
	}
}

func TestNothingToLearn(t *testing.T) {
	s := perceptron.Shape{Inputs: 1}
	if w := imitate(s, []float64{4}, []ranking{{{1}}, nil}, learnEffort{steps: 3, pairs: 1, rate: 1}); w[0] != 4 {
		t.Errorf("a list of one taught %v", w)
	}
}
