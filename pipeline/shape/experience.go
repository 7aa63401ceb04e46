package shape

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// Experience is what measured steps took, as multiples of what is predicted of them here: of all on which nothing was fitted.
type Experience struct {
	Low, High float64
	Steps     int
	// Bias and Spread are the mean of their logarithms and the standard deviation of these.
	Bias, Spread float64
}

// experiences are those that there are (docs/plan.md); the claims sailor and published-steps are these steps, by which TestExperiences
// of experiment/reproduce keeps them true.
var experiences = map[string]map[Precision]Experience{
	"A100-80GB":  {Half: {.95, 1.32, 20, .036, .101}},
	"H100":       {Half: {.99, .99, 1, -.013, 0}},
	"GH200-96GB": {TF32: {.91, 1.48, 24, .023, .092}},
}

// EveryStep is what the measured steps of all devices took.
func EveryStep() Experience { return Experience{.91, 1.48, 45, .028, .094} }

// Draw is what a step truly takes, as a multiple of what is predicted, in a world in which predictions are as far off as
// they were of measured steps. The same seed draws the same of a plan on a kind of device.
func Draw(seed uint64, device, plan string, p Precision) float64 {
	e := EveryStep()
	if d, why := Like(device, 0, p); why == "" {
		if own, known := Experienced(d.Name, p); known && own.Steps > 1 {
			e = own
		}
	}
	h := fnv.New64a()
	h.Write([]byte(device + "\x00" + plan))
	return math.Exp(e.Bias + e.Spread*rand.New(rand.NewPCG(seed, h.Sum64())).NormFloat64())
}

// Experienced is what measured steps of a kind of device took; known is false where none was measured.
func Experienced(device string, p Precision) (e Experience, known bool) {
	e, known = experiences[device][p]
	return e, known
}
