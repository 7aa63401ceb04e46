package trainer

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/run/trainer/progress"
	"github.com/musterdl/muster/strategies/pipeline/dualpipe"
	gpipes "github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/pipeline/interleaved"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"github.com/musterdl/muster/strategies/pipeline/varuna"
	"github.com/musterdl/muster/strategies/pipeline/zbv"
	"github.com/musterdl/muster/strategies/pipeline/zerobubble"
)

// tiny is a job whose steps take about a millisecond.
func tiny() Config {
	c := Default()
	c.Shape = Shape{Vocab: 256, Dim: 16, Layers: 2, Heads: 2, Seq: 12}
	c.Batch, c.Steps, c.CheckpointEvery = 6, 20, 0
	return c
}

func flags(c Config, more ...string) []string {
	return append([]string{"--dim", strconv.Itoa(c.Dim), "--layers", strconv.Itoa(c.Layers),
		"--heads", strconv.Itoa(c.Heads), "--seq", strconv.Itoa(c.Seq), "--batch", strconv.Itoa(c.Batch),
		"--steps", strconv.Itoa(c.Steps), "--checkpoint-every", strconv.Itoa(c.CheckpointEvery),
		"--seed", strconv.FormatUint(c.Seed, 10)}, more...)
}

// freePort returns a port of the loopback that nobody listens on.
func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// result is what one attempt of a whole world left behind.
type result struct {
	codes  []int
	logs   []string
	events []progress.Event // of rank 0
}

// losses are by step.
func (r result) losses() map[int64]float64 {
	losses := map[int64]float64{}
	for _, e := range r.events {
		if e.Kind == progress.Step {
			losses[e.Step] = e.Loss
		}
	}
	return losses
}

func (r result) saved() (steps []int64) {
	for _, e := range r.events {
		if e.Kind == progress.Checkpoint {
			steps = append(steps, e.Step)
		}
	}
	return steps
}

// must fails the test unless all workers ended with this code.
func (r result) must(t testing.TB, code int) result {
	t.Helper()
	for rank, c := range r.codes {
		if c != code {
			t.Fatalf("rank %d ended with %d, want %d:\n%s", rank, c, code, r.logs[rank])
		}
	}
	return r
}

