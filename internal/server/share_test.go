package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// of is a job of a tenant.
func (w *world) of(name, tenant string, devices int32) {
	w.t.Helper()
	j := job(name, devices)
	j.Tenant = tenant
	w.submit(j)
	w.until(name, "active", "running")
}

// named is a queue that is guaranteed so many devices.
func named(name string, parent int32, guarantee int64) queue.Queue {
	return queue.Queue{Name: name, Parent: parent, Weight: 1000, Guarantee: []queue.Amount{{Milli: guarantee * 1000}}}
}

func (w *world) set(queues ...queue.Queue) {
	w.t.Helper()
	tree := queue.Flat()
	tree.Queues = append(tree.Queues, queues...)
	if _, err := w.client.SetQueues(w.t.Context(), tree); err != nil {
		w.t.Fatal(err)
	}
}

// A tree is set while jobs run, and everything is told by it from then on.
func TestQueuesLive(t *testing.T) {
	w := start(t, nil)
	ctx := t.Context()
	w.of("early", "ops", 1)
	if tree, err := w.client.Queues(ctx); err != nil || len(tree.Queues) != 0 {
		t.Errorf("before a tree is set there is %+v (%v)", tree, err)
	}
	w.set(named("ops", 0, 1), named("research", 0, 3), named("research/vision", 2, 2))
	w.of("borrows", "ops", 1)
	w.of("near", "research/nobody", 1)
	shares, err := w.client.Shares(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range shares.Queues {
		got = append(got, fmt.Sprintf("%s<%s g%v d%v u%v b%v l%v r%v %d", q.Name, q.Parent, q.Guarantee, q.Deserved, q.Used, q.Borrowed, q.Lent, q.AtRisk, q.Running))
	}
	want := "< g4 d3 u3 b0 l0 r0 3; ops< g1 d2 u2 b1 l0 r1 2; research< g3 d1 u1 b0 l1 r0 1; research/vision<research g2 d0 u0 b0 l1 r0 0"
	if s := strings.Join(got, "; "); s != want || shares.HalfLifeSec != 7*86400 {
		t.Errorf("the shares are\n%s, want\n%s", s, want)
	}
	if j, err := w.client.Job(ctx, "near"); err != nil || j.Queue != "research" {
		t.Errorf("near is in queue %q (%v)", j.Queue, err)
	}
	books, err := w.client.Accounts(ctx)
	if err != nil || !books.Balanced || !strings.HasPrefix(books.Balance, "books balance: ") || len(books.Accounts) != 2 || books.Total.DeviceHours <= 0 {
		t.Errorf("the books are %+v (%v)", books, err)
	}
	c, err := w.client.Calendar(ctx)
	if err != nil || len(c.Entries) != 3 || c.Entries[0].Job != "early" || c.Entries[0].Queue != "ops" || c.Entries[0].ToUs != -1 {
		t.Errorf("the calendar is %+v (%v)", c, err)
	}
}

// What is wrong with a tree is told, and it does not become the tree.
func TestQueuesRefused(t *testing.T) {
	w := start(t, nil)
	w.set(named("a", 0, 1))
	for _, c := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"queues": [{"name": "x", "parent": -1, "weight": 1000}]}`, 409, "the first queue is the root"},
		{`{"queues": [{"name": "", "parent": -1, "weight": 1000}, {"name": "b", "parent": 0, "weight": 0}]}`, 409, "weight"},
		{`{"queues": [{"name": "", "parent": -1, "weight": 1000}, {"name": "b", "parent": 0, "weight": 1, "limit": [{"model": "tpu", "milli": 1}]}]}`, 409, "tpu"},
		{`{"half_life_us": -1}`, 409, "half-life"},
		{`{"quota": []}`, 400, "quota"},
		{`queues: []`, 400, "the body is not read"},
	} {
		if status, answer := w.do("POST", "/v1/queues", "application/json", c.body); status != c.status || !strings.Contains(answer, c.want) {
			t.Errorf("%s: %d %s", c.body, status, answer)
		}
	}
	if tree, err := w.client.Queues(t.Context()); err != nil || len(tree.Queues) != 2 || tree.Queues[1].Name != "a" {
		t.Errorf("the tree is %+v (%v)", tree, err)
	}
}

// Of queues everybody sees their own and the sums above them; of the calendar all
// places and times, and no other tenant's names.
func TestSharesSeen(t *testing.T) {
	w := share(t)
	ctx := t.Context()
	w.set(named("ops", 0, 1), named("research", 0, 2), named("research/speech", 2, 1), named("research/vision", 2, 1))
	secret, mine := job("hush-hush", 2), job("mine", 1)
	secret.Tenant, mine.Tenant, mine.User = "ops", "research/vision/lab", "sue"
	w.submit(secret, mine)
	w.until("mine", "active", "running")
	if err := w.registry.Add(access.User{Name: "deep", Role: access.Viewer, Tenants: []string{"research/vision/lab"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	w.token("deep", "deep", time.Now())
	for _, c := range []struct{ who, queues string }{
		{"deep", " research research/vision"},
		{"sue", " research research/vision"}, {"vera", " research research/speech research/vision"}, {"fred", " ops"}, {"fay", " ops"},
		{"ada", " research research/speech research/vision"}, {"wide", " ops research research/speech research/vision"}, {"olga", " ops research research/speech research/vision"},
	} {
		shares, err := w.as(c.who).Shares(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, q := range shares.Queues {
			names = append(names, q.Name)
		}
		if got := strings.Join(names, " "); got != c.queues || shares.Queues[0].Used != 3 {
			t.Errorf("%s sees %q, want %q, and %v devices used in all", c.who, got, c.queues, shares.Queues[0].Used)
		}
		tree, err := w.as(c.who).Queues(ctx)
		if err != nil || len(tree.Queues) != len(names) {
			t.Errorf("%s is shown the tree %+v (%v)", c.who, tree, err)
		}
		if err := tree.Check(func(string) bool { return true }); err != nil {
			t.Errorf("what %s is shown is no tree: %v", c.who, err)
		}
		var past view.ShareHistory
		if _, answer := w.ask(c.who, "GET", "/v1/shares/history", "", "", "h"); json.Unmarshal([]byte(answer), &past) != nil || strings.Join(past.Queues, " ") != c.queues || len(past.Points[0].Used) != len(names) {
			t.Errorf("%s is shown the past %s", c.who, answer)
		}
	}
	seen, err := w.as("sue").Calendar(ctx)
	if err != nil || len(seen.Entries) != 2 {
		t.Fatalf("%+v (%v)", seen, err)
	}
	for _, e := range seen.Entries {
		if hers := e.Devices == 1; hers != (e.Job == "mine") || hers != (e.Queue == "research/vision") || !hers && e.Job != "another tenant's job" {
			t.Errorf("sue is shown %+v", e)
		}
	}
	books, err := w.as("sue").Accounts(ctx)
	if err != nil || len(books.Accounts) != 1 || books.Accounts[0].Tenant != "research/vision/lab" || !books.Balanced || books.Accounts[0].Use != books.Total {
		t.Errorf("sue's books are %+v (%v)", books, err)
	}
	for _, path := range []string{"/v1/shares", "/v1/accounts", "/v1/calendar", "/v1/queues"} {
		if status, answer := w.ask("sue", "GET", path, "", "", "x"); status != http.StatusOK || strings.Contains(answer, "hush") || strings.Contains(answer, "ops") {
			t.Errorf("%s tells sue %d %s", path, status, answer)
		}
	}
}

// TestClosing: who closes a node is told who will be stopped, who loses by it, and who will not start there before; a dry run
// changes nothing.
func TestClosing(t *testing.T) {
	w := startOn(t, 1, nil)
	ctx := t.Context()
	jobs := []workload.Job{job("saves", 1), job("loses", 1), job("short", 1), job("unknown", 1), job("goes-on", 1)}
	jobs[0].Checkpoint.OnRequest, jobs[4].Checkpoint.OnRequest = true, true
	jobs[2].Estimate = unit.Minute
	if _, err := w.client.Submit(ctx, jobs, ""); err != nil {
		t.Fatal(err)
	}
	from := time.Now().Add(time.Hour).UnixMicro()
	ask := view.WindowRequest{FromUs: from, ToUs: from + time.Hour.Microseconds(), DryRun: true}
	want := view.Closing{Stops: view.Some{Count: 2, Jobs: []string{"saves", "loses"}}, Loses: view.Some{Count: 1, Jobs: []string{"loses"}}, Waits: view.Some{Count: 1, Jobs: []string{"unknown"}}}
	n, err := w.client.CloseNode(ctx, "node0", ask)
	if err != nil || len(n.Windows) != 0 || !reflect.DeepEqual(n.Closing, &want) {
		t.Errorf("%+v: %+v, %v", n, n.Closing, err)
	}
	ask.DryRun = false
	if n, err = w.client.CloseNode(ctx, "node0", ask); err != nil || len(n.Windows) != 1 || !reflect.DeepEqual(n.Closing, &want) || len(n.Closing.Lines()) != 3 {
		t.Errorf("%+v: %+v, %v", n, n.Closing, err)
	}
	if j, err := w.client.Job(ctx, "saves"); err != nil || !strings.Contains(j.Reason, ": node0 is closed for maintenance then") {
		t.Errorf("its owner is told %q, %v", j.Reason, err)
	}
}

// A node is closed for a time, which is shown, cannot be doubled, and is taken back.
func TestMaintenance(t *testing.T) {
	w := start(t, nil)
	ctx := t.Context()
	soon := time.Now().Add(time.Hour).UnixMicro()
	hour := time.Hour.Microseconds()
	n, err := w.client.CloseNode(ctx, "node1", view.WindowRequest{FromUs: soon, ToUs: soon + hour})
	if err != nil || len(n.Windows) != 1 || n.Windows[0] != (view.Window{FromUs: soon, ToUs: soon + hour}) || n.Status != "up" {
		t.Errorf("the node is %+v (%v)", n, err)
	}
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"/v1/nodes/node1/close", fmt.Sprintf(`{"from_us": %d, "to_us": %d}`, soon+hour/2, soon+2*hour), 409},
		{"/v1/nodes/node1/close", fmt.Sprintf(`{"from_us": %d, "to_us": %d}`, soon+3*hour, soon+2*hour), 409},
		{"/v1/nodes/node1/close", `{"from_us": 1, "to_us": 2}`, 409},
		{"/v1/nodes/node1/close", ``, 400},
		{"/v1/nodes/node9/close", `{"from_us": 1, "to_us": 2}`, 404},
		{"/v1/nodes/node9/reopen", ``, 404},
		{"/v1/nodes/node1/explode", ``, 404},
	} {
		if status, answer := w.do("POST", c.path, "application/json", c.body); status != c.status {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, answer)
		}
	}
	w.of("runs", "", 2)
	runs, err := w.client.Job(ctx, "runs")
	if err != nil {
		t.Fatal(err)
	}
	node := runs.Where[0].Node
	other := map[string]string{"node0": "node1", "node1": "node0"}[node]
	if _, err := w.client.ChangeNode(ctx, "node1", "reopen"); err != nil {
		t.Fatal(err)
	}
	now := time.Now().UnixMicro()
	if n, err = w.client.CloseNode(ctx, node, view.WindowRequest{FromUs: now, ToUs: now + hour}); err != nil || len(n.Windows) != 1 || !n.Windows[0].Open || n.Status != "cordoned" {
		t.Errorf("a window that begins now: %+v (%v)", n, err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		j, err := w.client.Job(ctx, "runs")
		if err == nil && j.Run == "running" && j.Where[0].Node == other {
			break
		}
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the job of a drained node is %+v (%v)", j, err)
		}
	}
	if n, err = w.client.ChangeNode(ctx, node, "reopen"); err != nil || len(n.Windows) != 0 || n.Status != "up" {
		t.Errorf("reopened it is %+v (%v)", n, err)
	}
}
