package view

import (
	"bytes"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// shares is how the queues of a history stand.
func (h *history) shares() Shares {
	return SharesOf(h.e.View(), func(yield func(plan.JobID) bool) {
		for id := range plan.JobID(h.e.View().Jobs()) {
			if !h.e.View().Job(id).Phase.Over() && !yield(id) {
				return
			}
		}
	})
}

func (h *history) set(queues ...queue.Queue) {
	tree := queue.Flat()
	tree.Protect = 0
	tree.Queues = append(tree.Queues, queues...)
	h.step(engine.Event{Kind: engine.Shares, Queues: &tree})
}

func devs(n int64) []queue.Amount { return []queue.Amount{{Milli: n * 1000}} }

// A queue that is idle lends; who borrowed gives back when it asks, and the figures
// say so at every step.
func TestShares(t *testing.T) {
	h := newHistory(t, "fifo")
	h.set(queue.Queue{Name: "a", Weight: 1000, Guarantee: devs(6)}, queue.Queue{Name: "b", Weight: 2000, Guarantee: devs(2), Limit: devs(7)})
	want := func(lines ...string) {
		t.Helper()
		for i, q := range h.shares().Queues {
			got := fmt.Sprintf("%s: deserves %v wants %v uses %v borrowed %v lent %v risk %v, %d run %d wait", q.Name, q.Deserved, q.Wanted, q.Used, q.Borrowed, q.Lent, q.AtRisk, q.Running, q.Waiting)
			if got != lines[i] {
				t.Errorf("%s, want %s (%s)", got, lines[i], q.Arithmetic)
			}
		}
	}
	for i := range 9 {
		h.step(submit(workload.Job{Name: fmt.Sprint("b", i), Tenant: "b/sub", User: "bob", Resources: workload.Resources{Devices: 1}}))
	}
	// b may hold 7 of the 9 it wants; 5 of them are lent by a.
	want(": deserves 7 wants 9 uses 7 borrowed 0 lent 0 risk 0, 7 run 2 wait", "a: deserves 0 wants 0 uses 0 borrowed 0 lent 5 risk 0, 0 run 0 wait",
		"b: deserves 7 wants 9 uses 7 borrowed 5 lent 0 risk 5, 7 run 2 wait")
	if q := h.shares().Queues[2]; q.Limit != 7 || q.Guarantee != 2 || q.Weight != 2 || q.ByModel != nil || !strings.Contains(q.Arithmetic, "guarantee 2") {
		t.Errorf("b is %+v", q)
	}
	h.step(submit(workload.Job{Name: "a0", Tenant: "a", User: "ann", Resources: workload.Resources{Gang: 4, Devices: 1}}))
	// One device was free; three were taken back, and their jobs wait again.
	want(": deserves 8 wants 13 uses 8 borrowed 0 lent 0 risk 0, 5 run 5 wait", "a: deserves 4 wants 4 uses 4 borrowed 0 lent 2 risk 0, 1 run 0 wait",
		"b: deserves 4 wants 9 uses 4 borrowed 2 lent 0 risk 2, 4 run 5 wait")
	var b bytes.Buffer
	shares := h.shares()
	if err := WriteShares(&b, &shares, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"(all)", "half is forgotten every 7d00h", "b: guarantee 2 + 1/1 of 2 spare = 4, wants 9 -> deserves 4\n"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("it does not say %q:\n%s", line, &b)
		}
	}
	if _, used := UsedOf(h.e.View()); fmt.Sprint(used) != "[8000 4000 4000]" {
		t.Errorf("in use are %v", used)
	}
}

// Without a tree there is one queue, and it stands as the cluster does.
func TestNoQueues(t *testing.T) {
	h := newHistory(t, "fifo")
	h.step(submit(workload.Job{Name: "x", Tenant: "a", Resources: workload.Resources{Gang: 3, Devices: 1}}))
	if s := h.shares(); len(s.Queues) != 1 || s.Queues[0].Used != 3 || s.Queues[0].Limit != -1 || s.Queues[0].Deserved != 3 || s.HalfLifeSec != 0 {
		t.Errorf("%+v", s)
	}
	if j := h.job(0); j.Queue != "" {
		t.Errorf("a queue %q without a tree", j.Queue)
	}
}

