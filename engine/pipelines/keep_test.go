package pipelines_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/allocate/afs"
	"github.com/musterdl/muster/strategies/pipeline/byprice"
)

// copied is a job of an hour in copies of two stages, of which it may have fewer: one of measured layers, or
// one that goes by the plans of a menu, both as fast as they have workers.
func copied(menu bool, sizes ...int32) scheduletest.Job {
	all := sizes[len(sizes)-1]
	j := workload.Job{Name: "copied", Resources: workload.Resources{Gang: all, Sizes: sizes, Devices: 1, Share: unit.Whole}, Estimate: unit.Hour,
		Checkpoint: workload.Checkpoint{Every: 5 * unit.Minute, OnRequest: true, Save: 3 * unit.Second, Load: 40 * unit.Second}}
	if !menu {
		layer := workload.Layer{Forward: unit.Millisecond, Backward: 2 * unit.Millisecond, ParamKiB: 10 << 10}
		j.Pipeline = workload.Pipeline{Stages: 2, Microbatches: 8, Layers: slices.Repeat([]workload.Layer{layer}, 8)}
		return scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Hour}}
	}
	for _, n := range sizes {
		spread := workload.Spread{Name: fmt.Sprint("pp2 dp", n/2), Step: unit.Second * unit.Duration(all) / unit.Duration(n),
			Shape: fmt.Sprintf(`{"sequence":"1f1b","samples":1,"microbatches":%d,"tensor":1,"ranks":2,"copies":%d,"cuts":[4]}`, 4*all/n, n/2)}
		j.Menu = append(j.Menu, workload.Offer{Model: "gpu", Workers: n, Nodes: n, Rate: float64(n) / float64(all), Plan: spread})
	}
	return scheduletest.Job{Job: j, Truth: workload.Truth{Duration: unit.Hour}}
}

// chosen is the way by which a job went on at an instant, and what it was started on.
func chosen(steps []step, at unit.Time) (way string, line []byte) {
	for _, st := range steps {
		if i := bytes.Index(st.asides, []byte(`"chosen":"`)); st.at == at && i >= 0 {
			text, _, _ := bytes.Cut(st.asides[i+len(`"chosen":"`):], []byte{'"'})
			return string(text), st.line
		}
	}
	return "", nil
}

