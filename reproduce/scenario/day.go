package scenario

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/queue"
	"github.com/musterdl/muster/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/serve/igniter"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
	"github.com/musterdl/muster/world"
)

// Load is the offered load of the day, of what the cluster's devices could do.
const Load = 0.95

// Setup is one run of the day.
type Setup struct {
	Data string // folder of published data
	Seed uint64
	// Null are the steps that are at their null; Goal chooses among compositions.
	Null []string
	Goal string
}

// Day is what a run of the day showed.
type Day struct {
	Null []string `json:"null"`
	Seed uint64   `json:"seed"`
	// BusyShare is the part of all device time that jobs kept busy.
	BusyShare float64 `json:"device_busy_share"`
	// JCTSec is the mean completion time of the day's training jobs, LLMJCTSec that of
	// the three large ones, LargeWaitSec the mean wait of gangs of 16 and more. Nothing
	// more comes after the day, and all are waited for.
	JCTSec       float64 `json:"jct_s"`
	LLMJCTSec    float64 `json:"llm_jct_s"`
	LargeWaitSec float64 `json:"large_gang_wait_s"`
	// Attainment is the part of the requests that found a replica to answer them.
	Attainment float64 `json:"attainment"`
	// Missed is the part of the jobs with a deadline that did not finish by it, those
	// that were refused included.
	Missed   float64 `json:"missed_deadlines"`
	EnergyMJ float64 `json:"energy_mj"`
	DebugP95 float64 `json:"debug_wait_p95_s"`
	// Lost is the part of the held device time whose work was lost or that went into
	// starts and stops.
	Lost float64 `json:"lost_share"`
	// Load is the offered load of the day's mix, Factor how much closer together the
	// trace's jobs came for it.
	Load    float64 `json:"offered_load"`
	Factor  float64 `json:"arrival_factor"`
	Jobs    int     `json:"jobs"`
	Real    bool    `json:"published_data"`
	WallSec float64 `json:"wall_s"`
}

// Watt is what a device draws idle and busy: the makers' figures, as recalled in
// gpu-specs, and a sixth of it idle.
var watt = map[string][2]float64{"v100": {50, 300}, "p100": {50, 300}, "k80": {25, 150}}

// Cluster is 133 nodes of 8 devices of three models in racks of 16 nodes, as a Clos
// network of two tiers: each node 25 Gbps, a rack a quarter of what its nodes have.
func Cluster() *cluster.Cluster {
	c := &cluster.Cluster{Name: "day"}
	speeds := []float64{1, 0.85, 0.3} // for what no table covers: about the tables' means
	memory := []unit.MiB{16 << 10, 16 << 10, 12 << 10}
	for i, name := range models {
		c.AddModel(cluster.Model{Name: name, Memory: memory[i], Speed: speeds[i]})
	}
	for n := range 133 {
		if n%16 == 0 {
			c.AddRack(cluster.Rack{Name: fmt.Sprint("rack", n/16), Uplink: 16 * 25_000 / 4})
		}
		model := int32(0)
		if n >= 80 {
			model = 1
		}
		if n >= 112 {
			model = 2
		}
		c.AddNode(cluster.Node{Name: fmt.Sprint("node", n), Rack: int32(n / 16), Model: model, CPU: 96 * unit.Whole, Memory: 512 << 10, Uplink: 25_000}, 8)
	}
	return c
}

// Worth is what a cluster's devices can do, in devices of the reference.
func worth(c *cluster.Cluster) (sum float64) {
	for i := range c.Nodes {
		sum += float64(c.Nodes[i].Count) * c.Models[c.Nodes[i].Model].Speed
	}
	return sum
}

// goals are the compositions of the day, by what is wanted most.
var goals = map[string]string{
	"throughput": "srtf+easy+cheapest+antman+igniter+advantage+efficient+dp-cut+1f1b+strict+noisy",
	"deadline":   "edf+easy+cheapest+antman+igniter+advantage+efficient+dp-cut+1f1b+strict+noisy",
}

