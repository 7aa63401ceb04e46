package gandiva_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/gandiva"
	"github.com/musterdl/muster/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/profile/oracle"
	"github.com/musterdl/muster/schedule/scheduletest"
	"github.com/musterdl/muster/unit"
	"github.com/musterdl/muster/workload"
)

type spy struct {
	*gandiva.Decider
	n *int
}

var from, upto = 0, 3000

func (s spy) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	w, again := s.Decider.Wishes(v, jobs, into)
	if *s.n >= from && *s.n < upto {
		fmt.Printf("W %v again %v\n", v.Now(), again)
		for _, x := range w {
			run := v.Job(x.Job).Run
			st := ""
			if run != plan.None {
				st = fmt.Sprintf("%v", v.Run(run).Status)
			}
			fmt.Printf("   job %d w=%d slots=%v susp=%v terms=%+v %v | now phase %v run %d %s\n", x.Job, x.Workers, x.Slots, x.Suspend, x.Terms, x.Reason, v.Job(x.Job).Phase, run, st)
		}
	}
	return w, again
}

func TestTmp(t *testing.T) {
	if a := os.Getenv("FROM"); a != "" {
		from, _ = strconv.Atoi(a)
		upto, _ = strconv.Atoi(os.Getenv("UPTO"))
	}
	c := &cluster.Cluster{Name: "unlike"}
	fast := c.AddModel(cluster.Model{Name: "fast", Memory: 16 << 10, Speed: 1})
	slow := c.AddModel(cluster.Model{Name: "slow", Memory: 16 << 10, Speed: 0.5})
	rack := c.AddRack(cluster.Rack{Name: "rack"})
	for i := range 3 {
		m := fast
		if i == 2 {
			m = slow
		}
		c.AddNode(cluster.Node{Name: "n" + strconv.Itoa(i), Rack: rack, Model: m, CPU: 64 * unit.Whole, Memory: 256 << 10}, 2)
	}
	type row struct {
		gap  int
		gang int32
		run  int
		prio int32
		save bool
		el   int // 0 no 1 elastic 2 menu
		mem  int
	}
	var jobs scheduletest.Jobs
	now := unit.Time(0)
	for i, r := range []row{{25, 2, 597, 1, false, 0, 8}, {6, 2, 4, 0, false, 0, 1}, {0, 1, 202, 1, false, 2, 2}, {37, 2, 1384, 0, false, 0, 1}, {192, 1, 1, 1, false, 0, 2},
		{0, 2, 2, 1, true, 0, 1}, {1, 1, 2, 1, true, 0, 2}, {0, 2, 1, 1, false, 0, 4}, {0, 1, 1, 0, true, 1, 0}, {0, 2, 2, 0, false, 0, 5}, {1, 1, 1, 1, false, 0, 7}} {
		now = now.Add(unit.Duration(r.gap) * unit.Second)
		j := scheduletest.Job{Job: workload.Job{Name: "j" + strconv.Itoa(i), Submit: now, Devices: 1, Share: unit.Whole}}
		j.Gang = r.gang
		j.Duration = unit.Duration(r.run) * unit.Second
		j.Priority = r.prio
		j.Checkpoint = workload.Checkpoint{OnRequest: true, Load: unit.Minute}
		if r.save {
			j.Checkpoint.Save = 5 * unit.Second
		}
		if r.el > 0 {
			j.Sizes = []int32{1, 2}
		}
		if r.el > 1 {
			j.Job.Menu = []workload.Offer{{Workers: 1, Rate: 1}, {Workers: 2, Rate: 1.6}, {Model: "slow", Workers: 1, Rate: 0.4}, {Model: "slow", Workers: 2, Rate: 0.7}}
		}
		j.Memory = unit.MiB(r.mem) << 10
		jobs = append(jobs, j)
	}
	n := 0
	cfg := scheduletest.JointConfig(c, jobs, spy{gandiva.New(gandiva.Default()), &n}, oracle.Estimator{})
	cfg.Restart = 30 * unit.Second
	cfg.Commit = func(v plan.View, c *plan.Commit) {
		n++
		if n >= from && n < upto {
			fmt.Printf("C%d %s", n, c.AppendJSON(nil, v))
		}
	}
	o, err := scheduletest.Run(cfg)
	fmt.Println("commits", n, "err", err)
	for _, j := range o.Jobs {
		fmt.Println(j.Name, j.Outcome, j.End)
	}
}
