package compose_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/engine/compose"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/schedule/calendar"
	"github.com/musterdl/muster/strategies/allocate/bestfit"
	"github.com/musterdl/muster/strategies/allocate/firstfit"
	"github.com/musterdl/muster/strategies/allocate/fixed"
	"github.com/musterdl/muster/strategies/flow/maxmin"
	"github.com/musterdl/muster/strategies/profile/declared"
	"github.com/musterdl/muster/strategies/schedule/fifo"
	"github.com/musterdl/muster/strategies/schedule/sjf"
)

// TestBackfillDelaysNobody: where estimates are upper bounds, no job starts after the
// instant that its first claim promised, whatever fills in around it, in the engine as
// it is: with a strategy of each part and shares of devices.
func TestBackfillDelaysNobody(t *testing.T) {
	cases, claims := 0, 0
	want := 1000
	if os.Getenv("MUSTER_LONG") != "" {
		want = 10_000
	}
	for cases < want {
		draws.Cases{Round: cases}.Check(t, func(t *rapid.T) {
			cases++
			claims += promisesKept(t)
		})
	}
	t.Logf("%d claims in %d cases", claims, cases)
	if claims < cases/4 {
		t.Errorf("only %d claims were made in %d cases: they test too little", claims, cases)
	}
}

// guess is a foresight that knows nothing: whatever it says is drawn from the number of the job.
type guess struct{}

func (guess) Length(_ plan.View, job plan.JobID, _ int32) unit.Duration {
	return unit.Duration(1+int(job)*37%200) * unit.Second
}

func (g guess) Expected(v plan.View, run plan.RunID) (unit.Time, bool) {
	return v.Now().Add(g.Length(v, v.Run(run).Job, 0)), false
}

func (guess) Step(_ plan.View, job plan.JobID) (int32, unit.Time) {
	return int32(job) * 7 % 5, unit.Never
}

func (guess) Claims(plan.View, plan.JobID, int32) bool { return true }

func (guess) Pays(_ plan.View, job plan.JobID, _ int, _ unit.Time) bool { return job%3 != 0 }

// TestForesightIsBounded: whatever a foresight says, once the first claim is closed its job starts when what then
// runs on its nodes has ended, at the latest, though others that it says are shorter keep coming.
func TestForesightIsBounded(t *testing.T) {
	untilSeen(t, "claims that were closed", 200, 2000, boundKept)
}

// untilSeen runs random histories until they have shown so much of what they are to test, and fails below the least.
func untilSeen(t *testing.T, what string, least, enough int, history func(t *rapid.T) int) {
	seen := 0
	for at := 0; at < 300 && seen <= enough; at++ {
		draws.Cases{Round: at}.Check(t, func(t *rapid.T) { seen += history(t) })
	}
	if t.Logf("%d %s", seen, what); seen < least {
		t.Errorf("only %d %s: they test too little", seen, what)
	}
}

