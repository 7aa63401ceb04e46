package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/internal/server/door"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/plan"
)

const yamlKind = "application/yaml"

// A request that is sent again under its key is answered the same and does nothing,
// also when both are under way at once.
func TestSubmitOnce(t *testing.T) {
	w := start(t, nil)
	const body = "jobs:\n- name: a\n- {command: [sleep, 9]}\n- {name: sweep, array: 3}\n"
	answers := make([]string, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			status, answer := w.do("POST", "/v1/jobs", yamlKind, body, "Idempotency-Key", "one")
			answers[i] = fmt.Sprint(status, answer)
		})
	}
	all.Wait()
	for _, a := range answers {
		if a != answers[0] || !strings.HasPrefix(a, "201") {
			t.Fatalf("answered %s\nand %s", answers[0], a)
		}
	}
	list, err := w.client.Jobs(t.Context(), client.ListOptions{})
	if err != nil || len(list.Jobs) != 5 {
		t.Fatalf("there are %d jobs, want 5 (%v)", len(list.Jobs), err)
	}
	names := []string{}
	for _, j := range list.Jobs {
		names = append(names, j.Name)
	}
	if !regexp.MustCompile(`^a,sleep-[a-z2-7]{6},sweep-0,sweep-1,sweep-2$`).MatchString(strings.Join(names, ",")) {
		t.Errorf("the jobs are %v", names)
	}
	// The same key with another body is another submission: here of a taken name.
	if status, answer := w.do("POST", "/v1/jobs", yamlKind, "name: a\npriority: 1\n", "Idempotency-Key", "one"); status != http.StatusConflict {
		t.Errorf("another body under the same key: %d %s", status, answer)
	}
}

// JSON is read by the same rules as YAML.
func TestSubmitJSON(t *testing.T) {
	w := start(t, nil)
	body := `{"jobs": [{"name": "a", "workers": 2, "estimate": "90s", "env": {"K": "x\ty \u00e9"}}, {"name": "b", "after": ["c"]}, {"name": "c"}]}`
	if status, answer := w.do("POST", "/v1/jobs", "application/json; charset=utf-8", body); status != http.StatusCreated {
		t.Fatalf("%d %s", status, answer)
	}
	a, err := w.client.Job(t.Context(), "a")
	if err != nil || a.Gang != 2 || a.EstimateSec != 90 {
		t.Errorf("a is %+v (%v)", a, err)
	}
	if b, err := w.client.Job(t.Context(), "b"); err != nil || b.Phase != "blocked" || b.ID != 2 {
		t.Errorf("b, which comes after c, is %+v (%v)", b, err)
	}
}

// What is wrong with a submission is told at once, and nothing is submitted.
func TestRefusals(t *testing.T) {
	w := start(t, nil)
	w.submit(job("taken", 1))
	many := "jobs:\n- {name: x, array: 100000}\n- {name: y}\n"
	for _, c := range []struct {
		name, kind, body string
		status           int
		want             []string
	}{
		{"yaml", yamlKind, "name: x\nworkers: none\nshare: 3\nfoo: 1\n", 400, []string{"file.yaml:2", "workers", "file.yaml:3", "share", "foo"}},
		{"broken", yamlKind, "name: [", 400, []string{"file.yaml:1"}},
		{"kind", "text/plain", "name: x\n", 415, []string{"application/yaml"}},
		{"no kind", "", "name: x\n", 415, []string{"application/yaml"}},
		{"large", yamlKind, "#" + strings.Repeat("x", 4<<20), 413, []string{"4 MiB"}},
		{"many", yamlKind, many, 413, []string{"100000 with the copies"}},
		{"taken", yamlKind, "name: taken\n", 409, []string{"taken"}},
		{"several", yamlKind, "jobs:\n- name: taken\n- {name: y, after: [nobody]}\n- {name: z, models: [tpu]}\n", 409, []string{"taken", "nobody", "tpu"}},
		{"circle", yamlKind, "jobs:\n- {name: x, after: [y]}\n- {name: y, after: [x]}\n", 400, []string{"circle"}},
		{"twice", yamlKind, "jobs:\n- {name: x, array: 2}\n- {name: x-1}\n", 400, []string{`"x-1"`}},
		{"key", yamlKind, "name: x\n", 400, []string{"Idempotency-Key"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			header := []string{}
			if c.name == "key" {
				header = []string{"Idempotency-Key", strings.Repeat("k", 129)}
			}
			status, answer := w.do("POST", "/v1/jobs?file=file.yaml", c.kind, c.body, header...)
			if status != c.status {
				t.Errorf("status %d, want %d: %s", status, c.status, answer)
			}
			var e struct {
				Error struct {
					Message  string
					Problems []door.Problem
				}
			}
			if err := json.Unmarshal([]byte(answer), &e); err != nil || e.Error.Message == "" {
				t.Fatalf("not an error: %s", answer)
			}
			text := e.Error.Message
			for _, p := range e.Error.Problems {
				text += "\n" + p.Text
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("it does not say %q:\n%s", want, text)
				}
			}
		})
	}
	if list, err := w.client.Jobs(t.Context(), client.ListOptions{All: true}); err != nil || len(list.Jobs) != 1 {
		t.Errorf("there are %d jobs, want only the first (%v)", len(list.Jobs), err)
	}
}

