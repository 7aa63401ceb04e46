package titan

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// outside is a decider that asks for every look-ahead.
func outside(c Config) *Decider {
	t := New(c)
	t.atOnce = 0
	return t
}

func TestConformanceOutside(t *testing.T) {
	scheduletest.ConformJoint(t, func() allocate.Joint { return outside(Default()) })
}

// TestTogetherIsMerge: the joins that a look-ahead names, carried out on the same runs,
// give devices to the same jobs.
func TestTogetherIsMerge(t *testing.T) {
	c := Default()
	vit := &c.Models[0]
	line := func() []*group {
		var runs []*group
		for _, j := range tunes(vit, 1, 500, 400, 900, 300, 700, 800, 200) {
			runs = append(runs, &group{jobs: []*tune{j}, gang: 1})
		}
		return runs
	}
	text := func(runs []*group) (s string) {
		for _, g := range runs {
			for _, j := range g.jobs {
				s += fmt.Sprint(j.id, " ")
			}
			s += "| "
		}
		return s
	}
	want := text(c.plan(line(), nil, 2, 80<<10, &lineup{}))
	all, courses := c.line(line(), nil, &lineup{})
	_, joins := c.merge(all, courses, 2, 80<<10, len(all))
	all, _ = c.line(line(), nil, &lineup{})
	if got := text(c.together(all, joins, 2, 80<<10, &lineup{})); len(joins) == 0 || got != want {
		t.Errorf("%d joins, together %s, at once %s", len(joins), got, want)
	}
}

// TestOutsideInTheEngine: what is asked outside is carried out, and remembered.
func TestOutsideInTheEngine(t *testing.T) {
	run := func(merge bool) float64 {
		var b bytes.Buffer
		c := Default()
		c.Merge, c.Batch = merge, 4
		decider := outside(c)
		s, err := simulated.New(simulated.Config{Cluster: cluster.Uniform("c", 1, 2, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 4),
			Jobs: &source{jobs: 12, base: func(int) string { return "vit" }}, TellTruth: true, Check: true, Decisions: &b,
			Scheduler: compose.New(compose.Parts{Joint: decider, Estimator: oracle.Estimator{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})})
		for more := true; more && err == nil; {
			more, err = s.Advance()
			memory, other := decider.Remember(), New(c)
			if other.Recall(memory) != nil || !bytes.Equal(other.Remember(), memory) || other.Recall(append(memory, 1)) == nil {
				t.Fatalf("recalled %v as %v", memory, other.Remember())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Result()
		if err != nil || r.Finished != 12 || bytes.Contains(b.Bytes(), []byte(`"merged"`)) != merge {
			t.Fatalf("%d of 12 jobs finished (%v)", r.Finished, err)
		}
		return r.AvgJCTSec
	}
	if merged, alone := run(true), run(false); merged > .8*alone {
		t.Errorf("mean JCT %.0f s merged, %.0f s one after the other", merged, alone)
	}
}
