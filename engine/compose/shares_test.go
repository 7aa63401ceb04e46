package compose_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/rightstest"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// TestAdmittedIsDeserved: under every order and every joint strategy an idle cluster on which
// all work waits gives each queue of a random tree what muster share says that it deserves, to
// one device, and goes on to: with weights, priorities, guarantees, limits and past use.
func TestAdmittedIsDeserved(t *testing.T) {
	trees := 1000
	if os.Getenv("MUSTER_LONG") != "" {
		trees = 10_000
	}
	for _, name := range rightstest.Deciders() {
		if name == "liquid-batch" {
			continue // it lets jobs gather, and starts whom it chose of them
		}
		trees := trees / len(rightstest.Deciders())
		if name == "pollux" {
			trees /= 20 // its search takes seconds
		}
		t.Run(name, func(t *testing.T) {
			for tried, round := 0, 0; tried < trees; round++ {
				draws.Cases{Round: round, Few: min(10, trees), All: min(100, trees)}.Check(t, func(t *rapid.T) {
					tried++
					admitted(t, name)
				})
			}
		})
	}
}

// admitted has all work of a random tree wait for an idle cluster, and compares.
func admitted(t *rapid.T, name string) {
	devices := rapid.IntRange(1, 40).Draw(t, "devices")
	tree := drawShares(t, int64(devices))
	s := newSite(t, cluster.Uniform("site", devices, 1, cluster.Model{Name: "gpu", Speed: 1, Memory: 16 << 10}, 2), tree, build(t, name))
	s.atOnce = true
	one := func(q int) workload.Job {
		return workload.Job{Tenant: tree.Queues[q].Name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: 1000, Memory: 12 << 10}}
	}
	if tree.HalfLife > 0 { // some have used the cluster before, one after the other
		for q := range tree.Queues {
			if minutes := rapid.IntRange(0, 200).Draw(t, "used"); minutes > 0 {
				before := one(q)
				before.Gang = int32(rapid.IntRange(1, devices).Draw(t, "of devices"))
				id := s.submit(before, unit.Duration(minutes)*unit.Minute)
				for s.e.View().Job(id).Phase == plan.Active {
					s.pass(unit.Hour)
				}
				if !s.e.View().Job(id).Phase.Over() { // its queue may not hold so many
					s.step(engine.Event{Kind: engine.Cancel, Job: id})
				}
			}
		}
	}
	s.step(engine.Event{Kind: engine.Pause})
	for q := range tree.Queues {
		for range rapid.SampledFrom([]int{0, 1, devices, devices}).Draw(t, "jobs") {
			s.submit(one(q), 1000*unit.Hour)
		}
	}
	v := s.e.View()
	live := func(yield func(plan.JobID) bool) {
		for id := range plan.JobID(v.Jobs()) {
			if !v.Job(id).Phase.Over() && !yield(id) {
				return
			}
		}
	}
	shares := view.SharesOf(v, live)
	s.step(engine.Event{Kind: engine.Unpause})
	sharesHold(t, s, &tree, &shares)
	if tree.HalfLife > 0 {
		return // what is used from now on counts
	}
	for until := s.now.Add(20 * unit.Minute); s.now < until; {
		s.pass(until.Sub(s.now))
	}
	sharesHold(t, s, &tree, &shares)
}

// sharesHold checks that each queue holds what it deserves, to one device.
func sharesHold(t *rapid.T, s *site, tree *queue.Tree, shares *view.Shares) {
	var said strings.Builder
	off := false
	for q := range shares.Queues {
		x := &shares.Queues[q]
		has := float64(held(s.e.View(), tree, q, plan.None)) / 1000
		fmt.Fprintf(&said, "\n%q has %g: %s", x.Name, has, x.Arithmetic)
		off = off || has <= x.Deserved-1 || has >= x.Deserved+1
	}
	if off {
		t.Fatalf("at %d:%s", s.now/1e6, said.String())
	}
}

// drawShares draws a tree of up to three levels. What no queue could hold exactly is not drawn:
// limits are whole devices.
func drawShares(t *rapid.T, devices int64) queue.Tree {
	tree := queue.Tree{Queues: []queue.Queue{queue.Root()}, HalfLife: unit.Duration(rapid.IntRange(0, 2).Draw(t, "half-life")) * unit.Hour}
	left, depth := []int64{devices * 1000}, []int{0}
	for i := range rapid.IntRange(1, 10).Draw(t, "queues") {
		p := rapid.IntRange(0, i).Draw(t, "parent")
		for depth[p] >= 3 {
			p = int(tree.Queues[p].Parent)
		}
		q := queue.Queue{Name: fmt.Sprint("q", i), Parent: int32(p), Weight: int32(rapid.IntRange(1, 5000).Draw(t, "weight")), Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority"))}
		if p > 0 {
			q.Name = tree.Queues[p].Name + "/" + q.Name
		}
		g := int64(0)
		if rapid.Bool().Draw(t, "guaranteed") {
			g = rapid.Int64Range(0, left[p]/500).Draw(t, "guarantee") * 500
			left[p] -= g
			q.Guarantee = []queue.Amount{{Milli: g}}
		}
		if rapid.IntRange(0, 3).Draw(t, "limited") == 0 {
			q.Limit = []queue.Amount{{Milli: (g+999)/1000*1000 + rapid.Int64Range(0, devices).Draw(t, "limit")*1000}}
		}
		tree.Queues, left, depth = append(tree.Queues, q), append(left, g), append(depth, depth[p]+1)
	}
	return tree
}
