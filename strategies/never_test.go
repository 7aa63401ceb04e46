package strategies_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/scenetest"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/strategies/allocate/liquid"
	"github.com/musterdl/muster/strategies/schedule/external"
)

// TestNeverTakesNoTurn: under every order, every decider for all jobs and every reservation, with limits and without,
// the jobs of a history start when they do if one that can never start is left out of it.
func TestNeverTakesNoTurn(t *testing.T) {
	cases := map[string]uint64{}
	for _, e := range catalogue.All {
		switch {
		case e.Name == external.Description.Name: // asks a script, which sees all that wait
		case e.Name == liquid.BatchDescription.Name: // counts its batches from when anybody was submitted
		case e.Part == calendar.ReservePart:
			for _, order := range []string{"fifo", "fifo-strict", "srtf"} {
				cases[order+"+oracle+"+e.Name] = 20
			}
		case e.Part == schedule.OrderPart, e.Part == allocate.JointPart && os.Getenv("MUSTER_LONG") != "":
			cases[e.Name] = 20
		case e.Part == allocate.JointPart:
			cases[e.Name] = 4
		}
	}
	for name, seeds := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				text, queues := withOneThatNeverStarts(seed)
				with, without := starts(t, name, queues, text), starts(t, name, queues, strings.Replace(text, never(text), "", 1))
				if with["never"] != unit.Never {
					t.Fatalf("seed %d: the job that can never start started at %s", seed, unit.Duration(with["never"]))
				}
				for job, at := range without {
					if with[job] != at {
						t.Fatalf("seed %d: %s starts at %s without the job that can never start, and at %s with it:\n%s\n%s", seed, job, unit.Duration(at), unit.Duration(with[job]), queues, text)
					}
				}
			}
		})
	}
}

// TestNeverComesInAgain: a job that could never start has its turn once the cluster or its queues are others, and loses
// it likewise.
func TestNeverComesInAgain(t *testing.T) {
	limited := func(milli int64) *queue.Tree {
		tree := queue.Flat()
		tree.Queues = append(tree.Queues, queue.Queue{Name: "a", Weight: 1000, Limit: []queue.Amount{{Milli: milli}}})
		return &tree
	}
	big := scenetest.Job("big", "a")
	big.Gang = 5
	confined := big
	confined.NodeSet = 1
	more := cluster.Uniform("more", 1, 4, cluster.Model{Name: "V100", Memory: 16 << 10, Speed: 1}, 1)
	more.Nodes[0].Name = "new"
	within := func(nodes uint64) engine.Event {
		return engine.Event{Kind: engine.Confined, Outside: engine.Outside{Set: 1, Within: []uint64{nodes}}}
	}
	for name, c := range map[string]struct {
		nodes         string
		job           *workload.Job
		before, after engine.Event
	}{
		"a node joins":      {"nodes 1 V100 devices=4", &big, engine.Event{Kind: engine.Tick}, engine.Event{Kind: engine.Joined, Outside: engine.Outside{Nodes: more}}},
		"a limit is raised": {"nodes 2 V100 devices=4", &big, engine.Event{Kind: engine.Shares, Queues: limited(4000)}, engine.Event{Kind: engine.Shares, Queues: limited(5000)}},
		"a set of nodes":    {"nodes 2 V100 devices=4", &confined, within(1), within(3)},
	} {
		t.Run(name, func(t *testing.T) {
			s := scenetest.New("fifo-strict+easy").Play(t, c.nodes+"\nsubmit first devices=2\n")
			phase := func(job string) plan.Phase {
				id, _ := s.Engine.Find(job)
				return s.Engine.View().Job(id).Phase
			}
			step := func(e engine.Event) {
				t.Helper()
				if err := s.Step(e); err != nil {
					t.Fatal(err)
				}
			}
			step(c.before)
			step(engine.Event{Kind: engine.Submit, Spec: c.job})
			s.Play(t, "submit next devices=1\npass 1m")
			if phase("big") != plan.Waiting || phase("next") != plan.Active || len(s.Engine.View().Claims()) > 0 {
				t.Errorf("big is %s, next %s, with claims %+v: expected waiting, active, and none", phase("big"), phase("next"), s.Engine.View().Claims())
			}
			s.Play(t, "end first")
			if step(c.after); phase("big") != plan.Active {
				t.Errorf("then big is %s", phase("big"))
			}
			if c.before.Kind == engine.Tick {
				return // no node leaves
			}
			s.Play(t, "hold big")
			step(c.before)
			if s.Play(t, "release big\nsubmit last devices=3"); phase("big") != plan.Waiting || phase("last") != plan.Active {
				t.Errorf("and at last big is %s, last %s", phase("big"), phase("last"))
			}
		})
	}
}

// withOneThatNeverStarts draws a history and its queues, in which the job named never can never start.
func withOneThatNeverStarts(seed uint64) (jobs, queues string) {
	r := rand.New(rand.NewPCG(seed, 24))
	huge := []string{"workers=9", "devices-per-worker=5", "workers=3 devices-per-worker=3", "memory=999GiB", "cpu=999"}
	if seed%2 == 1 {
		queues = fmt.Sprintf("queues: [{name: a, limit: %d}, {name: b, guarantee: %d}]", 3+r.IntN(4), r.IntN(4))
		huge = append(huge, "workers=8")
	}
	n := 4 + r.IntN(12)
	at := r.IntN(n)
	for i := range n {
		if i == at {
			jobs += fmt.Sprintf("never at=%ds run=100s tenant=a priority=%d %s\n", 20*i, r.IntN(2), huge[r.IntN(len(huge))])
		}
		jobs += fmt.Sprintf("job%d at=%ds run=%ds workers=%d tenant=%s priority=%d\n", i, 20*i+r.IntN(20), 10+r.IntN(300), 1+r.IntN(4), []string{"a", "b"}[r.IntN(2)], r.IntN(2))
	}
	return jobs, queues
}

// never is the line of that job.
func never(jobs string) string {
	for line := range strings.Lines(jobs) {
		if strings.HasPrefix(line, "never ") {
			return line
		}
	}
	return ""
}

// starts is when the jobs of a history start.
func starts(t *testing.T, ref, queues, text string) map[string]unit.Time {
	t.Helper()
	s := &stage{queues: queues}
	built, err := s.build(ref, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := readJobs(text)
	if err != nil {
		t.Fatal(err)
	}
	c, first, err := s.setting("gpus:2x4")
	if err != nil {
		t.Fatal(err)
	}
	sim, err := simulated.New(simulated.Config{Cluster: c, Beginning: simulated.Beginning{First: first}, Jobs: jobs.Source(), Scheduler: built.Scheduler,
		Policy: engine.DefaultPolicy(), TellTruth: built.TellTruth, Until: unit.Time(2 * unit.Hour), Check: true})
	for more := true; more && err == nil; {
		more, err = sim.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	v, at := sim.State().View(), map[string]unit.Time{}
	for id := range plan.JobID(v.Jobs()) {
		at[v.Name(id)] = v.Job(id).Started
	}
	return at
}