// TestKeeps: a job of copies loses a node, and goes on in the processes that are left where these are a
// size of it: from the last whole step, after what it takes to find each other, and without reading what it
// holds. Where each half of a copy is left by another loss they go on together. Where nobody has a stage any more, or no
// size is left, it begins again. Nowhere does it end later than where processes end with each other, and the journal alone leads to
// the same state.
func TestKeeps(t *testing.T) {
	const mid = unit.Time(9*unit.Minute + 30*unit.Second)
	for _, c := range []struct {
		name    string
		sizes   []int32
		nodes   int
		perNode int
		lost    []plan.NodeID
		chosen  string
		on      string
	}{
		{"of two copies one", []int32{2, 4}, 4, 1, []plan.NodeID{1}, reaction.Drop, `"on":[[0,0,1],[2,2,1]]`},
		{"of three copies two", []int32{2, 4, 6}, 6, 1, []plan.NodeID{4}, reaction.Drop, `"on":[[0,0,1],[2,2,1],[3,3,1],[5,5,1]]`},
		{"one of what two left", []int32{2, 4}, 4, 1, []plan.NodeID{0, 3}, reaction.Drop, `"on":[[1,1,1],[2,2,1]]`},
		{"a whole stage", []int32{2, 4}, 2, 2, []plan.NodeID{1}, reaction.Restart, `"on":[[0,0,2]]`},
		{"no size is left", []int32{4}, 4, 1, []plan.NodeID{1}, reaction.Wait, ""},
		{"a spare", []int32{2, 4}, 5, 1, []plan.NodeID{1}, reaction.Swap, `"on":[[0,0,1],[2,2,1],[3,3,1],[4,4,1]]`},
	} {
		for _, menu := range []bool{false, true} {
			t.Run(fmt.Sprint(c.name, "/menu=", menu), func(t *testing.T) {
				config := func(policy reaction.Policy) simulated.Config {
					config := scheduletest.Config(scheduletest.Nodes(c.nodes, c.perNode, 0), scheduletest.Jobs{copied(menu, c.sizes...)}, reacting(policy))
					config.Prices, config.Check = simulated.DefaultPrices(), true
					for _, n := range c.lost {
						config.Later = append(config.Later, simulated.Later{At: mid, Event: engine.Event{Kind: engine.NodeDown, Node: n}})
					}
					for _, n := range c.lost {
						config.Later = append(config.Later, simulated.Later{At: mid.Add(12 * unit.Hour), Event: engine.Event{Kind: engine.NodeUp, Node: n}})
					}
					return config
				}
				steps, end := played(t, config(byprice.New(byprice.Default())))
				way, line := chosen(steps, mid)
				if way != c.chosen || !bytes.Contains(line, []byte(c.on)) || bytes.Contains(line, []byte(`"keeps"`)) != (c.chosen == reaction.Drop) {
					t.Errorf("it went on by %q: %s; expected %q on %s", way, line, c.chosen, c.on)
				}
				_, none := played(t, config(byprice.None{}))
				if a, b := end.Jobs[0].Ended, none.Jobs[0].Ended; a > b || c.chosen == reaction.Drop && a != b.Add(-40*unit.Second) {
					t.Errorf("it ends after %v, and after %v where all begin anew, who read for 40 s", a, b)
				}
				replays(t, config(byprice.New(byprice.Default())), steps)
			})
		}
	}
}

// TestKeepsAnInstant: the instants of a job that keeps processes, to the microsecond. It loses a node after
// 9 minutes of work. Of these a step of a second and the save of 3 s are lost. It finds itself in 6.5 s, and goes on at half the
// pace. The device of the copy that is left over is free at once: another job that waits for one begins there.
func TestKeepsAnInstant(t *testing.T) {
	const start = 6500 * unit.Millisecond
	mid := unit.Time(start + 2*10*unit.Second + 9*unit.Minute) // before, two offers are measured
	other := scheduletest.Job{Job: workload.Job{Name: "other", Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Submit: unit.Time(unit.Minute)}, Truth: workload.Truth{Duration: unit.Hour}}
	config := scheduletest.Config(scheduletest.Nodes(4, 1, 0), scheduletest.Jobs{copied(true, 2, 4), other}, reacting(byprice.New(byprice.Default())))
	config.Prices, config.Check = simulated.DefaultPrices(), true
	config.Later = []simulated.Later{{At: mid, Event: engine.Event{Kind: engine.NodeDown, Node: 1}}}
	steps, end := played(t, config)
	left := unit.Hour - (9*unit.Minute - 4*unit.Second)
	if got, want := end.Jobs[0].Ended, mid.Add(start+2*left); got != want {
		t.Errorf("it ends at %v, expected %v", got, want)
	}
	if got, want := end.Jobs[1].Ended, mid.Add(start+unit.Hour); got != want {
		t.Errorf("the other, which begins on the device that is left over, ends at %v, expected %v", got, want)
	}
	kept := 0
	for _, st := range steps {
		for _, e := range st.events {
			if e.Kind == engine.Exited && e.Alive {
				if kept++; e.Kept != 9*unit.Minute-4*unit.Second {
					t.Errorf("%v is kept", e.Kept)
				}
			}
		}
	}
	if kept != 1 || end.Jobs[0].Attempt != 2 {
		t.Errorf("%d runs were kept, and it is in attempt %d", kept, end.Jobs[0].Attempt)
	}
}

