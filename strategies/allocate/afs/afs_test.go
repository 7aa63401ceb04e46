package afs_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/strategies/allocate/afs"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// asked is a job of an example: its legal counts, what is left at rate 1 (0 is unknown),
// what is done, and the part of its work that does not scale.
type asked struct {
	sizes      []int32
	left, done unit.Duration
	serial     float64
}

func wishes(c afs.Config, devices int, jobs ...asked) string {
	s := plan.NewState(cluster.Uniform("c", 1, devices, cluster.Model{Name: "gpu", Speed: 1}, 1))
	var ids []plan.JobID
	for i, a := range jobs {
		shape := plan.Shape{Gang: 1, Devices: 1, Share: 1000, Models: ^uint64(0)}
		var menu plan.Menu
		for k, n := range a.sizes {
			if shape.Sizes[k] = n; k == 0 {
				shape.Gang = n
			}
			rate := float64(n) / (1 + a.serial*float64(n-1))
			menu = append(menu, plan.Offer{Model: 0, Workers: n, RateMicro: int64(1e6 * rate)})
		}
		s.Shapes, s.Profiles = append(s.Shapes, shape), append(s.Profiles, plan.Profile{Menu: menu})
		ids = append(ids, s.Admit(fmt.Sprint("job", i), plan.Asked{Shape: int32(i), Profile: int32(i)}))
		if s.Jobs[i].Work = a.done; a.left > 0 {
			s.Jobs[i].Estimate = a.done + a.left
		}
	}
	var text string
	list, _ := afs.New(c).Wishes(s.View(), ids, nil)
	for _, w := range list {
		text += fmt.Sprintf("%d:%d ", w.Job, w.Workers)
	}
	return text
}

func TestWishes(t *testing.T) {
	upTo8 := []int32{1, 2, 3, 4, 5, 6, 7, 8}
	minutes := func(n int) unit.Duration { return unit.Duration(n) * unit.Minute }
	for _, test := range []struct {
		name string
		jobs []asked
		want string
	}{
		{"alike", []asked{{sizes: upTo8, left: minutes(10), serial: .1}, {sizes: upTo8, left: minutes(10), serial: .1}}, "0:4 1:4 "},
		{"the one that scales has more", []asked{{sizes: upTo8, left: minutes(10), serial: .5}, {sizes: upTo8, left: minutes(10), serial: .02}}, "0:2 1:6 "},
		{"alone it has all", []asked{{sizes: upTo8, left: minutes(10), serial: .1}}, "0:8 "},
		{"what rounding leaves reaches the next count", []asked{{sizes: []int32{1, 2, 4}, left: minutes(10), serial: .1}, {sizes: []int32{1, 3}, left: minutes(10), serial: .1}}, "0:4 1:3 "},
		{"a gang has all it asks or nothing", []asked{{sizes: []int32{8}, left: minutes(10)}, {sizes: []int32{1}, left: minutes(10)}}, "0:0 1:1 "},
		{"more jobs than devices: the shortest first", []asked{{sizes: []int32{4}, left: minutes(30)}, {sizes: []int32{4}, left: minutes(10)}, {sizes: []int32{4}, left: minutes(20)}}, "0:0 1:4 2:4 "},
		{"of unknown length: the least served first", []asked{{sizes: []int32{4}, done: minutes(100)}, {sizes: []int32{4}, done: minutes(1)}, {sizes: []int32{4}, done: minutes(20)}}, "0:0 1:4 2:4 "},
	} {
		if got := wishes(afs.Default(), 8, test.jobs...); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
	for _, wrong := range []func(c *afs.Config){func(c *afs.Config) { c.Every = -1 }, func(c *afs.Config) { c.FirstQueue = 0 }, func(c *afs.Config) { c.Rule = "random" }} {
		if c := afs.Default(); strategy.Check(c) != nil {
			t.Error(strategy.Check(c))
		} else if wrong(&c); strategy.Check(c) == nil {
			t.Errorf("%+v is taken for right", c)
		}
	}
}

// The rules that AFS is compared with, on counts that do not divide evenly.
func TestRules(t *testing.T) {
	sizes, minutes := []int32{1, 2, 4, 8}, func(n int) unit.Duration { return unit.Duration(n) * unit.Minute }
	jobs := []asked{{sizes: sizes, left: minutes(30), serial: .3}, {sizes: sizes, left: minutes(10), serial: .05}, {sizes: sizes, left: minutes(20), serial: .05}}
	for rule, want := range map[string]string{"shortest": "0:0 1:8 2:2 ", "gain": "0:4 1:2 2:4 ", "equal": "0:4 1:4 2:2 "} {
		c := afs.Default()
		c.Rule = rule
		if got := wishes(c, 10, jobs...); got != want {
			t.Errorf("%s: got %q, want %q", rule, got, want)
		}
	}
}

// source submits jobs that come one after another and scale with some loss.
type source struct{ next, jobs int }

func (s *source) Next() (workload.Job, workload.Truth, error) {
	if s.next == s.jobs {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	i := s.next
	s.next++
	j := workload.Job{Name: fmt.Sprint("job", i), Submit: unit.Time(0).Add(unit.Duration(i) * 2 * unit.Minute),
		Resources:  workload.Resources{Gang: 1, Devices: 1, Share: 1000},
		Checkpoint: workload.Checkpoint{OnRequest: true, Load: 20 * unit.Second}}
	for n := int32(1); n <= 8; n++ {
		j.Sizes = append(j.Sizes, n)
		j.Menu = append(j.Menu, workload.Offer{Workers: n, Nodes: 1, Rate: float64(n) / (1 + .1*float64(n-1))},
			workload.Offer{Workers: n, Nodes: 2, Rate: float64(n) / (1 + .1*float64(n-1))})
	}
	return j, workload.Truth{Duration: unit.Duration(10+i*7%30) * unit.Minute, Menu: j.Menu}, nil
}

// The engine carries the wishes out: elastic jobs end sooner than on one device each,
// nothing is ever over-committed, and the same run gives the same commits.
func TestInTheEngine(t *testing.T) {
	run := func(decider allocate.Joint) (jct float64, commits []byte) {
		var b bytes.Buffer
		s, err := simulated.New(simulated.Config{Cluster: cluster.Uniform("c", 4, 4, cluster.Model{Name: "gpu", Speed: 1}, 4), Jobs: &source{jobs: 24},
			Scheduler: compose.New(compose.Parts{Joint: decider, Estimator: oracle.Estimator{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}}),
			TellTruth: true, Check: true, Decisions: &b})
		for more := true; more && err == nil; {
			more, err = s.Advance()
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Result()
		if err != nil || r.Finished != 24 {
			t.Fatalf("%d of 24 jobs finished (%v)", r.Finished, err)
		}
		return r.AvgJCTSec, b.Bytes()
	}
	elastic, first := run(afs.New(afs.Default()))
	_, second := run(afs.New(afs.Default()))
	rigid, _ := run(ones{})
	if elastic > .6*rigid {
		t.Errorf("mean JCT %.0f s, on one device each %.0f s", elastic, rigid)
	}
	if !bytes.Equal(first, second) {
		t.Error("two equal runs commit different bytes")
	}
}

// ones gives every job one device, first come first served.
type ones struct{}

func (ones) Wishes(_ plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	for _, id := range jobs {
		into = append(into, allocate.Wish{Job: id, Workers: 1})
	}
	return into, unit.Never
}
