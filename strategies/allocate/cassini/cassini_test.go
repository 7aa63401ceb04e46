package cassini_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/flow"
	"github.com/musterdl/muster/flow/circle"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/cassini"
)

// bed is six nodes of four devices in a rack, with uplinks that one worker fills.
type bed struct {
	*plan.State
	t *testing.T
}

func newBed(t *testing.T) bed {
	c := cluster.Uniform("bed", 6, 4, cluster.Model{Name: "gpu", Speed: 1}, 6)
	for i := range c.Nodes {
		c.Nodes[i].Uplink = 100
	}
	s := plan.NewState(c)
	s.Shapes = []plan.Shape{{Gang: 2, Devices: 1, Share: 1000, Models: 1}}
	return bed{s, t}
}

func (b bed) job(name string, compute, communicate unit.Duration) plan.JobID {
	b.Profiles = append(b.Profiles, plan.Profile{Compute: compute * unit.Millisecond, Communicate: communicate * unit.Millisecond})
	return b.Admit(name, plan.Asked{Traffic: 100, Profile: int32(len(b.Profiles) - 1)})
}

// run starts a job with a worker on each of two nodes.
func (b bed) run(job plan.JobID, nodes ...plan.NodeID) plan.RunID {
	b.t.Helper()
	d := b.Edit()
	run, why := d.Start(job, slots(nodes...), plan.DefaultTerms(), plan.Reason{Code: plan.Fits})
	if run == plan.None {
		b.t.Fatalf("%s cannot start: %+v", b.Names[job], why)
	}
	d.Commit()
	return run
}

func slots(nodes ...plan.NodeID) (all []plan.Slot) {
	for _, n := range nodes {
		all = append(all, plan.Slot{Node: n, Device: plan.None, Workers: 1})
	}
	return all
}

// TestRate: the job goes where it can take turns with who is there, not where it
// cannot, nor where the graph would have a cycle.
func TestRate(t *testing.T) {
	b := newBed(t)
	b.run(b.job("long", 30, 70), 0, 1)
	b.run(b.job("half", 50, 50), 2, 3)
	b.run(b.job("beside", 50, 50), 3, 4)
	job := b.job("new", 50, 50)
	need := allocate.Need{Job: job, Workers: 2, Shape: &b.Shapes[0]}
	for _, test := range []struct {
		name  string
		found [][]plan.NodeID
		want  int
	}{
		{"a better score", [][]plan.NodeID{{0, 5}, {2, 5}}, 1},
		{"a cycle over nodes 2, 3 and 4", [][]plan.NodeID{{2, 4}, {4, 5}}, 1},
		{"equals in the placer's order", [][]plan.NodeID{{0, 5}, {4, 5}, {2, 5}}, 1},
		{"nobody there", [][]plan.NodeID{{0, 1}, {5, 5}}, 1},
		{"all with a cycle: the best score", [][]plan.NodeID{{2, 4}}, 0},
	} {
		var found []allocate.Candidate
		for _, nodes := range test.found {
			found = append(found, allocate.Candidate{Slots: slots(nodes...)})
		}
		if got := cassini.New().Rate(b.View(), need, found); got != test.want {
			t.Errorf("%s: took %d, want %d", test.name, got, test.want)
		}
	}
	unknown := b.Admit("unknown", plan.Asked{Traffic: 100, Profile: plan.None})
	need.Job = unknown
	if got := cassini.New().Rate(b.View(), need, []allocate.Candidate{{Slots: slots(0, 1)}, {Slots: slots(2, 5)}}); got != 0 {
		t.Errorf("a job of unknown phases: took %d", got)
	}
}

// TestShape: runs that meet are shifted apart, one that is alone is left alone, and
// what is right is not set again.
func TestShape(t *testing.T) {
	b := newBed(t)
	runs := []plan.RunID{b.run(b.job("first", 50, 50), 0, 1), b.run(b.job("second", 50, 50), 1, 2), b.run(b.job("alone", 10, 90), 4, 5)}
	s := cassini.New()
	carry := func(settings []flow.Setting) {
		for _, set := range settings {
			b.Runs[set.Run].Terms.Traffic = set.Traffic // as a regrant would
		}
	}
	shift := func(run plan.RunID) int64 { return int64(b.Runs[run].Terms.Traffic.Shift / unit.Millisecond) }
	first := s.Shape(b.View(), runs, nil)
	carry(first)
	if len(first) != 2 || shift(runs[0]) != 100 || shift(runs[1]) != 50 || shift(runs[2]) != 0 {
		t.Fatalf("shifts %d %d %d by %+v", shift(runs[0]), shift(runs[1]), shift(runs[2]), first)
	}
	if again := s.Shape(b.View(), runs, nil); len(again) != 0 {
		t.Errorf("settled runs are set again: %+v", again)
	}
	// A newcomer beside the second comes to where the first is.
	third := b.run(b.job("third", 50, 50), 2, 3)
	carry(s.Shape(b.View(), append(runs, third), nil))
	if got := circle.Within(unit.Duration(shift(third)-shift(runs[1])), 100); got != 50 || shift(runs[0]) != 100 {
		t.Errorf("shifts %d %d %d", shift(runs[0]), shift(runs[1]), shift(third))
	}
}

func TestMeasure(t *testing.T) {
	m := cassini.Measure(1)
	for key, want := range map[string]float64{
		"score_60_40_60_40": 1, "score_30_70_30_70": .6,
		"noisy_ms_60_40_60_40": 131, "leaf_spine_ms_alone": 112.5,
	} {
		if math.Abs(m[key]-want) > .01*want {
			t.Errorf("%s: %.3f, want %g", key, m[key], want)
		}
	}
	if host, ours := m["leaf_spine_ms_host_random"], m["leaf_spine_ms_cassini_shifted"]; !(ours < host) {
		t.Errorf("leaf-spine: %.1f ms, by chance %.1f ms", ours, host)
	}
}
