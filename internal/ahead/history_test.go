package ahead_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/ahead"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
)

// history is a random one in which everything happens that a State tells apart:
// promises, starts that take time, displacement, saving, sizes, shares, dependencies,
// back-offs, people's requests, nodes and devices that are lost and come back.
type history struct {
	cluster  *cluster.Cluster
	arrivals []ahead.Arrival
	later    []simulated.Later
	strategy catalogue.Composition
	turns    bool // in its place: jobs take turns on devices
	start    unit.Duration
}

func drawHistory(t *rapid.T, strategies []string) history {
	n := func(least, most int) int { return rapid.IntRange(least, most).Draw(t, "n") }
	h := history{start: unit.Duration(n(0, 4)) * unit.Second}
	h.cluster = &cluster.Cluster{Name: "small"}
	model := h.cluster.AddModel(cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1})
	h.cluster.AddRack(cluster.Rack{Name: "rack"})
	for i := range n(2, 5) {
		h.cluster.AddNode(cluster.Node{Name: fmt.Sprint("node", i), Model: model, CPU: 64 * unit.Whole, Memory: 512 << 10}, n(1, 4))
	}
	var err error
	name := rapid.SampledFrom(strategies).Draw(t, "strategy")
	if h.turns = name == "turns"; h.turns {
		name = "fifo"
	}
	if h.strategy, err = catalogue.Parse("test", name); err != nil {
		t.Fatal(err)
	}
	at := unit.Time(0)
	for range n(3, 20) {
		at = at.Add(unit.Duration(n(0, 30_000)) * unit.Millisecond)
		h.arrivals = append(h.arrivals, h.draw(n, at))
	}
	h.drawLater(n, at)
	return h
}

// draw draws a job. Its sizes are powers of two, so that no rate has to be rounded.
func (h *history) draw(n func(int, int) int, at unit.Time) ahead.Arrival {
	j := workload.Job{Name: fmt.Sprint("job", len(h.arrivals)), Submit: at,
		Resources: workload.Resources{Gang: int32(n(1, min(6, len(h.cluster.Devices)))), Devices: 1, Share: unit.Whole, Memory: unit.MiB(n(0, 8)) << 10, CPU: unit.Milli(n(0, 2)) * unit.Whole},
		Priority:  int32(n(0, 2)),
		Retries:   int32(n(0, 3)), Tenant: fmt.Sprint("tenant", n(0, 2)), User: fmt.Sprint("user", n(0, 2)), Traits: workload.Traits{Class: fmt.Sprint("class", n(0, 2))}}
	switch n(0, 4) {
	case 0:
		j.Share = unit.Milli(n(1, 9)) * 100
	case 1:
		j.Gang, j.Sizes = 2, []int32{1, 2, 4}
	case 2:
		if len(h.arrivals) > 0 {
			j.After = []string{h.arrivals[n(0, len(h.arrivals)-1)].Job.Name}
		}
	}
	j.Checkpoint = workload.Checkpoint{Every: unit.Duration(n(1, 9)) * unit.Second, OnRequest: n(0, 1) == 1,
		Save: unit.Duration(n(0, 9)) * unit.Second, Load: unit.Duration(n(1, 9)) * unit.Second}
	if !j.Checkpoint.OnRequest {
		j.Checkpoint.Every = unit.Microsecond // or it might never end
	}
	truth := workload.Truth{Duration: unit.Duration(n(1, 300_000)) * unit.Millisecond}
	if n(0, 2) > 0 { // round, so that things coincide
		truth.Duration = unit.Duration(n(1, 30)) * 10 * unit.Second
	}
	j.Estimate = truth.Duration * unit.Duration(n(0, 4)) / 2
	if n(0, 9) == 0 {
		j.TimeLimit = truth.Duration / 2
	}
	if h.turns {
		j.Gang, j.Sizes, j.Share = 1, nil, unit.Whole
	}
	return ahead.Arrival{Job: j, Truth: truth}
}

