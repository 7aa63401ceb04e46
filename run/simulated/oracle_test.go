package simulated_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/tick"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/srtf"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

// small is a random world that both simulators can run.
type small struct {
	tick.World
	breaks simulated.Breaks
}

// drawSmall draws a world for an order. Times are a few ticks. A tick is a microsecond, the
// engine's own resolution, so that both round the same way. What is unknown srtf looks at in
// steps of a device-minute: for that it is a second, and each job takes the whole cluster.
func drawSmall(t *rapid.T, order tick.Order) small {
	w := small{World: tick.World{Order: order, Tick: unit.Microsecond, Cluster: &cluster.Cluster{Name: "small"}}}
	uneven := rapid.Bool().Draw(t, "uneven")
	speeds := []float64{1}
	if uneven {
		speeds = []float64{0.5, 1, 2}
	} else if order == tick.SRTF {
		w.Tick = unit.Second
	}
	for i, s := range speeds {
		w.Cluster.AddModel(cluster.Model{Name: fmt.Sprint("model", i), Speed: s})
	}
	w.Cluster.AddRack(cluster.Rack{Name: "rack"})
	for n := range rapid.IntRange(2, 6).Draw(t, "nodes") {
		w.Cluster.AddNode(cluster.Node{Name: fmt.Sprint("node", n), Model: rapid.Int32Range(0, int32(len(speeds))-1).Draw(t, "model")},
			rapid.IntRange(1, 4).Draw(t, "devices"))
	}
	ticks := func(least, most int, name string) unit.Duration {
		return unit.Duration(rapid.IntRange(least, most).Draw(t, name)) * w.Tick
	}
	w.Start = ticks(0, 3, "start")
	w.Bounds = []unit.Duration{120 * w.Tick, 360 * w.Tick} // every gang reaches them on a tick
	if uneven && rapid.Bool().Draw(t, "breaks") {
		w.breaks = simulated.Breaks{Seed: rapid.Uint64().Draw(t, "seed"), NodeEvery: 400, NodeFor: 20}
	}
	at := unit.Time(0)
	for i := range rapid.IntRange(3, 12).Draw(t, "jobs") {
		at = at.Add(ticks(0, 12, "gap"))
		w.addJob(t, i, at, ticks)
	}
	return w
}

// addJob draws a job that the healthy cluster can hold.
func (w *small) addJob(t *rapid.T, i int, at unit.Time, ticks func(int, int, string) unit.Duration) {
	j := workload.Job{Name: fmt.Sprint("job", i), Submit: at, Resources: workload.Resources{Gang: rapid.Int32Range(1, 6).Draw(t, "gang"),
		Devices: rapid.Int32Range(1, 2).Draw(t, "each"), Share: unit.Whole}, Priority: rapid.Int32Range(0, 1).Draw(t, "priority")}
	if rapid.IntRange(0, 3).Draw(t, "picky") == 0 {
		j.Models = []string{w.Cluster.Models[rapid.IntRange(0, len(w.Cluster.Models)-1).Draw(t, "which")].Name}
	}
	most := int32(0)
	for most == 0 {
		for _, n := range w.Cluster.Nodes {
			if len(j.Models) == 0 || w.Cluster.Models[n.Model].Name == j.Models[0] {
				most += n.Count / j.Devices
			}
		}
		if most == 0 && j.Devices > 1 {
			j.Devices = 1
		} else if most == 0 {
			j.Models = nil
		}
	}
	j.Gang = min(j.Gang, most)
	// It saves when asked, every so often, both or never.
	j.Checkpoint = workload.Checkpoint{OnRequest: rapid.Bool().Draw(t, "on request"), Save: ticks(0, 4, "save"), Load: ticks(0, 4, "load")}
	if rapid.Bool().Draw(t, "periodic") {
		j.Checkpoint.Every = ticks(1, 10, "every")
	}
	if w.Tick == unit.Second { // so that starts are earned back on a tick, by what others lost and by a microsecond at least
		j.Gang, j.Devices, j.Checkpoint.Load = int32(len(w.Cluster.Devices)), 1, max(w.Tick, j.Checkpoint.Load)
	}
	truth := workload.Truth{Duration: ticks(1, 80, "duration")}
	j.Estimate = w.estimate(t, j.Gang*j.Devices, truth.Duration, ticks)
	// One node too many halves or quarters the rate; only then it stays exact.
	if w.Tick == unit.Microsecond && (j.Gang*j.Devices <= 2 || len(w.Cluster.Nodes) <= 2) {
		truth.Sensitivity = rapid.SampledFrom([]float64{0, 1, 3}).Draw(t, "sensitivity")
	}
	w.Jobs, w.Truths = append(w.Jobs, j), append(w.Truths, truth)
}

