package pipelines_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/allocate/afs"
	"github.com/musterdl/muster/strategies/allocate/optimus"
	"github.com/musterdl/muster/strategies/pipeline/byprice"
	"github.com/musterdl/muster/strategies/pipeline/dpcut"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
)

// reacting are parts that cut by time and react as a policy says, under an order or who decides for all.
func reacting(policy reaction.Policy, joint ...allocate.Joint) compose.Parts {
	filled := scheduletest.Simple()
	for _, j := range joint {
		delete(filled, schedule.OrderPart)
		delete(filled, allocate.SizePart)
		filled[allocate.JointPart] = strategy.Filling{Strategy: j}
	}
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

// step is a step of an engine, with what a journal would keep of it.
type step struct {
	at           unit.Time
	events       []engine.Event
	line, asides []byte
	state        []byte
}

// played plays jobs on nodes of a device each, some of which are lost for a while, to the end.
func played(t *testing.T, config simulated.Config) (steps []step, end *plan.State) {
	var s *simulated.Simulation
	config.Hooks.Step = func(at unit.Time, events []engine.Event, out *engine.Out, v plan.View) {
		st := step{at: at, events: slices.Clone(events)}
		for i := range st.events {
			if of := st.events[i].Spec; of != nil {
				kept := *of
				st.events[i].Spec = &kept
			}
		}
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
	return steps, s.State()
}

// TestReactionsAreReplayed: an engine that goes on from what a journal and a snapshot keep, after any
// event, decides the same bytes, over drifts, other plans and a node that is lost while the run stands
// still for another plan; and the journal alone leads to the same state. The job, which may have half as
// many workers, goes on at once where the node is lost, and has finished.
func TestReactionsAreReplayed(t *testing.T) {
	job := drifting(4)
	job.Gang, job.Sizes = 8, []int32{4, 8}
	config := func(later ...simulated.Later) simulated.Config {
		c := scheduletest.Config(scheduletest.Nodes(8, 1, 1000), scheduletest.Jobs{job}, reacting(byprice.New(byprice.Default())))
		c.Prices, c.Later, c.Check = simulated.DefaultPrices(), later, true
		return c
	}
	steps, _ := played(t, config())
	i := slices.IndexFunc(steps, func(st step) bool { return bytes.Contains(st.line, []byte(`"replanned"`)) })
	if i < 0 {
		t.Fatal("the drift leads to no other plan")
	}
	mid := steps[i].at.Add(50 * unit.Millisecond) // the driver's pause alone takes longer
	steps, end := played(t, config(simulated.Later{At: mid, Event: engine.Event{Kind: engine.NodeDown, Node: 1}},
		simulated.Later{At: mid.Add(20 * unit.Minute), Event: engine.Event{Kind: engine.NodeUp, Node: 1}}))
	at := slices.IndexFunc(steps, func(st step) bool { return bytes.Contains(st.line, []byte(`"went-on"`)) })
	if at < 0 || steps[at].at != mid || end.Jobs[0].Phase != plan.Finished || len(end.Reactions) == 0 {
		t.Fatalf("the job %s; it went on in step %d, the node was lost at %v", end.Jobs[0].Phase, at, mid)
	}
	replays(t, config(), steps)
}

// replays has an engine that goes on from what a journal and a snapshot keep after each step decide what
// was decided, and folds the journal.
func replays(t *testing.T, c simulated.Config, steps []step) {
	fresh := func() *engine.Engine {
		return engine.New(c.Cluster, compose.New(reacting(byprice.New(byprice.Default()))), c.Policy)
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
		killed = engine.Restore(state, compose.New(reacting(byprice.New(byprice.Default()))), c.Policy)
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

// TestSlowDevice: a device becomes three times as slow for an hour. Its job leaves it for a spare, or for a
// smaller size where it has copies and no device is free, or has its layers cut anew; in each case it
// ends earlier than where nobody reacts, and the journal leads to the same decisions. One that is
// nearly done rides it through.
func TestSlowDevice(t *testing.T) {
	for _, c := range []struct {
		name   string
		nodes  int
		gang   int32
		at     unit.Duration
		chosen string
	}{
		{"a spare", 5, 4, 5 * unit.Minute, reaction.Swap},
		{"no device is free", 4, 4, 5 * unit.Minute, reaction.Recut},
		{"of copies one is left", 8, 8, 5 * unit.Minute, reaction.Restart},
		{"nearly done", 4, 4, 71*unit.Minute + 21*unit.Second, reaction.Ride},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := func(policy reaction.Policy) simulated.Config {
				job := drifting(4)
				job.Drifts, job.Gang = nil, c.gang
				if c.gang > 4 { // two workers for each stage, and few layers to cut otherwise
					job.Sizes, job.Pipeline.Layers = []int32{4, 8}, job.Pipeline.Layers[:4]
				}
				config := scheduletest.Config(scheduletest.Nodes(c.nodes, 1, 10_000), scheduletest.Jobs{job}, reacting(policy))
				config.Prices, config.Check = simulated.DefaultPrices(), true
				config.World.Slow = []world.Slow{{Device: 1, From: unit.Time(c.at), Until: unit.Time(c.at + unit.Hour), Times: 3}}
				return config
			}
			steps, end := played(t, config(byprice.New(byprice.Default())))
			r, _ := end.View().Reaction(0)
			first := slices.IndexFunc(steps, func(st step) bool { return bytes.Contains(st.asides, []byte(`"cause":"drift"`)) })
			if first < 0 || !bytes.Contains(steps[first].asides, []byte(`"chosen":"`+c.chosen+`"`)) {
				t.Errorf("it did not go on by %s; at last by %+v", c.chosen, r)
			}
			none, still := played(t, config(byprice.None{}))
			if a, b := end.Jobs[0].Ended, still.Jobs[0].Ended; a > b || c.chosen != reaction.Ride && a == b {
				t.Errorf("it ends after %v, and after %v where nobody reacts (%d steps)", a, b, len(none))
			}
			replays(t, config(byprice.New(byprice.Default())), steps)
		})
	}
}

// TestSlowUnderAMenu: a job goes by a plan of its menu when a device of it becomes slow. Where its size is to be
// had elsewhere it goes there, where it is not it takes a smaller one, and what slows it little it
// rides through. That is so under an order, and under those who decide for all jobs. So it is of a node
// that is lost: the job goes on at once in what is left.
func TestSlowUnderAMenu(t *testing.T) {
	deciders := map[string]func() []allocate.Joint{
		"order":   func() []allocate.Joint { return nil },
		"afs":     func() []allocate.Joint { return []allocate.Joint{afs.New(afs.Default())} },
		"optimus": func() []allocate.Joint { return []allocate.Joint{optimus.New(optimus.Default())} },
	}
	for _, name := range slices.Sorted(maps.Keys(deciders)) {
		for _, c := range []struct {
			name    string
			nodes   int
			times   float64
			sizes   []int32
			lost    bool
			stages  bool // its driver times stages as well, as one does with processes
			chosen  string
			workers int32
		}{
			{"a spare", 5, 3, nil, false, false, reaction.Swap, 4},
			{"a spare, stages timed", 5, 3, nil, false, true, reaction.Swap, 4},
			{"no spare", 4, 3, []int32{2, 4}, false, false, reaction.Restart, 2},
			{"little", 5, 1.15, nil, false, false, reaction.Ride, 4},
			{"lost, a spare", 5, 0, nil, true, false, reaction.Swap, 4},
			{"lost", 4, 0, []int32{2, 4}, true, false, reaction.Restart, 2},
		} {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				j := workload.Job{Name: "llama", Resources: workload.Resources{Gang: 4, Sizes: c.sizes, Devices: 1, Share: unit.Whole}, Estimate: unit.Hour,
					Checkpoint: workload.Checkpoint{OnRequest: true, Every: unit.Minute, Save: 2 * unit.Minute, Load: 2 * unit.Minute}}
				offer := func(workers int32, rate float64) workload.Offer {
					return workload.Offer{Model: "gpu", Workers: workers, Nodes: workers, Rate: rate, Plan: workload.Spread{Name: fmt.Sprint("pp", workers), Shape: `{}`, Step: unit.Seconds(1 / rate)}}
				}
				j.Menu = []workload.Offer{offer(2, .5), offer(4, 1)}
				mid := unit.Time(10 * unit.Minute)
				config := scheduletest.Config(scheduletest.Nodes(c.nodes, 1, 10_000), scheduletest.Jobs{{Job: j, Truth: workload.Truth{Duration: unit.Hour}}},
					reacting(byprice.New(byprice.Default()), deciders[name]()...))
				config.Check = true
				switch {
				case c.stages:
					told := engine.Timed{Stages: []unit.Duration{unit.Second, 3 * unit.Second, unit.Second, unit.Second}, Slow: []float64{1, c.times, 1, 1}}
					config.Later = []simulated.Later{{At: mid, Event: engine.Event{Kind: engine.Observed, Job: 0, Attempt: 1, Observation: engine.Observation{Timed: told}}}}
				case c.lost:
					config.Later = []simulated.Later{{At: mid, Event: engine.Event{Kind: engine.NodeDown, Node: 1}}, {At: mid.Add(2 * unit.Hour), Event: engine.Event{Kind: engine.NodeUp, Node: 1}}}
				default:
					config.World.Slow = []world.Slow{{Device: 1, From: mid, Until: mid.Add(2 * unit.Hour), Times: c.times}}
				}
				steps, end := played(t, config)
				first := steps[slices.IndexFunc(steps, func(st step) bool { return st.at == mid })]
				if want := fmt.Appendf(nil, `"chosen":%q`, c.chosen); !bytes.Contains(first.asides, want) {
					t.Errorf("it went on so: %s", first.asides)
				}
				var line struct{ Changes []struct{ On [][3]int32 } }
				started := int32(0)
				if json.Unmarshal(first.line, &line) == nil {
					for _, change := range line.Changes {
						for _, on := range change.On {
							started += on[2]
						}
					}
				}
				if moves := c.chosen != reaction.Ride; moves && started != c.workers || !moves && started > 0 {
					t.Errorf("%d workers start again at once, want %d", started, c.workers)
				}
				if end.Jobs[0].Phase != plan.Finished {
					t.Errorf("it is %s in the end", end.Jobs[0].Phase)
				}
			})
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

// TestLostNode: a run that lost a node goes on at once, in the cheapest way for which there is room that
// its queue may have: under a limit of four devices it has the two that another job leaves, though more
// are free, and that job keeps what it runs on. Of those that cost less it is kept why they were not taken.
func TestLostNode(t *testing.T) {
	large := drifting(2)
	large.Drifts, large.Gang, large.Sizes = nil, 4, []int32{2, 4}
	other := scheduletest.Job{Job: workload.Job{Name: "other", Resources: workload.Resources{Gang: 2, Devices: 1, Share: unit.Whole}}, Truth: workload.Truth{Duration: 2 * unit.Hour}}
	for _, c := range []struct {
		name    string
		nodes   int
		limit   int64
		chosen  string
		workers int32
	}{
		{"a spare", 5, 0, reaction.Swap, 4},
		{"no spare", 3, 0, reaction.Restart, 2},
		{"a limit", 6, 4, reaction.Restart, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := scheduletest.Config(scheduletest.Nodes(c.nodes, 2, 1000), scheduletest.Jobs{large, other}, reacting(byprice.New(byprice.Default())))
			config.Prices, config.Check = simulated.DefaultPrices(), true
			mid := unit.Time(10 * unit.Minute)
			config.Later = []simulated.Later{{At: mid, Event: engine.Event{Kind: engine.NodeDown, Node: 0}}, {At: mid.Add(unit.Hour), Event: engine.Event{Kind: engine.NodeUp, Node: 0}}}
			if c.limit > 0 { // it is set while the job runs, which keeps what it has until it ends
				tree := queue.Tree{Queues: []queue.Queue{queue.Root()}}
				tree.Queues[0].Limit = []queue.Amount{{Milli: c.limit * 1000}}
				config.Later = slices.Insert(config.Later, 0, simulated.Later{At: mid - 1, Event: engine.Event{Kind: engine.Shares, Queues: &tree}})
			}
			steps, end := played(t, config)
			at := slices.IndexFunc(steps, func(st step) bool { return bytes.Contains(st.line, []byte(`"went-on"`)) })
			if at < 0 || steps[at].at != mid || !bytes.Contains(steps[at].line, fmt.Appendf(nil, `"a":%d`, c.workers)) {
				t.Fatalf("it did not go on at once with %d workers", c.workers)
			}
			v := end.View()
			r, ok := v.Reaction(0)
			if !ok || r.Cause != plan.LostOne || r.Chosen != c.chosen || r.Workers != 4 || len(r.Ways) != 8 {
				t.Errorf("it went on so: %+v", r)
			}
			if j := v.Job(1); j.Restarts+j.Preemptions > 0 || v.Job(0).Phase != plan.Finished || v.Job(0).Restarts != 1 {
				t.Errorf("%+v, %+v", v.Job(0), j)
			}
		})
	}
}
