package fgd_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/allocate/fragment"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/fgd"
)

func newPlacer() allocate.Placer { return fgd.New(fgd.Default()) }

func TestConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

func BenchmarkPlace(b *testing.B) { allocatetest.Bench(b, newPlacer) }

// Where half a device and whole ones are asked for at even odds, a small share goes
// where halves are left and whole devices stay whole: beside another, not on the
// device that best fit would take if that spoils a half.
func TestFragments(t *testing.T) {
	type part = allocatetest.Part
	c := fgd.Default()
	c.Expected = []fragment.Expected{{Devices: 1, Share: 1000, Count: 1}, {Devices: 1, Share: 500, Count: 1}}
	for _, test := range []struct {
		name  string
		shape plan.Shape
		free  []part
		want  string
	}{
		{"a rest that nobody can use", allocatetest.Share(200, 0), []part{{Shares: []int32{500}}, {Shares: []int32{400}}, {Devices: 1}}, "1/7:1"},
		{"room to spare beside a half", allocatetest.Share(200, 0), []part{{Shares: []int32{500}}, {Shares: []int32{700}}}, "1/7:1"},
		{"whole devices stay whole", allocatetest.Share(500, 0), []part{{Devices: 1}, {Shares: []int32{600}}}, "1/7:1"},
		{"equals by best fit", allocatetest.Gang(1), []part{{Devices: 3}, {Devices: 2}, {Devices: 2}}, "1:1"},
	} {
		s := allocatetest.Cluster(t, 8, 1, test.free...)
		if got := allocatetest.Offer(t, s, fgd.New(c), test.shape, 1); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestConfig(t *testing.T) {
	for text, change := range map[string]func(c *fgd.Config){
		"": func(*fgd.Config) {},
		"popularity is 0: it must be above 0 and at most 1":            func(c *fgd.Config) { c.Popularity = 0 },
		"popularity is NaN: it must be above 0 and at most 1":          func(c *fgd.Config) { c.Popularity = math.NaN() },
		"cores-per-device is -1: it must be at least 0":                func(c *fgd.Config) { c.CoresPerDevice = -1 },
		"expected[0].count is 0: it must be at least 1":                func(c *fgd.Config) { c.Expected = []fragment.Expected{{Share: 1000}} },
		"expected[0].share is 2: it must be at least 1m and at most 1": func(c *fgd.Config) { c.Expected = []fragment.Expected{{Share: 2000, Count: 1}} },
		"expected[0].cpu is -1m: it must be at least 0":                func(c *fgd.Config) { c.Expected = []fragment.Expected{{CPU: -1, Share: 1000, Count: 1}} },
	} {
		c := fgd.Default()
		change(&c)
		if err := strategy.Check(c); fmt.Sprint(err) != text && !(err == nil && text == "") {
			t.Errorf("got %v, want %q", err, text)
		}
	}
}

// On random clusters the placer does what the definition says when it is followed
// word for word: every task against every node, nothing remembered.
func TestDefinition(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		c := &cluster.Cluster{Models: []cluster.Model{{Name: "a"}, {Name: "b"}}, Racks: []cluster.Rack{{}}}
		for n := range rapid.IntRange(1, 6).Draw(t, "nodes") {
			c.AddNode(cluster.Node{Name: fmt.Sprint(n), Model: int32(rapid.IntRange(0, 1).Draw(t, "model")),
				CPU: unit.Milli(rapid.IntRange(0, 20).Draw(t, "cores")) * 1000}, rapid.IntRange(0, 4).Draw(t, "devices"))
		}
		s := plan.NewState(c)
		config := fgd.Default()
		config.Popularity = rapid.SampledFrom([]float64{.5, .95, 1}).Draw(t, "popularity")
		for range rapid.IntRange(1, 6).Draw(t, "tasks") {
			e := fragment.Expected{CPU: unit.Milli(rapid.IntRange(0, 6).Draw(t, "cpu")) * 1000, Devices: rapid.Int32Range(0, 2).Draw(t, "per task"), Share: 1000,
				Count: int64(len(config.Expected)*100 + rapid.IntRange(1, 99).Draw(t, "count"))}
			if e.Devices == 1 {
				e.Share = unit.Milli(rapid.IntRange(1, 10).Draw(t, "share")) * 100
			}
			shape := plan.Shape{Gang: 1, Devices: e.Devices, Share: int32(e.Share), CPU: int32(e.CPU), Models: 3}
			if rapid.Bool().Draw(t, "one model") {
				e.Models, shape.Models = []string{"b"}, 2
			}
			if !slices.Contains(s.Shapes, shape) {
				config.Expected, s.Shapes = append(config.Expected, e), append(s.Shapes, shape)
			}
		}
		p := fgd.New(config)
		for range rapid.IntRange(1, 20).Draw(t, "jobs") {
			kind := int32(rapid.IntRange(0, len(s.Shapes)-1).Draw(t, "kind"))
			job := s.Admit("job", plan.Asked{Shape: kind})
			got := p.Place(s.View(), allocate.Need{Job: job, Workers: 1, Shape: &s.Shapes[kind]}, 1, nil)
			want := define(s, config, &s.Shapes[kind])
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%+v goes to %v, want %v", s.Shapes[kind], got, want)
			}
			if len(got) > 0 {
				d := s.Edit()
				d.Start(job, got[0].Slots, plan.DefaultTerms(), plan.Reason{})
				d.Commit()
			}
		}
	})
}