// estimate draws what the owner declares. An estimate that is overrun makes srtf
// look again a microsecond later, and what is unknown is looked at in steps of a
// device-minute: only where that falls on a tick are they drawn.
func (w *small) estimate(t *rapid.T, devices int32, truth unit.Duration, ticks func(int, int, string) unit.Duration) unit.Duration {
	switch wrong := rapid.IntRange(0, 2).Draw(t, "wrong"); {
	case wrong == 1 && (w.Tick == unit.Microsecond || 60%devices == 0):
		return 0
	case wrong == 2 && w.Tick == unit.Microsecond:
		return ticks(1, 60, "estimate")
	case wrong == 2:
		return truth + ticks(0, 60, "more")
	}
	return truth
}

// list is a Source.
type list struct {
	jobs   []workload.Job
	truths []workload.Truth
}

func (l *list) Next() (workload.Job, workload.Truth, error) {
	if len(l.jobs) == 0 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	j, t := l.jobs[0], l.truths[0]
	l.jobs, l.truths = l.jobs[1:], l.truths[1:]
	return j, t, nil
}

// watch is a Scheduler that notes when nodes are lost and come back; losing one
// always calls it.
type watch struct {
	schedule.Scheduler
	outages []tick.Outage
	open    map[plan.NodeID]int
}

func (w *watch) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	for n := range plan.NodeID(d.Nodes()) {
		i, was := w.open[n]
		switch is := d.Node(n).Status == plan.Down; {
		case is && !was:
			w.open[n] = len(w.outages)
			w.outages = append(w.outages, tick.Outage{Node: int(n), From: d.Now(), To: unit.Never})
		case was && !is:
			w.outages[i].To = d.Now()
			delete(w.open, n)
		}
	}
	return w.Scheduler.Decide(d, why)
}

// ordered is the composition that corresponds to an order of the oracle.
func (w *small) ordered() schedule.Scheduler {
	p := compose.Parts{Estimator: declared.Estimator{}, Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}}
	switch w.Order {
	case tick.FIFO:
		p.Order = fifo.New(fifo.Default())
	case tick.FIFOStrict:
		p.Order = fifo.New(fifo.Config{})
	case tick.SRTF:
		p.Order = srtf.Order{}
	case tick.LAS:
		c := tiresias.Default()
		c.QueuesDeviceSec = nil
		for _, b := range w.Bounds {
			c.QueuesDeviceSec = append(c.QueuesDeviceSec, b.Seconds())
		}
		p.Order = tiresias.New(c)
	}
	return compose.New(p)
}

// simulate runs the world on the engine, and notes its outages for the oracle.
func (w *small) simulate() (report.Result, []report.JobRecord, error) {
	sched := &watch{Scheduler: w.ordered(), open: map[plan.NodeID]int{}}
	collected := report.NewCollector(report.Limits{})
	r, err := simulated.Run(context.Background(), simulated.Config{Cluster: w.Cluster, Jobs: &list{w.Jobs, w.Truths}, Scheduler: sched,
		Policy: engine.DefaultPolicy(), Breaks: w.breaks, Prices: simulated.Prices{Start: w.Start}, Check: true, Collector: collected,
		Hooks: simulated.Hooks{Progress: func(now unit.Time, _, _ int64) {
			if now > unit.Time(horizon*w.Tick) {
				panic("no end in sight:\n" + w.String())
			}
		}}})
	w.Outages = sched.outages
	jobs := collected.View().Jobs
	slices.SortFunc(jobs, func(a, b report.JobRecord) int { return int(a.ID - b.ID) })
	return r, jobs, err
}

