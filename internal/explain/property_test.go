package explain_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/fit"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/scenetest"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// draw lets something happen; devices are what workers may ask for.
func draw(t *rapid.T, s *scenetest.Scene, n int, devices ...string) {
	pick := func(name string, list ...string) string { return rapid.SampledFrom(list).Draw(t, name) }
	line := ""
	switch kind := rapid.IntRange(0, 11).Draw(t, "kind"); {
	case kind < 7:
		line = fmt.Sprintf("submit j%d gang=%d devices=%s cores=%s priority=%s tenant=%s user=%s", n, rapid.IntRange(1, 3).Draw(t, "gang"),
			pick("devices", devices...), pick("cores", "1", "2", "7"), pick("priority", "0", "0", "5"), pick("tenant", "a", "b", "b/c"), pick("user", "ann", "bob"))
		line = line + pick("estimate", "", " estimate=1h", " estimate=3h") + pick("model", "", " model=V100")
		if pick("part", "no", "yes") == "yes" {
			line = fmt.Sprintf("submit j%d gang=%d devices=1 share=%s memory=%s", n, rapid.IntRange(1, 3).Draw(t, "gang"), pick("share", "0.3", "0.5", "0.8"), pick("memory", "2GiB", "9GiB"))
		}
	case kind < 9:
		if s.Engine.View().Jobs() == 0 {
			return
		}
		id := plan.JobID(rapid.IntRange(0, s.Engine.View().Jobs()-1).Draw(t, "job"))
		if s.Engine.View().Job(id).Phase == plan.Active {
			line = "end " + s.Engine.View().Name(id)
		}
	case kind == 9:
		line = pick("ill", "cordon", "down", "lose") + " node" + pick("node", "0", "1", "2", "3")
	default:
		line = "pass " + pick("pass", "1m", "20m", "2h")
	}
	if err := s.Line(line); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
}

func site(t *testing.T, strategy string, queues string) *scenetest.Scene {
	return scenetest.New(strategy).Play(t, "nodes 2 V100 devices=4 cores=16 memory=16GiB\nnodes 2 P100 devices=3 cores=8 memory=8GiB\n"+queues+"\npass 1s")
}

// What is said of room is what placers find: the nodes with room for a worker are
// those that one finds, and the job would fit if those whose end it is said to need
// had ended, and not if one of them went on.
func TestRoom(t *testing.T) {
	holders := 0
	draws.Check(t, func(r *rapid.T) {
		s := site(t, "fifo", "")
		for n := range rapid.IntRange(1, 20).Draw(r, "steps") {
			draw(r, s, n, "0", "1", "2", "3", "4")
		}
		v := s.Engine.View()
		for id := range plan.JobID(v.Jobs()) {
			if v.Job(id).Phase != plan.Waiting {
				continue
			}
			a := explain.Of(v, nil).Why(id)
			free, nodes, room := 0, 0, 0
			for _, o := range a.Obstacles {
				nodes += o.Nodes
				if o.Obstacle == "has room for a worker" {
					room = o.Nodes
				}
			}
			for node := range plan.NodeID(v.Nodes()) {
				if v.Holds(node, v.Shape(id)) > 0 {
					free++
				}
			}
			if free != room || nodes != v.Nodes() {
				r.Fatalf("%s: %d of %d nodes have room: %+v", v.Name(id), free, v.Nodes(), a.Obstacles)
			}
			if a.Words == "" {
				r.Fatalf("%s: nothing is said", v.Name(id))
			}
			if (a.Code == plan.NoRoom || a.Code == plan.Fragmented) && len(a.Holders) > 0 {
				holders++
				for without := -1; without < len(a.Holders); without++ {
					if got := fitsAfter(t, s, id, a.Holders, without); got != (without < 0) {
						r.Fatalf("%s: %s; holders %+v without %d: fits %v", v.Name(id), a.Words, a.Holders, without, got)
					}
				}
			}
		}
	})
	if holders == 0 {
		t.Error("nobody waited for anybody: nothing was tested")
	}
}

// fitsAfter reports whether a job fits when holders have ended, but for one.
func fitsAfter(t *testing.T, s *scenetest.Scene, id plan.JobID, holders []explain.Holder, without int) bool {
	state := s.Engine.State().Copy()
	for i, h := range holders {
		job, ok := s.Engine.Find(h.Job)
		if !ok {
			t.Fatalf("there is no job %q", h.Job)
		}
		if i != without {
			state.EndRun(state.Jobs[job].Run, 0)
		}
	}
	v := state.View()
	_, fits := fit.First(v, allocate.Need{Job: id, Workers: v.Shape(id).Gang, Shape: v.Shape(id)}, 0, nil)
	return fits
}

