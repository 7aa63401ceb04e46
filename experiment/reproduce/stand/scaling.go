package stand

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("scaling", "200 elastic jobs on 64 devices of one pool, n/(1+b(n-1)) fast on n (b from low to high), at a load, with restart-s for a stopped job", scaling)
}

// scaling has jobs that come by chance, on up to 32 devices each. Their b is drawn evenly;
// their work is log-normal (sigma 1.5, median 1,500 s on one device) and sums to the load's
// part of what the devices could do while they come.
func scaling(_ Data, o *Options, seed uint64) (*Stand, error) {
	const devices, jobs, sigma, median = 64, 200, 1.5, 1500
	load, low, high := o.Float("load", .6), o.Float("low", .02), o.Float("high", .3)
	list, rng := &List{}, rand.New(rand.NewPCG(seed, 1))
	at, mean := 0., median*math.Exp(sigma*sigma/2)
	for i := range jobs {
		at += rng.ExpFloat64() * mean / (load * devices)
		work := median * math.Exp(sigma*rng.NormFloat64())
		b := low + (high-low)*rng.Float64()
		j := workload.Job{Name: fmt.Sprint("job", i), Submit: unit.Time(0).Add(unit.Seconds(at)), Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole,
			Sizes: []int32{1, 2, 3, 4, 6, 8, 16, 32}}, Checkpoint: workload.Checkpoint{OnRequest: true}}
		for _, n := range j.Sizes {
			j.Menu = append(j.Menu, workload.Offer{Workers: n, Nodes: 1, Rate: float64(n) / (1 + b*float64(n-1))})
		}
		list.Add(j, workload.Truth{Duration: unit.Seconds(work), Menu: j.Menu})
	}
	return &Stand{Cluster: cluster.Uniform("pool", 1, devices, cluster.Model{Name: "gpu", Speed: 1}, 1), Jobs: list,
		Prices: simulated.Prices{Restart: unit.Seconds(o.Float("restart-s", 0))}}, nil
}
