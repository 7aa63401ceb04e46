package spread_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
	"github.com/musterdl/muster/pipeline/spread"
	"github.com/musterdl/muster/run"
)

// pods are two kinds of nodes.
func pods() *cluster.Cluster {
	c := cluster.Uniform("pods", 4, 8, cluster.Model{Name: "a100", Memory: 80 << 10, Speed: 1}, 4)
	v100 := c.AddModel(cluster.Model{Name: "V100-32GB", Speed: .4})
	for range 4 {
		c.AddNode(cluster.Node{Name: "v", Model: v100, Uplink: 100_000}, 8)
	}
	for i := range 4 {
		c.Nodes[i].Uplink = 800_000
	}
	return c
}

func llama(gang int32, sizes ...int32) *workload.Job {
	j := &workload.Job{Name: "llama", Resources: workload.Resources{Gang: gang, Devices: 1, Share: unit.Whole, Sizes: sizes}}
	j.Pipeline = workload.Pipeline{Model: "llama-3-8b", Batch: 64}
	return j
}

// TestMenu: each size on each kind has a plan of that many devices, more devices are faster, the
// job's own workers on the first kind are the reference, and the same question has the
// same answer.
func TestMenu(t *testing.T) {
	m, err := catalogue.Menus(pods(), catalogue.Composition{})
	if err != nil {
		t.Fatal(err)
	}
	j := llama(16, 8, 16, 32)
	if o := m.Write(j); o != nil {
		t.Fatal(o)
	}
	rates := map[string]float64{}
	for _, o := range j.Menu {
		if last, seen := rates[o.Model]; seen && o.Rate <= last {
			t.Errorf("%d workers on %s go at %.3f, fewer at %.3f", o.Workers, o.Model, o.Rate, last)
		}
		rates[o.Model] = o.Rate
		if o.Workers == 16 && o.Model == "a100" && o.Rate != 1 {
			t.Errorf("the job's own workers go at %g, want 1", o.Rate)
		}
		if (o.Nodes == 2) != (o.Workers > 8) || o.Plan.Name == "" || o.Plan.Step <= 0 || !strings.HasPrefix(o.Plan.Shape, `{"sequence":"`) {
			t.Errorf("%+v", o)
		}
	}
	if len(rates) != 2 || rates["V100-32GB"] >= rates["a100"] {
		t.Errorf("rates on %v", rates)
	}
	again := llama(16, 8, 16, 32)
	if o := m.Write(again); o != nil || !reflect.DeepEqual(again.Menu, j.Menu) {
		t.Errorf("%v, another menu: %v", o, again.Menu)
	}
}

// TestNoPlan: a job for which there is no plan is told why, and one without a model is left alone.
func TestNoPlan(t *testing.T) {
	m, err := catalogue.Menus(pods(), catalogue.Composition{})
	if err != nil {
		t.Fatal(err)
	}
	large := llama(8)
	large.Pipeline.Model = "gpt-3"
	unknown := llama(8)
	unknown.Pipeline.Model = "gpt-9"
	for _, c := range []struct {
		job  *workload.Job
		want string
	}{{large, "need"}, {unknown, "choose one of"}, {llama(12), "no plan"}} {
		if o := m.Write(c.job); o == nil || !strings.Contains(o.Found, c.want) {
			t.Errorf("%s on %d: %v, want %q in it", c.job.Pipeline.Model, c.job.Gang, o, c.want)
		}
	}
	plain := &workload.Job{Name: "plain"}
	if o := m.Write(plain); o != nil || plain.Menu != nil {
		t.Errorf("%v, %v", o, plain.Menu)
	}
}

// TestLinks: an offer of several nodes says what it sends and what a step is with less of the uplinks, one of a
// single node nothing; who shares links sees it as the job's traffic. An offer that no rack holds is made for the
// links between racks.
func TestLinks(t *testing.T) {
	step := func(rack unit.Mbps) unit.Duration {
		c := pods()
		c.Racks = []cluster.Rack{{Name: "a", Uplink: rack}, {Name: "b", Uplink: rack}}
		for i := range c.Nodes {
			c.Nodes[i].Rack = int32(i % 2)
		}
		m, err := catalogue.Menus(c, catalogue.Composition{})
		if err != nil {
			t.Fatal(err)
		}
		j := llama(8, 8, 16, 32)
		j.Models = []string{"a100"}
		if o := m.Write(j); o != nil || j.Traffic != 0 {
			t.Fatal(o, j.Traffic)
		}
		for _, o := range j.Menu {
			if several := o.Workers > 8; several != (len(o.Plan.Shares) > 1) || several != (o.Plan.Sends > 0) {
				t.Errorf("%d workers: %+v", o.Workers, o.Plan)
			}
			if n := len(o.Plan.Shares); n > 0 && (o.Plan.Shares[0].Milli != 1000 || o.Plan.Shares[0].Step != o.Plan.Step || o.Plan.Shares[n-1].Step <= o.Plan.Step || n > 33) {
				t.Errorf("%d workers: %+v", o.Workers, o.Plan.Shares)
			}
		}
		wide := llama(16)
		if o := m.Write(wide); o != nil || wide.Traffic <= 0 || 8*wide.Traffic < wide.Menu[0].Plan.Sends {
			t.Errorf("%v: traffic of %d Mbps for each of eight workers that send %d", o, wide.Traffic, wide.Menu[0].Plan.Sends)
		}
		return j.Menu[len(j.Menu)-1].Plan.Step
	}
	if free, tight := step(0), step(100_000); tight <= free {
		t.Errorf("over four nodes in two racks a step takes %v, %v with endless links between these", tight, free)
	}
}

