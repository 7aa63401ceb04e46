package stand

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("rental", "20 jobs with due dates and Gavel's rates on K80 and V100: five rented machines of five kinds (jobs share them), or five of one (machine=NAME, one job each)", rental)
}

type machine struct {
	name, device string
	devices      int
	price        int32
}

// machines are what can be rented, at prices per hour on demand in thousandths of a dollar.
var machines = []machine{{"p2.xlarge", "k80", 1, 900}, {"p2.8xlarge", "k80", 8, 7200}, {"p3.2xlarge", "v100", 1, 3060}, {"p3.8xlarge", "v100", 4, 12240}, {"p3.16xlarge", "v100", 8, 24480}}

// rental has jobs of a median of two hours on one V100, half an hour apart, due after one
// to five times what they take there. An hour late costs late dollars (3). A machine of
// one kind is paid while a job is on it, rented ones while they are rented; one sent for
// takes arrival-s to come (120), and a job that is moved loses restart-s (30).
func rental(open Data, o *Options, seed uint64) (*Stand, error) {
	const jobs, gap, median = 20, 1800., 7200.
	late, only := o.Float("late", 3), o.Text("machine", "")
	s := &Stand{Prices: simulated.Prices{Restart: unit.Seconds(o.Float("restart-s", 30)), Arrival: unit.Seconds(o.Float("arrival-s", 120))}}
	rates, err := readGavelRates(open)
	if err != nil {
		return nil, err
	}
	on := slices.IndexFunc(machines, func(m machine) bool { return m.name == only })
	if only != "" && on < 0 {
		return nil, fmt.Errorf("there is no machine %q", only)
	}
	s.Cluster = rentals(on, 5)
	names, chance := rates.names(8, "v100", "k80"), rand.New(rand.NewPCG(seed, 11))
	list, at := &List{}, 0.
	for i := range jobs {
		length := median * math.Exp(chance.NormFloat64())
		name := names[chance.IntN(len(names))]
		j := workload.Job{Name: fmt.Sprint("job", i), Submit: unit.Time(0).Add(unit.Seconds(at)), Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole},
			Deadline: unit.Seconds(length * (1 + 4*chance.Float64())), Checkpoint: workload.Checkpoint{OnRequest: true}}
		rate := func(device string, n int) float64 { return rates.rate(device, name, n) / rates.rate("v100", name, 1) }
		if on < 0 {
			for _, n := range []int{1, 2, 4, 8} {
				j.Sizes = append(j.Sizes, int32(n))
				for _, device := range []string{"v100", "k80"} {
					j.Menu = append(j.Menu, workload.Offer{Model: device, Workers: int32(n), Nodes: 1, Rate: rate(device, n)})
				}
			}
		} else {
			m, best := machines[on], 0. // it has all of the machine and uses what is fastest
			for n := 1; n <= m.devices; n *= 2 {
				best = max(best, rate(m.device, n))
			}
			j.Gang = int32(m.devices)
			j.Menu = []workload.Offer{{Model: m.device, Workers: j.Gang, Nodes: 1, Rate: best}}
		}
		list.Add(j, workload.Truth{Duration: unit.Seconds(length), Menu: j.Menu})
		at += gap * chance.ExpFloat64()
	}
	s.Jobs = list
	s.Figures = func(o *Finished) map[string]float64 {
		rent, lateness := o.Result.Cost, 0.
		for i := range o.Jobs {
			j := &o.Jobs[i]
			lateness += late * max(0, j.End.Sub(j.Submit)-j.Asked.Deadline).Seconds() / 3600
			if on >= 0 {
				rent += float64(machines[on].price) / 1000 * j.Run.Seconds() / 3600
			}
		}
		return map[string]float64{"rent": rent, "lateness": lateness, "total": rent + lateness}
	}
	return s, nil
}

// rentals is so many machines of each kind to be rented, or of one kind that are there.
func rentals(only, each int) *cluster.Cluster {
	c := &cluster.Cluster{Name: "rental"}
	rack := c.AddRack(cluster.Rack{Name: "rack"})
	for k, m := range machines {
		model, known := c.ModelID(m.device)
		if !known {
			model = c.AddModel(cluster.Model{Name: m.device, Memory: 16 << 10, Speed: 1})
		}
		for i := range each {
			n := cluster.Node{Name: fmt.Sprintf("%s-%d", m.name, i), Rack: rack, Model: model}
			if only < 0 {
				n.MilliPerHour, n.Rental = m.price, true
			} else if only != k {
				continue
			}
			c.AddNode(n, m.devices)
		}
	}
	return c
}
