package gandiva

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"slices"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/oracle"
)

// source submits jobs that are given.
type source struct {
	jobs   []workload.Job
	truths []workload.Truth
}

func (s *source) add(gang int32, minutes int, busy float64, sizes ...int32) {
	s.jobs = append(s.jobs, workload.Job{Name: fmt.Sprint("job", len(s.jobs)), Submit: unit.Time(0).Add(unit.Duration(len(s.jobs)) * unit.Second),
		Resources: workload.Resources{Gang: gang, Devices: 1, Share: 1000, Memory: 4 << 10, Sizes: sizes}, Checkpoint: workload.Checkpoint{OnRequest: true}})
	s.truths = append(s.truths, workload.Truth{Duration: unit.Duration(minutes) * unit.Minute, Busy: busy})
}

func (s *source) Next() (j workload.Job, t workload.Truth, err error) {
	if len(s.jobs) == 0 {
		return j, t, io.EOF
	}
	j, t = s.jobs[0], s.truths[0]
	s.jobs, s.truths = s.jobs[1:], s.truths[1:]
	return j, t, nil
}

// history is what a run of the engine showed.
type history struct {
	first   []unit.Duration // by job: until it had computed for ten minutes, or ended
	jct     float64
	commits []byte
	reasons map[plan.ReasonCode]int
}

func run(t *testing.T, decider allocate.Joint, nodes, devices int, src source) history {
	t.Helper()
	return runIn(t, world.Config{}, decider, nodes, devices, src)
}

