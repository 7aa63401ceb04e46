package stand

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
)

func init() {
	register("gavel", "V100, P100 and K80 with the rates that Gavel measured: a trace of its physical cluster, or jobs by chance at a load", gavel)
}

// gavelKinds are the device types that Gavel's rates were measured on, the fastest first.
var gavelKinds = []string{"v100", "p100", "k80"}

// gavelTable is measured throughput, alone and beside each other (Gavel's, MIT licence).
const gavelTable = "gavel/simulation_throughputs.json.gz"

// gavelRates are steps per second as Gavel measured them, by device type, kind of job
// and number of devices; 0 is not measured.
type gavelRates map[string]map[string]map[string]json.RawMessage

func readGavelRates(open Data) (r gavelRates, err error) {
	err = figures.FromJSON(open, gavelTable, &r)
	return r, err
}

func (r gavelRates) rate(device, job string, scale int) (x float64) {
	if json.Unmarshal(r[device][fmt.Sprintf("('%s', %d)", job, scale)]["null"], &x) != nil {
		return 0
	}
	return x
}

// names are the kinds of job that were measured at a scale on every one of some devices.
func (r gavelRates) names(scale int, devices ...string) (list []string) {
	end := fmt.Sprintf("', %d)", scale)
	for key := range r[devices[0]] {
		name, ok := strings.CutSuffix(key, end)
		if !ok {
			continue
		}
		name = strings.TrimPrefix(name, "('")
		if !slices.ContainsFunc(devices, func(d string) bool { return r.rate(d, name, scale) <= 0 }) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// job adds one whose work takes so many seconds on V100s.
func (r gavelRates) job(list *List, kind string, gang int, seconds, at float64) {
	j := workload.Job{Name: fmt.Sprint("job", len(list.Jobs)), Submit: unit.Time(0).Add(unit.Seconds(at)),
		Resources:  workload.Resources{Gang: int32(gang), Devices: 1, Share: unit.Whole},
		Checkpoint: workload.Checkpoint{OnRequest: true}}
	for _, device := range gavelKinds {
		if x := r.rate(device, kind, gang); x > 0 {
			j.Menu = append(j.Menu, workload.Offer{Model: device, Workers: j.Gang, Nodes: 1, Rate: x / r.rate(gavelKinds[0], kind, gang)})
		}
	}
	list.Add(j, workload.Truth{Duration: unit.Seconds(seconds), Menu: j.Menu})
}

// gavel is the published simulator's world: each type one pool, and the rates that were
// measured. A bundled trace runs on 8, 16 and 24 devices. Without one, jobs of one device
// come by chance on 36 of each, drawn as the paper's are, at such a rate that devices
// shared blindly are busy for the load's part of the time; the jobs from to to count.
func gavel(open Data, o *Options, seed uint64) (*Stand, error) {
	name, load, jobs, from, to := o.Text("trace", ""), o.Float("load", .9), o.Int("jobs", 500), o.Int("from", 200), o.Int("to", 350)
	s, list, room := &Stand{Prices: simulated.Prices{Restart: unit.Seconds(o.Float("restart-s", 0))}}, &List{}, []int{36, 36, 36}
	rates, err := readGavelRates(open)
	if err == nil && name != "" {
		room, from, to = []int{8, 16, 24}, 0, math.MaxInt
		err = rates.bundled(open, name, list)
	} else if err == nil {
		rates.continuous(jobs, load, room, seed, list)
	}
	s.Cluster, s.Jobs = pools(gavelKinds, room), list
	s.Figures = func(o *Finished) map[string]float64 {
		sum, counted := 0., o.Jobs[from:min(to, len(o.Jobs))]
		for _, j := range counted {
			sum += j.JCT().Seconds() / 3600
		}
		return map[string]float64{"jct_h": sum / float64(len(counted)), "end_h": o.Result.MakespanSec / 3600}
	}
	return s, err
}

// pools is one node of each kind of device.
func pools(kinds []string, devices []int) *cluster.Cluster {
	c := &cluster.Cluster{Name: "pools"}
	rack := c.AddRack(cluster.Rack{Name: "rack"})
	for k, n := range devices {
		model := c.AddModel(cluster.Model{Name: kinds[k], Memory: 16 << 10, Speed: 1})
		c.AddNode(cluster.Node{Name: "all-" + kinds[k], Rack: rack, Model: model}, n)
	}
	return c
}

// bundled reads one of the physical experiment's traces.
func (r gavelRates) bundled(open Data, name string, list *List) error {
	f, err := open("gavel/physical_cluster_traces/" + name)
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		c := strings.Split(lines.Text(), "\t")
		if len(c) != 10 {
			return fmt.Errorf("%s: %d columns, want 10", name, len(c))
		}
		steps, err1 := strconv.ParseFloat(c[5], 64)
		gang, err2 := strconv.Atoi(c[6])
		arrival, err3 := strconv.ParseFloat(c[9], 64)
		if err1 != nil || err2 != nil || err3 != nil {
			return fmt.Errorf("%s: %q has no steps, scale or arrival", name, lines.Text())
		}
		r.job(list, c[0], gang, steps/r.rate(gavelKinds[0], c[0], gang), arrival)
	}
	return nil
}

// continuous draws jobs of one device: any kind, Philly's spread of running times on the
// fastest type, arrivals by chance.
func (r gavelRates) continuous(n int, load float64, room []int, seed uint64, list *List) {
	rng, names := rand.New(rand.NewPCG(seed, 0x6761)), r.names(1, gavelKinds[0])
	devices, busy, seconds, kinds := 0., 0., make([]float64, n), make([]string, n)
	for _, w := range room {
		devices += float64(w)
	}
	for i := range seconds {
		minutes := math.Pow(10, 1.5+1.5*rng.Float64())
		if rng.Float64() >= .8 {
			minutes = math.Pow(10, 3+rng.Float64())
		}
		kinds[i], seconds[i] = names[rng.IntN(len(names))], 60*minutes
		blind := 0.
		for k, w := range room {
			blind += r.rate(gavelKinds[k], kinds[i], 1) / r.rate(gavelKinds[0], kinds[i], 1) * float64(w) / devices
		}
		busy += seconds[i] / blind
	}
	gap, at := busy/float64(n)/(load*devices), 0.
	for i := range seconds {
		r.job(list, kinds[i], 1, seconds[i], at)
		at += gap * rng.ExpFloat64()
	}
}
