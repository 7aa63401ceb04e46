package scenario

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/run/simulated/world/serving"
)

// Sharing is what is left out beside the steps: the part by which jobs live beside others.
const Sharing = "sharing"

// Load is the offered load of the day, of what the cluster's devices could do.
const Load = 0.95

// Setup is one run of the day.
type Setup struct {
	Data string // folder of published data
	Seed uint64
	// Prices are what things cost, in the week before and in the day.
	Prices simulated.Prices
}

// Day is what a run of the day showed.
type Day struct {
	Goal string   `json:"goal"`
	Null []string `json:"null"`
	Seed uint64   `json:"seed"`
	Busy
	// JCTSec is the mean completion time of the day's training jobs that were not
	// refused, LLMJCTSec that of the large models, LargeWaitSec the mean wait of gangs
	// of 16 and more. Nothing more comes after the day, and all are waited for.
	JCTSec       float64 `json:"jct_s"`
	LLMJCTSec    float64 `json:"llm_jct_s"`
	LargeWaitSec float64 `json:"large_gang_wait_s"`
	// Attainment is the part of the requests that found a replica to answer them; Window
	// is a piece of the day at the scale of single requests.
	Attainment float64 `json:"attainment"`
	Window     *Window `json:"request_window,omitempty"`
	// Missed is the part of the jobs with a deadline that did not finish by it, those
	// that were refused included; Refused counts those.
	Missed  float64 `json:"missed_deadlines"`
	Refused int     `json:"refused"`
	Spent
	DebugP95 float64 `json:"debug_wait_p95_s"`
	// Lost is the part of the held device time whose work was lost or that went into
	// starts and stops.
	Lost float64 `json:"lost_share"`
	// Slowdown is how much longer owners held their devices beside guests than without, for what they did.
	Slowdown float64 `json:"owners_slowdown"`
	// DoneHours is when the last job ended, from the beginning of the day.
	DoneHours float64 `json:"done_h"`
	Mix
	Hash    string  `json:"decision_hash"`
	WallSec float64 `json:"wall_s"`
}

// Busy is how the devices were used in a day, as parts of all their time.
type Busy struct {
	// BusyShare is the part of all device time of the day that jobs kept busy, and
	// GrantedShare the part that they held. BusyBound is what the work at hand allows of
	// the former, BusyCheck a second count of it. The Own ones are of the day's own jobs
	// alone; the rest is what the week before left behind.
	BusyShare    float64 `json:"busy_share"`
	GrantedShare float64 `json:"granted_share"`
	BusyBound    float64 `json:"busy_bound"`
	BusyCheck    float64 `json:"busy_check"`
	OwnBusyShare float64 `json:"own_busy_share"`
	OwnBusyBound float64 `json:"own_busy_bound"`
	// WorkDuty is the part of the devices it holds that the work at hand keeps busy by
	// itself, OwnDuty the same of the day's own jobs.
	WorkDuty float64 `json:"work_duty"`
	OwnDuty  float64 `json:"own_work_duty"`
}

// Spent is what a day cost.
type Spent struct {
	// EnergyMJ is what the devices drew in the day, EnergyAllMJ until all is done, and the
	// Checks the same by the second count; CostUSD is the price of the device time that
	// was granted until all is done.
	EnergyMJ       float64 `json:"energy_mj"`
	EnergyCheck    float64 `json:"energy_check_mj"`
	EnergyAllMJ    float64 `json:"energy_all_mj"`
	EnergyAllCheck float64 `json:"energy_all_check_mj"`
	CostUSD        float64 `json:"cost_usd"`
}

// Mix is what came in a day, and where it is from.
type Mix struct {
	// Load is the offered load of the day's mix, Factor how many of the trace's jobs come
	// for each that came.
	Load     float64 `json:"offered_load"`
	Factor   float64 `json:"arrival_factor"`
	Jobs     int     `json:"jobs"`
	Trace    string  `json:"trace"`
	Requests string  `json:"requests"`
	Real     bool    `json:"published_data"`
}

// countsAgree is by how much the two counts of busy time may differ: by rounding.
const countsAgree = 1e-6

// watt is what a device draws idle and busy: the makers' figures, as recalled in
// gpu-specs, and a sixth of it idle.
var watt = map[string][2]float64{"v100": {50, 300}, "p100": {50, 300}, "k80": {25, 150}}

