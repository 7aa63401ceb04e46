package proof

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
)

// TestReactions: under each of the eight a job with a plan meets a layer and then a device that take
// longer, and loses a node while it goes over to another plan or place, restarts after every event and the
// journal change nothing. Where the composed one decides, it reacted to both.
func TestReactions(t *testing.T) {
	layer := workload.Layer{Forward: 5 * unit.Millisecond, Backward: 10 * unit.Millisecond, ParamKiB: 100 << 10}
	staged := job{work: 10 * unit.Minute, spec: workload.Job{Name: "staged", Resources: workload.Resources{Gang: 2, Devices: 1, Share: 1000}, Estimate: unit.Hour,
		Traits: workload.Traits{Pipeline: workload.Pipeline{Stages: 2, Microbatches: 8, Layers: slices.Repeat([]workload.Layer{layer}, 12)}}, Checkpoint: workload.Checkpoint{OnRequest: true}}}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			s := scenario{cluster: cluster.Uniform("three", 3, 1, cluster.Model{Name: "gpu", Speed: 1, Memory: 16384}, 1), until: unit.Time(unit.Day), packed: 1000, answer: inGo,
				jobs: []job{staged}, strategy: name, strays: []stray{{at: unit.Time(30 * unit.Second), until: unit.Time(unit.Day), device: plan.None, layer: 1, times: 4},
					{at: unit.Time(100 * unit.Second), until: unit.Time(unit.Hour), device: 0, times: 4}}}
			// The observation after a stray begins is answered at once: a node is lost a second later.
			s.lose = []loss{{node: 1, at: unit.Time(121 * unit.Second), lasts: 5 * unit.Minute}}
			h := ends(t, &s)
			if name != "tiresias" {
				return
			}
			var causes []plan.Cause
			for _, st := range h.steps {
				for _, a := range decodeAsides(t, st.asides) {
					if a.Reaction != nil && a.Reaction.Chosen != reaction.Ride {
						causes = append(causes, a.Reaction.Cause)
					}
				}
			}
			if !slices.Contains(causes, plan.Drifted) || !slices.Contains(causes, plan.LostOne) {
				t.Errorf("it reacted to %v", causes)
			}
		})
	}
}

// ends proves a scenario of one job, and that it ends.
func ends(t *testing.T, s *scenario) *history {
	if err := prove(s, 1); err != nil {
		t.Fatal(err)
	}
	h, err := live(*s)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := h.conserve(s); err != nil || done != 1 {
		t.Errorf("%d jobs finished: %v", done, err)
	}
	return h
}

func decodeAsides(t *testing.T, text []byte) (all []plan.Aside) {
	if err := decode(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestKept: a job of two copies of two stages loses the node of a process, and under the composed one goes on in those
// that are left; the driver has each of them wait, with what it is to hold. Under all, restarts after every event and the journal
// change nothing, and it ends.
func TestKept(t *testing.T) {
	layer := workload.Layer{Forward: 5 * unit.Millisecond, Backward: 10 * unit.Millisecond, ParamKiB: 100 << 10}
	copied := job{work: 10 * unit.Minute, spec: workload.Job{Name: "copied", Resources: workload.Resources{Gang: 4, Sizes: []int32{2, 4}, Devices: 1, Share: 1000}, Estimate: unit.Hour,
		Traits: workload.Traits{Pipeline: workload.Pipeline{Stages: 2, Microbatches: 8, Layers: slices.Repeat([]workload.Layer{layer}, 12)}}, Checkpoint: workload.Checkpoint{OnRequest: true}}}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			s := scenario{cluster: cluster.Uniform("four", 4, 1, cluster.Model{Name: "gpu", Speed: 1, Memory: 16384}, 1), until: unit.Time(unit.Day), packed: 1000, answer: inGo,
				jobs: []job{copied}, strategy: name, lose: []loss{{node: 1, at: unit.Time(121 * unit.Second), lasts: unit.Hour}, {node: 2, at: unit.Time(200 * unit.Second), lasts: unit.Minute}}}
			h := ends(t, &s)
			dropped := slices.ContainsFunc(h.steps, func(st step) bool {
				return slices.ContainsFunc(decodeAsides(t, st.asides), func(a plan.Aside) bool { return a.Reaction != nil && a.Reaction.Chosen == reaction.Drop })
			})
			if name == "tiresias" && !dropped {
				t.Error("it did not go on in the processes that were left")
			}
		})
	}
}