func runIn(t *testing.T, w world.Config, decider allocate.Joint, nodes, devices int, src source) history {
	t.Helper()
	var b bytes.Buffer
	n := len(src.jobs)
	h := history{first: make([]unit.Duration, n), reasons: map[plan.ReasonCode]int{}}
	c := cluster.Uniform("c", nodes, devices, cluster.Model{Name: "gpu", Memory: 16 << 10, Speed: 1}, 4)
	for i := range c.Nodes {
		c.Nodes[i].CPU = 4 * unit.Whole
	}
	s, err := simulated.New(simulated.Config{Cluster: c, Jobs: &src, World: w, TellTruth: true, Check: true, Decisions: &b,
		Scheduler: compose.New(compose.Parts{Joint: decider, Estimator: oracle.Estimator{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{}}),
		Hooks: simulated.Hooks{Step: func(at unit.Time, _ []engine.Event, _ *engine.Out, v plan.View) {
			for id := range plan.JobID(v.Jobs()) {
				if h.first[id] == 0 && (v.Executed(id) >= 10*unit.Minute || v.Job(id).Phase == plan.Finished) {
					h.first[id] = at.Sub(v.Job(id).Submit)
				}
			}
		},
			Commit: func(_ plan.View, c *plan.Commit) {
				for _, change := range c.Changes {
					h.reasons[change.Reason.Code]++
				}
			}}})
	for more := true; more && err == nil; {
		more, err = s.Advance()
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Result()
	if err != nil || int(r.Finished) != n {
		t.Fatalf("%d of %d jobs finished (%v)", r.Finished, n, err)
	}
	h.jct, h.commits = r.AvgJCTSec, b.Bytes()
	return h
}

// exclusive gives devices first come, first served, for good.
func exclusive() allocate.Joint { return New(Config{Quantum: unit.Minute, MaxResidents: 1}) }

// TestEarlyFeedback: with twelve jobs of an hour on four devices all have had their ten
// minutes within three turns each, which the last of a queue waits two hours for.
func TestEarlyFeedback(t *testing.T) {
	var src source
	for range 12 {
		src.add(1, 60, 1)
	}
	config := Default()
	config.Pack = false
	sliced, queued := run(t, New(config), 2, 2, src), run(t, exclusive(), 2, 2, src)
	if s, q := slices.Max(sliced.first), slices.Max(queued.first); s > 32*unit.Minute || q < 125*unit.Minute {
		t.Errorf("the last has had ten minutes after %s, in a queue after %s", s, q)
	}
	again := run(t, New(config), 2, 2, src)
	if !bytes.Equal(sliced.commits, again.commits) {
		t.Error("two equal runs commit different bytes")
	}
}

// TestPackingOnTrial: jobs that keep a device less than half busy stay packed and end
// earlier than in turns; jobs that keep it wholly busy are tried once and parted.
func TestPackingOnTrial(t *testing.T) {
	turns := Default()
	turns.Pack = false
	for _, busy := range []float64{.4, 1} {
		var src source
		for range 8 {
			src.add(1, 30, busy)
		}
		packed, apart := run(t, New(Default()), 2, 2, src), run(t, New(turns), 2, 2, src)
		if packed.reasons[plan.Packed] == 0 {
			t.Errorf("busy %g: nothing was packed", busy)
		}
		if gains := packed.jct < .6*apart.jct; gains != (busy < .5) {
			t.Errorf("busy %g: mean JCT %.0f s packed, %.0f s in turns", busy, packed.jct, apart.jct)
		}
	}
}

// TestMoves: when a device falls idle, one of those who take turns elsewhere moves there;
// and a gang gets its turns beside single workers.
func TestMoves(t *testing.T) {
	turns := Default()
	turns.Pack = false
	still := turns
	still.Migrate = false
	var src, gang source
	for _, minutes := range []int{5, 60, 5, 60} {
		src.add(1, minutes, 1)
		gang.add(1, minutes, 1)
	}
	moved, stayed := run(t, New(turns), 1, 2, src), run(t, New(still), 1, 2, src)
	if moved.reasons[plan.Moved] != 2 || moved.jct > .8*stayed.jct {
		t.Errorf("%d stops and starts to move, one of each expected; mean JCT %.0f s, without moving %.0f s", moved.reasons[plan.Moved], moved.jct, stayed.jct)
	}
	gang.add(2, 30, 1)
	if h := run(t, New(turns), 1, 2, gang); h.first[4] > 40*unit.Minute {
		t.Errorf("a gang has had ten minutes after %s", h.first[4])
	}
}

// TestGrows: an elastic job alone on its node grows into it, and ends earlier.
func TestGrows(t *testing.T) {
	var src source
	src.add(1, 60, 1, 1, 2, 4)
	if h := run(t, New(Default()), 1, 4, src); h.jct > 20*60 {
		t.Errorf("an hour's work for one device took %.0f s with four", h.jct)
	}
}

// agreeing is the strategy, whose wishes must agree with themselves: one with places for
// another number of workers is never as wished, and is carried out again and again.
type agreeing struct {
	*Decider
	t *testing.T
}

func (a agreeing) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	wishes, again := a.Decider.Wishes(v, jobs, into)
	for _, w := range wishes {
		places := int32(0)
		for _, s := range w.Slots {
			places += s.Workers
		}
		if w.Slots != nil && places != w.Workers {
			a.t.Errorf("at %d job %d is to have %d workers on %v", v.Now(), w.Job, w.Workers, w.Slots)
		}
	}
	return wishes, again
}

// TestGivesBack: what a job has grown to is taken back when others come, once, and they
// have it.
func TestGivesBack(t *testing.T) {
	var src source
	src.add(1, 60, 1, 1, 2)
	for range 2 {
		src.add(1, 30, 1)
		src.jobs[len(src.jobs)-1].Submit = unit.Time(0).Add(10 * unit.Minute)
	}
	h := run(t, agreeing{New(Default()), t}, 1, 2, src)
	if stops := bytes.Count(h.commits, []byte(`"verb":"stop"`)); stops > 5 {
		t.Errorf("%d stops: the job is never as wished", stops)
	}
	if h.first[1] > 25*unit.Minute || h.first[2] > 25*unit.Minute {
		t.Errorf("those who came had ten minutes after %s and %s", h.first[1], h.first[2])
	}
}

// TestTight: no job is sent where there are no cores for it, nor where a part of a device
// is taken; it goes where there are, at once.
func TestTight(t *testing.T) {
	var src source
	for i := range 3 {
		src.add(1, 30, 1)
		src.jobs[i].Submit = unit.Time(0).Add(unit.Duration(i) * 2 * unit.Minute)
	}
	src.jobs[0].CPU, src.jobs[1].CPU, src.jobs[2].CPU = 3000, 3000, 1000
	src.jobs[2].Share = 500
	src.add(1, 30, 1)
	src.jobs[3].Submit = unit.Time(0).Add(10 * unit.Minute)
	h := run(t, agreeing{New(Default()), t}, 2, 2, src)
	for id, first := range h.first {
		if first > 11*unit.Minute {
			t.Errorf("job %d had ten minutes after %s", id, first)
		}
	}
}

// pairs is a table of rates beside each other, by class.
type pairs map[[2]string]float64

func (pairs) Rate(string, string, int, int) (float64, bool) { return 0, false }

func (p pairs) Pair(a, b, _ string) (float64, float64, bool) {
	return p[[2]string{a, b}], p[[2]string{b, a}], true
}

// TestJudgesByTheRateAlone: three jobs of which no two go well together are tried in all
// pairs and parted: what one did in the last bad company is not what it does by itself.
func TestJudgesByTheRateAlone(t *testing.T) {
	var src source
	for i, class := range []string{"a", "b", "c"} {
		src.add(1, 60, 1)
		src.jobs[i].Class = class
	}
	bad := pairs{}
	for _, a := range []string{"a", "b", "c"} {
		for _, b := range []string{"a", "b", "c"} {
			bad[[2]string{a, b}] = .3
		}
	}
	h := runIn(t, world.Config{Speeds: bad}, New(Default()), 1, 1, src)
	if h.jct > 3*3600+600 || h.reasons[plan.Packed] == 0 {
		t.Errorf("three hours of work in turns took %.0f s on the average, with %d packed", h.jct, h.reasons[plan.Packed])
	}
}

// TestMemory: what is remembered comes back, and is written the same again.
func TestMemory(t *testing.T) {
	a, b := New(Default()), New(Default())
	a.m.slice, a.m.next = 3, 99
	a.m.last, a.m.idle, a.m.grown[7] = []turned{{7, 2, 900_000}, {12, 3, 0}}, []unit.Time{unit.Never, 44}, []int32{1, 2}
	a.m.tried, a.m.pairs = [][2]int32{{7, 12}}, []pair{{jobs: [2]plan.JobID{7, 12}, settled: true}}
	if err := b.Recall(a.Remember()); err != nil || !reflect.DeepEqual(a.m, b.m) || !bytes.Equal(a.Remember(), b.Remember()) {
		t.Errorf("%+v came back as %+v (%v)", a.m, b.m, err)
	}
	if b.Recall([]byte("nonsense")) == nil {
		t.Error("nonsense was read")
	}
}
