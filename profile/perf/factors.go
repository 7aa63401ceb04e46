package perf

import (
	"math"
	"math/rand/v2"
)

// Factors predicts the rate of a class of jobs on a type of device with a number of
// workers from those of others: the logarithm of the rate per worker is a sum of what
// class, type and count contribute, and of products of a few hidden features of the three.
// Nothing measured means linear scaling.
type Factors struct {
	counts                []int
	seen                  []cell
	mean                  float64
	class, device, count  []float64
	byClass, byDev, byCnt [][rank]float64
	points                []int // by class
	residual              float64
}

type cell struct {
	class, device, count int
	log                  float64 // of the rate per worker
}

// The published descent.
const (
	rank, learn, shrink, epochs = 4, .02, .02, 400
)

// NewFactors is for so many classes and types of devices, and these numbers of workers.
// The seed breaks the symmetry of the hidden features.
func NewFactors(classes, devices int, counts []int, seed uint64) *Factors {
	f := &Factors{counts: counts, points: make([]int, classes),
		class: make([]float64, classes), device: make([]float64, devices), count: make([]float64, len(counts)),
		byClass: make([][rank]float64, classes), byDev: make([][rank]float64, devices), byCnt: make([][rank]float64, len(counts))}
	rng := rand.New(rand.NewPCG(seed, 6))
	for _, side := range [][][rank]float64{f.byDev, f.byCnt} { // a class has no features until measured
		for i := range side {
			for k := range rank {
				side[i][k] = .5 * rng.NormFloat64()
			}
		}
	}
	return f
}

// Add takes in a measured rate; count is the index of the number of workers.
func (f *Factors) Add(class, device, count int, rate float64) {
	f.seen = append(f.seen, cell{class, device, count, math.Log(rate / float64(f.counts[count]))})
	f.points[class]++
}

// Fit descends from where the last fit ended.
func (f *Factors) Fit() {
	if len(f.seen) == 0 {
		return
	}
	f.mean = 0
	for _, c := range f.seen {
		f.mean += c.log / float64(len(f.seen))
	}
	for range epochs {
		f.residual = 0
		for i := range f.seen {
			e := f.step(&f.seen[i])
			f.residual += e * e
		}
	}
	f.residual = math.Sqrt(f.residual / float64(len(f.seen)))
}

func (f *Factors) step(c *cell) float64 {
	e := c.log - f.predict(c.class, c.device, c.count)
	a, b, n := &f.class[c.class], &f.device[c.device], &f.count[c.count]
	*a += learn * (e - shrink**a)
	*b += learn * (e - shrink**b)
	*n += learn * (e - shrink**n)
	u, v, w := &f.byClass[c.class], &f.byDev[c.device], &f.byCnt[c.count]
	for k := range rank {
		x, y, z := u[k], v[k], w[k]
		u[k] += learn * (e*y*z - shrink*x)
		v[k] += learn * (e*x*z - shrink*y)
		w[k] += learn * (e*x*y - shrink*z)
	}
	return e
}

func (f *Factors) predict(class, device, count int) float64 {
	sum := f.mean + f.class[class] + f.device[device] + f.count[count]
	for k := range rank {
		sum += f.byClass[class][k] * f.byDev[device][k] * f.byCnt[count][k]
	}
	return sum
}

// Rate predicts a rate. Its error is that of the fit, and what a class may still hide:
// all of its variation as long as it was never measured, less with every measurement.
func (f *Factors) Rate(class, device, count int) (float64, Trust) {
	rate := math.Exp(f.predict(class, device, count)) * float64(f.counts[count])
	spread := 0.0
	for j, a := range f.class {
		if f.points[j] > 0 {
			spread = max(spread, math.Abs(a))
		}
	}
	if len(f.seen) == 0 {
		spread = 1
	}
	n := f.points[class]
	return rate, Trust{Points: n, Sigma: math.Hypot(f.residual, spread/float64(1+n*n))}
}
