package simulated_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"reflect"
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
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/srtf"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

// number draws a whole number; rapid or a seed is behind it.
type number func(least, most int) int

func byRapid(t *rapid.T) number {
	return func(least, most int) int { return rapid.IntRange(least, most).Draw(t, "n") }
}

func bySeed(seed uint64) number {
	r := rand.New(rand.NewPCG(seed, 1))
	return func(least, most int) int { return least + r.IntN(most-least+1) }
}

// rough is a random history in which everything happens that the simulated world
// knows: shares, links that fill and fail, nodes that fail, stragglers, jobs that
// fail by themselves or exceed their limit, sizes, dependencies.
type rough struct {
	config simulated.Config
	jobs   []workload.Job
	truths []workload.Truth
	order  func() schedule.Order
}

func drawRough(n number) rough {
	gittins := tiresias.Default()
	gittins.Gittins, gittins.QuantumDeviceSec, gittins.Refresh = true, 20, 5*unit.Minute
	las := tiresias.Default()
	las.QueuesDeviceSec, las.PromoteAfter = []float64{60, 200}, 2
	orders := []func() schedule.Order{
		func() schedule.Order { return fifo.New(fifo.Default()) },
		func() schedule.Order { return fifo.New(fifo.Config{}) },
		func() schedule.Order { return srtf.Order{} },
		func() schedule.Order { return tiresias.New(las) },
		func() schedule.Order { return tiresias.New(gittins) },
	}
	r := rough{order: orders[n(0, len(orders)-1)]}
	c := &cluster.Cluster{Name: "rough"}
	for m := range n(1, 3) {
		c.AddModel(cluster.Model{Name: fmt.Sprint("model", m), Memory: 16 << 10, Speed: float64(n(5, 20)) / 10})
	}
	racks := n(1, 3)
	for i := range racks {
		c.AddRack(cluster.Rack{Name: fmt.Sprint("rack", i), Uplink: unit.Mbps(n(0, 20)) * 1000})
	}
	for i := range n(2, 6) {
		c.AddNode(cluster.Node{Name: fmt.Sprint("node", i), Rack: int32(i % racks), Model: int32(n(0, len(c.Models)-1)),
			CPU: 64 * unit.Whole, Memory: 512 << 10, Uplink: unit.Mbps(n(0, 10)) * 1000}, n(1, 4))
	}
	r.config = simulated.Config{Cluster: c, Policy: engine.DefaultPolicy(), Prices: simulated.Prices{Restart: unit.Duration(n(0, 20)) * unit.Second, Start: unit.Duration(n(0, 5)) * unit.Second},
		TellTruth: n(0, 1) == 1,
		World:     world.Config{StragglerPart: float64(n(0, 3)) / 10, StragglerSlowdown: 2.5, Seed: uint64(n(0, 1000))}}
	if n(0, 1) == 1 {
		r.config.Breaks = simulated.Breaks{Seed: uint64(n(0, 1000)), NodeEvery: 20 * unit.Minute, NodeFor: unit.Minute,
			DeviceEvery: 30 * unit.Minute, DeviceFor: unit.Minute,
			LinkEvery: 10 * unit.Minute, LinkFor: unit.Minute}
	}
	at := unit.Time(0)
	for range n(3, 20) {
		at = at.Add(unit.Duration(n(0, 40_000)) * unit.Millisecond)
		r.add(n, at)
	}
	return r
}

// add draws a job that the healthy cluster can hold.
func (r *rough) add(n number, at unit.Time) {
	c := r.config.Cluster
	j := workload.Job{Name: fmt.Sprint("job", len(r.jobs)), Submit: at,
		Resources: workload.Resources{Gang: int32(n(1, min(6, len(c.Devices)))), Devices: 1, Share: unit.Whole, Memory: unit.MiB(n(0, 8)) << 10, CPU: unit.Milli(n(0, 2)) * unit.Whole},
		Priority:  int32(n(0, 2)),
		Retries:   int32(n(0, 3)), Traits: workload.Traits{Traffic: unit.Mbps(n(0, 4)) * 500}}
	switch n(0, 4) {
	case 0:
		j.Share = unit.Milli(n(1, 9)) * 100
	case 1:
		j.Sizes = slices.Compact([]int32{1, j.Gang, j.Gang + 1})
	case 2:
		if len(r.jobs) > 0 {
			if before := &r.jobs[n(0, len(r.jobs)-1)]; before.Submit < at {
				j.After = []string{before.Name}
			}
		}
	}
	// It saves when asked besides, every so often, or never; but where nodes are lost, one that
	// keeps nothing of what it did may never end.
	j.Checkpoint = workload.Checkpoint{Every: unit.Duration(n(1, 9)) * unit.Second, OnRequest: n(0, 1) == 1,
		Save: unit.Duration(n(0, 9)) * unit.Second, Load: unit.Duration(n(1, 9)) * unit.Second}
	if !j.Checkpoint.OnRequest && r.config.Breaks == (simulated.Breaks{}) && n(0, 1) == 1 {
		j.Checkpoint.Every = 0
	}
	t := workload.Truth{Duration: unit.Duration(n(1, 300_000)) * unit.Millisecond, Sensitivity: float64(n(0, 5)) / 10, Busy: float64(n(0, 10)) / 10}
	j.Estimate = t.Duration * unit.Duration(n(0, 4)) / 2
	if n(0, 9) == 0 {
		t.FailAfter = t.Duration / 2
	}
	if n(0, 9) == 0 {
		j.TimeLimit = t.Duration / 2
	}
	r.jobs, r.truths = append(r.jobs, j), append(r.truths, t)
}

