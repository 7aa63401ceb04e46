package liquid

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
)

// two racks of two nodes each, in one domain or two.
func four(domains int32, room ...int32) []Site {
	sites := make([]Site, 4)
	for i := range sites {
		sites[i] = Site{Rack: int32(i / 2), Domain: int32(i/2) * (domains - 1), Room: room[i], Busy: 4 - room[i], Devices: 4}
	}
	return sites
}

func TestNetworkCost(t *testing.T) {
	for _, test := range []struct {
		name    string
		gang    Gang
		domains int32
		where   []int32
		want    float64
	}{
		{"one node", Gang{4, 1, 2}, 2, []int32{0, 0, 0, 0}, 0},
		{"a worker in the rack", Gang{3, 1, 2}, 2, []int32{0, 0, 1}, 2},
		{"workers in the rack, another rack", Gang{4, 1, 2}, 1, []int32{0, 0, 1, 2}, 2 * (1 + 4)},
		{"beyond the domain", Gang{4, 1, 2}, 2, []int32{0, 0, 1, 2}, 2 * (1 + 40)},
		{"servers do not talk to each other", Gang{3, 2, 1}, 2, []int32{0, 3, 0}, 40},
		{"without servers all talk", Gang{3, 0, 1}, 2, []int32{0, 1, 2}, 1 + 40 + 40},
	} {
		sites := four(test.domains, 4, 4, 4, 4)
		// Task by task by the published formula it is the same.
		s, sum := newSpot(sites, published), 0.0
		s.begin(&test.gang)
		for task, site := range test.where {
			sum += s.network(int32(task), site)
			s.add(int32(task), site)
		}
		if sum != test.want {
			t.Errorf("%s: task by task %g, want %g", test.name, sum, test.want)
		}
	}
}

func TestOrderTakesTurns(t *testing.T) {
	for _, test := range []struct {
		gang Gang
		want []int32
	}{
		{Gang{Tasks: 6, Servers: 2}, []int32{0, 2, 3, 1, 4, 5}},
		{Gang{Tasks: 3, Servers: 0}, []int32{0, 1, 2}},
		{Gang{Tasks: 2, Servers: 2}, []int32{0, 1}},
	} {
		if got := test.gang.order(nil); !slices.Equal(got, test.want) {
			t.Errorf("%+v: got %v, want %v", test.gang, got, test.want)
		}
	}
}

// The search holds every site's room, costs no more than greedy, says what it costs, and
// says the same again. On two gangs of three tasks it is at most so far from the best of
// all placements.
func TestBatch(t *testing.T) {
	worst := 1.0
	draws.Check(t, func(t *rapid.T) {
		room := rapid.SliceOfN(rapid.Int32Range(0, 4), 4, 4).Draw(t, "room")
		sites := four(rapid.Int32Range(1, 2).Draw(t, "domains"), room...)
		gangs := []Gang{{3, 1, 1}, {3, rapid.Int32Range(0, 2).Draw(t, "servers"), 2}}
		_, greedy, ok := Batch(sites, gangs, published, 0, 1)
		if ok != (room[0]+room[1]+room[2]+room[3] >= 6) {
			t.Fatalf("room %v: placed is %v", room, ok)
		}
		if !ok {
			return
		}
		where, cost, _ := Batch(sites, gangs, published, 100_000, 1)
		again, _, _ := Batch(sites, gangs, published, 100_000, 1)
		if cost > greedy || !slices.EqualFunc(where, again, slices.Equal) {
			t.Fatalf("greedy %g, searched %g: %v and %v", greedy, cost, where, again)
		}
		if said := total(sites, gangs, slices.Concat(where...)); math.Abs(said-cost) > 1e-9 {
			t.Fatalf("it says %g and costs %g", cost, said)
		}
		best := everyPlacement(sites, gangs)
		if cost < best-1e-9 {
			t.Fatalf("costs %g, less than any placement, %g", cost, best)
		}
		worst = max(worst, (cost+2)/(best+2)) // loads may make it negative, by less than 2
	})
	t.Logf("at worst %.3f times the best", worst)
	if worst > 1.5 {
		t.Errorf("at worst %.3f times the best", worst)
	}
}

// total is the cost of two gangs of three tasks at these sites; infinite without room.
func total(sites []Site, gangs []Gang, where []int32) float64 {
	used := make([]int32, len(sites))
	for _, s := range where {
		if used[s]++; used[s] > sites[s].Room {
			return math.Inf(1)
		}
	}
	s := newSpot(sites, published)
	return s.cost(&gangs[0], where[:3]) + s.cost(&gangs[1], where[3:])
}

func everyPlacement(sites []Site, gangs []Gang) float64 {
	best := math.Inf(1)
	for code := range 1 << 12 {
		where := make([]int32, 6)
		for i := range where {
			where[i] = int32(code >> (2 * i) & 3)
		}
		best = min(best, total(sites, gangs, where))
	}
	return best
}

// Batches that are searched cost less in all, and none costs more than greedily placed.
func TestMeasure(t *testing.T) {
	if m := Measure(1); m["batches_worse_than_greedy"] != 0 || m["searched_batch_cost"] >= m["greedy_batch_cost"] {
		t.Errorf("%g batches cost more than greedy's; %g in all, greedy's %g", m["batches_worse_than_greedy"], m["searched_batch_cost"], m["greedy_batch_cost"])
	}
}

// Greedy, gang by gang, never has less room than it needs where there is enough.
func TestCandidatesHold(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		sites, free := halfUsed(rng)
		g := draw(rng)
		look, room := candidates(sites, g.Tasks, nil), int32(0)
		for _, id := range look {
			room += sites[id].Room
		}
		if free >= g.Tasks && room < g.Tasks || len(look) > int(3*g.Tasks+5) {
			t.Fatalf("%d sites with room for %d of %d tasks", len(look), room, g.Tasks)
		}
	}
}
