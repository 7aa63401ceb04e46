package hydro

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

func TestFuseLimit(t *testing.T) {
	for _, x := range []struct {
		device, one, two unit.MiB
		want             int
	}{
		{24000, 2000, 3000, 22}, {24000, 2000, 4000, 11}, {24000, 20000, 30000, 1}, {24000, 0, 10, 1}, {24000, 10, 10, 1}, {24, 12, 24, 1},
	} {
		if got := fuseLimit(x.device, x.one, x.two); got != x.want {
			t.Errorf("%d, %d and %d MiB: %d, want %d", x.device, x.one, x.two, got, x.want)
		}
	}
}

// TestSplit: every trial is in one run, none is over the limit, sizes differ by one at
// most, and no device stays idle that a run could have.
func TestSplit(t *testing.T) {
	if got := split(10, 4, 1); !slices.Equal(got, []int{4, 3, 3}) {
		t.Errorf("ten trials, four to a run: %v", got)
	}
	if got := split(10, 4, 5); !slices.Equal(got, []int{2, 2, 2, 2, 2}) {
		t.Errorf("ten trials on five devices: %v", got)
	}
	draws.Check(t, func(t *rapid.T) {
		n, limit, devices := rapid.IntRange(0, 300).Draw(t, "n"), rapid.IntRange(1, 50).Draw(t, "limit"), rapid.IntRange(0, 20).Draw(t, "devices")
		sizes, sum := split(n, limit, devices), 0
		for _, s := range sizes {
			if sum += s; s > limit || s < 1 || sizes[0]-s > 1 || s > sizes[0] {
				t.Fatalf("%d trials, limit %d: %v", n, limit, sizes)
			}
		}
		if sum != n || len(sizes) < min(devices, n) {
			t.Fatalf("%d trials on %d devices: %v", n, devices, sizes)
		}
	})
}

// source submits jobs that are given.
type source []workload.Job

func (s *source) Next() (j workload.Job, t workload.Truth, err error) {
	if len(*s) == 0 {
		return j, t, io.EOF
	}
	j, *s = (*s)[0], (*s)[1:]
	return j, workload.Truth{Duration: 20 * unit.Minute, Merge: .1, Busy: .5}, nil
}

func trials(n int) (all source) {
	for i := range n {
		all = append(all, workload.Job{Name: fmt.Sprint("trial ", i), Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000, Memory: 4 << 10},
			Traits: workload.Traits{Group: "sweep", Base: "resnet"},
			Submit: unit.Time(i), Checkpoint: workload.Checkpoint{OnRequest: true}})
	}
	return all
}

type history struct {
	makespan unit.Duration
	commits  []byte
	started  map[string]unit.Time
	guests   map[plan.JobID]bool
}

func run(t *testing.T, c Config, jobs source) history {
	t.Helper()
	var b bytes.Buffer
	n := len(jobs)
	h := history{started: map[string]unit.Time{}, guests: map[plan.JobID]bool{}}
	s, err := simulated.New(simulated.Config{Cluster: cluster.Uniform("c", 1, 4, cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1}, 4),
		Jobs: &jobs, TellTruth: true, Check: true, Decisions: &b,
		Scheduler: compose.New(compose.Parts{Joint: New(c), Estimator: oracle.Estimator{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}}),
		Hooks: simulated.Hooks{Commit: func(v plan.View, c *plan.Commit) {
			for _, change := range c.Changes {
				if change.Verb == plan.Start {
					h.started[v.Name(change.Job)] = v.Now()
					h.guests[change.Terms.Share.Guest] = true
				}
			}
		}}})
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Result()
	if err != nil || int(r.Finished) != n {
		t.Fatalf("%d of %d jobs finished (%v)", r.Finished, n, err)
	}
	h.makespan, h.commits = unit.Seconds(r.MakespanSec), b.Bytes()
	return h
}

// TestFused: twelve trials, three to a device, end together in little more than the time
// of one; without fusing they take three rounds. Twice the same, to the byte.
func TestFused(t *testing.T) {
	apart := Config{MinBubble: 100, Fusions: []Fusion{{Base: "resnet", OneMiB: 10 << 10, TwoMiB: 20 << 10}}}
	fused, single := run(t, Default(), trials(12)), run(t, apart, trials(12))
	if fused.makespan > 25*unit.Minute || single.makespan < 60*unit.Minute {
		t.Errorf("fused they take %s, each by itself %s", fused.makespan, single.makespan)
	}
	if again := run(t, Default(), trials(12)); !bytes.Equal(again.commits, fused.commits) {
		t.Error("two equal runs commit different bytes")
	}
}

// TestKinds: trials of two kinds that come together share the devices, so both end when
// their runs of six do; one kind does not wait for the other.
func TestKinds(t *testing.T) {
	jobs := trials(24)
	for i := range jobs {
		jobs[i].Memory, jobs[i].Submit = 2<<10, 1
		if i%2 == 1 {
			jobs[i].Group = "other"
		}
	}
	if h := run(t, Default(), jobs); h.makespan > 31*unit.Minute {
		t.Errorf("trials of two kinds take %s, with half of the devices each 30 minutes", h.makespan)
	}
}

// TestEagerTransfer: the target model starts when half of the trials have ended, with
// more than a device holds still to come.
func TestEagerTransfer(t *testing.T) {
	jobs := trials(4)
	jobs[3].Submit = unit.Time(0).Add(15 * unit.Minute)
	jobs[2].Submit = jobs[3].Submit
	target := workload.Job{Name: "target", Resources: workload.Resources{Gang: 2, Devices: 1, Share: 1000, Memory: 4 << 10},
		Traits: workload.Traits{Group: "sweep"}, Submit: unit.Time(3)}
	jobs = slices.Insert(jobs, 2, target)
	h := run(t, Default(), jobs)
	if at := h.started["target"]; at < unit.Time(0).Add(20*unit.Minute) || at > unit.Time(0).Add(21*unit.Minute) {
		t.Errorf("the target model starts after %s", unit.Duration(at))
	}
}

// TestInBubbles: with no device to spare a trial lives on a pipelined job's.
func TestInBubbles(t *testing.T) {
	layer := workload.Layer{Forward: 20_000, Backward: 40_000}
	pipe := workload.Job{Name: "pipeline", Resources: workload.Resources{Gang: 4, Devices: 1, Share: 1000, Memory: 8 << 10},
		Traits: workload.Traits{Pipeline: workload.Pipeline{Stages: 4, Microbatches: 8, Layers: []workload.Layer{layer, layer, layer, layer}}}}
	jobs := append(source{pipe}, trials(2)...)
	for i := range jobs[1:] {
		jobs[i+1].Submit = unit.Time(0).Add(unit.Minute)
	}
	never := run(t, Config{MinBubble: 1000}, slices.Clone(jobs))
	h := run(t, Default(), jobs)
	if never.guests[0] || never.started["trial 1"] < unit.Time(0).Add(20*unit.Minute) {
		t.Errorf("with no bubble large enough the second trial started after %s, guests were of %v", unit.Duration(never.started["trial 1"]), never.guests)
	}
	if at := h.started["trial 1"]; !h.guests[0] || at != unit.Time(0).Add(unit.Minute) {
		t.Errorf("the second trial started after %s, guests were of %v", unit.Duration(at), h.guests)
	}
}
