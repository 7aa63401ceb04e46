package world_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
)

// spread is a plan of a small model over four devices in each of two nodes, and its step with a part of
// the uplinks, simulated.
func spread(t *testing.T, ranks, copies int, out unit.Mbps) (workload.Spread, func(part float64) unit.Duration) {
	t.Helper()
	of, why := shape.Find("llama-3-8b")
	p, wrong := shape.New(of, shape.Half)
	d, not := shape.Device("H100", shape.Half)
	if why+not != "" || len(wrong) > 0 {
		t.Fatal(why, not, wrong)
	}
	d.Memory = 0
	m := &parallel.Model{Profile: p, Batch: 32, State: parallel.ShardedAdam}
	x := parallel.NewSimulator(m, parallel.Even(d, 2, 4, out))
	s := parallel.Shape{Sequence: parallel.Sequence{Name: "1f1b", Order: onefoneb.Ordering{}}, Samples: 1, Microbatches: 32 / copies, Tensor: 4, Ranks: ranks, Copies: copies}
	if s.Cuts, why = x.Cuts(&s, nil); why != "" {
		t.Fatal(why)
	}
	c := parallel.Candidate{Plan: s.Plan()}
	if c.Result, why = x.Simulate(&c.Plan); why != "" {
		t.Fatal(why)
	}
	sent := x.Sent(&c)
	made := workload.Spread{Name: c.Plan.String(), Shape: "{}", Step: c.Result.Step, Shares: x.Shares(&c.Plan), Sends: unit.Mbps(8192 * float64(sent[0]) / float64(c.Result.Step))}
	return made, func(part float64) unit.Duration {
		r, why := x.Like(m, parallel.Even(d, 2, 4, unit.Mbps(part*float64(out)))).Simulate(&c.Plan)
		if why != "" {
			t.Fatal(why)
		}
		return r.Step
	}
}

// TestPlansOnOneLink: two runs by plans share the uplinks of two nodes, or of two racks. Each is as slow as its plan
// is, simulated with the part of the link that the other leaves it: one whose stages stand in two nodes, and one
// whose copies do, which sends more. Beside the same other run the one that sends less is slowed less, and alone
// each goes as before.
func TestPlansOnOneLink(t *testing.T) {
	const out = 40_000
	pipe, pipeStep := spread(t, 2, 1, out)
	copies, copiesStep := spread(t, 1, 2, out)
	if pipe.Sends == 0 || copies.Sends <= pipe.Sends {
		t.Fatalf("a pipeline sends %d Mbps, copies %d: expected more", pipe.Sends, copies.Sends)
	}
	for _, racks := range []bool{false, true} {
		first, second := beside(t, racks, out, pipe, copies)
		// What the other sends on the average is gone, down to half of the link.
		for k, c := range []struct {
			rate  float64
			step  func(float64) unit.Duration
			other workload.Spread
		}{{first, pipeStep, copies}, {second, copiesStep, pipe}} {
			part := max(.5, 1-float64(c.other.Sends)/out)
			if want := float64(c.step(1)) / float64(c.step(part)); math.Abs(c.rate/want-1) > .02 || c.rate >= 1 {
				t.Errorf("racks %v, run %d: at %.4f with %.3f of the link, simulated it is %.4f", racks, k, c.rate, part, want)
			}
		}
		if same, _ := beside(t, racks, out, copies, copies); same >= first {
			t.Errorf("racks %v: beside copies others go at %.4f, a pipeline at %.4f: expected that to be faster", racks, same, first)
		}
	}
}

// beside is how fast two runs go by plans, on the same two nodes or on nodes of their own in the same two racks.
func beside(t *testing.T, racks bool, out unit.Mbps, plans ...workload.Spread) (first, second float64) {
	t.Helper()
	c, on := cluster.Uniform("c", 2, 8, cluster.Model{Name: "gpu", Speed: 1}, 2), [2][2]plan.NodeID{{0, 1}, {0, 1}}
	if racks {
		c, on = cluster.Uniform("c", 4, 4, cluster.Model{Name: "gpu", Speed: 1}, 2), [2][2]plan.NodeID{{0, 2}, {1, 3}}
		for i := range c.Racks {
			c.Racks[i].Uplink = out
		}
	}
	for i := range c.Nodes {
		c.Nodes[i].Uplink = out
	}
	w, s := world.New(c, world.Config{}), plan.NewState(c)
	s.Shapes, s.Classes = []plan.Shape{{Gang: 8, Devices: 1, Share: 1000, Models: 1}}, []string{"net"}
	var runs []plan.RunID
	for k, of := range plans {
		s.Profiles = append(s.Profiles, plan.Profile{Menu: plan.MenuOf(c, []workload.Offer{{Model: "gpu", Workers: 8, Nodes: 2, Rate: 1, Plan: of}})})
		id := s.Admit(of.Name, plan.Asked{Profile: int32(k)})
		w.Know(id, "net", world.Known{Truth: workload.Truth{Duration: unit.Hour}, Menu: s.Profiles[k].Menu})
		d, terms := s.Edit(), plan.DefaultTerms()
		terms.Plan.ID = d.PlanID(plan.Pipeline{Schedule: of.Name, Iteration: of.Step, JSON: []byte(of.Shape)})
		run, why := d.Start(id, []plan.Slot{{Node: on[k][0], Device: plan.None, Workers: 4}, {Node: on[k][1], Device: plan.None, Workers: 4}}, terms, plan.Reason{})
		if why.Code != plan.NoReason {
			t.Fatal(why.Words(s.View()))
		}
		d.Commit()
		s.Dispatch(run)
		s.Began(run)
		w.Begin(s.Now, s.View(), run)
		if runs = append(runs, run); k == 0 && w.Rate(run) != 1 {
			t.Errorf("alone it goes at %g", w.Rate(run))
		}
	}
	first, second = w.Rate(runs[0]), w.Rate(runs[1])
	w.End(s.Now, s.View(), runs[1], true)
	if alone := w.Rate(runs[0]); alone != 1 {
		t.Errorf("alone again it goes at %g", alone)
	}
	return first, second
}