// String writes a history so that a person can follow it.
func (r *rough) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, start %s, breaks %+v\n", reflect.TypeOf(r.order()), r.config.Prices.Start, r.config.Breaks)
	for _, n := range r.config.Cluster.Nodes {
		fmt.Fprintf(&b, "%+v\n", n)
	}
	for i, j := range r.jobs {
		fmt.Fprintf(&b, "%+v\n  %+v\n", j, r.truths[i])
	}
	return b.String()
}

// run simulates the history; vary may change what must not matter.
func (r *rough) run(vary func(*simulated.Config, *compose.Parts)) (report.Result, error) {
	config := r.config
	config.Jobs = &list{r.jobs, r.truths}
	parts := compose.Parts{Estimator: declared.Estimator{}, Order: r.order(), Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}}
	if vary != nil {
		vary(&config, &parts)
	}
	config.Scheduler = compose.New(parts)
	return simulated.Run(context.Background(), config)
}

// TestProperties: the books balance, every state is legal, every job is accounted
// for, and nothing that only looks on changes a decision.
func TestProperties(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		r := drawRough(byRapid(t))
		first, err := r.run(func(c *simulated.Config, _ *compose.Parts) {
			c.Check = true
			c.Progress = func(now unit.Time, _, _ int64) {
				if now > unit.Time(10*unit.Day) {
					panic("no end in sight: " + r.String())
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if !first.Balanced {
			t.Errorf("the ledger does not balance: %+v", first.Ledger)
		}
		if n := int64(len(r.jobs)); first.Jobs != n || first.Finished+first.Failed != n {
			t.Errorf("of %d jobs %d are reported, %d finished and %d failed", n, first.Jobs, first.Finished, first.Failed)
		}
		for _, x := range []struct {
			name string
			vary func(*simulated.Config, *compose.Parts)
		}{
			{"a second run", nil},
			{"progress", func(c *simulated.Config, _ *compose.Parts) { c.Progress = func(unit.Time, int64, int64) {} }},
			{"a collector", func(c *simulated.Config, _ *compose.Parts) {
				c.Collector = report.NewCollector(report.Limits{Points: 10, Spans: 10, Jobs: 10})
			}},
			{"explaining", func(_ *simulated.Config, p *compose.Parts) { p.Explain = true }},
		} {
			again, err := r.run(x.vary)
			if err != nil {
				t.Fatal(err)
			}
			if again.DecisionHash != first.DecisionHash || again.Events != first.Events {
				t.Errorf("%s changes what is decided", x.name)
			}
		}
	})
}

// seedsElsewhere is the variable that makes TestElsewhere print hashes instead of
// comparing them: it runs itself in another process.
const seedsElsewhere = "MUSTER_TEST_HASHES"

// TestElsewhere: another process, with maps in another order, decides the same.
func TestElsewhere(t *testing.T) {
	var b strings.Builder
	for seed := range uint64(30) {
		r := drawRough(bySeed(seed))
		result, err := r.run(nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		fmt.Fprintf(&b, "hash %d %s\n", seed, result.DecisionHash)
	}
	if os.Getenv(seedsElsewhere) != "" {
		fmt.Print(b.String())
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestElsewhere$")
	cmd.Env = append(os.Environ(), seedsElsewhere+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("running the test once more: %v", err)
	}
	there, _, _ := strings.Cut(string(out), "PASS")
	if there != b.String() {
		t.Errorf("here:\n%sthere:\n%s", b.String(), there)
	}
}