// TestKeepsAndSends: the plan for fewer workers has no stages. Two processes that hold one each go on by it once they were sent
// what it puts on them, 1000 MiB over 1 Gb/s. Where the first that are left do not hold all of it, or nobody
// knows how much that is, the job begins again.
func TestKeepsAndSends(t *testing.T) {
	const start = 6500 * unit.Millisecond
	mid := unit.Time(start + 2*10*unit.Second + 9*unit.Minute)
	for _, c := range []struct {
		lost   plan.NodeID
		peak   unit.MiB
		chosen string
		takes  unit.Duration
	}{
		{1, 1000, reaction.Recut, unit.Seconds(1000 * (1 << 20) * 8 / 1e9)},
		{2, 1000, reaction.Restart, 40 * unit.Second},
		{1, 0, reaction.Restart, 40 * unit.Second},
	} {
		job := copied(true, 2, 4)
		alone := &job.Job.Menu[0].Plan
		alone.Shape = `{"sequence":"1f1b","samples":1,"microbatches":8,"tensor":1,"ranks":1,"copies":2}`
		if c.peak > 0 {
			alone.Spare = workload.Spare{PerRank: 2, Peaks: []unit.MiB{c.peak}}
		}
		config := func() simulated.Config {
			config := scheduletest.Config(scheduletest.Nodes(4, 1, 1000), scheduletest.Jobs{job}, reacting(byprice.New(byprice.Default())))
			config.Prices, config.Check = simulated.DefaultPrices(), true
			config.Later = []simulated.Later{{At: mid, Event: engine.Event{Kind: engine.NodeDown, Node: c.lost}}}
			return config
		}
		steps, end := played(t, config())
		if way, line := chosen(steps, mid); way != c.chosen || bytes.Contains(line, []byte(`"keeps":2`)) != (way == reaction.Recut) {
			t.Errorf("node %d is lost, %d MiB: it went on by %q: %s; expected %q", c.lost, c.peak, way, line, c.chosen)
		}
		left := unit.Hour - (9*unit.Minute - 4*unit.Second)
		if got, want := end.Jobs[0].Ended, mid.Add(start+c.takes+2*left); got != want {
			t.Errorf("node %d is lost, %d MiB: it ends at %v, expected %v", c.lost, c.peak, got, want)
		}
		replays(t, config(), steps)
	}
}

// TestKeepsUnder: a limit that was lowered while the job ran keeps it from what it could go on with, and a joint
// decider that has no place for what it had is not in the way.
func TestKeepsUnder(t *testing.T) {
	mid := unit.Time(10 * unit.Minute)
	play := func(limit int64, joint ...allocate.Joint) string {
		config := scheduletest.Config(scheduletest.Nodes(6, 1, 0), scheduletest.Jobs{copied(true, 4, 6)}, reacting(byprice.New(byprice.Default()), joint...))
		config.Prices, config.Check = simulated.DefaultPrices(), true
		tree := queue.Tree{Queues: []queue.Queue{queue.Root()}}
		tree.Queues[0].Limit = []queue.Amount{{Milli: limit * 1000}}
		config.Later = []simulated.Later{{At: mid - 1, Event: engine.Event{Kind: engine.Shares, Queues: &tree}}, {At: mid, Event: engine.Event{Kind: engine.NodeDown, Node: 1}},
			{At: mid.Add(unit.Hour), Event: engine.Event{Kind: engine.NodeUp, Node: 1}}, {At: mid.Add(unit.Hour), Event: engine.Event{Kind: engine.Shares, Queues: &queue.Tree{Queues: []queue.Queue{queue.Root()}}}}}
		steps, _ := played(t, config)
		way, _ := chosen(steps, mid)
		return way
	}
	if got := play(4); got != reaction.Drop {
		t.Errorf("under a limit of four devices it goes on by %q", got)
	}
	if got := play(3); got == reaction.Drop {
		t.Error("under a limit of three devices it goes on with four")
	}
	if got := play(6, afs.New(afs.Default())); got == "" {
		t.Error("under a joint decider nothing is known of how it went on")
	}
}
