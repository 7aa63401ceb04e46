package fgd_test

import (
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/allocate/fgd"
	"github.com/musterdl/muster/strategies/allocate/random"
)

// openb returns the cluster and the pods of the data set, which lies beside the
// repository, the pods as indices of shapes.
func openb(t testing.TB) (*cluster.Cluster, []plan.Shape, []int32) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "data", "openb2023")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("the data set openb2023 is not here: %v", err)
	}
	c, err := trace.OpenbCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := trace.Open("openb:"+dir, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var shapes []plan.Shape
	var pods []int32
	known := map[plan.Shape]int32{}
	for {
		w, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			return c, shapes, pods
		}
		if err != nil {
			t.Fatal(err)
		}
		s := plan.Shape{Gang: 1, Devices: w.Devices, Share: int32(w.Share), CPU: int32(w.CPU), Host: int32(w.HostMemory),
			Models: 1<<len(c.Models) - 1}
		if _, ok := known[s]; !ok {
			known[s] = int32(len(shapes))
			shapes = append(shapes, s)
		}
		pods = append(pods, known[s])
	}
}

// arrivals shuffles the pods and goes on with draws from them until the next would
// bring what they ask for above so many times the devices.
func arrivals(shapes []plan.Shape, pods []int32, milli float64, seed uint64) []int32 {
	dice := rand.New(rand.NewPCG(seed, 0))
	list := append([]int32(nil), pods...)
	dice.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	asked := int64(0)
	for _, p := range list {
		asked += shapes[p].Milli(1)
	}
	for {
		p := pods[dice.IntN(len(pods))]
		if asked += shapes[p].Milli(1); float64(asked) > milli {
			return list
		}
		list = append(list, p)
	}
}

// filled is how full a cluster got, in percent of its devices, when pods for all of
// its devices had arrived, and at the end.
type filled struct {
	at100, end float64
	placed     int
	took       time.Duration
}

// fill lets pods come and never go.
func fill(t testing.TB, c *cluster.Cluster, shapes []plan.Shape, pods []int32, p allocate.Placer) filled {
	t.Helper()
	s := plan.NewState(c)
	s.Shapes = shapes
	all := float64(len(c.Devices)) * 1000
	arrived, taken := int64(0), int64(0)
	var found []allocate.Candidate
	var f filled
	begin := time.Now()
	for _, pod := range pods {
		shape := &shapes[pod]
		if arrived += shape.Milli(1); f.at100 == 0 && float64(arrived) >= all {
			f.at100 = float64(taken) / all * 100
		}
		id := s.Admit("pod", plan.Asked{Shape: pod})
		found = p.Place(s.View(), allocate.Need{Job: id, Workers: 1, Shape: shape}, 1, found[:0])
		if len(found) == 0 {
			continue
		}
		d := s.Edit()
		if run, _ := d.Start(id, found[0].Slots, plan.DefaultTerms(), plan.Reason{}); run == plan.None {
			t.Fatalf("pod %d of shape %+v cannot start on %+v", id, *shape, found[0].Slots)
		}
		d.Commit()
		taken += shape.Milli(1)
		f.placed++
	}
	f.took = time.Since(begin)
	f.end = float64(taken) / all * 100
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return f
}

// whole is the trace as the artefact gives it to FGD: every pod counted.
func whole(shapes []plan.Shape, pods []int32) fgd.Config {
	c := fgd.Default()
	for i := range shapes {
		s := &shapes[i]
		c.Expected = append(c.Expected, fragment.Expected{CPU: unit.Milli(s.CPU), Devices: s.Devices, Share: unit.Milli(s.Share)})
	}
	for _, p := range pods {
		c.Expected[p].Count++
	}
	return c
}

// The figures are means over ten shuffles; the artefact ships 95.39, 93.08 and 87.47
// for the first, the third and the fourth.
func TestOpenb(t *testing.T) {
	c, shapes, pods := openb(t)
	shuffles := uint64(1)
	if os.Getenv("MUSTER_LONG") != "" {
		shuffles = 10
	}
	for _, test := range []struct {
		name         string
		want, within float64 // at the end
		limit        time.Duration
		new          func(seed uint64) allocate.Placer
	}{
		{"fgd", 95.3, .4, 2 * time.Second, func(uint64) allocate.Placer { return fgd.New(whole(shapes, pods)) }},
		{"fgd that learns", 95.3, .4, 4 * time.Second, func(uint64) allocate.Placer { return fgd.New(fgd.Default()) }},
		{"best-fit over all nodes", 93.1, .4, time.Minute, func(uint64) allocate.Placer { return bestfit.New(bestfit.Config{CoresPerDevice: 16}) }},
		{"random", 87.5, .6, time.Minute, func(seed uint64) allocate.Placer { return random.New(random.Config{Seed: seed}) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			at100, end, took := 0.0, 0.0, time.Duration(0)
			for seed := range shuffles {
				list := arrivals(shapes, pods, 1.3*1000*float64(len(c.Devices)), seed+1)
				f := fill(t, c, shapes, list, test.new(seed+1))
				at100, end, took = at100+f.at100/float64(shuffles), end+f.end/float64(shuffles), took+f.took/time.Duration(shuffles)
			}
			t.Logf("%.2f %% of the devices allocated at 100 %% arrived, %.2f %% at 130 %%; %v a run, %d runs", at100, end, took.Round(time.Millisecond), shuffles)
			if math.Abs(end-test.want) > test.within {
				t.Errorf("%.2f %% allocated, want %g within %g", end, test.want, test.within)
			}
			if took > test.limit {
				t.Errorf("a run takes %v, want at most %v", took, test.limit)
			}
		})
	}
}
