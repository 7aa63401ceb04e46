package jahani_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/profile/oracle"
	"github.com/musterdl/muster/strategies/schedule/jahani"
)

func TestConforms(t *testing.T) {
	outside := jahani.Default()
	outside.AskAbove = 0
	for name, c := range map[string]jahani.Config{"at once": jahani.Default(), "outside": outside} {
		t.Run(name, func(t *testing.T) {
			scheduletest.ConformJoint(t, func() allocate.Joint { return jahani.New(c) })
		})
	}
}

// market is two machines with an old device each and two with one that is four times as
// fast and six times as dear, all to be rented.
func market() *cluster.Cluster {
	c := &cluster.Cluster{Name: "market"}
	rack := c.AddRack(cluster.Rack{Name: "rack"})
	old, fast := c.AddModel(cluster.Model{Name: "old", Speed: 1}), c.AddModel(cluster.Model{Name: "fast", Speed: 4})
	for i := range 4 {
		n := cluster.Node{Name: fmt.Sprint("n", i), Rack: rack, Model: old, CPU: 64 * unit.Whole, Memory: 256 << 10, Rental: true, MilliPerHour: 1000}
		if i >= 2 {
			n.Model, n.MilliPerHour = fast, 6000
		}
		c.AddNode(n, 1)
	}
	return c
}

// TestRents: a job that is not pressed runs on an old machine, one that is on a fast one,
// and both are given back when they end.
func TestRents(t *testing.T) {
	job := func(name string, deadline unit.Duration) scheduletest.Job {
		menu := []workload.Offer{{Model: "old", Workers: 1, Rate: 1}, {Model: "fast", Workers: 1, Rate: 4}}
		return scheduletest.Job{Job: workload.Job{Name: name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Deadline: deadline,
			Traits: workload.Traits{Menu: menu}},
			Truth: workload.Truth{Duration: 4 * unit.Hour, Menu: menu}}
	}
	jobs := scheduletest.Jobs{job("easy", 6*unit.Hour), job("pressed", 90*unit.Minute)}
	decider := jahani.New(jahani.Default())
	config := scheduletest.JointConfig(market(), jobs, decider, oracle.Estimator{})
	var rented, returned []plan.NodeID
	config.Commit = func(_ plan.View, c *plan.Commit) {
		memory, other := decider.Remember(), jahani.New(jahani.Default())
		if err := other.Recall(memory); err != nil || !bytes.Equal(other.Remember(), memory) {
			t.Errorf("recalled %v as %v: %v", memory, other.Remember(), err)
		}
		if other.Recall(memory[:len(memory)-1]) == nil || other.Recall(append(memory, 1)) == nil {
			t.Error("a memory that was cut or goes on is taken for one")
		}
		for i := range c.Changes {
			switch x := &c.Changes[i]; x.Verb {
			case plan.Rent:
				rented = append(rented, x.Node)
			case plan.Return:
				returned = append(returned, x.Node)
			}
		}
	}
	o, err := scheduletest.Run(config)
	if err != nil {
		t.Fatal(err)
	}
	for i, most := range []unit.Duration{6 * unit.Hour, 90 * unit.Minute} {
		if j := o.Jobs[i]; j.Outcome != report.Finished || j.JCT() > most {
			t.Errorf("%s is %s after %v, due after %v", j.Name, j.Outcome, j.JCT(), most)
		}
	}
	if len(rented) != 2 || min(rented[0], rented[1]) != 0 || max(rented[0], rented[1]) != 2 || len(returned) != 2 {
		t.Errorf("rented %v and returned %v, want an old machine and a fast one, both", rented, returned)
	}
}

func TestConfig(t *testing.T) {
	if err := strategy.Check(jahani.Default()); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(c *jahani.Config){
		func(c *jahani.Config) { c.HorizonSec = 0 }, func(c *jahani.Config) { c.Rho = 0.5 }, func(c *jahani.Config) { c.NoticeSec = -1 },
	} {
		c := jahani.Default()
		if spoil(&c); strategy.Check(c) == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}
