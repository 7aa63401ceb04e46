package catalogue_test

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/gandiva"
	"github.com/musterdl/muster/strategies/allocate/salus"
	"github.com/musterdl/muster/strategies/serve/igniter"
)

// deeds are the acts that were seen, with the terms that each run has.
type deeds struct {
	seen  map[strategy.Act]bool
	terms map[plan.RunID]plan.Terms
}

// note notes what a change does beyond starting and stopping its run.
func (d *deeds) note(v plan.View, c *plan.Change) {
	t, was := c.Terms, d.terms[c.Run]
	if c.Verb != plan.Start && c.Verb != plan.Regrant {
		t = plan.DefaultTerms()
	} else {
		d.terms[c.Run] = t
	}
	share, had := t.Share, was.Share
	var planned pipeline.Plan
	if t.Plan.ID != plan.None && v.Pipeline(t.Plan.ID).JSON != nil {
		if err := json.Unmarshal(v.Pipeline(t.Plan.ID).JSON, &planned); err != nil {
			panic(err)
		}
	}
	schedule := planned.Schedule()
	some := func(is func(op, first pipeline.Op) bool) bool {
		return slices.ContainsFunc(planned.Orders, func(ops []pipeline.Op) bool {
			return slices.ContainsFunc(ops, func(op pipeline.Op) bool { return is(op, ops[0]) })
		})
	}
	for act, does := range map[strategy.Act]bool{
		strategy.Time:     c.Verb == plan.Suspend || c.Verb == plan.Resume || share.Turn > 0,
		strategy.Swap:     share.Swap > 0,
		strategy.Share:    share.Milli > 0 || share.Ceiling > 0 && share.Guest == plan.None,
		strategy.Reshare:  c.Verb == plan.Regrant && share.Guest == plan.None && had.Guest == plan.None && (share.Milli != had.Milli || share.Ceiling != had.Ceiling),
		strategy.Filler:   share.Guest != plan.None && share.Bond == plan.InGaps,
		strategy.Equal:    share.Guest != plan.None && share.Bond == plan.AsEqual,
		strategy.Merge:    share.Guest != plan.None && share.Bond == plan.InOne,
		strategy.Batch:    share.Batch > 0,
		strategy.Stream:   t.Plan.ID != plan.None && v.Pipeline(t.Plan.ID).Groups != nil,
		strategy.Pipeline: planned.Stages > 0,
		strategy.Replan:   c.Verb == plan.Regrant && t.Plan.ID != was.Plan.ID,
		strategy.Keep:     c.Verb == plan.Start && t.Plan.Keeps > 0,
		strategy.Chunks:   some(func(op, first pipeline.Op) bool { return op.Stage != first.Stage }),
		strategy.Halves:   some(func(op, _ pipeline.Op) bool { return op.Kind == pipeline.Input || op.Kind == pipeline.FirstHalf }),
		strategy.Copies:   len(schedule.Routes) > 1 || planned.Wave > 0,
		strategy.Class:    t.Traffic.Class > 0,
		strategy.Weight:   t.Traffic.Weight > 0,
		strategy.Shift:    t.Traffic.Shift > 0,
		strategy.Reshape:  c.Verb == plan.Reshape,
		strategy.Rent:     c.Verb == plan.Rent || c.Verb == plan.Return,
	} {
		if does {
			d.seen[act] = true
		}
	}
}