// String writes a world so that a person can follow it.
func (w *small) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "order %s, start %d, outages %v\n", w.Order, w.World.Start/w.Tick, w.Outages)
	for _, n := range w.Cluster.Nodes {
		fmt.Fprintf(&b, "%s: %d devices of speed %g\n", n.Name, n.Count, w.Cluster.Models[n.Model].Speed)
	}
	for i, j := range w.Jobs {
		c := j.Checkpoint
		fmt.Fprintf(&b, "%s: at %d, %dx%d devices %v, priority %d, takes %d (declared %d), sensitivity %g, saves every %d, on request %v, save %d, load %d\n",
			j.Name, unit.Duration(j.Submit)/w.Tick, j.Gang, j.Devices, j.Models, j.Priority, w.Truths[i].Duration/w.Tick, j.Estimate/w.Tick,
			w.Truths[i].Sensitivity, c.Every/w.Tick, c.OnRequest, c.Save/w.Tick, c.Load/w.Tick)
	}
	return b.String()
}

// TestOracle: the engine in its world and the oracle agree on the start, the end,
// the preemptions and the restarts of every job, to the microsecond.
func TestOracle(t *testing.T) {
	batches := 1 // of a hundred worlds
	switch {
	case os.Getenv("MUSTER_FULL") != "":
		batches = 100
	case os.Getenv("MUSTER_LONG") != "":
		batches = 10
	}
	for _, order := range []tick.Order{tick.FIFO, tick.FIFOStrict, tick.SRTF, tick.LAS} {
		t.Run(string(order), func(t *testing.T) {
			var seen seen
			for batch := range batches {
				draws.Cases{Round: batch}.Check(t, func(t *rapid.T) {
					w := drawSmall(t, order)
					compare(t, &w, &seen)
				})
			}
			if preempts := order == tick.SRTF || order == tick.LAS; seen.restarts == 0 || preempts != (seen.preemptions > 0 && seen.lost > 0) {
				t.Errorf("in all these worlds there were %d preemptions, %d of them of jobs that do not save when asked, and %d restarts: they test too little", seen.preemptions, seen.lost, seen.restarts)
			}
		})
	}
}

