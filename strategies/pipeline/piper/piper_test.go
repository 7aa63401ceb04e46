package piper

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/parallel/paralleltest"
	"github.com/musterdl/muster/run/simulated/scheduletest"
)

func TestConform(t *testing.T) {
	scheduletest.ConformPart(t, parallel.PlannerPart, func() any { return Planner{} })
}

// TestBruteForce: the program finds what trying all finds, and its plan, counted anew, takes
// what the program says.
func TestBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	found := 0
	for range 300 {
		g := Draw(rng, 1+rng.IntN(6), 1+rng.IntN(4))
		v, err := Solve(g, g.Devices)
		if err != nil {
			t.Fatal(err)
		}
		best := v.Best(g.Devices)
		if want := BruteForce(g); best != want {
			t.Fatalf("%d nodes on %d devices, turns %v: %g, trying all finds %g", g.Nodes, g.Devices, g.Turns, best, want)
		}
		if math.IsInf(best, 1) {
			continue
		}
		found++
		if again := g.Evaluate(v.Stages(g.Devices)); again != best {
			t.Fatalf("the plan takes %g, the program says %g", again, best)
		}
	}
	if found < 150 {
		t.Errorf("%d of 300 fit: expected half at least", found)
	}
}

// TestPipeDream: without tensor parallelism and limits of memory and links the program finds the
// optimum of PipeDream's.
func TestPipeDream(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		g := Draw(rng, 1+rng.IntN(8), 1+rng.IntN(6))
		g.Tensors, g.Memory, g.Bandwidth, g.Turns = []int{1}, 0, 0, true
		fast := make([]float64, g.Nodes)
		for i := range fast {
			fast[i] = math.Inf(1)
			for _, c := range g.Configs(i, 1, 1) {
				fast[i] = min(fast[i], c.Time)
			}
		}
		best := make([][]float64, g.Nodes+1) // of the first nodes on so many devices
		for j := range best {
			best[j] = make([]float64, g.Devices+1)
			for m := range best[j] {
				if j > 0 {
					best[j][m] = math.Inf(1)
				}
				sum := 0.0
				for i := j - 1; i >= 0; i-- {
					sum += fast[i]
					for _, d := range g.Replicas {
						if d <= m {
							best[j][m] = min(best[j][m], max(best[i][m-d], sum/float64(d)))
						}
					}
				}
			}
		}
		v, err := Solve(g, g.Devices)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := v.Best(g.Devices), best[g.Nodes][g.Devices]; math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%d nodes on %d devices: %g, PipeDream's optimum is %g", g.Nodes, g.Devices, got, want)
		}
	}
}

// TestMeasured: on Piper's own inputs the plan is never slower than the one that its program
// prints, and counted anew it takes what the program says.
func TestMeasured(t *testing.T) {
	r, err := Measure(data, 1)
	if err != nil {
		t.Skip(err)
	}
	if r["published_most"] > 1.0000001 || r["published_least"] < .9 || math.Abs(r["again_most"]-1) > 1e-9 || math.Abs(r["again_least"]-1) > 1e-9 {
		t.Errorf("%v", r)
	}
}

func data(path string) (io.ReadCloser, error) { return os.Open("../../../../shared/data/" + path) }

func BenchmarkPublished(b *testing.B) {
	for _, c := range printed {
		g, err := Read(data, "pipeline-profiles/piper/"+c.file+".json.gz")
		if err != nil {
			b.Skip(err)
		}
		g.Devices, g.Memory, g.Microbatches = c.devices, c.memoryGiB*(1<<30), c.microbatches
		b.Run(fmt.Sprintf("%s-%d-%gGiB", c.file, c.devices, c.memoryGiB), func(b *testing.B) {
			for b.Loop() {
				v, err := Solve(g, min(c.devices, c.microbatches))
				if err != nil {
					b.Fatal(err)
				}
				v.Stages(min(c.devices, c.microbatches))
			}
		})
	}
}

// TestPlans: stages have their own degrees, and what comes back fits and is worth its memory.
func TestPlans(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	mixed := 0
	for range 20 {
		m := &parallel.Model{Profile: paralleltest.Uneven(rng, 8), Batch: 16, State: parallel.MixedAdam}
		on := parallel.Even(parallel.Device{Name: "unit", TFlops: 1, Memory: 3000}, 3, 2, 8000)
		all, why := Planner{}.Plans(parallel.NewSimulator(m, on), parallel.Limits{Sequences: []parallel.Sequence{paralleltest.OneFOneB}})
		if why != "" {
			t.Fatal(why)
		}
		for _, c := range all {
			if c.Result.PeakKiB() > 3000<<10 {
				t.Errorf("%v holds %d KiB", &c.Plan, c.Result.PeakKiB())
			}
			ranks := c.Plan.Pipelines[0].Ranks
			for _, r := range ranks {
				if r.Tensor != ranks[0].Tensor || r.Replicas != ranks[0].Replicas {
					mixed++
					break
				}
			}
		}
	}
	if mixed == 0 {
		t.Error("no plan has stages of unlike degrees")
	}
}
