package circle

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
)

// Memory answers Steady and remembers the answers: the same jobs meet on the same links
// again and again. The zero value is ready.
type Memory struct {
	known map[string][]float64
	key   []byte
}

// Steady is as the function of this name. What is returned must not be written into.
func (r *Memory) Steady(jobs []Periodic, capacities []float64, shifts []unit.Duration) []float64 {
	// Only the distances of the shifts matter, and of the links those in use.
	first := unit.Duration(0)
	if len(shifts) > 0 {
		first = slices.Min(shifts)
	}
	r.key = r.key[:0]
	number := func(x float64) { r.key = figures.Put(r.key, int64(math.Float64bits(x))) }
	for j := range jobs {
		p := &jobs[j]
		r.key = figures.Put(r.key, int64(p.Compute), int64(p.Communicate), int64(p.Class), int64(len(p.Uses)))
		if shifts != nil {
			r.key = figures.Put(r.key, int64(shifts[j]-first))
		} else {
			r.key = figures.Put(r.key, 0)
		}
		number(p.Weight)
		for _, u := range p.Uses {
			r.key = figures.Put(r.key, int64(u.Link))
			number(u.Per)
			number(capacities[u.Link])
		}
	}
	if known, ok := r.known[string(r.key)]; ok {
		return known
	}
	if r.known == nil || len(r.known) >= mostKnown {
		r.known = map[string][]float64{}
	}
	s := Steady(jobs, capacities, shifts)
	r.known[string(r.key)] = s
	return s
}
