package jahani

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/mechanism/solve"
)

// Measure is what the plans of the search and of the program cost for four drawn jobs and
// two nodes, each of which is a machine with one V100, four, or eight K80s.
func Measure(_ func(path string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
	p := draw(seed, 4, 2, 3)
	plan, proven, err := Exact(p, solve.Budget{})
	if err != nil || !proven {
		return nil, fmt.Errorf("the program is proven: %t, %w", proven, err)
	}
	return map[string]float64{"exact": p.Cost(plan), "search": p.Cost(Search(p, Plan{}))}, nil
}

// draw makes a problem of so many jobs and nodes; the first machines of three.
func draw(seed uint64, jobs, nodes, machines int) *Problem {
	chance := rand.New(rand.NewPCG(seed, 5))
	p := &Problem{Nodes: nodes, HorizonSec: 3600, Rho: 3, Machines: []Machine{{"small", 3.06, 1, 0}, {"old", 7.2, 8, 0}, {"big", 12.24, 4, 0}}[3-machines:]}
	for range jobs {
		w := Work{DueSec: 3600 * (8*chance.Float64() - 1), Weight: (1 + 9*chance.Float64()) / 3600}
		length, scaling := 3600*math.Exp(chance.NormFloat64()), 0.5+0.5*chance.Float64()
		for _, m := range p.Machines {
			times := make([]float64, m.Devices)
			speed := 1.0
			if m.Name == "old" {
				speed = 0.15 + 0.3*chance.Float64()
			}
			for g := 1; g <= m.Devices; g *= 2 {
				times[g-1] = length / speed / math.Pow(float64(g), scaling)
			}
			w.Seconds = append(w.Seconds, times)
		}
		p.Jobs = append(p.Jobs, w)
	}
	return p
}
