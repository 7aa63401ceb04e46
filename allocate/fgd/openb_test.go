package fgd_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/bestfit"
	"github.com/musterdl/muster/allocate/fgd"
	"github.com/musterdl/muster/allocate/random"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/trace"
	"github.com/musterdl/muster/unit"
)

// openb returns the cluster and the pods of the data set, which lies beside the
// repository, the pods as indices of shapes.
func openb(t testing.TB) (*cluster.Cluster, []plan.Shape, []int32) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "data", "openb2023")
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
		id := s.Admit("pod", plan.Job{Shape: pod})
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
		c.Expected = append(c.Expected, fgd.Task{CPU: unit.Milli(s.CPU), Devices: s.Devices, Share: unit.Milli(s.Share)})
	}
	for _, p := range pods {
		c.Expected[p].Count++
	}
	return c
}

func TestOpenbX(t *testing.T) {
	c, shapes, pods := openb(t)
	bf := bestfit.Default()
	bfw := bf
	bfw.Look = 10000
	bf16 := bf
	bf16.Look = 16
	for _, test := range []struct {
		name string
		new  func(seed uint64) allocate.Placer
	}{
		{"fgd", func(uint64) allocate.Placer { return fgd.New(whole(shapes, pods)) }},
		{"fgd-learned", func(uint64) allocate.Placer { return fgd.New(fgd.Default()) }},
		{"bestfit", func(uint64) allocate.Placer { return bestfit.New(bf) }},
		{"bestfit-all", func(uint64) allocate.Placer { return bestfit.New(bfw) }},
		{"bestfit-16", func(uint64) allocate.Placer { return bestfit.New(bf16) }},
		{"random", func(s uint64) allocate.Placer { return random.New(random.Config{Seed: s}) }},
	} {
		var a, b float64
		var tt time.Duration
		const n = 4
		for seed := range uint64(n) {
			f := fill(t, c, shapes, arrivals(shapes, pods, 1.3*1000*float64(len(c.Devices)), seed+42), test.new(seed+42))
			a += f.at100 / n
			b += f.end / n
			tt += f.took / n
		}
		t.Logf("%-12s %.2f %.2f %v", test.name, a, b, tt)
	}
}
