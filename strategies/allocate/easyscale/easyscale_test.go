package easyscale_test

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
	"github.com/musterdl/muster/strategies/allocate/easyscale"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// two is 8 fast devices and 4 slow ones.
func two() *cluster.Cluster {
	c := &cluster.Cluster{Name: "two"}
	slow, fast := c.AddModel(cluster.Model{Name: "slow", Speed: 1}), c.AddModel(cluster.Model{Name: "fast", Speed: 3})
	rack := c.AddRack(cluster.Rack{Name: "a"})
	c.AddNode(cluster.Node{Name: "n0", Rack: rack, Model: slow}, 4)
	c.AddNode(cluster.Node{Name: "n1", Rack: rack, Model: fast}, 8)
	return c
}

// offers are linear rates of a gang of 8, by the speed of the model.
func offers() []workload.Offer {
	var menu []workload.Offer
	for n := int32(1); n <= 8; n++ {
		menu = append(menu, workload.Offer{Workers: n, Rate: float64(n) / 8})
	}
	return menu
}

func TestRounds(t *testing.T) {
	s := plan.NewState(two())
	s.Shapes = []plan.Shape{{Gang: 8, Devices: 1, Share: 1000, Models: 3, Sizes: [8]int32{1, 2, 3, 4, 6}}}
	s.Profiles = []plan.Profile{{Menu: plan.MenuOf(s.Cluster, offers())}}
	var ids []plan.JobID
	for i := range 2 {
		ids = append(ids, s.Admit(fmt.Sprint("job", i), plan.Asked{}))
	}
	p := easyscale.New(easyscale.Default())
	for round, want := range []string{
		"0:1@2 1:1@2 ", // both start on one fast device
		"0:2@2 1:2@2 ", // and double,
		"0:4@2 1:4@2 ", // as 3 of 8 logical workers each would waste a ninth and gain less by device
		"0:4@2 1:4@2 ", // then the fast ones are gone, and nobody changes the model
	} {
		wishes, again := p.Wishes(s.View(), ids, nil)
		var text string
		for _, w := range wishes {
			text += fmt.Sprintf("%d:%d@%d ", w.Job, w.Workers, w.Models)
		}
		if text != want || (again == unit.Never) != (round == 3) {
			t.Fatalf("round %d: got %q and again at %d, want %q", round, text, again, want)
		}
		carryOut(t, s, wishes)
	}
	for _, c := range []easyscale.Config{{}, {Every: 1, MaxWaste: 2}, {Every: 1, MaxWaste: -1}} {
		if strategy.Check(c) == nil {
			t.Errorf("%+v passes", c)
		}
	}
	if strategy.Check(easyscale.Default()) != nil {
		t.Error("the default does not pass")
	}
}

// carryOut gives each job the fast devices that it wishes.
func carryOut(t *testing.T, s *plan.State, wishes []allocate.Wish) {
	t.Helper()
	for _, w := range wishes {
		if run := s.Jobs[w.Job].Run; run != plan.None {
			if s.Runs[run].Workers == w.Workers {
				continue
			}
			s.EndRun(run, 0)
			s.Jobs[w.Job].Phase = plan.Waiting
		}
		d := s.Edit()
		if run, _ := d.Start(w.Job, []plan.Slot{{Node: 1, Device: plan.None, Workers: w.Workers}}, plan.DefaultTerms(), w.Reason); run == plan.None {
			t.Fatalf("no room for %+v", w)
		}
		d.Commit()
	}
}

// source submits elastic jobs one after another.
type source struct{ next int }

func (s *source) Next() (workload.Job, workload.Truth, error) {
	i := s.next
	if s.next++; i == 16 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	j := workload.Job{Name: fmt.Sprint("job", i), Submit: unit.Time(0).Add(unit.Duration(i) * 5 * unit.Minute),
		Resources: workload.Resources{Gang: 8, Devices: 1, Share: 1000,
			Sizes: []int32{1, 2, 4, 8}}, Traits: workload.Traits{Menu: offers()}, Checkpoint: workload.Checkpoint{OnRequest: true, Load: 20 * unit.Second}}
	return j, workload.Truth{Duration: unit.Duration(5+i*7%20) * unit.Minute, Menu: j.Menu}, nil
}

// The engine carries the rounds out; equal runs commit equal bytes.
func TestInTheEngine(t *testing.T) {
	run := func() []byte {
		var b bytes.Buffer
		s, err := simulated.New(simulated.Config{Cluster: two(), Jobs: &source{}, TellTruth: true, Check: true, Decisions: &b,
			Scheduler: compose.New(compose.Parts{Joint: easyscale.New(easyscale.Default()), Estimator: oracle.Estimator{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}})})
		for more := true; more && err == nil; {
			more, err = s.Advance()
		}
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Result()
		if err != nil || r.Finished != 16 || r.Preemptions == 0 {
			t.Fatalf("%d of 16 jobs finished with %d preemptions (%v); want all, and some that grow", r.Finished, r.Preemptions, err)
		}
		return b.Bytes()
	}
	if !bytes.Equal(run(), run()) {
		t.Error("two equal runs commit different bytes")
	}
}
