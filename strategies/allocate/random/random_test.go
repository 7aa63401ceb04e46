package random_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/random"
)

func TestConforms(t *testing.T) {
	allocatetest.Conform(t, func() allocate.Placer { return random.New(random.Default()) })
}

// Every node with room is drawn equally often, whether nearly all have room or few:
// the counts of 6,000 jobs lie within five standard deviations of the mean.
func TestEven(t *testing.T) {
	for _, test := range []struct{ nodes, every int }{{20, 1}, {2000, 100}} {
		free := make([]allocatetest.Part, test.nodes)
		for i := 0; i < test.nodes; i += test.every {
			free[i].Devices = 1
		}
		s := allocatetest.Cluster(t, 1, 16, free...)
		p := random.New(random.Default())
		shape := allocatetest.Gang(1)
		const jobs = 6000
		drawn := map[plan.NodeID]int{}
		for job := range plan.JobID(jobs) {
			found := p.Place(s.View(), allocate.Need{Job: job, Workers: 1, Shape: &shape}, 1, nil)
			drawn[found[0].Slots[0].Node]++
		}
		mean := float64(jobs) / 20
		for n := 0; n < test.nodes; n += test.every {
			if got := float64(drawn[plan.NodeID(n)]); math.Abs(got-mean) > 5*math.Sqrt(mean) {
				t.Errorf("node %d of %d is drawn %g times, want about %g", n, test.nodes, got, mean)
			}
		}
	}
}

// The draw differs between attempts and seeds and not between calls.
func TestChance(t *testing.T) {
	s := allocatetest.Cluster(t, 1, 16, slices.Repeat([]allocatetest.Part{{Devices: 1}}, 1000)...)
	shape := allocatetest.Gang(3)
	draw := func(seed uint64, attempt int32) string {
		need := allocate.Need{Job: 7, Attempt: attempt, Workers: 3, Shape: &shape}
		return fmt.Sprint(random.New(random.Config{Seed: seed}).Place(s.View(), need, 1, nil))
	}
	first := draw(1, 0)
	if again, attempt, seed := draw(1, 0), draw(1, 1), draw(2, 0); again != first || attempt == first || seed == first {
		t.Errorf("got %s, again %s, another attempt %s, another seed %s", first, again, attempt, seed)
	}
}

func BenchmarkPlace(b *testing.B) {
	allocatetest.Bench(b, func() allocate.Placer { return random.New(random.Default()) })
}