// boundKept runs a random history and returns how many claims were closed in it.
func boundKept(t *rapid.T) (closed int) {
	nodes, devices := rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.IntRange(1, 3).Draw(t, "devices")
	s := newSite(t, cluster.Uniform("site", nodes, devices, cluster.Model{Name: "gpu", Speed: 1}, 2), queue.Tree{}, composed(func() compose.Parts {
		return compose.Parts{Estimator: declared.Estimator{}, Order: fifo.New(fifo.Default()), Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{},
			Reserve: calendar.Policy{Depth: 1, Patience: 2 * unit.Minute, Slack: unit.Minute, Foresight: guess{}}}
	}))
	s.atOnce = true
	var takes []unit.Duration
	bound := map[plan.JobID]unit.Time{}
	look := func() {
		v := s.e.View()
		if claims := v.Claims(); len(claims) > 0 && claims[0].Closed(v.Now()) {
			c := claims[0]
			if _, known := bound[c.Job]; !known {
				closed++
				latest := v.Now()
				for run := range plan.RunID(v.RunSlots()) {
					v.GrantsOf(run, func(g plan.Grant) {
						if slices.ContainsFunc(c.Parts, func(p plan.Part) bool { return p.Node == g.Node }) {
							r := v.Run(run)
							latest = max(latest, r.Since.Add(takes[r.Job]))
						}
					})
				}
				bound[c.Job] = latest
			}
		}
		for job, by := range bound {
			if j := v.Job(job); j.Phase == plan.Waiting && v.Now() > by {
				t.Fatalf("job %d was to start by %d and still waits at %d", job, by/1e6, v.Now()/1e6)
			}
		}
	}
	s.play(t, rapid.IntRange(6, 30).Draw(t, "jobs"), look, func(i int) {
		ran := unit.Duration(rapid.IntRange(1, 300).Draw(t, "takes")) * unit.Second
		takes = append(takes, ran)
		s.submit(workload.Job{Resources: workload.Resources{Gang: int32(rapid.IntRange(1, nodes*devices).Draw(t, "gang")), Devices: 1, Share: 1000}, User: fmt.Sprint(i)}, ran)
	})
	return closed
}

// play submits so many jobs, at random times, and goes on until nothing happens any more, with a look after each step.
func (s *site) play(t *rapid.T, jobs int, look func(), submit func(i int)) {
	for i := range jobs {
		submit(i)
		look()
		if rapid.Bool().Draw(t, "wait") {
			s.pass(unit.Duration(rapid.IntRange(1, 100).Draw(t, "seconds")) * unit.Second)
			look()
		}
	}
	for range 500 {
		if len(s.due) == 0 && s.wake == unit.Never {
			break
		}
		s.pass(unit.Hour)
		look()
	}
}

// TestWhoFitsBesideTheClaimStarts: of many queues nobody waits who fits beside the only claim, though whom it keeps
// out keeps out others untried.
func TestWhoFitsBesideTheClaimStarts(t *testing.T) {
	untilSeen(t, "times a job was kept out", 2000, 10_000, besideTheClaim)
}

// besideTheClaim runs a random history on one node and returns how often the claim of another kept a job out.
func besideTheClaim(t *rapid.T) (kept int) {
	devices := int32(rapid.IntRange(2, 6).Draw(t, "devices"))
	tree := queue.Tree{Queues: []queue.Queue{queue.Root()}}
	queues := rapid.IntRange(2, 5).Draw(t, "queues")
	for i := range queues {
		tree.Queues = append(tree.Queues, queue.Queue{Name: fmt.Sprint("q", i), Weight: 1000})
	}
	s := newSite(t, cluster.Uniform("site", 1, int(devices), cluster.Model{Name: "gpu", Speed: 1}, 1), tree, composed(func() compose.Parts {
		return compose.Parts{Estimator: declared.Estimator{}, Order: fifo.New(fifo.Default()), Sizer: fixed.Sizer{}, Placer: firstfit.Placer{}, Flow: maxmin.Policy{},
			Reserve: calendar.Policy{Depth: 1}}
	}))
	s.atOnce = true
	var takes []unit.Duration
	look := func() {
		v := s.e.View()
		claims, free := v.Claims(), devices
		for run := range plan.RunID(v.RunSlots()) {
			v.GrantsOf(run, func(plan.Grant) { free-- })
		}
		for id := range plan.JobID(v.Jobs()) {
			gang, until := v.Shape(id).Gang, v.Now().Add(takes[id])
			if v.Job(id).Phase != plan.Waiting || gang > free {
				continue
			}
			if len(claims) == 0 || claims[0].Job == id {
				t.Fatalf("job %d waits at %d and would fit", id, v.Now()/1e6)
			}
			then := free - v.Shape(claims[0].Job).Gang // when the claim is due
			for run := range plan.RunID(v.RunSlots()) {
				if r := v.Run(run); r.Job != plan.None && r.Began.Add(takes[r.Job]) <= claims[0].At {
					v.GrantsOf(run, func(plan.Grant) { then++ })
				}
			}
			if kept++; until <= claims[0].At || gang <= then {
				t.Fatalf("job %d waits at %d and would fit beside the claim of %d", id, v.Now()/1e6, claims[0].Job)
			}
		}
	}
	s.play(t, rapid.IntRange(6, 30).Draw(t, "jobs"), look, func(i int) {
		ran := unit.Second << rapid.IntRange(0, 8).Draw(t, "takes") // of those that take about as long the first is tried
		takes = append(takes, ran)
		s.submit(workload.Job{Resources: workload.Resources{Gang: int32(rapid.IntRange(1, int(devices)).Draw(t, "gang")), Devices: 1, Share: 1000},
			Estimate: ran, Tenant: fmt.Sprint("q", rapid.IntRange(0, queues-1).Draw(t, "queue")), User: fmt.Sprint(i)}, ran)
	})
	return kept
}

