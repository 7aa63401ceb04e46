package pipeline_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/strategies/pipeline/dpcut"
	"github.com/musterdl/muster/strategies/pipeline/equal"
	"github.com/musterdl/muster/strategies/pipeline/gpipe"
	"github.com/musterdl/muster/strategies/pipeline/onefoneb"
	"pgregory.net/rapid"
)

func build(t interface{ Fatalf(string, ...any) }, part pipeline.Partitioner, ord pipeline.Ordering, job workload.Pipeline, p pipeline.Params) pipeline.Plan {
	plan, why := pipeline.Build(part, ord, job, p)
	if why != "" {
		t.Fatalf("no plan: %s", why)
	}
	return plan
}

// even is a pipeline of equal stages of one layer each.
func even(stages, microbatches int, forward, backward unit.Duration) workload.Pipeline {
	layer := workload.Layer{Forward: forward, Backward: backward, ActivationKiB: 10, OutputKiB: 10, ParamKiB: 5}
	return workload.Pipeline{Stages: int32(stages), Microbatches: int32(microbatches), Layers: slices.Repeat([]workload.Layer{layer}, stages)}
}

// TestClosedForms holds both orders to what is known of equal stages and a free
// network: idle (p-1)T; activations of m and of min(p-r, m) microbatches.
func TestClosedForms(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		p, m := rapid.IntRange(1, 9).Draw(t, "stages"), rapid.IntRange(1, 20).Draw(t, "microbatches")
		forward := unit.Duration(rapid.IntRange(1, 50).Draw(t, "forward"))
		backward := unit.Duration(rapid.IntRange(1, 90).Draw(t, "backward"))
		job := even(p, m, forward, backward)
		all := build(t, equal.Partitioner{}, gpipe.Ordering{}, job, pipeline.Params{ParamCopies: 4})
		one := build(t, equal.Partitioner{}, onefoneb.Ordering{}, job, pipeline.Params{ParamCopies: 4})
		want := unit.Duration(m+p-1) * (forward + backward)
		if all.Iteration != want || one.Iteration != want {
			t.Fatalf("iterations %v and %v, want %v", all.Iteration, one.Iteration, want)
		}
		if ratio := float64(p-1) / float64(m+p-1); max(all.Bubble-ratio, ratio-all.Bubble, one.Bubble-ratio, ratio-one.Bubble) > 1e-9 {
			t.Fatalf("bubbles %g and %g, want %g", all.Bubble, one.Bubble, ratio)
		}
		for r := range p {
			if got, want := all.PeakKiB[r], int64(20+10*m); got != want {
				t.Fatalf("gpipe: stage %d peaks at %d, want %d", r, got, want)
			}
			if got, want := one.PeakKiB[r], int64(20+10*min(p-r, m)); got != want {
				t.Fatalf("1f1b: stage %d peaks at %d, want %d", r, got, want)
			}
		}
	})
}

// TestLatencyCostsMoreThanTheTrip checks two idle times measured elsewhere: with
// a latency of a tenth of a forward pass 1F1B loses more than 2(p-1) of it.
func TestLatencyCostsMoreThanTheTrip(t *testing.T) {
	for _, c := range []struct {
		p, m int
		idle unit.Duration
	}{{4, 16, 11800}, {8, 32, 27800}} {
		plan := build(t, equal.Partitioner{}, onefoneb.Ordering{}, even(c.p, c.m, 1000, 2000), pipeline.Params{Latency: 100})
		if idle := plan.Iteration - unit.Duration(c.m)*3000; idle != c.idle {
			t.Errorf("p=%d m=%d: idle %v, want %v", c.p, c.m, idle, c.idle)
		}
	}
}

// randomJob draws uneven layers and a network that matters but need not dominate.
func randomJob(r *rand.Rand) (workload.Pipeline, pipeline.Params) {
	layers := make([]workload.Layer, 6+r.IntN(24))
	for i := range layers {
		forward := unit.Duration(100 + r.IntN(5000))
		layers[i] = workload.Layer{Forward: forward, Backward: 2 * forward, OutputKiB: int64(1 + r.IntN(4000)), ActivationKiB: int64(r.IntN(9000))}
	}
	stages := int32(2 + r.IntN(min(7, len(layers)-1)))
	return workload.Pipeline{Stages: stages, Microbatches: stages * int32(1+r.IntN(6)), Layers: layers},
		pipeline.Params{Bandwidth: unit.Mbps(4000 + r.IntN(100_000)), Latency: unit.Duration(r.IntN(50))}
}