// dollars are what a device costs per hour on demand: Azure's NC6s v3, NC6s v2 and NC6,
// as recalled.
var dollars = map[string]float64{"v100": 3.06, "p100": 2.07, "k80": 0.90}

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
		c.AddNode(cluster.Node{Name: fmt.Sprint("node", n), Rack: int32(n / 16), Model: model, CPU: 96 * unit.Whole, Memory: 512 << 10, Uplink: 25_000,
			MilliPerHour: int32(math.Round(8000 * dollars[models[model]]))}, 8)
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

// Warm is a workload with the state that the week before it left under the nulls, to
// run the day from as often as one likes.
type Warm struct {
	setup   Setup
	cluster *cluster.Cluster
	mix     *mix
	items   map[string]*item // of the week before and of the day
	state   *plan.State
	known   map[plan.JobID]world.Known
	at      unit.Time
}

// NewWarm draws the workload of a seed and replays the week before under the nulls.
func NewWarm(s Setup) (*Warm, error) {
	c := Cluster()
	m, err := newMix(s, c, Load)
	if err != nil {
		return nil, err
	}
	w := &Warm{setup: s, cluster: c, mix: m, at: unit.Time(warmDays * unit.Day), known: map[plan.JobID]world.Known{}, items: map[string]*item{}}
	for _, list := range [][]item{m.warm, m.day} {
		for i := range list {
			it := &list[i]
			it.menu = plan.MenuOf(c, it.job.Menu)
			w.items[it.job.Name] = it
		}
	}
	if len(w.items) != len(m.warm)+len(m.day) {
		return nil, errors.New("two jobs have the same name")
	}
	built, err := catalogue.Null().Build(catalogue.Env{Seed: s.Seed}, false)
	if err != nil {
		return nil, err
	}
	sim, err := simulated.New(simulated.Config{Cluster: c, Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), Until: w.at,
		Jobs: &source{left: m.warm, adjust: withNull(nil)}, Prices: s.Prices, World: world.Config{Speeds: measured{}, Seed: s.Seed}})
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
		null = []string{} // withNull takes nil for all steps
	}
	built, law, err := w.build(null, goal)
	if err != nil {
		return Day{}, err
	}
	first := []engine.Event{{Kind: engine.Switched}}
	if !slices.Contains(null, "schedule") {
		first = append(first, engine.Event{Kind: engine.Shares, Queues: lanes()})
	}
	collector := report.NewCollector(report.Limits{Jobs: 1 << 20})
	watch, state := newWatch(w), w.state.Copy()
	nature := world.Config{Speeds: measured{}, Seed: w.setup.Seed}
	if law != nil {
		nature.Services = map[string]*sharing.Law{models[0]: law}
		nature.Answers = func(at unit.Time, job plan.JobID, a world.Answers) { watch.answers(state.View(), at, job, a) }
	}
	sim, err := simulated.New(simulated.Config{Beginning: simulated.Beginning{From: state, At: w.at, First: first,
		Known: func(_ plan.View, id plan.JobID) world.Known { return w.known[id] }}, Cluster: w.cluster,
		Jobs: &source{left: w.mix.day, offset: w.at, adjust: withNull(null)}, Later: w.mix.ends(w.state.View().Jobs(), w.at),
		Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), TellTruth: built.TellTruth, Collector: collector, Hooks: simulated.Hooks{Step: watch.step}, Prices: w.setup.Prices,
		World:  nature,
		Breaks: simulated.Breaks{Seed: w.setup.Seed, NodeEvery: 60 * unit.Day, NodeFor: 2 * unit.Hour}})
	if err != nil {
		return Day{}, err
	}
	d := Day{Goal: goal, Null: null, Seed: w.setup.Seed, Mix: Mix{Load: w.mix.load, Factor: w.mix.factor, Real: w.mix.real && law != nil, Jobs: len(w.mix.day),
		Trace: w.mix.trace, Requests: w.mix.asked}}
	if err := w.readDay(&d, sim, watch.count); err != nil {
		return Day{}, err
	}
	for more := true; more && err == nil; {
		more, err = watch.count.advance(sim)
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
	took := watch.now.Sub(w.at)
	d.EnergyAllMJ, d.EnergyAllCheck = w.energy(took, w.busy(sim, watch.now)), w.energy(took, watch.count.sum.model)
	if off := max(math.Abs(d.BusyShare/d.BusyCheck-1), math.Abs(d.EnergyAllMJ/d.EnergyAllCheck-1)); off > countsAgree {
		return Day{}, fmt.Errorf("what was busy in the day is %.9f of it by the world's books and %.9f by a second count; its energy %.9g and %.9g MJ", d.BusyShare, d.BusyCheck, d.EnergyAllMJ, d.EnergyAllCheck)
	}
	d.CostUSD, d.Hash, d.DoneHours = watch.dollars, r.DecisionHash, took.Seconds()/3600
	d.Lost = (r.LostDeviceSec + r.OverheadDeviceSec) / (r.DeviceSec - r.IdleDeviceSec)
	d.Slowdown = r.OwnersSlowdown()
	jobs := collector.View().Jobs
	up := w.mix.up(jobs, w.at)
	d.Attainment = w.mix.attainment(up)
	w.readJobs(&d, jobs)
	d.Window = watch.window(w.setup.Seed, up[0])
	d.WallSec = time.Since(began).Seconds()
	return d, nil
}