// attempt runs a world of n workers in this process.
func attempt(t testing.TB, n int, args []string, env map[string]string) result {
	t.Helper()
	r := result{codes: make([]int, n), logs: make([]string, n)}
	report := filepath.Join(t.TempDir(), "progress")
	port := freePort(t)
	var all sync.WaitGroup
	for rank := range n {
		all.Go(func() {
			own := map[string]string{"RANK": strconv.Itoa(rank), "WORLD_SIZE": strconv.Itoa(n),
				"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "MUSTER_PROGRESS": report}
			var log bytes.Buffer
			r.codes[rank] = Main(args, func(key string) string {
				if v, ok := own[key]; ok {
					return v
				}
				return env[key]
			}, &log)
			r.logs[rank] = log.String()
		})
	}
	all.Wait()
	r.events = readEvents(t, report)
	return r
}

func readEvents(t testing.TB, path string) []progress.Event {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var p progress.Parser
	events := p.Feed(b)
	if p.Malformed > 0 {
		t.Fatalf("%d malformed progress lines in %q", p.Malformed, b)
	}
	return events
}

func gpipe(microbatches int, cuts ...int32) *pipeline.Plan {
	return planned(gpipes.Ordering{}, len(cuts)+1, microbatches, cuts...)
}

func oneForwardOneBackward(microbatches int, cuts ...int32) *pipeline.Plan {
	return planned(onefoneb.Ordering{}, len(cuts)+1, microbatches, cuts...)
}

func planned(o pipeline.Ordering, workers, microbatches int, cuts ...int32) *pipeline.Plan {
	costs := pipeline.Like(len(cuts) + 1)
	s, why := o.Schedule(workers, microbatches, &costs)
	if why != "" {
		panic(why)
	}
	p := &pipeline.Plan{Stages: int32(s.Stages()), Microbatches: int32(microbatches), Cuts: cuts, Orders: s.Orders}
	if s.Stages() > workers {
		p.Routes = s.Routes
	}
	return p
}

// sliced is a plan whose layers are on so many workers each.
func sliced(p *pipeline.Plan, tensor int32) *pipeline.Plan {
	p.Tensor = tensor
	return p
}

func writePlan(t testing.TB, p *pipeline.Plan) string {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "plan.json")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// division is a way to run the tiny job.
type division struct {
	name    string
	workers int
	plan    *pipeline.Plan
}

func divisions() []division {
	return []division{
		{"1 worker", 1, nil},
		{"2 workers", 2, nil},
		{"3 workers", 3, nil},
		{"4 workers with unequal shares", 4, nil},
		{"2 stages gpipe", 2, gpipe(3, 2)},
		{"2 stages 1f1b", 2, oneForwardOneBackward(6, 1)},
		{"3 stages 1f1b, unequal microbatches", 3, oneForwardOneBackward(4, 1, 3)},
		{"4 stages, one layer each", 4, oneForwardOneBackward(6, 1, 2, 3)},
		{"2 stages, passes in halves", 2, planned(zerobubble.H1{}, 2, 6, 2)},
		{"4 stages, passes in halves", 4, planned(zerobubble.H2{}, 4, 6, 1, 2, 3)},
		{"2 stages, computed again", 2, planned(varuna.Ordering{}, 2, 6, 2)},
		{"4 stages, computed again", 4, planned(varuna.Ordering{}, 4, 6, 1, 2, 3)},
		{"2 workers, 4 stages, there and back", 2, planned(dualpipe.V{}, 2, 6, 1, 2, 3)},
		{"1 worker, 2 stages", 1, planned(dualpipe.V{}, 1, 3, 2)},
		{"2 workers, 4 stages, round and round", 2, planned(interleaved.New(interleaved.Default()), 2, 6, 1, 2, 3)},
		{"2 workers, 4 stages, there and back in halves", 2, planned(zbv.V{}, 2, 6, 1, 2, 3)},
		{"2 pipelines of 2 stages", 4, oneForwardOneBackward(3, 2)},
		{"2 slices", 2, sliced(gpipe(1), 2)},
		{"2 stages of 2 slices, in halves", 4, sliced(planned(zerobubble.H1{}, 2, 3, 2), 2)},
	}
}

func (d division) env(t testing.TB, dir string) map[string]string {
	env := map[string]string{"MUSTER_CHECKPOINT_DIR": dir}
	if d.plan != nil {
		env["MUSTER_PLAN"] = writePlan(t, d.plan)
	}
	return env
}

// meshes connects a world over the loopback.
func meshes(t testing.TB, n int, p patience) []*mesh {
	t.Helper()
	return meshesFor(t, division{workers: n}, p)
}

// meshesFor connects the world of a division.
func meshesFor(t testing.TB, d division, p patience) []*mesh {
	t.Helper()
	n := d.workers
	all, errs := make([]*mesh, n), make([]error, n)
	master := net.JoinHostPort("127.0.0.1", freePort(t))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var wait sync.WaitGroup
	for rank := range n {
		wait.Go(func() {
			at := place{rank: rank, world: n, master: master, digest: "test", patience: p}
			if d.plan != nil {
				at.pipe, at.tensor = len(d.plan.Orders), int(d.plan.Tensor)
			}
			all[rank], errs[rank] = join(ctx, at)
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// together calls f for all ranks at once and fails the test on any error.
func together(t testing.TB, n int, f func(rank int) error) {
	t.Helper()
	errs := make([]error, n)
	var wait sync.WaitGroup
	for rank := range n {
		wait.Go(func() { errs[rank] = f(rank) })
	}
	wait.Wait()
	for rank, err := range errs {
		if err != nil {
			t.Fatalf("rank %d: %v", rank, err)
		}
	}
}

func closeTo(a, b, relative, absolute float64) bool {
	return math.Abs(a-b) <= absolute+relative*math.Max(math.Abs(a), math.Abs(b))
}
