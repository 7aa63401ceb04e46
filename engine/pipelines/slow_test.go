package pipelines_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/strategies/pipeline/byprice"
)

// planned is a job of four workers, or two, that goes by the plans of its menu, whose steps take three times as
// long with a tenth of the links.
func planned() scheduletest.Job {
	j := workload.Job{Name: "llama", Resources: workload.Resources{Gang: 4, Sizes: []int32{2, 4}, Devices: 1, Share: unit.Whole}, Estimate: 3 * unit.Hour,
		Checkpoint: workload.Checkpoint{OnRequest: true, Every: unit.Minute, Save: unit.Second, Load: unit.Second}}
	for _, workers := range []int32{2, 4} {
		rate := float64(workers) / 4
		step := unit.Seconds(1 / rate)
		j.Menu = append(j.Menu, workload.Offer{Model: "gpu", Workers: workers, Nodes: workers, Rate: rate, Plan: workload.Spread{Name: fmt.Sprint("pp", workers), Shape: `{}`, Step: step,
			Sends: 1000, Shares: []workload.Share{{Milli: 1000, Step: step}, {Milli: 100, Step: 3 * step}}}})
	}
	return scheduletest.Job{Job: j, Truth: workload.Truth{Duration: 3 * unit.Hour}}
}

// playsOn plays the job on so many nodes, and calls use with the nodes that it holds after each commit.
func playsOn(t *testing.T, nodes int, slow []world.Slow, lost []simulated.Later, use func(at unit.Time, nodes map[plan.NodeID]bool)) (steps []step, end *plan.State) {
	t.Helper()
	config := scheduletest.Config(scheduletest.Nodes(nodes, 1, 10_000), scheduletest.Jobs{planned()}, reacting(byprice.New(byprice.Default())))
	config.Check, config.World.Slow, config.Later = true, slow, lost
	for i := range config.Cluster.Nodes {
		config.Cluster.Nodes[i].Uplink = 10_000
	}
	config.Commit = func(v plan.View, c *plan.Commit) {
		held := map[plan.NodeID]bool{}
		for run := range plan.RunID(v.RunSlots()) {
			if is := v.Run(run).Status; is != plan.Gone && is != plan.Stopping {
				v.GrantsOf(run, func(g plan.Grant) { held[g.Node] = true })
			}
		}
		use(v.Now(), held)
	}
	steps, end = played(t, config)
	if end.Jobs[0].Phase != plan.Finished {
		t.Errorf("the job is %s in the end", end.Jobs[0].Phase)
	}
	return steps, end
}

// TestSlowLink: the link of a node takes ten times as long, and the offer says that a step takes three times as
// long then: the job leaves that node for a spare one. So much slower it truly goes: where nobody is free, and
// to ride it through costs less than a size of half the pace, it ends later than where no link is slow.
func TestSlowLink(t *testing.T) {
	mid := unit.Time(10 * unit.Minute)
	slow := []world.Slow{{Device: plan.None, Link: 1, From: mid, Until: mid.Add(2 * unit.Hour), Times: 10}}
	left := false
	steps, end := playsOn(t, 5, slow, nil, func(at unit.Time, nodes map[plan.NodeID]bool) {
		if at >= mid && at < mid.Add(2*unit.Hour) {
			left = left || !nodes[1] && len(nodes) == 4
			if left && nodes[1] {
				t.Errorf("at %v it is on the node with the slow link", at)
			}
		}
	})
	if !left {
		t.Error("it does not leave the slow link")
	}
	found := false
	for _, st := range steps {
		found = found || st.at == mid && bytes.Contains(st.asides, []byte(`"chosen":"swap a spare"`))
	}
	if !found {
		t.Error("it was expected to swap a spare when the link became slow")
	}
	slow[0].Times = 1.3 // a step takes .067 longer: nobody asks
	_, rode := playsOn(t, 4, slow, nil, func(unit.Time, map[plan.NodeID]bool) {})
	_, sound := playsOn(t, 4, nil, nil, func(unit.Time, map[plan.NodeID]bool) {})
	if longer := rode.Jobs[0].Ended.Sub(sound.Jobs[0].Ended); longer < 7*unit.Minute || longer > 9*unit.Minute {
		t.Errorf("two hours at 1.067 times the step keep it %v longer, expected 7.5 minutes", longer)
	}
	if end.Jobs[0].Ended.Sub(sound.Jobs[0].Ended) > unit.Minute {
		t.Errorf("with a spare it ends %v later than without a slow link", end.Jobs[0].Ended.Sub(sound.Jobs[0].Ended))
	}
}

// TestComesNotBack: a job that left a slow node does not come back to it before its repair is due, neither when
// another node becomes slow nor when one is lost, nor to grow again: it goes on with fewer. Else it would go from one slow
// node to the other and back.
func TestComesNotBack(t *testing.T) {
	first, second := unit.Time(10*unit.Minute), unit.Time(20*unit.Minute)
	due := first.Add(byprice.Default().Repair)
	for _, lost := range []bool{false, true} {
		slow := []world.Slow{{Device: 1, From: first, Until: first.Add(10 * unit.Hour), Times: 3}}
		var later []simulated.Later
		if lost {
			later = []simulated.Later{{At: second, Event: engine.Event{Kind: engine.NodeDown, Node: 2}}, {At: second.Add(5 * unit.Hour), Event: engine.Event{Kind: engine.NodeUp, Node: 2}}}
		} else {
			slow = append(slow, world.Slow{Device: 2, From: second, Until: second.Add(10 * unit.Hour), Times: 3})
		}
		fewer := false
		playsOn(t, 5, slow, later, func(at unit.Time, nodes map[plan.NodeID]bool) {
			if at > first && at < due && nodes[1] {
				t.Errorf("lost %v: at %v it is back on the node that it left", lost, at)
			}
			fewer = fewer || at >= second && at < due && len(nodes) == 2
		})
		if !fewer {
			t.Errorf("lost %v: it was expected to go on with two workers", lost)
		}
	}
}
