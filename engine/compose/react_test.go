package compose_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/pipeline/byprice"
	"github.com/musterdl/muster/strategies/pipeline/dpcut"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
)

// reacting are parts that cut by time and react as a policy says.
func reacting(policy reaction.Policy) compose.Parts {
	filled := scheduletest.Simple()
	filled[pipeline.CutPart], filled[pipeline.SequencePart] = strategy.Filling{Strategy: dpcut.Partitioner{}}, strategy.Filling{Strategy: onefoneb.Ordering{}}
	filled[reaction.Part] = strategy.Filling{Strategy: policy}
	return compose.PartsOf(filled, scheduletest.Simple())
}

// drifting is a job of forty like layers in each of so many stages, those of the second of which take .3
// longer from a tenth of its hour of work on.
func drifting(stages int32) scheduletest.Job {
	j := workload.Job{Name: "drifting", Resources: workload.Resources{Gang: stages, Devices: 1, Share: unit.Whole}, Estimate: unit.Hour, Checkpoint: workload.Checkpoint{Every: 5 * unit.Minute, OnRequest: true}}
	layer := workload.Layer{Forward: unit.Millisecond, Backward: 2 * unit.Millisecond, ParamKiB: 10 << 10}
	j.Pipeline = workload.Pipeline{Stages: stages, Microbatches: 4 * stages, Layers: slices.Repeat([]workload.Layer{layer}, int(40*stages))}
	return scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Hour, Drifts: []workload.Drift{{From: .1, First: 40, End: 80, Times: 1.3}}}}
}

// TestDrift: of a run of which a stage becomes .3 slower the layers are cut anew, and it ends earlier
// than where nobody reacts, by at least .8 of what the drift costs in the rest of the job; copies over
// links of 1 Gb/s and the driver's pause included. A job without a plan is not touched.
func TestDrift(t *testing.T) {
	calm := drifting(16)
	calm.Drifts = nil
	plain := scheduletest.Job{Job: workload.Job{Name: "plain", Resources: workload.Resources{Gang: 2, Devices: 1, Share: unit.Whole}}, Truth: workload.Truth{Duration: unit.Hour}}
	took := func(policy reaction.Policy, job scheduletest.Job) (unit.Duration, []plan.Change) {
		config := scheduletest.Config(scheduletest.Nodes(18, 1, 1000), scheduletest.Jobs{job, plain}, reacting(policy))
		config.Prices = simulated.DefaultPrices()
		var all []plan.Change
		config.Hooks.Commit = func(_ plan.View, c *plan.Commit) { all = append(all, c.Changes...) }
		o, err := scheduletest.Run(config)
		if err != nil {
			t.Fatal(err)
		}
		return o.Jobs[slices.IndexFunc(o.Jobs, func(r report.JobRecord) bool { return r.Name == "drifting" })].JCT(), all
	}
	without, _ := took(byprice.None{}, calm)
	none, quiet := took(byprice.None{}, drifting(16))
	priced, changes := took(byprice.New(byprice.Default()), drifting(16))
	regrants := func(all []plan.Change) (n int) {
		for i := range all {
			if all[i].Verb == plan.Regrant {
				n++
				if all[i].Reason.Code != plan.Replanned || all[i].Job != 0 || all[i].Reason.B >= all[i].Reason.A {
					t.Errorf("%+v: expected another plan of the first job that takes less", all[i])
				}
			}
		}
		return n
	}
	if back := float64(none-priced) / float64(none-without); back < .8 || regrants(quiet) > 0 || regrants(changes) == 0 {
		t.Errorf("it takes %v without a drift, %v with one and %v by price, in %d changes of plan: %.2f of what the drift costs comes back, expected .8", without, none, priced, regrants(changes), back)
	}
}

// TestReactionsAreReplayed: an engine that goes on from what a journal and a snapshot keep, after any
// event, decides the same bytes, over drifts, other plans and lost nodes; and the journal alone leads
// to the same state.
func TestReactionsAreReplayed(t *testing.T) {
	type step struct {
		at           unit.Time
		events       []engine.Event
		line, asides []byte
		state        []byte
	}
	var steps []step
	config := scheduletest.Config(scheduletest.Nodes(5, 1, 1000), scheduletest.Jobs{drifting(4)}, reacting(byprice.New(byprice.Default())))
	config.Prices = simulated.DefaultPrices()
	config.Later = []simulated.Later{{At: unit.Time(20 * unit.Minute), Event: engine.Event{Kind: engine.NodeDown, Node: 1}},
		{At: unit.Time(40 * unit.Minute), Event: engine.Event{Kind: engine.NodeUp, Node: 1}}}
	var s *simulated.Simulation
	config.Hooks.Step = func(at unit.Time, events []engine.Event, out *engine.Out, v plan.View) {
		st := step{at: at, events: slices.Clone(events)}
		if out.Commit != nil {
			st.line = out.Commit.AppendJSON(nil, v)
		}
		var err error
		if st.asides, err = json.Marshal(out.Asides); err != nil {
			t.Fatal(err)
		}
		st.state = saved(t, s.State())
		steps = append(steps, st)
	}
	s, err := simulated.New(config)
	for more := err == nil; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	if v := s.State().View(); v.Job(0).Phase != plan.Finished || len(s.State().Plans) < 2 || len(s.State().Reactions) == 0 {
		t.Fatalf("the job %s by %d plans", v.Job(0).Phase, len(s.State().Plans))
	}
	fresh := func() *engine.Engine {
		return engine.New(config.Cluster, compose.New(reacting(byprice.New(byprice.Default()))), config.Policy)
	}
	killed, folded := fresh(), fresh()
	for i, st := range steps {
		out := killed.Step(st.at, st.events)
		var line []byte
		if out.Commit != nil {
			line = out.Commit.AppendJSON(nil, killed.View())
		}
		if !bytes.Equal(line, st.line) {
			t.Fatalf("step %d: decided %s, after a restart %s", i, st.line, line)
		}
		state, err := killed.State().Clone()
		if err != nil {
			t.Fatal(err)
		}
		killed = engine.Restore(state, compose.New(reacting(byprice.New(byprice.Default()))), config.Policy)
		if again := killed.Step(st.at, []engine.Event{{Kind: engine.Rebuilt}}); again.Commit != nil {
			t.Fatalf("step %d: a restart alone decides %+v", i, again.Commit)
		}
		var asides []plan.Aside
		if err := json.Unmarshal(st.asides, &asides); err != nil {
			t.Fatal(err)
		}
		if _, err := folded.Fold(st.at, st.events, st.line, asides); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if !bytes.Equal(saved(t, folded.State()), st.state) {
			t.Fatalf("step %d: the journal leads to another state", i)
		}
	}
}

func saved(t *testing.T, s *plan.State) []byte {
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
