package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// jointly and bySize are what decides how many workers an elastic job has: one part for
// all jobs whenever something happens, or a sizer that is asked once a minute.
const (
	jointly = "joint: afs\noptions:\n  afs:\n    every: 0s\n"
	bySize  = "order: fifo\nsize: %s\n"
)

// elasticPlane is a control plane of four slots of half a core.
func elasticPlane(t *testing.T, strategy string) *controlPlane {
	t.Helper()
	return planeOf(t, strategy, "--slots", "4", "--slot-cpu", "500m", "--summary-every", "50ms", "--checkpoint-wait", "20s", "--grace", "10s")
}

// planeOf is a control plane whose strategy is a file of this text.
func planeOf(t *testing.T, strategy string, flags ...string) *controlPlane {
	t.Helper()
	p := newPlane(t, flags...)
	file := filepath.Join(p.state, "strategy.yaml")
	if err := os.WriteFile(file, []byte(strategy), 0o644); err != nil {
		t.Fatal(err)
	}
	p.flags = append(p.flags, "--strategy", file)
	p.start()
	return p
}

// train submits a training job on so many workers.
func (p *controlPlane) train(name string, sizes []int32, steps int, pace time.Duration) {
	p.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		p.t.Fatal(err)
	}
	j := workload.Job{Name: name, Resources: workload.Resources{Gang: sizes[len(sizes)-1], Sizes: sizes, Devices: 1, Share: unit.Whole}, Estimate: unit.Hour,
		Checkpoint: workload.Checkpoint{OnRequest: true}, Program: workload.Program{Env: []string{"PATH=" + os.Getenv("PATH"), "MUSTER_TEST_AS_MUSTER=1"},
			Command: slices.Concat(keepProgress, []string{exe, "trainer", "--steps", fmt.Sprint(steps), "--checkpoint-every", "0", "--seed", "11", "--dim", "32",
				"--step-delay", pace.String()})}}
	if _, err := p.client.Submit(p.t.Context(), []workload.Job{j}, name); err != nil {
		p.t.Fatal(err)
	}
}

// workers is how many workers each attempt of a job had.
func (p *controlPlane) workers(name string) (n []int) {
	p.t.Helper()
	for attempt := range p.show(name).Attempt {
		ranks, err := filepath.Glob(filepath.Join(p.state, "attempts", fmt.Sprintf("%s.%d", name, attempt+1), "[0-9]*"))
		if err != nil {
			p.t.Fatal(err)
		}
		n = append(n, len(ranks))
	}
	return n
}

// grownAndShrunk trains an elastic job on a machine that is empty, then wanted by two
// others, then empty again: it has all of it, less, and all of it again, and learns
// what a job of two workers learns that nobody disturbs.
func (p *controlPlane) grownAndShrunk(steps int, pace time.Duration, others string) {
	t := p.t
	t.Helper()
	p.train("undisturbed", []int32{2}, steps, 0)
	p.muster("wait", "undisturbed")
	p.train("elastic", []int32{1, 2, 4}, steps, pace)
	p.until("elastic", "on its way", func(j view.Job) bool { return j.Progress > 0.1 })
	p.muster("submit", "--name", "other", "--array", "2", "--estimate", others, "--", "sleep", others)
	p.muster("wait", "other-0", "other-1", "elastic")

	sizes := p.workers("elastic")
	least := slices.Index(sizes, slices.Min(sizes))
	if sizes[0] != 4 || sizes[least] > 2 || slices.Max(sizes[least:]) != 4 {
		t.Errorf("it ran on %v workers: expected 4, then at most 2, then 4 again", sizes)
	}
	if j := p.show("elastic"); j.Phase != "finished" || j.Restarts != 0 {
		t.Errorf("it is %s after %d failures", j.Phase, j.Restarts)
	}
	again := 0
	for attempt := range int32(len(sizes)) {
		again += len(p.lossesOf("elastic", attempt+1))
	}
	one, two := p.losses("undisturbed", 1), p.losses("elastic", int32(len(sizes)))
	worst := 0.0
	for step, loss := range one {
		worst = max(worst, math.Abs(two[step]-loss)/loss)
	}
	again -= len(two)
	t.Logf("%d steps on %v workers: %d made twice, losses at most %.2g apart, final %v and %v", steps, sizes, again, worst, one[int64(steps)], two[int64(steps)])
	if len(one) != steps || len(two) != steps || worst > 1e-3 {
		t.Errorf("%d and %d steps of %d, losses up to %.2g apart", len(one), len(two), steps, worst)
	}
	if most := 3 * (len(sizes) - 1); again > most {
		t.Errorf("%d steps were made twice: expected at most %d, those between a checkpoint and the end", again, most)
	}
}

// TestElasticJointly: a part that decides for all jobs at once resizes real training.
func TestElasticJointly(t *testing.T) {
	t.Parallel()
	elasticPlane(t, jointly).grownAndShrunk(200, 20*time.Millisecond, "1")
}

// TestElasticBySize: so do the sizers, which look once a minute.
func TestElasticBySize(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("six minutes; set MUSTER_LONG=1")
	}
	t.Parallel()
	for _, sizer := range []string{"equal-share", "efficient"} {
		t.Run(sizer, func(t *testing.T) {
			t.Parallel()
			elasticPlane(t, fmt.Sprintf(bySize, sizer)).grownAndShrunk(560, 500*time.Millisecond, "45")
		})
	}
}
