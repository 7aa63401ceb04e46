package world

import (
	"math"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/pipeline/dpcut"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
)

// TestPlansAreJudgedOnTrueLayers: a cut that is best for what was measured is as good as
// the true layers make it.
func TestPlansAreJudgedOnTrueLayers(t *testing.T) {
	measured := make([]workload.Layer, 4)
	for i := range measured {
		measured[i] = workload.Layer{Forward: unit.Second, Backward: unit.Second}
	}
	made, why := pipeline.Build(dpcut.Partitioner{}, onefoneb.Ordering{}, workload.Pipeline{Stages: 2, Microbatches: 8, Layers: measured}, pipeline.Params{})
	if why != "" {
		t.Fatal(why)
	}
	truly := append([]workload.Layer{}, measured...)
	truly[0] = workload.Layer{Forward: 3 * unit.Second, Backward: 3 * unit.Second}
	asked := plan.Profile{Microbatches: 8, Stages: 2}
	believed, really := efficiency(measured, measured, made, asked, pipeline.Params{}).rate, efficiency(measured, truly, made, asked, pipeline.Params{}).rate
	if math.Abs(believed-8./9) > 1e-9 || really > .75 || really < .5 {
		t.Errorf("the plan comes to %.3f of the ideal on what was measured, %.3f on what is true", believed, really)
	}
}

// TestLayersAreAsBelieved: a figure of a layer that nobody knows better is the believed one, and
// so is a layer of which nothing is known; layers that the job does not have are none.
func TestLayersAreAsBelieved(t *testing.T) {
	c := cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1)
	s := plan.NewState(c)
	s.Shapes, s.Classes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}, []string{"net"}
	s.Profiles = []plan.Profile{{Layers: []plan.ProfileLayer{{Forward: unit.Second, Backward: 2 * unit.Second, ParamKiB: 7}, {Forward: 4 * unit.Second}}}}
	w := New(c, Config{})
	for _, known := range [][]workload.Layer{{{Backward: 3 * unit.Second}}, {{Backward: 3 * unit.Second}, {}, {Forward: unit.Hour}}} {
		id := s.Admit("job", plan.Asked{})
		w.Know(id, "net", Known{Layers: known})
		got := w.Layers(s.View(), id)
		if len(got) != 2 || got[0] != (workload.Layer{Forward: unit.Second, Backward: 3 * unit.Second, ParamKiB: 7}) || got[1] != (workload.Layer{Forward: 4 * unit.Second}) {
			t.Errorf("where it is known %v they are %v", known, got)
		}
	}
}