// A job that is being stopped and waits again is wanted once.
func TestStoppingIsWantedOnce(t *testing.T) {
	h := newHistory(t, "fifo")
	h.step(submit(workload.Job{Name: "x", Resources: workload.Resources{Gang: 3, Devices: 1}}))
	h.e.Step(h.now+1, []engine.Event{{Kind: engine.Requeue, Job: 0}}) // which nobody confirms
	if q := h.shares().Queues[0]; q.Used != 3 || q.Wanted != 3 {
		t.Errorf("%+v", q)
	}
}

// Exact sums are exact, whatever the size.
func TestUse(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		var sum unit.DeviceTime
		want := new(big.Int)
		for range rapid.IntRange(1, 20).Draw(t, "terms") {
			milli, d := rapid.Int64Range(0, 1<<40).Draw(t, "milli"), rapid.Int64Range(0, 1<<60).Draw(t, "us")
			sum = sum.Plus(unit.Use(milli, unit.Duration(d)))
			want.Add(want, new(big.Int).Mul(big.NewInt(milli), big.NewInt(d)))
		}
		if got := useOf(sum).Exact; got != want.String() {
			t.Fatalf("%s, want %s", got, want)
		}
	})
}

// The books list who used what, and their sum is what the jobs used.
func TestAccounts(t *testing.T) {
	h := newHistory(t, "fifo")
	h.set(queue.Queue{Name: "a", Weight: 1000})
	h.step(submit(workload.Job{Name: "x", Tenant: "a/deep", User: "ann",
		Resources: workload.Resources{Gang: 3, Devices: 1}}), submit(workload.Job{Name: "y", Tenant: "z", User: "zoe", Resources: workload.Resources{Gang: 1, Devices: 2}}))
	h.step(engine.Event{Kind: engine.Tick})
	everyone := func(string, string) bool { return true }
	a := AccountsOf(h.e.View(), everyone)
	if len(a.Accounts) != 2 || a.Accounts[0].Tenant != "a/deep" || a.Accounts[0].Queue != "a" || a.Accounts[1].Queue != "" {
		t.Fatalf("%+v", a)
	}
	// Each holds its devices for ten seconds: 3 and 2 devices.
	if a.Accounts[0].Exact != "30000000000" || a.Accounts[1].Exact != "20000000000" || a.Total.Exact != "50000000000" || a.Accounts[0].Held != 3 {
		t.Errorf("%+v", a)
	}
	if a = AccountsOf(h.e.View(), func(tenant, user string) bool { return user == "zoe" }); len(a.Accounts) != 1 || a.Total.Exact != "20000000000" {
		t.Errorf("who sees one account sees %+v", a)
	}
	if err := h.e.State().Balance(); err != nil {
		t.Error(err)
	}
}