// The life of jobs as a user sees and steers it.
func TestLife(t *testing.T) {
	w := start(t, nil)
	ctx := t.Context()
	w.submit(job("first", 2), job("second", 2), job("third", 2), job("huge", 3))
	w.until("second", "active", "running")
	if y, err := w.client.Why(ctx, "third"); err != nil || !strings.Contains(y.Words, "; 0 are free") || y.Wants != 2 || y.Free != 0 || y.Exist != 4 {
		t.Errorf("why third: %+v (%v)", y, err)
	}
	if y, err := w.client.Why(ctx, "huge"); err != nil || y.Earlier != 1 || y.Alike != 0 || len(y.Detail) < 3 {
		t.Errorf("why huge: %+v (%v)", y, err)
	}
	j, err := w.client.Job(ctx, "first")
	if err != nil || len(j.Where) != 1 || j.Where[0].Node != "node0" || !slices.Equal(j.Where[0].Devices, []int32{0, 1}) {
		t.Errorf("first is %+v (%v)", j, err)
	}
	w.driver.report(engine.Event{Kind: engine.Observed, Job: 0, Attempt: 1, Observation: engine.Observation{Progress: 250_000, Loss: 4}})
	w.driver.report(engine.Event{Kind: engine.Observed, Job: 0, Attempt: 1, Observation: engine.Observation{Progress: 500_000, Loss: 3}})
	w.finish("second", plan.UserFailure)
	w.until("third", "active", "running")
	if j, _ = w.client.Job(ctx, "0"); j.Name != "first" || j.Progress != 0.5 || j.FirstLoss != 4 || j.LastLoss != 3 {
		t.Errorf("first, by its id, is %+v", j)
	}
	w.finish("first", plan.NoFailure)
	if j, err = w.client.Wait(ctx, "first"); err != nil || j.Phase != "finished" || j.Progress != 1 || j.Ended.IsZero() {
		t.Errorf("first is %+v (%v)", j, err)
	}
	steps, err := w.client.Steps(ctx, "third")
	if err != nil || len(steps.Decisions) == 0 || len(steps.Decisions[0].Steps) != 6 {
		t.Fatalf("the steps of third: %+v (%v)", steps, err)
	}
	if alloc := steps.Decisions[0].Steps[1]; alloc.Name != "allocate" || alloc.Chose != "node1" {
		t.Errorf("step 2 of third: %+v", alloc)
	}
	for _, c := range []struct{ verb, phase string }{{"hold", "held"}, {"release", "active"}, {"requeue", "active"}, {"cancel", "cancelled"}, {"requeue", "active"}} {
		if _, err := w.client.ChangeJob(ctx, "third", c.verb); err != nil {
			t.Errorf("%s: %v", c.verb, err)
		}
		w.until("third", c.phase, "")
	}
	list, err := w.client.Jobs(ctx, client.ListOptions{})
	if err != nil || len(list.Jobs) != 2 || list.Jobs[0].Name != "third" {
		t.Errorf("what lives, put back in the queue or never started, is %+v (%v)", list, err)
	}
	list, err = w.client.Jobs(ctx, client.ListOptions{Phases: []string{"failed", "finished"}})
	if err != nil || len(list.Jobs) != 2 || list.Jobs[0].Name != "second" {
		t.Errorf("what ended is %+v (%v)", list, err)
	}
	list, err = w.client.Jobs(ctx, client.ListOptions{All: true})
	if err != nil || len(list.Jobs) < 3 {
		t.Fatalf("all are %+v (%v)", list, err)
	}
	for _, j := range list.Jobs { // by the word that is said of it
		of, err := w.client.Jobs(ctx, client.ListOptions{Phases: []string{j.State()}})
		if err != nil || !slices.ContainsFunc(of.Jobs, func(o view.Job) bool { return o.Name == j.Name }) {
			t.Errorf("%s is %s, and of those are %+v (%v)", j.Name, j.State(), of, err)
		}
		why, err := w.client.Why(ctx, j.Name)
		if err != nil || why.State != j.State() {
			t.Errorf("%s is %s, and why says %s (%v)", j.Name, j.State(), why.State, err)
		}
	}
	var refused *client.Error
	if _, err := w.client.ChangeJob(ctx, "first", "cancel"); !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		t.Errorf("cancelling what has finished: %v", err)
	}
	if _, err := w.client.Job(ctx, "nobody"); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("showing nobody: %v", err)
	}
}