// slots are four devices of a kind that is declared, and what planners are told of it.
func slots(t *testing.T, can strategy.Ability) *spread.Maker {
	t.Helper()
	m, err := catalogue.LiveMenus(cluster.Uniform("here", 1, 4, cluster.Model{Name: "slot", Memory: 1 << 10, Speed: 1}, 1), catalogue.Composition{}, can)
	if err != nil {
		t.Fatal(err)
	}
	m.Declared = map[string]func() (spread.Kind, parallel.Why){"slot": func() (spread.Kind, parallel.Why) {
		return spread.Kind{Precision: shape.Single, State: parallel.State{Weights: 1, Gradients: 1, Optimizer: 2}, Keeps: true,
			Device: parallel.Device{TFlops: .004, MemoryGBs: 4, Inside: parallel.Link{Bandwidth: 2000, Latency: 20}}}, ""
	}}
	return m
}

// tiny is a job of so many workers that trains the model of nobody's.
func tiny(gang, devices, batch int32) *workload.Job {
	j := &workload.Job{Name: "tiny", Resources: workload.Resources{Gang: gang, Devices: devices, Share: unit.Whole}}
	j.Pipeline = workload.Pipeline{Model: "tiny", Batch: batch}
	return j
}

// TestTell: what a run is told is what its offer keeps, made whole: it executes as predicted, for
// as many workers as there are, and says the model and the sizes.
func TestTell(t *testing.T) {
	m := slots(t, run.Slots)
	for _, workers := range []int32{1, 2, 4} {
		j := tiny(workers, 1, 16)
		if o := m.Write(j); o != nil {
			t.Fatal(o)
		}
		offer := j.Menu[0]
		made, why := m.Read(j, 0, workers, offer.Plan.Shape)
		if why != "" {
			t.Fatal(why)
		}
		if made.Result.Step != offer.Plan.Step || made.Plan.String() != offer.Plan.Name {
			t.Errorf("%v in %v, and the offer has %s in %v", &made.Plan, made.Result.Step, offer.Plan.Name, offer.Plan.Step)
		}
		text, why := m.Tell(j, 0, workers, offer.Plan.Shape)
		if why != "" {
			t.Fatal(why)
		}
		told, err := shape.ReadTold(text)
		if err != nil {
			t.Fatal(err)
		}
		if why := told.Check(told.Model.Blocks + 2); why != "" || len(offer.Plan.Shape) > 200 {
			t.Errorf("%s, of %s, is not executed: %s", text, offer.Plan.Shape, why)
		}
		if n := len(told.Orders) * int(max(1, told.Tensor)) * told.Shape.Copies; n != int(workers) || told.Batch != 16 || told.Model.Name != "tiny" || told.Shape.Ways != nil {
			t.Errorf("%s is for %d workers, want %d", text, n, workers)
		}
	}
}

// TestUntold: what a driver cannot carry out is in no menu, and what is kept of a plan is not trusted.
func TestUntold(t *testing.T) {
	m := slots(t, run.Slots)
	if o := m.Write(tiny(2, 2, 16)); o == nil || !strings.Contains(o.Found, "2 devices per worker") {
		t.Errorf("two devices for a process: %v", o)
	}
	none := strategy.Ability{Driver: "nowhere", Why: map[strategy.Act]string{strategy.Chunks: "it has no room", strategy.Halves: "it has no room"}, Means: map[strategy.Act]string{strategy.Pipeline: "it is told"}}
	less := slots(t, none)
	if len(m.Sequences) != 4 || len(less.Sequences) != 1 || less.Sequences[0].Name != "1f1b" {
		t.Errorf("%d sequences with all acts, %v without chunks and halves", len(m.Sequences), less.Sequences)
	}
	for _, c := range []struct{ text, says string }{
		{"{", "no shape"}, {`{"sequence":"zbv","tensors":2}`, "no shape"}, {`{"sequence":"chimera"}`, "no sequence"}, {`{"sequence":"1f1b"}`, "no size"},
		{`{"sequence":"1f1b","samples":1,"microbatches":9,"tensor":1,"ranks":2,"copies":1,"cuts":[3]}`, "batch"},
		{`{"sequence":"1f1b","samples":1,"microbatches":16,"tensor":1,"ranks":8,"copies":1,"cuts":[1,2,3,4,5,6,7]}`, "device"},
		{`{"sequence":"1f1b","samples":1,"microbatches":16,"tensor":3,"ranks":1,"copies":1}`, "does not divide"},
	} {
		if _, why := m.Tell(tiny(4, 1, 16), 0, 4, c.text); !strings.Contains(string(why), c.says) {
			t.Errorf("%s: %q, want %q in it", c.text, why, c.says)
		}
	}
}