// slowest is what dpcut minimises: the slowest stage or link of a plan.
func slowest(layers []workload.Layer, cuts []int32, p pipeline.Params) unit.Duration {
	worst, first := unit.Duration(0), 0
	for _, end := range append(slices.Clone(cuts), int32(len(layers))) {
		sum := unit.Duration(0)
		for _, l := range layers[first:end] {
			sum += l.Forward + l.Backward
		}
		if first = int(end); first < len(layers) {
			sum = max(sum, 2*p.Transfer(layers[first-1].OutputKiB))
		}
		worst = max(worst, sum)
	}
	return worst
}

// TestDPCutAgainstEqual: by its own measure dpcut never loses; simulated it may,
// but seldom: 1F1B keeps too few microbatches to hide the transfers, so that
// the trip of one counts as well as the slowest part.
func TestDPCutAgainstEqual(t *testing.T) {
	const cases = 400
	r := rand.New(rand.NewPCG(1, 1))
	for _, ord := range []pipeline.Ordering{gpipe.Ordering{}, onefoneb.Ordering{}} {
		better, gain := 0, 0.0
		for range cases {
			job, p := randomJob(r)
			cut, null := build(t, dpcut.Partitioner{}, ord, job, p), build(t, equal.Partitioner{}, ord, job, p)
			if a, b := slowest(job.Layers, cut.Cuts, p), slowest(job.Layers, null.Cuts, p); a > b {
				t.Fatalf("slowest part %v with dpcut, %v with equal: %+v %+v", a, b, job, p)
			}
			if cut.Iteration <= null.Iteration {
				better++
			}
			gain += float64(null.Iteration) / float64(cut.Iteration) / cases
		}
		t.Logf("%T: at least as fast in %d of %d, %.3f times on average", ord, better, cases, gain)
		if better < cases*90/100 {
			t.Errorf("%T: dpcut is at least as fast as equal in only %d of %d", ord, better, cases)
		}
	}
}

// TestOneFOneBKeepsLess: on any profile and cut, at any latency.
func TestOneFOneBKeepsLess(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		job, p := randomJob(r)
		one, all := build(t, equal.Partitioner{}, onefoneb.Ordering{}, job, p), build(t, equal.Partitioner{}, gpipe.Ordering{}, job, p)
		for s := range one.PeakKiB {
			if one.PeakKiB[s] > all.PeakKiB[s] {
				t.Fatalf("stage %d keeps %d KiB with 1f1b and %d with gpipe: %+v", s, one.PeakKiB[s], all.PeakKiB[s], job)
			}
		}
	}
}

// TestVGG16 plans PipeDream's measured profile, whose first layers take most of
// the time and the last most of the parameters.
func TestVGG16(t *testing.T) {
	layers := readProfile(t, "vgg16")
	job := workload.Pipeline{Stages: 4, Microbatches: 16, Layers: layers}
	p := pipeline.Params{Bandwidth: 25_000, Latency: 20, ParamCopies: 4}
	null := build(t, equal.Partitioner{}, gpipe.Ordering{}, job, p)
	plan := build(t, dpcut.Partitioner{}, onefoneb.Ordering{}, job, p)
	t.Logf("equal, gpipe: %v, bubble %.2f, %v KiB; dpcut, 1f1b: %v, bubble %.2f, %v KiB, cuts %v",
		null.Iteration, null.Bubble, null.PeakKiB, plan.Iteration, plan.Bubble, plan.PeakKiB, plan.Cuts)
	if plan.Iteration*10 > null.Iteration*8 || plan.PeakKiB[0] >= null.PeakKiB[0] {
		t.Errorf("%v and %d KiB, want at most 0.8 of %v and less than %d KiB", plan.Iteration, plan.PeakKiB[0], null.Iteration, null.PeakKiB[0])
	}
}