// drawLater draws what people ask and what breaks; what is closed is opened again.
func (h *history) drawLater(n func(int, int) int, last unit.Time) {
	job := func(k engine.Kind) engine.Event {
		return engine.Event{Kind: k, Job: plan.JobID(n(0, len(h.arrivals)-1))}
	}
	for range n(0, 8) {
		at := unit.Time(n(0, int(last/1000)+60_000)) * 1000
		back := at.Add(unit.Duration(n(1, 90)) * unit.Second)
		node, device := plan.NodeID(n(0, len(h.cluster.Nodes)-1)), plan.DeviceID(n(0, len(h.cluster.Devices)-1))
		add := func(k, undo engine.Event) {
			h.later = append(h.later, simulated.Later{At: at, Event: k}, simulated.Later{At: back, Event: undo})
		}
		switch n(0, 6) {
		case 0:
			h.later = append(h.later, simulated.Later{At: at, Event: job([]engine.Kind{engine.Cancel, engine.Requeue}[n(0, 1)])})
		case 1:
			k := job(engine.Hold)
			add(k, engine.Event{Kind: engine.Release, Job: k.Job})
		case 2:
			add(engine.Event{Kind: engine.NodeDown, Node: node}, engine.Event{Kind: engine.NodeUp, Node: node})
		case 3:
			add(engine.Event{Kind: engine.DeviceDown, Device: device}, engine.Event{Kind: engine.DeviceUp, Device: device})
		case 4:
			add(engine.Event{Kind: engine.Drain, Node: node}, engine.Event{Kind: engine.Uncordon, Node: node})
		case 5:
			add(engine.Event{Kind: engine.Pause}, engine.Event{Kind: engine.Unpause})
		case 6:
			add(engine.Event{Kind: engine.Close, Node: node, Bounds: engine.Bounds{From: at.Add(unit.Duration(n(0, 60)) * unit.Second), To: back.Add(unit.Minute)}},
				engine.Event{Kind: []engine.Kind{engine.Tick, engine.Reopen}[n(0, 1)], Node: node})
		}
	}
	slices.SortStableFunc(h.later, func(a, b simulated.Later) int { return int(a.At - b.At) })
}

// drawTree draws a tree of queues for the tenants.
func drawTree(n func(int, int) int) queue.Tree {
	tree := queue.Flat("tenant0", "tenant1")
	tree.HalfLife, tree.Protect = unit.Duration(n(0, 2))*unit.Hour, unit.Duration(n(0, 60))*unit.Second
	for i := 1; i < len(tree.Queues); i++ {
		q := &tree.Queues[i]
		q.Weight, q.Priority, q.Preempt = int32(n(1, 3))*1000, int32(n(0, 1)), n(0, 1) == 1
		if n(0, 1) == 1 {
			q.Guarantee = []queue.Amount{{Milli: int64(n(0, 2)) * 1000}}
		}
		if n(0, 2) == 0 {
			q.Limit = []queue.Amount{{Milli: int64(n(3, 6)) * 1000}}
		}
	}
	return tree
}

// String writes a history so that a person can follow it.
func (h *history) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, turns %v, start %s\n", h.strategy.Text, h.turns, h.start)
	for _, n := range h.cluster.Nodes {
		fmt.Fprintf(&b, "%s: %d devices\n", n.Name, n.Count)
	}
	for _, a := range h.arrivals {
		j := a.Job
		fmt.Fprintf(&b, "%s: at %s, %d x %s devices, sizes %v, takes %s (declared %s), limit %s, priority %d, after %v, checkpoint %+v\n",
			j.Name, unit.Duration(j.Submit), j.Gang, j.Share, j.Sizes, a.Truth.Duration, j.Estimate, j.TimeLimit, j.Priority, j.After, j.Checkpoint)
	}
	for _, l := range h.later {
		fmt.Fprintf(&b, "%s: %s job %d node %d device %d, %d to %d, %+v\n", unit.Duration(l.At), l.Event.Kind, l.Event.Job, l.Event.Node, l.Event.Device, l.Event.From, l.Event.To, l.Event.Queues)
	}
	return b.String()
}

