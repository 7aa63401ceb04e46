package perf

import "math"

// Params are the parameters of Pollux's model of a training step, times in seconds.
type Params struct {
	AlphaC, BetaC float64 // one pass over the local batch: constant, and per sample
	AlphaN, BetaN float64 // exchange between nodes: constant, and per replica above two
	AlphaR, BetaR float64 // exchange within a node
	Gamma         float64 // overlap of the two: 1 is none, 10 nearly all
}

// Pass is the time of one forward and backward pass over a local batch.
func (p *Params) Pass(local int) float64 { return p.AlphaC + p.BetaC*float64(local) }

// Exchange is the time the gradients take between replicas.
func (p *Params) Exchange(nodes, replicas int) float64 {
	more := float64(max(replicas-2, 0))
	switch {
	case replicas < 2:
		return 0
	case nodes > 1:
		return p.AlphaN + p.BetaN*more
	}
	return p.AlphaR + p.BetaR*more
}

// Step is the time of a step with so many passes, the last overlapping the exchange.
func (p *Params) Step(nodes, replicas, local, passes int) float64 {
	pass, exchange := p.Pass(local), p.Exchange(nodes, replicas)
	step := pass
	if exchange > 0 {
		// The larger is taken out of the root, which would overflow at gamma 10.
		most := max(pass, exchange)
		step = most * math.Pow(1+math.Pow(min(pass, exchange)/most, p.Gamma), 1/p.Gamma)
	}
	return float64(passes-1)*pass + step
}

// Noise is the squared norm and the variance of the gradient at the initial batch.
type Noise struct {
	Sqr, Var float64
}

// Gain is the progress of one step at a batch of scale times the initial one, in
// steps of the initial batch.
func (n Noise) Gain(scale float64) float64 {
	if d := n.Var/scale + n.Sqr; d > 0 {
		return (n.Var + n.Sqr) / d
	}
	return 1
}

// Average follows noisy measurements of the gradient with an exponential average,
// whose memory is a thousand steps of the initial batch.
type Average struct {
	Noise
	weight float64
}

// Add takes in one step at a batch of scale times the initial one.
func (a *Average) Add(n Noise, scale float64) {
	keep := math.Pow(.999, scale)
	a.weight = keep*a.weight + 1 - keep
	step := (1 - keep) / a.weight
	a.Sqr += step * (n.Sqr - a.Sqr)
	a.Var += step * (n.Var - a.Var)
}

// Batches bounds the batch sizes of a job.
type Batches struct {
	Init, Max          int // total: the one that progress is counted in, and the largest
	MinLocal, MaxLocal int // of one replica in one pass
}

// Choice is how a batch is computed, and how fast.
type Choice struct {
	Local, Passes int
	// Throughput is in samples per second.
	Throughput float64
}

// candidates is the number of batch sizes tried, evenly apart in logarithms.
const candidates = 50

// Choices lists the ways to compute a batch on so many replicas, by ascending batch.
// One replica above the initial batch takes two passes at least, since the variance of
// a gradient cannot be told from one.
func Choices(p *Params, b Batches, nodes, replicas int) []Choice {
	const eps = 1e-8
	first, last := float64(max(b.Init, b.MinLocal*replicas)), float64(b.Max)
	var all []Choice
	for i := range candidates {
		batch := first * math.Pow(last/first, float64(i)/(candidates-1))
		local := batch / float64(replicas)
		passes := max(1, int(math.Ceil(local/float64(b.MaxLocal)-eps)))
		if replicas == 1 && local > float64(b.Init)+eps {
			passes = max(passes, 2)
		}
		c := Choice{Local: int(math.Ceil(local/float64(passes) - eps)), Passes: passes}
		if c.Local < b.MinLocal || c.Local > b.MaxLocal {
			continue
		}
		if n := len(all); n > 0 && all[n-1].Local == c.Local && all[n-1].Passes == c.Passes {
			continue
		}
		c.Throughput = float64(replicas*c.Local*passes) / p.Step(nodes, replicas, c.Local, passes)
		all = append(all, c)
	}
	return all
}

// Best is the choice of most goodput (samples per second, in samples as useful as those
// of the initial batch); 0 and no passes if there is no choice.
func Best(all []Choice, n Noise, initBatch, replicas int) (goodput float64, best Choice) {
	for _, c := range all {
		scale := float64(replicas*c.Local*c.Passes) / float64(initBatch)
		if g := c.Throughput * n.Gain(scale) / scale; g > goodput {
			goodput, best = g, c
		}
	}
	return goodput, best
}