// TestExamples keeps the small worlds in which the two simulators once disagreed;
// each instant can be followed by hand.
func TestExamples(t *testing.T) {
	c := cluster.Uniform("small", 1, 2, cluster.Model{Name: "gpu", Speed: 1}, 1)
	kinds := &cluster.Cluster{Name: "kinds", Models: []cluster.Model{{Name: "a", Speed: 1}, {Name: "b", Speed: 1}}}
	kinds.AddRack(cluster.Rack{Name: "rack"})
	kinds.AddNode(cluster.Node{Name: "node0", Model: 0}, 1)
	kinds.AddNode(cluster.Node{Name: "node1", Model: 1}, 2)
	saves, tens, slow := workload.Checkpoint{OnRequest: true, Load: 1}, workload.Checkpoint{OnRequest: true, Load: 10}, workload.Checkpoint{OnRequest: true, Load: 70}
	for _, x := range []struct {
		name   string
		on     *cluster.Cluster
		order  tick.Order
		jobs   []workload.Job
		takes  []unit.Duration
		became []tick.Job
	}{
		// What a displaced job was served counts from the moment it is displaced, not
		// from when its run has stopped: else it takes its room back.
		{"served while it leaves", c, tick.LAS,
			[]workload.Job{{Resources: workload.Resources{Gang: 2}, Checkpoint: saves}, {Resources: workload.Resources{Gang: 2}, Submit: 10, Checkpoint: saves}},
			[]unit.Duration{80, 5}, []tick.Job{{Start: 0, End: 86, Preemptions: 1, Ran: 80}, {Start: 60, End: 65, Ran: 5}}},
		// Of 22 the checkpoint at 15 is kept, so 49 of 64 are left, not a little more.
		{"no rounding of what is kept", c, tick.SRTF,
			[]workload.Job{{Resources: workload.Resources{Gang: 2}, Estimate: 64, Checkpoint: workload.Checkpoint{Every: 15, Load: 1}}, {Resources: workload.Resources{Gang: 2}, Submit: 22, Estimate: 1, Checkpoint: saves}},
			[]unit.Duration{64, 1}, []tick.Job{{Start: 0, End: 73, Preemptions: 1, Ran: 71}, {Start: 22, End: 23, Ran: 1}}},
		// Of 60 only 40 are kept, but that is not known before the run has stopped: until then it was
		// served for 60, and ranks behind the third job, which takes node1.
		{"what is lost was served until then", kinds, tick.LAS,
			[]workload.Job{{Resources: workload.Resources{Gang: 2}, Checkpoint: workload.Checkpoint{Every: 40, Load: 1}}, {Resources: workload.Resources{Gang: 1, Models: []string{"a"}}, Submit: 1},
				{Resources: workload.Resources{Gang: 1, Devices: 2}, Submit: 1}},
			[]unit.Duration{70, 5, 3}, []tick.Job{{Start: 0, End: 94, Preemptions: 1, Ran: 90}, {Start: 60, End: 65, Ran: 5}, {Start: 60, End: 63, Ran: 3}}},
		// It is in the second queue from 60 on, and goes on until it has computed for as long as it loads.
		{"a start is earned back", c, tick.LAS,
			[]workload.Job{{Resources: workload.Resources{Gang: 2}, Checkpoint: slow}, {Resources: workload.Resources{Gang: 2}, Checkpoint: saves}},
			[]unit.Duration{80, 5}, []tick.Job{{Start: 0, End: 155, Preemptions: 1, Ran: 80}, {Start: 70, End: 75, Ran: 5}}},
		// The second job came when the first ran, which therefore goes at 60. The second computes for its load
		// of 1 and the 70 that the first lost, though the first would take its room back at 120.
		{"so is what others lost by it, but not for one that came since", c, tick.LAS,
			[]workload.Job{{Resources: workload.Resources{Gang: 2}, Checkpoint: slow}, {Resources: workload.Resources{Gang: 2}, Submit: 10, Checkpoint: saves}},
			[]unit.Duration{80, 80}, []tick.Job{{Start: 0, End: 221, Preemptions: 1, Ran: 80}, {Start: 60, End: 231, Preemptions: 1, Ran: 80}}},
		// It computes again from 35 on: 10 for its load, and 10 since it was displaced before.
		{"more each time", c, tick.SRTF,
			[]workload.Job{{Resources: workload.Resources{Gang: 2}, Estimate: 100, Checkpoint: tens}, {Resources: workload.Resources{Gang: 2}, Submit: 20, Estimate: 5}, {Resources: workload.Resources{Gang: 2}, Submit: 30, Estimate: 5}},
			[]unit.Duration{100, 5, 5}, []tick.Job{{Start: 0, End: 130, Preemptions: 2, Ran: 100}, {Start: 20, End: 25, Ran: 5}, {Start: 55, End: 60, Ran: 5}}},
		// The first would give way at 40 to the last, which came since, but not to the one before it.
		{"none passes one that wants the same", c, tick.SRTF,
			[]workload.Job{{Resources: workload.Resources{Gang: 2}, Estimate: 100, Checkpoint: tens}, {Resources: workload.Resources{Gang: 2}, Submit: 20, Estimate: 5}, {Resources: workload.Resources{Gang: 2}, Submit: 30, Estimate: 5}, {Resources: workload.Resources{Gang: 2}, Submit: 40, Estimate: 6}},
			[]unit.Duration{100, 5, 5, 6}, []tick.Job{{Start: 0, End: 136, Preemptions: 2, Ran: 100}, {Start: 20, End: 25, Ran: 5}, {Start: 55, End: 60, Ran: 5}, {Start: 60, End: 66, Ran: 6}}},
		// The second is displaced at 20, and takes the room of the first at 21.
		{"whoever is displaced displaces nobody in that instant", kinds, tick.SRTF,
			[]workload.Job{{Resources: workload.Resources{Gang: 1, Models: []string{"a"}}, Estimate: 100, Checkpoint: saves}, {Resources: workload.Resources{Gang: 1}, Submit: 1, Estimate: 50, Checkpoint: saves},
				{Resources: workload.Resources{Gang: 1, Devices: 2}, Submit: 20, Estimate: 5}},
			[]unit.Duration{100, 50, 5}, []tick.Job{{Start: 0, End: 133, Preemptions: 1, Ran: 100}, {Start: 1, End: 53, Preemptions: 1, Ran: 50}, {Start: 20, End: 25, Ran: 5}}},
		// The same, where the second saves for 2: until 22 it could not start, and nobody is stopped for it.
		{"nor before its run has left", kinds, tick.SRTF,
			[]workload.Job{{Resources: workload.Resources{Gang: 1, Models: []string{"a"}}, Estimate: 100, Checkpoint: saves}, {Resources: workload.Resources{Gang: 1}, Submit: 1, Estimate: 50, Checkpoint: workload.Checkpoint{OnRequest: true, Save: 2, Load: 1}},
				{Resources: workload.Resources{Gang: 1, Devices: 2}, Submit: 20, Estimate: 5}},
			[]unit.Duration{100, 50, 5}, []tick.Job{{Start: 0, End: 133, Preemptions: 1, Ran: 100}, {Start: 1, End: 54, Preemptions: 1, Ran: 50}, {Start: 22, End: 27, Ran: 5}}},
		// Without that, where the first has not earned back its start by 25: that the second came since counts once only.
		{"whoever has run is not new", kinds, tick.SRTF,
			[]workload.Job{{Resources: workload.Resources{Gang: 1, Models: []string{"a"}}, Estimate: 100, Checkpoint: slow}, {Resources: workload.Resources{Gang: 1}, Submit: 1, Estimate: 50, Checkpoint: saves},
				{Resources: workload.Resources{Gang: 1, Devices: 2}, Submit: 20, Estimate: 5}},
			[]unit.Duration{100, 50, 5}, []tick.Job{{Start: 0, End: 100, Ran: 100}, {Start: 1, End: 57, Preemptions: 1, Ran: 50}, {Start: 20, End: 25, Ran: 5}}},
		// The estimates are overrun and doubled. The second has 39 left of 80 at 51, when the first has 20, and the first 59 of 120 at 103: it goes on.
		{"no second round", c, tick.SRTF,
			[]workload.Job{{Resources: workload.Resources{Gang: 2}, Estimate: 30, Checkpoint: saves}, {Resources: workload.Resources{Gang: 2}, Submit: 10, Estimate: 5, Checkpoint: saves}},
			[]unit.Duration{100, 80}, []tick.Job{{Start: 0, End: 142, Preemptions: 1, Ran: 100}, {Start: 10, End: 182, Preemptions: 1, Ran: 80}}},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := small{World: tick.World{Order: x.order, Tick: unit.Microsecond, Cluster: x.on, Bounds: []unit.Duration{120}}}
			for i, j := range x.jobs {
				j.Name, j.Devices, j.Share = fmt.Sprint("job", i), max(1, j.Devices), unit.Whole
				w.Jobs, w.Truths = append(w.Jobs, j), append(w.Truths, workload.Truth{Duration: x.takes[i]})
			}
			h, err := tick.Run(w.World, horizon)
			if err != nil || !slices.Equal(h.Jobs, x.became) {
				t.Errorf("the oracle says %+v (%v), by hand it is %+v", h.Jobs, err, x.became)
			}
			_, jobs, err := w.simulate()
			if err != nil {
				t.Fatal(err)
			}
			for i := range jobs {
				if got := outcome(jobs[i]); got != x.became[i] {
					t.Errorf("job%d: the engine says %+v, by hand it is %+v", i, got, x.became[i])
				}
			}
		})
	}
}