func TestNodes(t *testing.T) {
	w := start(t, nil)
	ctx := t.Context()
	if n, err := w.client.ChangeNode(ctx, "node0", "cordon"); err != nil || n.Status != "cordoned" {
		t.Errorf("%+v (%v)", n, err)
	}
	w.submit(job("a", 1))
	w.until("a", "active", "running")
	nodes, err := w.client.Nodes(ctx)
	if err != nil || len(nodes.Nodes) != 2 || nodes.Nodes[1].Free != 1 || nodes.Nodes[1].Devices[0].Holders[0].Job != "a" {
		t.Errorf("%+v (%v)", nodes, err)
	}
	c, err := w.client.Cluster(ctx)
	want := view.Capacity{Total: 4, Granted: 1, Free: 1, Closed: 2}
	if err != nil || c.Devices != want || c.Nodes["cordoned"] != 1 || c.Jobs["active"] != 1 || c.States["running"] != 1 {
		t.Errorf("%+v (%v)", c, err)
	}
	if _, err := w.client.ChangeNode(ctx, "node1", "drain"); err != nil {
		t.Error(err)
	}
	w.until("a", "waiting", "")
	if _, err := w.client.Pause(ctx); err != nil {
		t.Error(err)
	}
	if _, err := w.client.ChangeNode(ctx, "node0", "uncordon"); err != nil {
		t.Error(err)
	}
	w.until("a", "waiting", "")
	if _, err := w.client.Unpause(ctx); err != nil {
		t.Error(err)
	}
	w.until("a", "active", "running")
	var refused *client.Error
	if _, err := w.client.ChangeNode(ctx, "node9", "drain"); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Error(err)
	}
}

// Each user has a rate of requests.
func TestRate(t *testing.T) {
	w := start(t, func(c *server.Config) { c.RatePerSec, c.Burst = 0.1, 3 })
	got := []int{}
	for range 5 {
		status, _ := w.do("GET", "/healthz", "", "")
		got = append(got, status)
	}
	if want := []int{200, 200, 200, 429, 429}; !slices.Equal(got, want) {
		t.Errorf("statuses %v, want %v", got, want)
	}
}

