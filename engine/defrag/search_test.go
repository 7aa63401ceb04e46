package defrag

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
)

// scattered is a state of nodes of eight devices with running jobs of 1, 2 and 4 devices
// and of shares, a part of them ended again so that every node has something free, and a
// gang of whole nodes that waits.
func scattered(dice *rand.Rand, nodes int, gang int32, keep float64) (*plan.State, plan.JobID) {
	s := plan.NewState(cluster.Uniform("lab", nodes, 8, cluster.Model{Name: "gpu", Memory: 32 << 10}, max(1, nodes/16)))
	s.Tenants, s.Users = []string{""}, []string{""}
	for i, devices := range []int32{1, 2, 4, 1} {
		s.Shapes = append(s.Shapes, plan.Shape{Gang: 1, Devices: devices, Share: 1000 - 500*int32(i/3), Models: 1})
	}
	s.Shapes = append(s.Shapes, plan.Shape{Gang: gang, Devices: 8, Share: 1000, Models: 1})
	var runs []plan.RunID
	for node := range plan.NodeID(nodes) {
		for s.Nodes[node].FreeDevices > 0 {
			shape := int32(dice.IntN(4))
			id := s.Admit("job", plan.Asked{Shape: shape, Profile: plan.None, Checkpoint: plan.Checkpointing{OnRequest: dice.IntN(5) > 0,
				Save: unit.Duration(dice.IntN(60)) * unit.Second, Load: unit.Minute}})
			d := s.Edit()
			run, why := d.Start(id, []plan.Slot{{Node: node, Device: plan.None, Workers: 1}}, plan.DefaultTerms(), plan.Reason{})
			d.Commit()
			if why.Code != plan.NoReason {
				s.SetPhase(id, plan.Cancelled, plan.Reason{})
				continue
			}
			s.Dispatch(run)
			s.Began(run)
			runs = append(runs, run)
		}
	}
	for _, run := range runs {
		if dice.Float64() > keep {
			job := s.Runs[run].Job
			s.EndRun(run, 0)
			s.SetPhase(job, plan.Finished, plan.Reason{})
		}
	}
	s.Now = unit.Time(unit.Hour)
	id := s.Admit("big", plan.Asked{Shape: 4, Profile: plan.None})
	s.Jobs[id].Admitted = true
	return s, id
}

// exhaustive is the least price of all sets of runs that may be moved.
func exhaustive(p *Planner, s *plan.State, job plan.JobID) (best int64, runs int) {
	x, why := p.search(s, job)
	best = math.MaxInt64
	if why != "" {
		return best, 0
	}
	x.d = s.Edit()
	defer x.d.Discard()
	x.open()
	x.runs = x.movable()
	for mask := range 1 << min(len(x.runs), 14) {
		var set []int
		for i := range x.runs {
			if mask>>i&1 == 1 {
				set = append(set, i)
			}
		}
		if price := x.price(set); price < best && x.try(set) {
			best = price
		}
	}
	return best, len(x.runs)
}

// TestLeast: of up to ten runs that can be moved the plan is the cheapest of all there
// are. Of more it is a heuristic's: how often it finds one, and how dear it is, is
// measured.
func TestLeast(t *testing.T) {
	scenes := 150
	if os.Getenv("MUSTER_LONG") != "" {
		scenes = 2000
	}
	exact, there, found, ratio := 0, 0, 0, 0.0
	for seed := range uint64(scenes) {
		s, job := scattered(rand.New(rand.NewPCG(seed, 1)), 3+int(seed%2), 1, 0.7)
		p := Planner{Placer: bestfit.New(bestfit.Default()), Budget: Budget{Moves: 10}}
		best, runs := exhaustive(&p, s, job)
		got, ok := p.Plan(s, job)
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		switch {
		case runs > 14:
		case runs <= 10:
			if exact++; ok != (best < math.MaxInt64) || ok && got.Price != best {
				t.Errorf("seed %d: the plan costs %d (%v), the best of all %d", seed, got.Price, ok, best)
			}
		case best < math.MaxInt64 && best > 0:
			if there++; ok {
				found++
				ratio += float64(got.Price) / float64(best)
			}
		case ok && got.Price < best:
			t.Errorf("seed %d: the plan costs %d, the best of all %d", seed, got.Price, best)
		}
	}
	t.Logf("%d scenes with up to ten runs; of %d with 11 to 14 in which there is a plan one was found in %d, at %.3f of the least price on average",
		exact, there, found, ratio/float64(max(1, found)))
	if exact < scenes/20 || found*10 < there*8 {
		t.Errorf("%d exact, %d of %d found", exact, found, there)
	}
}

// BenchmarkPlan measures a plan on large clusters of nodes of eight devices.
func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		nodes int
		gang  int32
	}{{128, 1}, {128, 4}, {1250, 4}, {1250, 16}} {
		b.Run(fmt.Sprintf("%dx8/gang of %d nodes", c.nodes, c.gang), func(b *testing.B) {
			s, job := scattered(rand.New(rand.NewPCG(7, 7)), c.nodes, c.gang, 0.85)
			p := Planner{Placer: bestfit.New(bestfit.Default()), Budget: Budget{Moves: 64}}
			var got Sequence
			for b.Loop() {
				var ok bool
				if got, ok = p.Plan(s, job); !ok {
					b.Fatal(got.Why)
				}
			}
			b.ReportMetric(float64(len(got.Moves)), "moves")
			b.ReportMetric(hours(got.Price), "device-hours")
		})
	}
}
