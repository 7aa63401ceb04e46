package simulated_test

import (
	"io"
	"slices"
	"testing"

	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/runtest"
	"github.com/musterdl/muster/run/simulated"
)

// acting is a stage in simulated nature.
type acting struct {
	t      *testing.T
	sim    *simulated.Simulation
	puppet *runtest.Puppet
	now    unit.Time
}

// source yields the jobs of a text, all at once.
type source []runtest.Job

func (s *source) Next() (workload.Job, workload.Truth, error) {
	if len(*s) == 0 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	j := (*s)[0]
	*s = (*s)[1:]
	return j.Job, j.Truth, nil
}

func (a *acting) Decide(edit func(d *plan.Draft)) {
	a.puppet.Tell(edit)
	for !a.puppet.Idle() {
		a.Pass(a.puppet.Every)
	}
}

func (a *acting) Pass(d unit.Duration) {
	for a.now = a.now.Add(d); a.sim.Next() <= a.now; {
		if _, err := a.sim.Advance(); err != nil {
			a.t.Fatal(err)
		}
	}
}

func (a *acting) View() plan.View { return a.sim.State().View() }

func (a *acting) Workers(id plan.JobID) (on []plan.DeviceID) {
	run := a.View().Job(id).Run
	if run != plan.None && a.sim.Rate(run) > 0 || run != plan.None && a.View().Run(run).Status == plan.Suspended {
		a.View().GrantsOf(run, func(g plan.Grant) { on = append(on, g.Device) })
	}
	slices.Sort(on)
	return on
}

func (a *acting) Done(id plan.JobID) float64 {
	truth := a.sim.Known(id)
	return (truth.Duration - a.sim.Left(id)).Seconds() * truth.Busy
}

func (a *acting) Batch(id plan.JobID) int {
	v := a.View()
	return int(v.Run(v.Job(id).Run).Terms.Share.Batch)
}

// lost is when the node 1 is lost, long after all texts that do not wait for it.
const lost = unit.Time(unit.Hour)

func (a *acting) Lose() { a.Pass(lost.Sub(a.now) + a.puppet.Every) }

func (a *acting) Off() float64 { return .011 } // decisions are made once in 10 ms

// TestActs: simulated nature does all that it says that it can.
func TestActs(t *testing.T) {
	runtest.Show(t, run.Simulated, func(t *testing.T, jobs []runtest.Job) runtest.Stage {
		table, _ := envelope.MIG("A100", 0)
		c := &cluster.Cluster{Name: "acts"}
		model := c.AddModel(cluster.Model{Name: "A100", Memory: 40 << 10, Speed: 1, Geometries: table.Geometries()})
		for i, name := range []string{"first", "second", "rental"} {
			rack := c.AddRack(cluster.Rack{Name: name})
			c.AddNode(cluster.Node{Name: name, Rack: rack, Model: model, Uplink: 1000, Rental: i == 2, MilliPerHour: 1000}, 4-i)
		}
		left, puppet := source(jobs), &runtest.Puppet{Every: 10 * unit.Millisecond}
		sim, err := simulated.New(simulated.Config{Cluster: c, Jobs: &left, Scheduler: puppet, Policy: engine.DefaultPolicy(),
			Prices: simulated.Prices{Arrival: unit.Minute, HostGBps: 12}, Check: true,
			Later: []simulated.Later{{At: lost, Event: engine.Event{Kind: engine.NodeDown, Node: 1}}}})
		if err != nil {
			t.Fatal(err)
		}
		return &acting{t: t, sim: sim, puppet: puppet}
	})
}