// Under limits the same is said as the scheduler noted when it tried a moment ago.
func TestLimits(t *testing.T) {
	noted := 0
	draws.Check(t, func(r *rapid.T) {
		s := site(t, "fifo", "queue a limit=5 user-limit=3\nqueue b guarantee=4 borrow=2\nqueue b/c limit=4 keep=2 guarantee=2")
		for n := range rapid.IntRange(1, 20).Draw(r, "steps") {
			draw(r, s, n, "1", "2", "3", "4")
			// Of a shape of its own, so that it is tried itself.
			name := fmt.Sprint("probe", n)
			line := fmt.Sprintf("submit %s devices=%d memory=%dMiB tenant=%s user=%s", name, rapid.IntRange(1, 4).Draw(r, "probe"), n+1,
				rapid.SampledFrom([]string{"a", "b", "b/c"}).Draw(r, "of"), rapid.SampledFrom([]string{"ann", "bob"}).Draw(r, "by"))
			if err := s.Line(line); err != nil {
				r.Fatalf("%s: %v", line, err)
			}
			id, _ := s.Engine.Find(name)
			j, a := s.Engine.View().Job(id), explain.Of(s.Engine.View(), nil).Why(id)
			was := j.Reason.Code
			said := a.Code == plan.QueueLimit || a.Code == plan.BorrowLimit || a.Code == plan.UserLimit
			if limit := was == plan.QueueLimit || was == plan.BorrowLimit || was == plan.UserLimit; j.Phase == plan.Waiting && (limit || said) {
				if noted++; a.Code != was && a.Code != plan.Unsatisfiable {
					r.Fatalf("%s: noted %s, said %s (%s)", line, was, a.Code, a.Words)
				}
			}
			if err := s.Line("hold " + name); err != nil && j.Phase == plan.Waiting {
				r.Fatal(err)
			}
		}
	})
	if noted == 0 {
		t.Error("no limit was met: nothing was tested")
	}
}

// crowd is the size that the issue names: 1,000 queues, 10,000 devices, 100,000 jobs
// that wait.
func crowd(b testing.TB) *scenetest.Scene {
	s := scenetest.New("fifo+easy")
	if err := s.Line("nodes 1250 V100"); err != nil {
		b.Fatal(err)
	}
	for n := range 1000 {
		if err := s.Line(fmt.Sprintf("queue q%d guarantee=10 limit=400 user-limit=300 borrow=350", n)); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Line("pass 0s"); err != nil {
		b.Fatal(err)
	}
	var events []engine.Event
	for n := range 110_000 {
		j := scenetest.Job(fmt.Sprint("j", n), fmt.Sprint("q", n%1000))
		j.Gang, j.Devices, j.Estimate = int32(1+n%4), int32(1<<(n%4)), unit.Duration(1+n%50)*unit.Hour
		events = append(events, engine.Event{Kind: engine.Submit, Spec: &j})
	}
	// One that waits for thousands of runs, and one that idle, closed nodes would hold.
	giant, narrow := scenetest.Job("giant", ""), scenetest.Job("narrow", "")
	giant.Gang, giant.Devices, narrow.Devices, narrow.Priority = 900, 8, 8, -1
	events = append(events, engine.Event{Kind: engine.Cordon, Node: 7}, engine.Event{Kind: engine.Submit, Spec: &giant}, engine.Event{Kind: engine.Submit, Spec: &narrow})
	if err := s.Step(events...); err != nil {
		b.Fatal(err)
	}
	return s
}

func BenchmarkWhy(b *testing.B) {
	s := crowd(b)
	v, waiting := s.Engine.View(), 0
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Waiting {
			waiting++
		}
	}
	b.Logf("%d jobs wait, %d claims", waiting, len(v.Claims()))
	for _, name := range []string{"j109996", "j109997", "j109998", "j109999", "giant", "narrow"} {
		id, _ := s.Engine.Find(name)
		b.Run(fmt.Sprintf("%s-%dx%d", name, v.Shape(id).Gang, v.Shape(id).Devices), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				explain.Of(v, nil).Why(id)
			}
		})
		b.Logf("%s", told(v, explain.Of(v, nil).Why(id)))
	}
}

// BenchmarkCauses is what a list of 500 jobs costs that wait in the same crowd.
func BenchmarkCauses(b *testing.B) {
	v := crowd(b).Engine.View()
	var waiting []plan.JobID
	for id := range plan.JobID(v.Jobs()) {
		if v.Job(id).Phase == plan.Waiting && len(waiting) < 500 {
			waiting = append(waiting, id)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		s := explain.Of(v, nil)
		for _, id := range waiting {
			s.Cause(id)
		}
	}
}