func (h *history) scheduler() (schedule.Scheduler, error) {
	if h.turns {
		return turns{}, nil
	}
	built, err := h.strategy.Build(catalogue.Env{Seed: 1}, true)
	return built.Scheduler, err
}

func (h *history) tellTruth() bool {
	built, err := h.strategy.Build(catalogue.Env{Seed: 1}, true)
	return err == nil && built.TellTruth
}

// truth is the beliefs of somebody who knows.
func (h *history) truth(v plan.View, id plan.JobID) unit.Duration {
	for _, a := range h.arrivals {
		if a.Job.Name == v.Name(id) {
			return a.Truth.Duration
		}
	}
	panic("there is no job " + v.Name(id))
}

// endless is where a history that goes on is given up.
const endless = unit.Time(2 * unit.Day)

// simulate runs the history, and saves the State after the step numbered cut. It
// returns the number of steps and the canonical lines.
func (h *history) simulate(t *rapid.T, cut int) (steps int, saved *plan.State, decisions []byte) {
	sched, err := h.scheduler()
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	var s *simulated.Simulation
	s, err = simulated.New(simulated.Config{Cluster: h.cluster, Jobs: ahead.Arriving(h.arrivals)(), Later: h.later, Scheduler: sched,
		Policy: engine.DefaultPolicy(), Prices: simulated.Prices{Start: h.start}, TellTruth: h.tellTruth(), Decisions: &lines, Check: true, Until: endless,
		Hooks: simulated.Hooks{Step: func(unit.Time, []engine.Event, *engine.Out, plan.View) {
			if steps++; steps == cut {
				if saved, err = s.State().Clone(); err != nil {
					t.Fatal(err)
				}
			}
		}}})
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, h)
	}
	r, err := s.Result()
	if err != nil || !r.Balanced {
		t.Fatalf("the books do not balance (%v): %+v\n%s", err, r.Ledger, h)
	}
	return steps, saved, lines.Bytes()
}

// ahead is the future of a saved State, told what is true and who is still to come.
func (h *history) ahead(saved *plan.State) ahead.Config {
	c := ahead.Config{State: saved, Scheduler: h.scheduler, Policy: engine.DefaultPolicy(), TellTruth: h.tellTruth(), Beliefs: h.truth,
		Arrivals: ahead.Arriving(h.arrivals[len(saved.Jobs):]), Start: h.start, Horizon: endless.Sub(saved.Now)}
	for i := range h.later {
		if h.later[i].At > saved.Now {
			c.Later = h.later[i:]
			break
		}
	}
	return c
}

// after are the lines of the commits that a State has not seen.
func after(s *plan.State, decisions []byte) []byte {
	for range s.Commits {
		_, decisions, _ = bytes.Cut(decisions, []byte("\n"))
	}
	return decisions
}

// turns is a Scheduler that suspends: two jobs take turns on each device. All it
// decides follows from the State and the instant.
type turns struct{}

const slice = 7 * unit.Second

func (turns) Decide(d *plan.Draft, _ schedule.Trigger) unit.Time {
	boundary := d.Now()%unit.Time(slice) == 0
	for device := range plan.DeviceID(d.Devices()) {
		var of []plan.RunID
		d.GrantsOn(device, func(g plan.Grant) { of = append(of, g.Run) })
		suspended := 0
		for _, id := range of {
			if r := d.Run(id); boundary && r.Status == plan.Running && r.Since < d.Now() && d.Suspend(id, plan.Reason{Code: plan.SliceOver}) {
				suspended++
			}
		}
		if len(of) == 0 || suspended == 1 && len(of) == 1 {
			startNext(d, device)
		}
		for _, id := range of {
			if boundary && suspended > 0 && d.Run(id).Status == plan.Suspended && d.Run(id).Since < d.Now() {
				d.Resume(id, plan.Reason{Code: plan.SliceBegins})
			}
		}
		// One that is alone and rests, because its fellow has ended, goes on.
		if boundary && len(of) == 1 && suspended == 0 {
			d.Resume(of[0], plan.Reason{Code: plan.SliceBegins})
		}
	}
	return d.Now() - d.Now()%unit.Time(slice) + unit.Time(slice)
}