// build makes the Scheduler of a goal with some steps at their null, and says what is true
// of the services' models, and believed; nil where their profile is absent.
func (w *Warm) build(null []string, goal string) (catalogue.Built, *sharing.Law, error) {
	c, err := composition(goal)
	if err != nil {
		return catalogue.Built{}, nil, err
	}
	var law *sharing.Law
	profile, err := serving.V100(func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join(w.setup.Data, path)) })
	if err == nil {
		law, err = profile.Fit()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without it services have whole devices
		return catalogue.Built{}, nil, err
	}
	for _, step := range null {
		if step == Sharing {
			delete(c.Choices, allocate.SharePart)
			continue
		}
		if c, err = c.Without(step); err != nil {
			return catalogue.Built{}, nil, err
		}
	}
	built, err := c.Build(catalogue.Env{Seed: w.setup.Seed, Services: law, Pairs: measured{}}, false)
	return built, law, err
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

// readDay runs the day itself and says what became of the devices' time in it.
func (w *Warm) readDay(d *Day, sim *simulated.Simulation, c *count) (err error) {
	backlog, own := w.errands(sim)
	if d.OwnBusyBound, d.OwnDuty, err = w.atMost(own); err != nil {
		return err
	}
	if d.BusyBound, d.WorkDuty, err = w.atMost(append(backlog, own...)); err != nil {
		return err
	}
	c.readBusy(sim)
	midnight := w.at.Add(unit.Day)
	for sim.Next() <= midnight {
		if _, err := c.advance(sim); err != nil {
			return err
		}
	}
	c.until(midnight)
	all, busy := float64(len(w.cluster.Devices))*unit.Day.Seconds(), w.busy(sim, midnight)
	d.BusyShare, d.BusyCheck, d.OwnBusyShare = (busy[0]+busy[1]+busy[2])/all, c.sum.all()/all, c.sum.own/all
	d.GrantedShare = sim.GrantedSec(midnight) / all
	d.EnergyMJ, d.EnergyCheck = w.energy(unit.Day, busy), w.energy(unit.Day, c.sum.model)
	return nil
}

// busy is the device seconds kept busy until now, by device model, as the world books
// them.
func (w *Warm) busy(sim *simulated.Simulation, at unit.Time) (sec [len(models)]float64) {
	for m := range sec {
		sec[m] = sim.BusySec(at, int32(m))
	}
	return sec
}

// devices counts them by model.
func (w *Warm) devices() (n [len(models)]float64) {
	for i := range w.cluster.Nodes {
		n[w.cluster.Nodes[i].Model] += float64(w.cluster.Nodes[i].Count)
	}
	return n
}

// energy is what the devices draw in so long a time, in megajoules: idle power all the
// time, and the rest while busy.
func (w *Warm) energy(took unit.Duration, busy [len(models)]float64) (megajoules float64) {
	for m, n := range w.devices() {
		p := watt[models[m]]
		megajoules += (n*p[0]*took.Seconds() + busy[m]*(p[1]-p[0])) / 1e6
	}
	return megajoules
}

// readJobs sums up what became of the day's jobs.
func (w *Warm) readJobs(d *Day, jobs []report.JobRecord) {
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
		if j.Outcome == report.Refused {
			d.Refused++
		} else {
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