// Goals lists them.
func Goals() []string { return []string{"throughput", "cost", "deadline", "latency", "energy"} }

// Warm is a workload with the state that the week before it left under the nulls, to
// run the day from as often as one likes.
type Warm struct {
	setup   Setup
	cluster *cluster.Cluster
	mix     *mix
	state   *plan.State
	known   map[plan.JobID]world.Known
	at      unit.Time
}

// NewWarm draws the workload of a seed and replays the week before under the nulls.
func NewWarm(s Setup) (*Warm, error) {
	c := Cluster()
	m, err := newMix(s.Data, s.Seed, worth(c), Load)
	if err != nil {
		return nil, err
	}
	w := &Warm{setup: s, cluster: c, mix: m, at: unit.Time(warmDays * unit.Day), known: map[plan.JobID]world.Known{}}
	built, err := catalogue.Null.Build(catalogue.Env{Seed: s.Seed}, false)
	if err != nil {
		return nil, err
	}
	sim, err := simulated.New(simulated.Config{Cluster: c, Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), Until: w.at,
		Jobs: &source{left: m.warm, adjust: withNull(nil)}, World: world.Config{Speeds: measured{}, Seed: s.Seed}})
	for more := true; more && err == nil; {
		more, err = sim.Advance()
	}
	if err != nil {
		return nil, fmt.Errorf("the week before: %w", err)
	}
	w.state = sim.State()
	v := w.state.View()
	for id := range plan.JobID(v.Jobs()) {
		if !v.Job(id).Phase.Over() {
			w.known[id] = sim.Known(id)
		}
	}
	return w, nil
}

// withNull takes from a job what the steps at their null would not know or do.
func withNull(null []string) func(*item) {
	return func(it *item) {
		if slices.Contains(null, "profile") || null == nil {
			it.truth.Menu, it.job.Menu = it.job.Menu, nil
			if it.kind != replica {
				it.job.Phase = workload.Phase{}
			}
		}
		if slices.Contains(null, "run") || null == nil {
			it.job.Checkpoint.OnRequest = false
		} else {
			it.job.Checkpoint.OnRequest = true
		}
	}
}

// Run runs the day with some steps at their null.
func (w *Warm) Run(null []string, goal string) (Day, error) {
	began := time.Now()
	if null == nil {
		null = []string{}
	}
	ref, ok := goals[goal]
	if !ok {
		return Day{}, fmt.Errorf("goal %q: no composition of the day is for it yet: choose throughput or deadline", goal)
	}
	c, err := catalogue.Resolve(ref)
	if err != nil {
		return Day{}, err
	}
	fitted, err := igniter.Fitted(func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join(w.setup.Data, path)) })
	if err == nil { // else services have whole devices: nothing is known of their models
		c = c.WithOptions(igniter.Description.Name, fitted)
	}
	for _, step := range null {
		if c, err = c.Without(step); err != nil {
			return Day{}, err
		}
	}
	built, err := c.Build(catalogue.Env{Seed: w.setup.Seed}, false)
	if err != nil {
		return Day{}, err
	}
	first := []engine.Event{{Kind: engine.Switched}}
	if !slices.Contains(null, "schedule") {
		first = append(first, engine.Event{Kind: engine.Shares, Queues: lanes()})
	}
	collector := report.NewCollector(report.Limits{Jobs: 1 << 20})
	end := w.at.Add(unit.Day)
	sim, err := simulated.New(simulated.Config{From: w.state.Copy(), At: w.at, First: first, Cluster: w.cluster,
		Known: func(_ plan.View, id plan.JobID) world.Known { return w.known[id] },
		Jobs:  &source{left: w.mix.day, offset: w.at, adjust: withNull(null)}, Later: w.mix.ends(w.state.View().Jobs(), w.at),
		Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), TellTruth: built.TellTruth, Collector: collector,
		World:  world.Config{Speeds: measured{}, Seed: w.setup.Seed},
		Breaks: simulated.Breaks{Seed: w.setup.Seed, NodeEvery: 60 * unit.Day, NodeFor: 2 * unit.Hour}})
	for err == nil && sim.Next() <= end {
		_, err = sim.Advance()
	}
	d := Day{Null: null, Seed: w.setup.Seed, Load: w.mix.load, Factor: w.mix.factor, Real: w.mix.real, Jobs: len(w.mix.day)}
	w.readDevices(sim, &d)
	for more := true; more && err == nil; {
		more, err = sim.Advance()
	}
	if err != nil {
		return Day{}, err
	}
	r, err := sim.Result()
	if err != nil {
		return Day{}, err
	}
	if !r.Balanced {
		return Day{}, errors.New("the ledger of the day does not balance")
	}
	d.Lost = (r.LostDeviceSec + r.OverheadDeviceSec) / (r.DeviceSec - r.IdleDeviceSec)
	w.readJobs(&d, collector.View().Jobs)
	d.WallSec = time.Since(began).Seconds()
	return d, nil
}

