// Package imitate teaches a scorer somebody's rankings: it is shown lists as they were
// ranked, and the score of what was ahead should be the higher one. The loss is logistic
// over pairs of a list (RankNet, Burges et al., ICML 2005), brought down by Adam (Kingma
// and Ba, ICLR 2015), so that what is learned is an order and not anybody's scale.
package imitate

import (
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/learn/mlp"
)

// List is one ranking that was seen: the features of its members, the first ahead.
type List [][]float64

// Config says how long to learn.
type Config struct {
	Steps int     // of descent
	Pairs int     // per step
	Rate  float64 // of learning
	Seed  uint64
}

// Adam's own constants.
const (
	momentum, scaling, floor = .9, .999, 1e-8
)

// Learn brings the loss down from the weights it is given and returns others. Lists with
// fewer than two members teach nothing.
func Learn(s mlp.Shape, start []float64, lists []List, c Config) []float64 {
	var useful []List
	for _, l := range lists {
		if len(l) > 1 {
			useful = append(useful, l)
		}
	}
	w := append([]float64(nil), start...)
	if len(useful) == 0 {
		return w
	}
	rng := rand.New(rand.NewPCG(c.Seed, 2))
	grad, mean, square := make([]float64, len(w)), make([]float64, len(w)), make([]float64, len(w))
	for step := 1; step <= c.Steps; step++ {
		clear(grad)
		for range c.Pairs {
			list := useful[rng.IntN(len(useful))]
			ahead := rng.IntN(len(list) - 1)
			behind := ahead + 1 + rng.IntN(len(list)-1-ahead)
			// The derivative of log(1+exp(-difference)).
			pull := -1 / (1 + math.Exp(s.Output(w, list[ahead])-s.Output(w, list[behind]))) / float64(c.Pairs)
			s.AddGradient(w, list[ahead], pull, grad)
			s.AddGradient(w, list[behind], -pull, grad)
		}
		for i, g := range grad {
			mean[i] = momentum*mean[i] + (1-momentum)*g
			square[i] = scaling*square[i] + (1-scaling)*g*g
			m := mean[i] / (1 - math.Pow(momentum, float64(step)))
			v := square[i] / (1 - math.Pow(scaling, float64(step)))
			w[i] -= c.Rate * m / (math.Sqrt(v) + floor)
		}
	}
	return w
}

// Agreement is the part of all pairs that weights rank as the lists do.
func Agreement(s mlp.Shape, w []float64, lists []List) float64 {
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
