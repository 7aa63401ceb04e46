package parrot

import (
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/flow/fluid"
	"github.com/musterdl/muster/mechanism/maxmin"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

func TestConfig(t *testing.T) {
	if strategy.Check(Default()) != nil || strategy.Check(Config{FairPart: 0, MostWeight: 2}) == nil || strategy.Check(Config{FairPart: .5}) == nil {
		t.Error("a fair part above 0 and weights of at least 1 are needed, and the defaults have them")
	}
}

// TestScale: two jobs on one link, a third on its own; the heavier of the two has all.
func TestScale(t *testing.T) {
	on := func(link int32, per, weight float64) claim {
		return claim{uses: []maxmin.Use{{Link: link, Per: per}}, weight: weight, most: math.Inf(1)}
	}
	claims := []claim{on(0, 2, 1), on(0, 2, 3), on(1, 1, 1)}
	claims[2].most = 4
	got, over := scale([]float64{10, 10}, .5, claims)
	if want := []float64{0, 2.5, 4}; !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) || over > 1e-6 {
		t.Errorf("rates %v, want %v; over by %g", got, want, over)
	}
	weigh(claims, []float64{0, 5, 20}, 1000)
	if claims[0].weight != 1000 || claims[1].weight != 4 || claims[2].weight != 1 {
		t.Errorf("weights %v", claims)
	}
}

// TestTwoJobs: the job of small coflows has three quarters of the port that it shares
// with one of large ones, as soon as both have shown theirs, and the other one quarter.
func TestTwoJobs(t *testing.T) {
	repeat := func(mb float64, n int) fluid.Chain {
		return fluid.Chain{Coflows: slices.Repeat([][]fluid.Transfer{{{From: 0, To: 1, MB: mb}}}, n)}
	}
	s := fluid.Switch{Ports: 2, MBPerSec: 1}
	var shares []float64
	spy := spied{newFabric(Default()), func(m *fluid.Moment, rates []float64) {
		if len(m.Live) == 2 && m.Live[0].Coflow > 0 && m.Live[1].Coflow > 0 {
			shares = append(shares, rates[0])
		}
	}}
	end := s.Run([]fluid.Chain{repeat(10, 4), repeat(1, 30)}, spy)
	if len(shares) == 0 || slices.ContainsFunc(shares, func(r float64) bool { return math.Abs(r-.25) > 1e-6 }) {
		t.Errorf("the large one has %v", shares)
	}
	// Fair sharing would end the small one after 60 s; both together take 70.
	if math.Abs(end[0]-70) > 1e-6 || end[1] > 50 {
		t.Errorf("ends %v", end)
	}
}

type spied struct {
	fluid.Sharer
	see func(m *fluid.Moment, rates []float64)
}

func (s spied) Share(m *fluid.Moment, rates []float64) float64 {
	forSec := s.Sharer.Share(m, rates)
	s.see(m, rates)
	return forSec
}

// TestAalo: a coflow goes first until it has sent 10 MB; then the newcomer does.
func TestAalo(t *testing.T) {
	one := func(arrive, mb float64) fluid.Chain {
		return fluid.Chain{ArriveSec: arrive, Coflows: [][]fluid.Transfer{{{From: 0, To: 1, MB: mb}}}}
	}
	s := fluid.Switch{Ports: 2, MBPerSec: 1}
	got := s.Run([]fluid.Chain{one(0, 12), one(1, 5), one(2, 200)}, &aalo{})
	// 0 to 10 s the first; to 15 s the second; the third until it has 10 MB as well, at
	// 25 s; then the first one's last 2 MB, because it came first.
	if want := []float64{27, 15, 217}; !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-6 }) {
		t.Errorf("ends %v, want %v", got, want)
	}
}

// TestSynthetic: on small random jobs nobody has less than half of its fair rate at any
// moment, and the program's answers hold.
func TestSynthetic(t *testing.T) {
	dice := rand.New(rand.NewPCG(5, 0))
	var made [][]fluid.Transfer
	for range 40 {
		var shape []fluid.Transfer
		mb := math.Exp(1 + 2*dice.NormFloat64())
		for range 1 + dice.IntN(6) {
			shape = add(shape, fluid.Transfer{From: dice.Int32N(8), To: dice.Int32N(8), MB: mb})
		}
		made = append(made, shape)
	}
	check(t, compare(chains(made, 12, 1)))
}

