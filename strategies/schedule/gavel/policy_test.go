package gavel

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/experiment/reproduce/stand"
	"github.com/musterdl/muster/mechanism/solve"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// TestMain keeps the compiled solver among the user's caches.
func TestMain(m *testing.M) {
	if dir, err := os.UserCacheDir(); err == nil {
		solve.Cache(filepath.Join(dir, "muster", "solve"))
	}
	os.Exit(m.Run())
}

// TestJointSuite: the contract of all joint deciders. By default the twin divides,
// which takes a tenth of the time.
func TestJointSuite(t *testing.T) {
	for _, policy := range Policies {
		t.Run(policy, func(t *testing.T) {
			c := Default()
			c.Policy = policy
			if os.Getenv("MUSTER_LONG") != "1" {
				c.MostJobs = 0
			}
			scheduletest.ConformJoint(t, func() allocate.Joint { return New(c) })
		})
	}
}

// TestEngine runs the published traces in the engine, with the measured rates as menus.
// The published simulator gives (8 V100, 16 P100, 24 K80; commit c4fa400): mean JCT 5.55
// and 4.06 h, 4.17 h under finish-time fairness, and a makespan of 17.98 h.
func TestEngine(t *testing.T) {
	run := func(policy, trace string) map[string]float64 {
		s, c := published(t, trace), Default()
		c.Policy = policy
		config := scheduletest.JointConfig(s.Cluster, nil, New(c), oracle.Estimator{})
		config.Jobs = s.Jobs
		o, err := scheduletest.Run(config)
		if err != nil || o.Finished != o.Result.Jobs {
			t.Fatalf("%d of %d jobs finished: %v", o.Finished, o.Result.Jobs, err)
		}
		fared := make([]stand.Job, len(o.Jobs))
		for i := range fared {
			fared[i].JobRecord = o.Jobs[i]
		}
		return s.Figures(&stand.Finished{Result: o.Result, Jobs: fared})
	}
	agnostic, aware := run(Agnostic, "max_min_fairness.trace")["jct_h"], run(MaxMin, "max_min_fairness.trace")["jct_h"]
	within(t, "mean JCT in h, agnostic", agnostic, 5.55*.9, 5.55*1.1)
	within(t, "mean JCT in h, aware", aware, 4.06*.9, 4.06*1.1)
	within(t, "their ratio", aware/agnostic, .73-.06, .73+.06)
	within(t, "makespan in h", run(Makespan, "minimize_makespan.trace")["end_h"], 17.98*.97, 17.98*1.03)
	if os.Getenv("MUSTER_LONG") == "1" {
		within(t, "mean JCT in h, finish-time fairness", run(FinishTimeFairest, "max_min_fairness.trace")["jct_h"], 4.17*.9, 4.17*1.1)
	}
}

// published is a bundled trace on the devices it ran on.
func published(t *testing.T, trace string) *stand.Stand {
	t.Helper()
	open := func(path string) (io.ReadCloser, error) {
		return os.Open(filepath.Join("..", "..", "..", "..", "shared", "data", path))
	}
	s, err := stand.Open("gavel?trace="+trace, open, 1)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the data set gavel is not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	t.Logf("%s: %.3f", what, got)
	if got < low || got > high {
		t.Errorf("%s: %.4g, want %.4g to %.4g", what, got, low, high)
	}
}

// TestTwinIsNamed: where the twin divides, whoever runs and whoever waits for it is told, also
// after a restart; where the program does, nobody hears of a twin.
func TestTwinIsNamed(t *testing.T) {
	for most, want := range map[int]string{
		1:   "this round's allocation says so, approximated because 3 jobs are more than the 1 that it divides exactly",
		500: "this round's allocation says so",
	} {
		s := plan.NewState(cluster.Uniform("c", 1, 1, cluster.Model{Name: "gpu", Speed: 1}, 1))
		s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
		var jobs []plan.JobID
		for i := range 3 {
			jobs = append(jobs, s.Admit(fmt.Sprint("job", i), plan.Asked{}))
		}
		c := Default()
		c.MostJobs = most
		p := New(c)
		p.Wishes(s.View(), jobs, nil)
		reply, err := p.Solve(p.Question(s.View(), jobs))
		if err != nil {
			t.Fatal(err)
		}
		p.Learn(reply)
		p.Wishes(s.View(), jobs, nil)
		again := New(c)
		if err := again.Recall(p.Remember()); err != nil {
			t.Fatal(err)
		}
		wishes, _ := again.Wishes(s.View(), jobs, nil)
		wanted := 0
		for _, w := range wishes {
			wanted += int(w.Workers)
			if got := w.Reason.Words(s.View()); got != want {
				t.Errorf("up to %d jobs exactly: %q, want %q", most, got, want)
			}
		}
		if wanted != 1 || most == 1 && len(wishes) != 3 {
			t.Errorf("up to %d jobs exactly: %+v", most, wishes)
		}
	}
}

// TestMemory: what is recalled is what was remembered, and nothing else is.
func TestMemory(t *testing.T) {
	m := memory{roundEnd: 7, divided: -1, booked: 3, ended: true, room: []int64{1000, 2000}, jobs: []standing{
		{job: 2, kind: plan.None, x: []int64{1, 2}, got: []int64{3, 4}, deficit: []int64{-5, 6}},
		{job: 9, kind: 1, answered: true, x: []int64{0, 0}, got: []int64{0, 0}, deficit: []int64{0, 0}}}}
	var back memory
	if err := back.Recall(m.Remember()); err != nil || !bytes.Equal(back.Remember(), m.Remember()) || len(back.jobs) != 2 || back.jobs[0].deficit[0] != -5 {
		t.Errorf("recalled %+v, %v", back, err)
	}
	for _, bad := range [][]byte{nil, m.Remember()[1:], append(m.Remember(), 0)} {
		if New(Default()).Recall(bad) == nil {
			t.Errorf("%d bytes that are no memory were taken for one", len(bad))
		}
	}
}