// startNext starts the next job on a device; one that may not be there goes on waiting.
func startNext(d *plan.Draft, device plan.DeviceID) {
	for id := range plan.JobID(d.Jobs()) {
		if d.Job(id).Phase != plan.Waiting || d.Job(id).Leaving != plan.None {
			continue
		}
		terms := plan.DefaultTerms()
		terms.Share.Turn = 1
		if run, _ := d.Start(id, []plan.Slot{{Node: d.Device(device).Node, Device: device, Workers: 1}}, terms, plan.Reason{Code: plan.Fits}); run != plan.None {
			return
		}
	}
}

// strategies need no reservations.
var strategies = []string{"fifo", "fifo-strict", "las", "sjf", "srsf", "srtf", "tiresias", "srtf+declared", "srsf+declared", "sjf+history",
	"fifo+equal-share", "tiresias+equal-share", "srtf+declared+consolidate", "fifo+random",
	"srtf+declared+cheapest", "las+newest", "tiresias+lowest-rank"}

// reserving keep places in a calendar.
var reserving = []string{"fifo+easy", "fifo+conservative", "srtf+declared+easy+cheapest", "tiresias+conservative+lowest-rank"}

// TestFaithful: a future that is told what is true commits the same bytes as the
// history that it was forked off, from the fork to the end.
func TestFaithful(t *testing.T) {
	for name, list := range map[string][]string{"displace": strategies, "suspend": {"turns"}} {
		t.Run(name, func(t *testing.T) {
			draws.Check(t, func(t *rapid.T) {
				h := drawHistory(t, list)
				faithful(t, &h)
			})
		})
	}
}

// TestFaithfulWithClaims: the same with reservations, and while trees of queues come
// and go.
func TestFaithfulWithClaims(t *testing.T) {
	if os.Getenv("MUSTER_KNOWN") == "" {
		t.Skip("about one history in five hundred with reservations beside elastic or preempting work, or with trees of queues, still goes on " +
			"otherwise than its fork: see docs/decisions/0016-forward-runs.md; MUSTER_KNOWN=1 hunts for them")
	}
	draws.Check(t, func(t *rapid.T) {
		h := drawHistory(t, slices.Concat(strategies, reserving))
		n := func(least, most int) int { return rapid.IntRange(least, most).Draw(t, "n") }
		for range n(1, 3) {
			tree := drawTree(n)
			h.later = append(h.later, simulated.Later{At: unit.Time(n(0, 300_000)) * 1000, Event: engine.Event{Kind: engine.Shares, Queues: &tree}})
		}
		slices.SortStableFunc(h.later, func(a, b simulated.Later) int { return int(a.At - b.At) })
		faithful(t, &h)
	})
}

// faithful cuts a history somewhere and compares what comes after with the future.
func faithful(t *rapid.T, h *history) {
	steps, _, decisions := h.simulate(t, 0)
	cut := rapid.IntRange(1, steps).Draw(t, "cut")
	_, saved, _ := h.simulate(t, cut)
	if saved.Paused {
		// Where nothing is decided the caches that a rebuilt Scheduler has lost are not
		// filled again before the pause ends: the first reasons after it may differ.
		return
	}
	config := h.ahead(saved)
	var got bytes.Buffer
	config.Decisions = &got
	f, err := ahead.Run(context.Background(), config)
	if err != nil {
		t.Fatalf("%v\n%s", err, h)
	}
	if want := after(saved, decisions); !bytes.Equal(got.Bytes(), want) {
		t.Fatalf("cut at step %d of %d, %s:\n%sthe future decides\n%s\nthe history\n%s", cut, steps, unit.Duration(saved.Now), h, got.Bytes(), want)
	}
	if !f.Result.Balanced {
		t.Errorf("the books of the future do not balance: %+v", f.Result.Ledger)
	}
}