// lanes keep two nodes' worth of devices for people who debug, and let services go
// before everybody else.
func lanes() *queue.Tree {
	t := queue.Flat("train", "debug", "serve")
	for i := range t.Queues {
		switch q := &t.Queues[i]; q.Name {
		case "debug":
			q.Priority, q.Keep, q.Guarantee = 5, []queue.Amount{{Milli: 16_000}}, []queue.Amount{{Milli: 32_000}}
		case "serve":
			q.Priority, q.Guarantee = 10, []queue.Amount{{Milli: 64_000}}
		}
	}
	t.Protect = unit.Minute
	return &t
}

// readDevices sums up what the devices did until now, the end of the day: what they
// kept busy, and what they drew, idle power all day and the rest while busy.
func (w *Warm) readDevices(sim *simulated.Simulation, d *Day) {
	count := make([]float64, len(w.cluster.Models))
	for i := range w.cluster.Nodes {
		count[w.cluster.Nodes[i].Model] += float64(w.cluster.Nodes[i].Count)
	}
	busy := 0.0
	for i := range w.cluster.Models {
		p, sec := watt[w.cluster.Models[i].Name], sim.BusySec(int32(i))
		busy += sec
		d.EnergyMJ += (count[i]*p[0]*unit.Day.Seconds() + sec*(p[1]-p[0])) / 1e6
	}
	d.BusyShare = busy / (float64(len(w.cluster.Devices)) * unit.Day.Seconds())
}

// readJobs sums up what became of the day's jobs.
func (w *Warm) readJobs(d *Day, jobs []report.JobRecord) {
	d.Attainment = w.mix.attainment(jobs, w.at)
	of := map[string]*item{}
	for i := range w.mix.day {
		of[w.mix.day[i].job.Name] = &w.mix.day[i]
	}
	var jct, llm, wide, debugs []float64
	deadlines, missed := 0, 0
	for i := range jobs {
		j := &jobs[i]
		it := of[j.Name]
		if it == nil || it.kind == replica {
			continue // of the week before, or ended when it was not needed any more
		}
		took := j.End.Sub(j.Submit)
		if j.Outcome != report.Refused {
			jct = append(jct, took.Seconds())
		}
		if it.kind == large {
			llm = append(llm, took.Seconds())
		}
		if it.kind == debug {
			debugs = append(debugs, j.Waited.Seconds())
		}
		if j.Gang >= 16 {
			wide = append(wide, j.Waited.Seconds())
		}
		if by := it.job.Deadline; by > 0 {
			if deadlines++; j.Outcome == report.Refused || took > by {
				missed++
			}
		}
	}
	slices.Sort(debugs)
	if n := len(debugs); n > 0 {
		d.DebugP95 = debugs[n*95/100]
	}
	d.JCTSec, d.LLMJCTSec, d.LargeWaitSec = mean(jct), mean(llm), mean(wide)
	d.Missed = float64(missed) / float64(max(1, deadlines))
}