func outcome(j report.JobRecord) tick.Job {
	return tick.Job{Start: j.FirstStart, End: j.End, Preemptions: j.Preemptions, Restarts: j.Restarts, Ran: j.Run}
}

// seen counts what happened in all worlds.
type seen struct {
	preemptions, restarts int32
	lost                  int32 // preemptions of jobs that do not save when asked
}

// compare runs a world on both simulators and reports every difference; seen adds
// up what happened in it.
func compare(t *rapid.T, w *small, seen *seen) {
	r, jobs, err := w.simulate()
	if err != nil {
		t.Fatal(err)
	}
	if !r.Balanced {
		t.Fatalf("the ledger does not balance:\n%s", w)
	}
	want, err := tick.Run(w.World, horizon)
	if err != nil {
		t.Fatalf("oracle: %v\n%s", err, w)
	}
	if want.Tied {
		t.Skip("a run changed in the very instant a node was lost")
	}
	for i, j := range jobs {
		got := outcome(j)
		seen.preemptions, seen.restarts = seen.preemptions+got.Preemptions, seen.restarts+got.Restarts
		if !w.Jobs[i].Checkpoint.OnRequest {
			seen.lost += got.Preemptions
		}
		if got != want.Jobs[i] {
			t.Fatalf("%s: the engine says %+v, the oracle %+v, in\n%s", j.Name, got, want.Jobs[i], w)
		}
	}
}

// horizon is by when, in ticks, every small world has ended.
const horizon = 100000