func check(t *testing.T, m map[string]float64) {
	t.Helper()
	t.Logf("total s: Parrot %.0f, fair %.0f, Aalo %.0f, shortest remaining first %.0f, LPCAS first %.0f; %g programs",
		m["parrot_total_s"], m["fair_total_s"], m["aalo_total_s"], m["guided_total_s"], m["lpcas_total_s"], m["lps"])
	if m["least_part_of_fair"] < .5-1e-6 || m["lp_over"] > 1e-6 || m["parrot_total_s"] > m["fair_total_s"] {
		t.Errorf("%v", m)
	}
}

// TestBenchmark is the claim's experiment on a few seeds.
func TestBenchmark(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("long; set MUSTER_LONG=1")
	}
	dir := filepath.Join("..", "..", "..", "..", "shared", "data")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the data sets are not here: %v", err)
	}
	for seed := range uint64(3) {
		m, err := Measure(func(path string) (io.ReadCloser, error) { return os.Open(filepath.Join(dir, path)) }, seed)
		if err != nil {
			t.Fatal(err)
		}
		check(t, m)
	}
}

func TestShapes(t *testing.T) {
	got, err := shapes(strings.NewReader("150 2\n1 0 1 22 1 65:1.0\n2 10 2 104 54 1 140:48.0\n"))
	want := [][]fluid.Transfer{{{From: 22, To: 15, MB: 1}}, {{From: 4, To: 40, MB: 48}}}
	if err != nil || !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := shapes(strings.NewReader("150 1\n1 0 1 22 1")); err == nil {
		t.Error("a file that is cut short was read")
	}
}

// TestShape: of two runs on one uplink the one of small iterations weighs three times as
// much, a run beside them keeps its weight, and what is right is not set again.
func TestShape(t *testing.T) {
	c := cluster.Uniform("bed", 4, 4, cluster.Model{Name: "gpu", Speed: 1}, 4)
	for i := range c.Nodes {
		c.Nodes[i].Uplink = 100
	}
	s := plan.NewState(c)
	s.Shapes = []plan.Shape{{Gang: 2, Devices: 1, Share: 1000, Models: 1}}
	start := func(communicate unit.Duration, done unit.Duration, nodes ...plan.NodeID) plan.RunID {
		s.Profiles = append(s.Profiles, plan.Profile{Compute: unit.Second, Communicate: communicate})
		job := s.Admit("job", plan.Asked{Traffic: 100, Profile: int32(len(s.Profiles) - 1)})
		s.Jobs[job].Work = done
		var slots []plan.Slot
		for _, n := range nodes {
			slots = append(slots, plan.Slot{Node: n, Device: plan.None, Workers: 1})
		}
		d := s.Edit()
		run, why := d.Start(job, slots, plan.DefaultTerms(), plan.Reason{Code: plan.Fits})
		if run == plan.None {
			t.Fatalf("cannot start: %+v", why)
		}
		d.Commit()
		return run
	}
	p := New(Default())
	large, small := start(9*unit.Second, unit.Hour, 0, 1), start(unit.Second, unit.Hour, 1, 2)
	set := p.Shape(s.View(), []plan.RunID{large, small}, nil)
	if len(set) != 2 || set[0].Traffic.Weight != 250 || set[1].Traffic.Weight != 750 {
		t.Fatalf("settings %+v", set)
	}
	for _, x := range set {
		s.Runs[x.Run].Terms.Traffic = x.Traffic
	}
	if again := p.Shape(s.View(), []plan.RunID{large, small}, nil); len(again) != 0 {
		t.Errorf("set again: %+v", again)
	}
	if alone := p.Shape(s.View(), []plan.RunID{large}, nil); len(alone) != 0 {
		t.Errorf("a run that has all it wants: %+v", alone)
	}
}