// everything is a cluster and jobs that give each strategy reason to do what it can.
func everything() (*cluster.Cluster, scheduletest.Jobs) {
	table, _ := envelope.MIG("A100", 0)
	c := &cluster.Cluster{Name: "everything"}
	model := c.AddModel(cluster.Model{Name: "A100", Memory: 40 << 10, Speed: 1, Geometries: table.Geometries()})
	for i := range 4 {
		rack := int32(0)
		if i%2 == 0 {
			rack = c.AddRack(cluster.Rack{Name: fmt.Sprint("rack", i), Uplink: 2000})
		} else {
			rack = int32(len(c.Racks) - 1)
		}
		c.AddNode(cluster.Node{Name: fmt.Sprint("node", i), Rack: rack, Model: model, CPU: 64 * unit.Whole, Memory: 512 << 10, Uplink: 1000,
			Rental: i == 3, MilliPerHour: 1000}, 2)
	}
	layer := workload.Layer{Forward: 5 * unit.Millisecond, Backward: 10 * unit.Millisecond, ParamKiB: 100, OutputKiB: 10, ActivationKiB: 10}
	kinds := []workload.Job{
		{Resources: workload.Resources{Gang: 1, Share: 400, Memory: 4 << 10}},
		{Resources: workload.Resources{Gang: 1, Memory: 4 << 10}, Traits: workload.Traits{Persistent: 1 << 10}},
		{Resources: workload.Resources{Gang: 3}, Traits: workload.Traits{Traffic: 800, Phase: workload.Phase{Compute: 60 * unit.Millisecond, Communicate: 40 * unit.Millisecond}}},
		{Resources: workload.Resources{Gang: 1, Memory: 2 << 10}, Traits: workload.Traits{Opportunistic: true}},
		{Resources: workload.Resources{Gang: 2, Memory: 4 << 10}, Traits: workload.Traits{Phase: workload.Phase{Compute: 30 * unit.Millisecond, Communicate: 70 * unit.Millisecond}}},
		{Resources: workload.Resources{Gang: 1, Memory: 2 << 10}, Traits: workload.Traits{Base: "roberta-base", Group: "tuning"}},
		{Resources: workload.Resources{Gang: 1}, Traits: workload.Traits{Class: "simple", Service: workload.Service{RatePerSec: 100, SLO: 80 * unit.Millisecond}}},
		{Resources: workload.Resources{Gang: 2}, Traits: workload.Traits{Pipeline: workload.Pipeline{Stages: 2, Microbatches: 4, Layers: slices.Repeat([]workload.Layer{layer}, 4)}}},
		{Resources: workload.Resources{Gang: 1, Sizes: []int32{1, 2, 4}}},
	}
	var jobs scheduletest.Jobs
	for i := range 72 {
		j := kinds[i%len(kinds)]
		j.Name, j.Submit, j.Devices = fmt.Sprint("job", i), unit.Time(i)*unit.Time(40*unit.Second), 1
		if j.Share == 0 {
			j.Share = unit.Whole
		}
		d := unit.Duration(5+i*7%23) * unit.Minute
		j.Estimate, j.Deadline, j.Checkpoint = d, 12*d, workload.Checkpoint{Every: unit.Minute, OnRequest: true}
		jobs = append(jobs, scheduletest.Job{Job: j, Truth: workload.Truth{Duration: d, Busy: .5, Merge: .1}})
	}
	return c, jobs
}

// listed is a source of jobs.
type listed struct{ left scheduletest.Jobs }

func (l *listed) Next() (j workload.Job, t workload.Truth, err error) {
	if len(l.left) == 0 {
		return j, t, io.EOF
	}
	j, t = l.left[0].Job, l.left[0].Truth
	l.left = l.left[1:]
	return j, t, nil
}

// TestActs: what a strategy does with runs in a simulation, beyond starting and stopping
// them, is what it says it does under its options: all of it, and nothing else.
func TestActs(t *testing.T) {
	simple := igniter.Default()
	simple.Repack, simple.Models = false, []sharing.Service{{Name: "simple", K: [5]float64{0, 100, 0, 0, 0}, Cache: sharing.Line{At0: 10}, CacheSlowdown: .001}}
	anew, lanes, moves := simple, salus.Default(), gandiva.Default()
	anew.Repack, lanes.Lanes, lanes.Swap, moves.Swap = true, 2, true, true
	others := map[string][]any{"igniter": {simple, anew}, "salus": {salus.Default(), lanes}, "gandiva": {gandiva.Default(), moves}}
	for _, e := range catalogue.All {
		if e.Name == "external" {
			continue // it is another program, which can only start and stop
		}
		ref := e.Name
		if e.Part == allocate.PlacePart && (e.Name == "igniter" || e.Name == "antman") {
			ref += "+advantage"
		}
		composition, err := catalogue.Resolve(ref)
		if err != nil {
			t.Fatal(err)
		}
		variants := []catalogue.Composition{composition}
		for i, options := range others[e.Name] {
			variants = append(variants[:i], composition.WithOptions(e.Name, options))
		}
		for i, c := range variants {
			t.Run(fmt.Sprint(e.Name, i), func(t *testing.T) {
				t.Parallel()
				saw := seen(t, c)
				if e.Step != "pipeline" || e.Status == "null" || e.Part == reaction.Part {
					delete(saw, strategy.Pipeline) // the plan is that of the null
				}
				for _, act := range strategy.Acts {
					if declared := slices.Contains(c.Acts(e), act); declared != saw[act] {
						t.Errorf("%s: declared %v, seen %v", act, declared, saw[act])
					}
				}
			})
		}
	}
}

// seen are the acts of a composition in a simulation.
func seen(t *testing.T, composition catalogue.Composition) map[strategy.Act]bool {
	built, err := composition.Build(catalogue.Env{Seed: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	c, jobs := everything()
	saw := deeds{map[strategy.Act]bool{}, map[plan.RunID]plan.Terms{}}
	_, err = simulated.Run(t.Context(), simulated.Config{Cluster: c, Jobs: &listed{jobs}, Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(), TellTruth: built.TellTruth,
		Prices: simulated.Prices{Restart: 20 * unit.Second}, Until: unit.Time(8 * unit.Hour), Hooks: simulated.Hooks{Commit: func(v plan.View, commit *plan.Commit) {
			for i := range commit.Changes {
				saw.note(v, &commit.Changes[i])
			}
		}}})
	if err != nil {
		t.Fatal(err)
	}
	return saw.seen
}