// The calendar has runs with the end that is expected of them, what a gang that waits
// has a claim on, and maintenance.
func TestCalendar(t *testing.T) {
	h := newHistory(t, "fifo+easy")
	h.set(queue.Queue{Name: "a", Weight: 1000})
	h.step(submit(workload.Job{Name: "known", Tenant: "a", Resources: workload.Resources{Gang: 4, Devices: 1}, Estimate: unit.Hour}))
	h.step(submit(workload.Job{Name: "limited", Resources: workload.Resources{Gang: 1, Devices: 1}, TimeLimit: 2 * unit.Hour}))
	h.step(submit(workload.Job{Name: "endless", Resources: workload.Resources{Gang: 1, Devices: 1}}))
	h.step(submit(workload.Job{Name: "gang", Tenant: "a", Resources: workload.Resources{Gang: 6, Devices: 1}, Estimate: unit.Hour}))
	from := h.now.Add(3 * unit.Day)
	h.step(engine.Event{Kind: engine.Close, Node: 1, Bounds: engine.Bounds{From: from, To: from.Add(unit.Hour)}})
	c := CalendarOf(h.e.View())
	var lines []string
	for _, e := range c.Entries {
		length := "unknown"
		if e.ToUs >= 0 {
			length = unit.Duration(e.ToUs - e.FromUs).String()
		}
		lines = append(lines, fmt.Sprintf("%s %s of %q: %v on %d nodes for %s, %s", e.Kind, e.Job, e.Queue, e.Devices, len(e.Nodes), length, e.Words))
	}
	want := []string{
		`run known of "a": 4 on 1 nodes for 1h, by its estimate of 1h00m`,
		`run limited of "": 1 on 1 nodes for 2h, ends by its time limit of 2h00m at the latest`,
		`run endless of "": 1 on 1 nodes for unknown, nobody knows how long it runs: it has no estimate and no time limit`,
		`claim gang of "a": 6 on 2 nodes for 1h, reserved for its 6 workers; what fits before may run there`,
		`window  of "": 4 on 1 nodes for 1h, maintenance: the node is drained when it begins`,
	}
	if got := strings.Join(lines, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the calendar is\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if n := NodeOf(h.e.View(), 1); len(n.Windows) != 1 || n.Windows[0].FromUs != int64(from) || n.Windows[0].Open {
		t.Errorf("the node has windows %+v", n.Windows)
	}
	var b bytes.Buffer
	if err := WriteCalendar(&b, &c, TextOptions{}); err != nil || !strings.Contains(b.String(), "(in 3d00h)") && !strings.Contains(b.String(), "(in 2d23h)") {
		t.Errorf("%v\n%s", err, &b)
	}
}

// BenchmarkShares tells the shares of 1,000 queues with 100,000 jobs waiting.
func BenchmarkShares(b *testing.B) {
	const queues, jobs = 1000, 100_000
	s := plan.NewState(cluster.Uniform("large", 1250, 8, cluster.Model{Name: "gpu", Memory: 32 << 10, Speed: 1}, 16))
	tree := queue.Flat()
	for i := range queues {
		name := fmt.Sprint("q", i)
		tree.Queues = append(tree.Queues, queue.Queue{Name: name, Weight: int32(1000 * (1 + i%4)), Guarantee: devs(5)})
		s.Tenants = append(s.Tenants, name)
	}
	s.Users = []string{"ann"}
	s.Shapes = []plan.Shape{{Gang: 4, Devices: 1, Share: 1000, Models: 1}}
	s.SetQueues(tree)
	for i := range jobs {
		s.Admit(fmt.Sprint("j", i), plan.Asked{Tenant: int32(i * 7919 % queues)})
	}
	v := s.View()
	for b.Loop() {
		shares := SharesOf(v, func(yield func(plan.JobID) bool) {
			for id := range plan.JobID(jobs) {
				if !yield(id) {
					return
				}
			}
		})
		if shares.Queues[0].Waiting != jobs || shares.Queues[0].Deserved != 10_000 {
			b.Fatalf("%+v", shares.Queues[0])
		}
	}
}

// Limits by model are one over all where every model has one; the tightest holds.
func TestLimits(t *testing.T) {
	models := []string{"v", "a"}
	for _, c := range []struct {
		limit []queue.Amount
		want  string
	}{
		{nil, "-1 [-1 -1]"},
		{[]queue.Amount{{Milli: 5000}}, "5 [-1 -1]"},
		{[]queue.Amount{{Model: "a", Milli: 2000}}, "-1 [-1 2]"},
		{[]queue.Amount{{Model: "a", Milli: 2000}, {Model: "v", Milli: 1500}}, "3.5 [1.5 2]"},
		{[]queue.Amount{{Milli: 3000}, {Model: "a", Milli: 2000}, {Model: "v", Milli: 1500}}, "3 [1.5 2]"},
	} {
		total, byModel := limits(&queue.Queue{Limit: c.limit}, models)
		if got := fmt.Sprint(total, byModel); got != c.want {
			t.Errorf("%+v is %s, want %s", c.limit, got, c.want)
		}
	}
}

// A guarantee that is free, but in no one piece, is told of as such.
func TestInPieces(t *testing.T) {
	composition, err := catalogue.Resolve("fifo")
	if err != nil {
		t.Fatal(err)
	}
	built, err := composition.Build(catalogue.Env{Seed: 1}, true)
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory(t, "fifo")
	h.e = engine.New(cluster.Uniform("lab", 2, 4, cluster.Model{Name: "v", Memory: 32 << 10, Speed: 1}, 16), built.Scheduler, engine.DefaultPolicy())
	h.set(queue.Queue{Name: "a", Weight: 1000, Guarantee: devs(5)}, queue.Queue{Name: "b", Weight: 1000, Guarantee: devs(3)})
	job := func(name string, devices int32) engine.Event {
		return submit(workload.Job{Name: name, Tenant: name[:1], Resources: workload.Resources{Gang: 1, Devices: devices}})
	}
	h.step(job("a0", 2), job("a1", 3))
	h.step(job("b0", 3))
	shares := h.shares()
	var b bytes.Buffer
	if err := WriteShares(&b, &shares, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	said := "\nb: its guarantee cannot be met in one piece: a job of it wants 3 devices; as many are free, but scattered\n"
	if shares.Queues[1].InPieces != 0 || shares.Queues[2].InPieces != 3 || !strings.Contains(b.String(), said) {
		t.Errorf("%+v\n%s", shares.Queues, &b)
	}
	h.step(job("b1", 1)) // what it wants there is in one piece
	if shares := h.shares(); shares.Queues[2].Used != 1 || shares.Queues[2].InPieces != 0 {
		t.Errorf("%+v", shares.Queues[2])
	}
}

// Of several device models each is told apart. What waits and may have either counts
// for both, in proportion to what there is.
func TestSharesByModel(t *testing.T) {
	c := cluster.Uniform("lab", 2, 4, cluster.Model{Name: "v", Memory: 32 << 10, Speed: 1}, 16)
	c.Models = append(c.Models, cluster.Model{Name: "a", Memory: 32 << 10, Speed: 2})
	c.Nodes[1].Model = 1
	composition, err := catalogue.Resolve("fifo")
	if err != nil {
		t.Fatal(err)
	}
	built, err := composition.Build(catalogue.Env{Seed: 1}, true)
	if err != nil {
		t.Fatal(err)
	}
	h := newHistory(t, "fifo")
	h.e = engine.New(c, built.Scheduler, engine.DefaultPolicy())
	h.set(queue.Queue{Name: "x", Weight: 1000, Guarantee: []queue.Amount{{Model: "a", Milli: 1000}}})
	h.step(submit(workload.Job{Name: "r", Tenant: "x", Resources: workload.Resources{Gang: 3, Devices: 1, Models: []string{"a"}}}), submit(workload.Job{Name: "w", Tenant: "x", Resources: workload.Resources{Gang: 9, Devices: 1}}))
	q := h.shares().Queues[1]
	if len(q.ByModel) != 2 || q.Used != 3 || q.Wanted != 12 || q.Deserved != 8 || q.Borrowed != 2 {
		t.Fatalf("%+v", q)
	}
	if v, a := q.ByModel[0], q.ByModel[1]; v.Model != "v" || v.Wanted != 4.5 || v.Deserved != 4 || v.Used != 0 || a.Model != "a" || a.Used != 3 || a.Borrowed != 2 || a.Guarantee != 1 {
		t.Errorf("%+v", q.ByModel)
	}
	var b bytes.Buffer
	if err := WriteShares(&b, &Shares{Queues: []QueueShare{q}}, TextOptions{}); err != nil || !strings.Contains(b.String(), "\n  a ") || !strings.Contains(b.String(), "x: v: ") {
		t.Errorf("%v\n%s", err, &b)
	}
}