// A watch shows every change, not more often than it should, and is taken up again.
func TestWatch(t *testing.T) {
	w := start(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen, began, last := 0, time.Now(), view.Snapshot{}
	go func() {
		for i := range 40 {
			w.submit(job(fmt.Sprintf("j%d", i), 1))
		}
	}()
	err := w.client.Watch(ctx, func(s view.Snapshot) error {
		seen, last = seen+1, s
		if len(s.Jobs) == 40 && s.Cluster.Queue.Waiting == 36 && s.Cluster.Devices.Free == 0 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if most := 3 + int(time.Since(began)/(200*time.Millisecond)); seen > most || len(last.Nodes) != 2 {
		t.Errorf("%d snapshots in %v, want at most %d; the last has %d nodes", seen, time.Since(began), most, len(last.Nodes))
	}
	// As events, resumed from the last: silence until something happens.
	for settled := ""; settled != last.ID; time.Sleep(20 * time.Millisecond) { // the last starts may still be confirmed
		settled = last.ID
		ctx, cancel := context.WithCancel(t.Context())
		_ = w.client.Watch(ctx, func(s view.Snapshot) error { last = s; cancel(); return nil })
		cancel()
	}
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://muster/v1/watch", nil)
	r.Header.Set("Last-Event-ID", last.ID)
	resp, err := w.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	time.AfterFunc(100*time.Millisecond, func() { w.finish("j0", plan.NoFailure) })
	line, err := bufio.NewReader(resp.Body).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "id: ") || strings.TrimSpace(line[4:]) == last.ID {
		t.Errorf("after %s came %q (%v)", last.ID, line, err)
	}
}

func TestMetrics(t *testing.T) {
	w := start(t, nil)
	w.submit(job("a", 2), job("b", 2), job("c", 2))
	w.until("b", "active", "running")
	_, text := w.do("GET", "/metrics", "", "")
	values := map[string]float64{} // by name and first label
	line := regexp.MustCompile(`^([a-z_]+)(?:\{[a-z]+="([^"]*)".*\})? (\S+)$`)
	for l := range strings.Lines(text) {
		if strings.HasPrefix(l, "#") {
			continue
		}
		m := line.FindStringSubmatch(strings.TrimSuffix(l, "\n"))
		if m == nil {
			t.Fatalf("not a metric: %s", l)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		values[m[1]+" "+m[2]] = v
	}
	value := func(name, label string) float64 {
		v, ok := values[name+" "+label]
		if !ok {
			t.Errorf("there is no %s %s", name, label)
		}
		return v
	}
	for _, c := range []struct {
		name, label string
		want        float64
	}{{"muster_jobs", "active", 2}, {"muster_jobs", "waiting", 1}, {"muster_devices", "granted", 4}, {"muster_devices", "free", 0},
		{"muster_nodes", "up", 2}, {"muster_watchdog_ok", "", 1}, {"muster_queue_devices", "", 2}} {
		if got := value(c.name, c.label); got != c.want {
			t.Errorf("%s %s is %v, want %v", c.name, c.label, got, c.want)
		}
	}
	if value("muster_batches_total", "") < 3 || value("muster_commit_latency_seconds", "0.99") <= 0 || value("muster_answer_age_seconds", "") > 5 {
		t.Errorf("batches, latency or age are off:\n%s", text)
	}
	if value("go_goroutines", "") < 1 || value("muster_http_request_seconds_count", "POST") < 1 {
		t.Errorf("neither the runtime nor requests are counted:\n%s", text)
	}
}

// A log is followed through the attempts of its job until it has ended.
func TestLogs(t *testing.T) {
	w := start(t, nil)
	w.submit(job("a", 1))
	w.until("a", "active", "running")
	print := func(attempt, text string) {
		dir := filepath.Join(w.logs, "a", attempt, "0")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	print("1", "one\n")
	var now bytes.Buffer
	if err := w.client.Logs(t.Context(), "a", client.LogOptions{From: 1}, &now); err != nil || now.String() != "ne\n" {
		t.Errorf("printed %q (%v)", now.String(), err)
	}
	var followed bytes.Buffer
	done := make(chan error)
	go func() { done <- w.client.Logs(t.Context(), "a", client.LogOptions{Follow: true}, &followed) }()
	time.Sleep(50 * time.Millisecond)
	print("1", "two\n")
	if _, err := w.client.ChangeJob(t.Context(), "a", "requeue"); err != nil {
		t.Fatal(err)
	}
	print("2", "three\n")
	w.until("a", "active", "running")
	w.finish("a", plan.NoFailure)
	if err := <-done; err != nil || followed.String() != "one\ntwo\n[muster: attempt 2]\nthree\n" {
		t.Errorf("followed %q (%v)", followed.String(), err)
	}
	var refused *client.Error
	if err := w.client.Logs(t.Context(), "a", client.LogOptions{Rank: 1}, &now); !errors.As(err, &refused) || refused.Status != http.StatusNotFound {
		t.Errorf("the log of a rank that is not: %v", err)
	}
}
