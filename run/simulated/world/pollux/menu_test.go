package pollux

import (
	"math"
	"testing"
)

// alone gives every job what it asked for on the first nodes.
type alone struct{}

func (alone) Allocate(_ int, jobs []View, c Config) ([]Grant, error) {
	grants := make([]Grant, len(jobs))
	for i, j := range jobs {
		for k := range j.Replicas {
			grants[i].Nodes = append(grants[i].Nodes, k/c.DevicesPerNode)
		}
	}
	return grants, nil
}

// TestMenu: what a job is said to take is what it takes alone in the world, but for the
// first tick, the restart, and epochs that end on whole seconds there; its own shape has
// rate 1, and a better batch is no slower.
func TestMenu(t *testing.T) {
	apps := loaded(t)
	for _, r := range []Request{
		{Name: "a", Application: "cifar10", Replicas: 6, Batch: 2048}, {Name: "b", Application: "bert", Replicas: 2, Batch: 48},
		{Name: "c", Application: "yolov3", Replicas: 8, Batch: 64}, {Name: "d", Application: "ncf", Replicas: 1, Batch: 32768},
	} {
		app := apps[r.Application]
		fixed, err := app.Menu(r, false, false)
		if err != nil {
			t.Fatal(err)
		}
		tuned, err := app.Menu(r, true, false)
		if err != nil {
			t.Fatal(err)
		}
		o, err := Run([]Request{r}, apps, Default(), alone{})
		if err != nil {
			t.Fatal(err)
		}
		took := float64(o.Jobs[0].Seconds - Default().TickSeconds - Default().RestartSeconds)
		if math.Abs(fixed.Seconds-took) > float64(app.Epochs)/2 {
			t.Errorf("%s takes %.1f s, in the world %.1f s", r.Application, fixed.Seconds, took)
		}
		rates := map[[2]int32]float64{}
		for _, offer := range fixed.Offers {
			rates[[2]int32{offer.Workers, offer.Nodes}] = offer.Rate
			if offer.Workers == int32(r.Replicas) && offer.Nodes == 1 && math.Abs(offer.Rate-1) > 1e-9 {
				t.Errorf("%s has rate %g on what it asked for", r.Application, offer.Rate)
			}
		}
		for _, offer := range tuned.Offers {
			at := [2]int32{offer.Workers, offer.Nodes}
			if offer.Rate < rates[at]-1e-9 {
				t.Errorf("%s on %v: rate %g, %g at the batch asked for", r.Application, at, offer.Rate, rates[at])
			}
		}
		if n := len(tuned.Sizes); n > 8 || r.Application == ncf && n > 1 || r.Application != ncf && n < 4 {
			t.Errorf("%s may have %v replicas", r.Application, tuned.Sizes)
		}
	}
}
