package gandiva

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

func clusterOf(c Config, nodes int, devices int32) *planner {
	p := newPlanner(c)
	for range nodes {
		p.addNode(devices, 16<<10)
	}
	return p
}

// TestAffinity: free devices of the job's size class first, then an empty node, then
// another class, then turns with its own class.
func TestAffinity(t *testing.T) {
	p := clusterOf(Default(), 3, 4)
	for i, x := range []struct {
		gang int32
		want []int32
	}{
		{1, []int32{0}}, {2, []int32{4, 5}}, {1, []int32{1}}, {2, []int32{6, 7}}, {4, []int32{8, 9, 10, 11}},
		{2, []int32{2, 3}},         // its class is full, no node is empty
		{4, []int32{8, 9, 10, 11}}, // turns with its class
		{1, []int32{0}}, {1, []int32{1}},
		{8, []int32{4, 5, 6, 7, 0, 1, 2, 3}}, // whole nodes, lightest first
	} {
		got := &task{id: int32(i), gang: x.gang}
		if !p.add(got) {
			t.Fatalf("task %d finds no place", i)
		}
		want := slices.Clone(x.want)
		slices.Sort(want)
		if !slices.Equal(got.devices, want) {
			t.Errorf("task %d with %d devices is on %v, want %v", i, x.gang, got.devices, want)
		}
	}
}

// TestOrderOfNodes: as tasks come and go, nodes with room stand in the order that sorting all of them says.
func TestOrderOfNodes(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p := newPlanner(Config{MaxResidents: 3, Oversubscribe: true})
		for range rapid.IntRange(1, 200).Draw(t, "nodes") {
			p.addNode(rapid.Int32Range(0, 4).Draw(t, "devices"), 16<<10)
		}
		var there []*task
		for i := range int32(rapid.IntRange(1, 60).Draw(t, "events")) {
			if len(there) > 0 && rapid.IntRange(0, 3).Draw(t, "leaves") == 0 {
				at := rapid.IntRange(0, len(there)-1).Draw(t, "who")
				p.unsettle(there[at])
				there = slices.Delete(there, at, at+1)
				continue
			}
			x := &task{id: i, gang: rapid.Int32Range(1, 6).Draw(t, "gang")}
			if !p.add(x) {
				continue
			}
			there = append(there, x)
			most, least, class := rapid.Int32Range(1, 3).Draw(t, "most"), rapid.Int32Range(0, p.largest).Draw(t, "least"), rapid.Int32Range(1, 6).Draw(t, "class")
			var want []int32
			for n := range p.nodes() {
				room := int32(0)
				for d := p.first[n]; d < p.first[n+1]; d++ {
					if int32(len(p.residents[d])) < most {
						room++
					}
				}
				if room >= least {
					want = append(want, n)
				}
			}
			order := func(n int32) int {
				return slices.Index([]int32{class, 0, p.affinity(n)}, p.affinity(n))
			}
			slices.SortStableFunc(want, func(a, b int32) int {
				return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(p.height(a), p.height(b)))
			})
			if got := slices.Collect(p.ranks.inOrder(class, room{most, least})); !slices.Equal(got, want) {
				t.Fatalf("nodes with %d devices of fewer than %d residents are %v for a gang of %d, want %v", least, most, got, class, want)
			}
		}
	})
}

// TestTurns: nobody shares a device within a slice but pairs, every device with
// residents is used, and everybody's turn comes within as many slices as there are
// tasks.
func TestTurns(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p := clusterOf(Default(), rapid.IntRange(1, 3).Draw(t, "nodes"), 4)
		n := rapid.IntRange(1, 12).Draw(t, "tasks")
		for i := range n {
			p.add(&task{id: int32(i), gang: []int32{1, 2, 4}[rapid.IntRange(0, 2).Draw(t, "gang")]})
		}
		for range n + 1 {
			p.rotate()
			users := make([]int, len(p.residents))
			for _, x := range p.tasks {
				for _, d := range x.devices {
					if x.active {
						users[d]++
					}
				}
			}
			for d, u := range users {
				if u > 1 {
					t.Fatalf("device %d has %d at once", d, u)
				}
			}
		}
		for _, x := range p.tasks {
			if x.last == 0 {
				t.Fatalf("task %d of %d devices has had no turn in %d slices", x.id, x.gang, n+1)
			}
		}
	})
}

// TestTrial: the least busy of those who wait on the same devices is tried first, what
// sums to less than one is parted and not tried again.
func TestTrial(t *testing.T) {
	p := clusterOf(Default(), 1, 1)
	for i, busy := range []int32{900, 500, 300} {
		p.add(&task{id: int32(i), gang: 1, busy: busy})
	}
	p.rotate()
	trials := p.try()
	if len(trials) != 1 || trials[0][0].id != 0 || trials[0][1].id != 2 {
		t.Fatalf("on trial are %v", trials)
	}
	p.judge(trials[0], 999)
	if p.tasks[0].partner != nil || p.tasks[2].active {
		t.Error("a pair that does less than one alone stayed together")
	}
	p.rotate() // task 1
	if trials = p.try(); len(trials) != 1 || trials[0][0].id != 1 || trials[0][1].id != 2 {
		t.Fatalf("then %v", trials)
	}
	p.judge(trials[0], unit.Whole)
	p.rotate()
	p.rotate()
	if a, b := p.tasks[1], p.tasks[2]; a.partner != b || a.active != b.active {
		t.Error("a pair that does as much as one alone was parted, or runs apart")
	}
}

// TestPackingHoldsMemory: a guest keeps its memory between turns, so a second pair is not
// tried on a device that has none for another guest.
func TestPackingHoldsMemory(t *testing.T) {
	for _, x := range []struct{ memory, pairs int32 }{{6 << 10, 1}, {5 << 10, 2}} {
		p := clusterOf(Default(), 1, 1)
		for i := range int32(4) {
			p.add(&task{id: i, gang: 1, memory: x.memory})
		}
		pairs := int32(0)
		for range 4 {
			p.rotate()
			pairs += int32(len(p.try()))
		}
		if pairs != x.pairs {
			t.Errorf("%d pairs of jobs of %d MiB on a device of 16 GiB, want %d", pairs, x.memory, x.pairs)
		}
	}
}
