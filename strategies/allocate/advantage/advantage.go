// Package advantage puts each job on the device model on which it has the greatest
// advantage over what that model is worth on the whole, as far as its menu tells: a job
// that one model hardly slows down leaves the fast ones to those that need them. On
// that model it takes the fewest nodes. A place where the job would crawl, at less than
// a part of its best rate, is not taken: it would hold the devices for long and be
// passed by all that come after it.
//
// After the idea of heterogeneity-aware allocation (Gavel, OSDI 2020), for one job at a
// time and without an optimiser. Left out: that another job may need the place more.
package advantage

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "advantage", Part: allocate.PlacePart, Status: "after",
	Source: "after Gavel (Narayanan et al., OSDI 2020): the comparative advantage of a job on a model",
	Idea:   "the device model that the job gains most from, against what that model is worth; never where it would crawl",
	Goal:   "throughput", Needs: "rates by device model and spread", Live: "as simulated",
}

// Config says what a crawl is.
type Config struct {
	// LeastRate is the part of its best rate below which a job rather waits.
	LeastRate unit.Milli `yaml:"least-rate" least:"0" most:"1000"`
}

// Default returns the configuration used where none is given.
func Default() Config { return Config{LeastRate: 300} }

// Placer is the strategy. Its fields beyond the configuration are scratch.
type Placer struct {
	config Config
	fewest fit.Fewest
	except []plan.NodeID
	places []place
}

// place is the tightest place on one device model.
type place struct {
	slots []plan.Slot
	rate  int64
	worth float64 // the rate against what the model is worth
}

var _ allocate.Placer = (*Placer)(nil)

// New returns the placer; the configuration must be valid.
func New(c Config) *Placer { return &Placer{config: c} }

// rate is what the job's menu says; without one all models are alike.
func rate(v plan.View, need allocate.Need, model int32, several bool) int64 {
	if len(v.Menu(need.Job)) == 0 {
		return plan.FullRate
	}
	return v.Rate(need.Job, model, need.Workers, several)
}

// Place offers the tightest place on each model, the greatest advantage first, and one
// over several models where none alone has room; its score is that advantage in
// millionths.
func (p *Placer) Place(v plan.View, need allocate.Need, k int, into []allocate.Candidate) []allocate.Candidate {
	p.places = p.places[:0]
	best := int64(0)
	slowest := int64(plan.FullRate)
	for models := need.Shape.Models; models != 0; models &= models - 1 {
		model := int32(bits.TrailingZeros64(models))
		if int(model) >= v.Room().Models() {
			break
		}
		best, slowest = max(best, rate(v, need, model, false)), min(slowest, rate(v, need, model, true))
		narrow := *need.Shape
		narrow.Models = 1 << model
		one := need
		one.Shape = &narrow
		found, ok := p.fewest.Place(v, one, p.except, nil)
		if !ok {
			continue
		}
		rate := rate(v, need, model, found.Nodes > 1)
		speed := v.Cluster().Models[model].Speed
		if speed <= 0 {
			speed = 1
		}
		p.places = append(p.places, place{found.Slots, rate, float64(rate) / speed})
	}
	if len(p.places) == 0 { // no model alone holds it: it goes at the pace of the slowest
		if found, ok := p.fewest.Place(v, need, p.except, nil); ok {
			p.places = append(p.places, place{found.Slots, slowest, float64(slowest)})
		}
	}
	slices.SortStableFunc(p.places, func(a, b place) int { return cmp.Compare(b.worth, a.worth) })
	for i := range p.places {
		if x := &p.places[i]; k > 0 && x.rate > 0 && x.rate*int64(unit.Whole) >= best*int64(p.config.LeastRate) {
			into = allocate.Extend(into)
			c := &into[len(into)-1]
			c.Slots, c.Score = append(c.Slots, x.slots...), int64(x.worth)
			k--
		}
	}
	return into
}