// readProfile reads the layers of a chain in PipeDream's format: a node a line.
// The input node is data loading, and nodes without time compute shapes.
func readProfile(t *testing.T, model string) []workload.Layer {
	path := filepath.Join("..", "..", "shared", "data", "pipeline-profiles", "pipedream", model+".graph.txt")
	file, err := os.Open(path)
	if err != nil {
		t.Skipf("the measured profile is absent: %v", err)
	}
	defer file.Close()
	byNode := map[int]workload.Layer{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		part := strings.Split(lines.Text(), " -- ")
		var node int
		var forward, backward, activation, params float64
		if len(part) != 3 || part[1] == "Input" {
			continue
		}
		fmt.Sscanf(part[0], "node%d", &node)
		if _, err := fmt.Sscanf(part[2], "forward_compute_time=%f, backward_compute_time=%f, activation_size=%f, parameter_size=%f",
			&forward, &backward, &activation, &params); err != nil {
			t.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
		if forward+backward > 0 {
			byNode[node] = workload.Layer{Name: part[1], Forward: unit.Seconds(forward / 1e3), Backward: unit.Seconds(backward / 1e3),
				ParamKiB: int64(params) >> 10, OutputKiB: int64(activation) >> 10, ActivationKiB: int64(activation) >> 10}
		}
	}
	var layers []workload.Layer
	for node := range 1000 {
		if l, ok := byNode[node]; ok {
			layers = append(layers, l)
		}
	}
	return layers
}

func TestJSON(t *testing.T) {
	plan := build(t, equal.Partitioner{}, onefoneb.Ordering{}, even(2, 3, 1, 2), pipeline.Params{})
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"stages":2,"microbatches":3,"cuts":[1],"orders":[["0F0","0F1","0B0","0F2","0B1","0B2"],["1F0","1B0","1F1","1B1","1F2","1B2"]]}`
	if string(text) != want {
		t.Errorf("got %s, want %s", text, want)
	}
	var back pipeline.Plan
	if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.Orders, plan.Orders) || back.Check(2) != "" {
		t.Errorf("read back %+v, %v, %s", back, err, back.Check(2))
	}
	for _, bad := range []string{"", "F", "F0", "0X0", "0F-1", "0Fx", "-1F0", "0F99999999999", "0F1&&"} {
		if new(pipeline.Op).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("%q is read as an operation", bad)
		}
	}
}

func TestRefusals(t *testing.T) {
	fit := even(3, 4, 10, 20)
	with := func(change func(*workload.Pipeline)) workload.Pipeline {
		job := fit
		job.Layers = slices.Clone(fit.Layers)
		change(&job)
		return job
	}
	for _, c := range []struct {
		want string
		job  workload.Pipeline
		p    pipeline.Params
	}{
		{"4 stages for 3 layers", with(func(j *workload.Pipeline) { j.Stages = 4 }), pipeline.Params{}},
		{"0 stages", with(func(j *workload.Pipeline) { j.Stages = 0 }), pipeline.Params{}},
		{"0 microbatches", with(func(j *workload.Pipeline) { j.Microbatches = 0 }), pipeline.Params{}},
		{"1000000 microbatches", with(func(j *workload.Pipeline) { j.Microbatches = 1_000_000 }), pipeline.Params{}},
		{"layer 1", with(func(j *workload.Pipeline) { j.Layers[1].Backward = -1 }), pipeline.Params{}},
		{"layer 2", with(func(j *workload.Pipeline) { j.Layers[2].OutputKiB = 1 << 50 }), pipeline.Params{}},
		{"2 device speeds", fit, pipeline.Params{Speeds: []float64{1, 1}}},
		{"speed 0 of stage 1", fit, pipeline.Params{Speeds: []float64{1, 0, 1}}},
		{"nothing negative", fit, pipeline.Params{Bandwidth: -1}},
		{"rank 0 needs 2MiB of device memory, a device has 1MiB", with(func(j *workload.Pipeline) { j.Layers[0].ActivationKiB = 500 }), pipeline.Params{Memory: 1}},
	} {
		if _, why := pipeline.Build(equal.Partitioner{}, gpipe.Ordering{}, c.job, c.p); !strings.Contains(string(why), c.want) {
			t.Errorf("got %q, want %q", why, c.want)
		}
	}
}

// TestForeignPlans simulates plans that no strategy made.
func TestForeignPlans(t *testing.T) {
	layers := even(2, 1, 10, 20).Layers
	for _, c := range []struct{ want, plan string }{
		{"", `{"stages":2,"microbatches":2,"cuts":[1],"orders":[["0F1","0F0","0B1","0B0"],["1F1","1B1","1F0","1B0"]]}`},
		{"rank 0 0F0 <- rank 0 0B1", `{"stages":2,"microbatches":2,"cuts":[1],"orders":[["0F1","0B1","0F0","0B0"],["1F0","1B0","1F1","1B1"]]}`},
		{"", `{"stages":2,"microbatches":4,"iterations":2,"wave":1,"cuts":[1],"orders":[["0F0","0F1","0B0","0B1","0F2","0F3","0B2","0B3"],["1F0","1B0","1F1","1B1","1F2","1B2","1F3","1B3"]]}`},
		{"3 microbatches of 2 iterations", `{"stages":2,"microbatches":3,"iterations":2,"wave":1,"cuts":[1],"orders":[["0F0","0B0"],["1F0","1B0"]]}`},
		{"waves of 0", `{"stages":2,"microbatches":2,"iterations":2,"cuts":[1],"orders":[["0F0","0B0"],["1F0","1B0"]]}`},
		{"cut 0 is at layer 2", `{"stages":2,"microbatches":1,"cuts":[2],"orders":[["0F0","0B0"],["1F0","1B0"]]}`},
		{"cut 0 is at layer 0", `{"stages":2,"microbatches":1,"cuts":[0],"orders":[["0F0","0B0"],["1F0","1B0"]]}`},
		{"0 cuts", `{"stages":2,"microbatches":1,"orders":[["0F0","0B0"],["1F0","1B0"]]}`},
		{"expected a pass forward and one backward", `{"stages":1,"microbatches":1,"orders":[["0F0"]]}`},
		{"operation 0 is 0B0", `{"stages":1,"microbatches":1,"orders":[["0B0","0F0"]]}`},
		{"operation 1 is 0F0", `{"stages":1,"microbatches":1,"orders":[["0F0","0F0"]]}`},
		{"operation 0 is 0F7", `{"stages":1,"microbatches":1,"orders":[["0F7","0B7"]]}`},
		{"-1 microbatches", `{"stages":1,"microbatches":-1,"orders":[[]]}`},
	} {
		var plan pipeline.Plan
		if err := json.Unmarshal([]byte(c.plan), &plan); err != nil {
			t.Fatal(err)
		}
		got, why := pipeline.Simulate(layers, plan, pipeline.Params{})
		if c.want == "" && (why != "" || got.Iteration != 90) || !strings.Contains(string(why), c.want) {
			t.Errorf("%s: %v, %q, want %q", c.plan, got.Iteration, why, c.want)
		}
	}
}

// TestDuplex: passes and transfers of 100us each. The last forward transfer and
// the first gradient cross at 400us and must not slow each other, or the second
// stage's third operation is late and with it everything after.
func TestDuplex(t *testing.T) {
	plan := pipeline.Plan{Stages: 2, Microbatches: 4, Cuts: []int32{1}, Orders: make([][]pipeline.Op, 2)}
	for s, text := range []string{"F0 F1 F2 F3 B0 B3 B1 B2", "F0 B0 F3 B3 F1 B1 F2 B2"} {
		for _, word := range strings.Fields(text) {
			var op pipeline.Op
			if err := op.UnmarshalText([]byte(strconv.Itoa(s) + word)); err != nil {
				t.Fatal(err)
			}
			plan.Orders[s] = append(plan.Orders[s], op)
		}
	}
	layer := workload.Layer{Forward: 100, Backward: 100, OutputKiB: 100}
	plan, why := pipeline.Simulate([]workload.Layer{layer, layer}, plan, pipeline.Params{Bandwidth: 8192})
	if why != "" || plan.Iteration != 1300 {
		t.Errorf("iteration %v (%q), want 1300us", plan.Iteration, why)
	}
}

// TestSlowDevice: a stage on a device of half the speed takes twice as long, and
// dpcut gives it half the layers.
func TestSlowDevice(t *testing.T) {
	job := workload.Pipeline{Stages: 2, Microbatches: 1, Layers: even(6, 1, 10, 20).Layers}
	p := pipeline.Params{Speeds: []float64{0.5, 1}}
	plan := build(t, dpcut.Partitioner{}, gpipe.Ordering{}, job, p)
	if !slices.Equal(plan.Cuts, []int32{2}) || plan.Iteration != 2*60+4*30 {
		t.Errorf("cuts %v, iteration %v, want [2] and 240us", plan.Cuts, plan.Iteration)
	}
}

// TestMemoryMovesTheCut: with GPipe's four microbatches kept, only two of these
// layers fit one device, which dpcut learns from the order; with 1F1B all cuts do.
func TestMemoryMovesTheCut(t *testing.T) {
	job := workload.Pipeline{Stages: 3, Microbatches: 4, Layers: even(6, 1, 10, 20).Layers}
	job.Layers[5].Forward = 1000 // alone, if it could be
	for i := range job.Layers {
		job.Layers[i].ActivationKiB = 100
	}
	p := pipeline.Params{Memory: 1}
	all, one := build(t, dpcut.Partitioner{}, gpipe.Ordering{}, job, p), build(t, dpcut.Partitioner{}, onefoneb.Ordering{}, job, p)
	if !slices.Equal(all.Cuts, []int32{2, 4}) || one.Cuts[1] != 5 {
		t.Errorf("cuts %v with gpipe and %v with 1f1b, want [2 4] and the last layer alone", all.Cuts, one.Cuts)
	}
	p.Memory, job.Layers[0].ActivationKiB = 1, 300
	if _, why := pipeline.Build(dpcut.Partitioner{}, gpipe.Ordering{}, job, p); !strings.Contains(string(why), "no cut of 6 layers") {
		t.Errorf("got %q, want that no cut fits", why)
	}
}

func BenchmarkBuild(b *testing.B) {
	job := workload.Pipeline{Stages: 16, Microbatches: 64, Layers: even(96, 1, 1000, 2000).Layers}
	for b.Loop() {
		build(b, dpcut.Partitioner{}, onefoneb.Ordering{}, job, pipeline.Params{Bandwidth: 100_000, Latency: 5})
	}
}
