package stand

import (
	"fmt"
	"math/rand/v2"

	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("mig", "so many requests (requests) for 1g, 2g and 3g alike on eight A100s at a part of their memory slices (load), gone where there is no room", instances)
}

// instances come at random and stay for an hour on the average. Whoever is not served at
// once goes away. To make or to remove an instance takes 5 s (catalogue of allocation for
// training, A2).
func instances(_ Data, o *Options, seed uint64) (*Stand, error) {
	const devices = 8
	requests, load := o.Int("requests", 4000), o.Float("load", .9)
	table, ok := envelope.MIG("A100", 0)
	if !ok {
		return nil, fmt.Errorf("the profiles of an A100 are not known")
	}
	mix, slices := []int{0, 2, 3}, 0.0 // 1g, 2g and 3g
	for _, p := range mix {
		slices += float64(table.Profiles[p].Memory) / float64(len(mix))
	}
	dice, now, all := rand.New(rand.NewPCG(seed, 0)), 0.0, make([]item, requests)
	for i := range all {
		now += dice.ExpFloat64() * slices / (load * devices * float64(table.Slices))
		part := table.Part(envelope.Instance{Profile: mix[dice.IntN(len(mix))]})
		all[i] = item{workload.Job{Resources: workload.Resources{Gang: 1, Devices: 1, Share: part.Milli, Memory: part.Memory}, Submit: unit.Time(0).Add(unit.Seconds(3600 * now))},
			workload.Truth{Duration: unit.Seconds(3600*dice.ExpFloat64()) + unit.Second}}
	}
	c := cluster.Uniform("a100s", 1, devices, cluster.Model{Name: "A100", Memory: 40 << 10, Speed: 1, Geometries: table.Geometries()}, 1)
	left := plan.JobID(0)
	return &Stand{Cluster: c, Jobs: list(all), Prices: simulated.Prices{Instance: envelope.InstanceTime},
		Set: func(c *simulated.Config) {
			c.React = func(v plan.View) (events []engine.Event) {
				for ; left < plan.JobID(v.Jobs()); left++ {
					if v.Job(left).Phase.Waits() {
						events = append(events, engine.Event{Kind: engine.Cancel, Job: left})
					}
				}
				return events
			}
		},
		Figures: func(o *Finished) map[string]float64 {
			rejected := 0.0
			for i := range o.Jobs {
				if o.Jobs[i].Outcome == report.Cancelled {
					rejected++
				}
			}
			return map[string]float64{"rejected_pct": 100 * rejected / float64(len(o.Jobs))}
		}}, nil
}