// promisesKept runs a random history and returns how many claims were made in it.
func promisesKept(t *rapid.T) int {
	nodes, devices := rapid.IntRange(1, 4).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "devices")
	order := rapid.SampledFrom([]schedule.Order{fifo.New(fifo.Default()), sjf.Order{}}).Draw(t, "order")
	best := rapid.Bool().Draw(t, "best fit")
	depth := rapid.SampledFrom([]int{1, 1, 2, 100}).Draw(t, "depth")
	s := newSite(t, cluster.Uniform("site", nodes, devices, cluster.Model{Name: "gpu", Speed: 1}, 2), queue.Tree{}, composed(func() compose.Parts {
		var placer allocate.Placer = firstfit.Placer{}
		if best {
			placer = bestfit.New(bestfit.Default())
		}
		return compose.Parts{Estimator: declared.Estimator{}, Order: order, Sizer: fixed.Sizer{}, Placer: placer, Flow: maxmin.Policy{},
			Reserve: calendar.Policy{Depth: depth}}
	}))
	s.atOnce = true           // the time of starting is in no estimate
	var promised []plan.Claim // the first of each job
	kept := map[plan.JobID]bool{}
	look := func() {
		v := s.e.View()
		for _, c := range v.Claims() {
			if !slices.ContainsFunc(promised, func(p plan.Claim) bool { return p.Job == c.Job }) {
				promised = append(promised, c)
			}
		}
		for _, p := range promised {
			if j := v.Job(p.Job); !kept[p.Job] && j.Phase != plan.Waiting {
				kept[p.Job] = true
				if j.Started > p.At {
					t.Fatalf("job %d was promised %d and was started at %d", p.Job, p.At/1e6, j.Started/1e6)
				}
			} else if !kept[p.Job] && v.Now() > p.At {
				t.Fatalf("job %d was promised %d and still waits at %d", p.Job, p.At/1e6, v.Now()/1e6)
			}
		}
	}
	s.play(t, rapid.IntRange(4, 25).Draw(t, "jobs"), look, func(i int) {
		takes := unit.Duration(rapid.IntRange(1, 300).Draw(t, "takes")) * unit.Second
		j := workload.Job{Resources: workload.Resources{Gang: int32(rapid.IntRange(1, nodes*devices).Draw(t, "gang")), Devices: 1, Share: 1000},
			Estimate: takes + unit.Duration(rapid.IntRange(0, 200).Draw(t, "more"))*unit.Second, User: fmt.Sprint(i)}
		if rapid.IntRange(0, 4).Draw(t, "shared") == 0 {
			j.Gang, j.Share = 1, unit.Milli(rapid.SampledFrom([]int{200, 500, 700}).Draw(t, "share"))
		}
		s.submit(j, takes)
	})
	v := s.e.View()
	for id := range plan.JobID(v.Jobs()) {
		if !v.Job(id).Phase.Over() {
			t.Fatalf("job %d never ended: %s, %s", id, v.Job(id).Phase, v.Job(id).Reason.Words(v))
		}
	}
	return len(promised)
}