// define tries every place and takes the best score, then the least left over, then
// the lower id.
func define(s *plan.State, c fgd.Config, shape *plan.Shape) (best []allocate.Candidate) {
	left := int64(0)
	for n := range s.Nodes {
		is := s.Nodes[n]
		var free []int32
		for d := is.First; d < is.First+plan.DeviceID(is.Count); d++ {
			free = append(free, s.Devices[d].Free)
		}
		if shape.Models&(1<<is.Model) == 0 || is.FreeCPU < shape.CPU {
			continue
		}
		before := wasted(c, s.Cluster.Models[is.Model].Name, free, is.FreeCPU)
		for d := range max(1, len(free)) {
			after, slot := slices.Clone(free), plan.Slot{Node: plan.NodeID(n), Device: plan.None, Workers: 1}
			if shape.Share < 1000 {
				if d >= len(free) || free[d] < shape.Share {
					continue
				}
				after[d] -= shape.Share
				slot.Device = is.First + plan.DeviceID(d)
			} else if !takeWhole(after, shape.Devices) {
				continue
			}
			growth := wasted(c, s.Cluster.Models[is.Model].Name, after, is.FreeCPU-shape.CPU) - before
			score := int64(100 / (1 + math.Exp(growth/1000)))
			rest, tight := int64(0), int64(0)
			for _, f := range after {
				rest += int64(f) * 16
			}
			if shape.CPU > 0 {
				rest += int64(is.FreeCPU - shape.CPU)
			}
			if slot.Device != plan.None {
				tight = int64(free[d])
			}
			if rest = rest<<16 + tight; len(best) == 0 || score > best[0].Score || score == best[0].Score && rest < left {
				best, left = []allocate.Candidate{{Slots: []plan.Slot{slot}, Score: score}}, rest
			}
		}
	}
	return best
}

func takeWhole(free []int32, devices int32) bool {
	for i := range free {
		if free[i] == 1000 && devices > 0 {
			free[i], devices = 0, devices-1
		}
	}
	return devices == 0
}

// wasted is the expected free thousandths of devices that a task cannot use.
func wasted(c fgd.Config, model string, free []int32, cpu int32) float64 {
	tasks := slices.Clone(c.Expected)
	slices.SortFunc(tasks, func(a, b fragment.Expected) int { return int(b.Count - a.Count) })
	all, kept, sum := int64(0), int64(0), int64(0)
	for _, t := range tasks {
		all += t.Count
	}
	for _, t := range tasks {
		if float64(kept) >= c.Popularity*float64(all) {
			break
		}
		total, small, fit := int64(0), int64(0), int32(0)
		for _, f := range free {
			total += int64(f)
			if f >= int32(t.Share) {
				fit++
			} else {
				small += int64(f)
			}
		}
		lost := total
		if t.Devices > 0 && (t.Models == nil || model == "b") && fit >= t.Devices && cpu >= int32(t.CPU) {
			lost = small
		}
		kept, sum = kept+t.Count, sum+lost*t.Count
	}
	return float64(sum) / float64(kept)
}
