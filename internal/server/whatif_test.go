package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/access"
	"github.com/musterdl/muster/internal/whatif"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// long is a job of so many devices that is expected to take hours and can be displaced.
func long(name string, devices int32, hours int) workload.Job {
	j := saves(job(name, devices))
	j.Gang, j.Devices = devices, 1
	j.Estimate = unit.Duration(hours) * unit.Hour
	return j
}

// crowded is a world in which a job of two devices runs, one of four waits, and behind
// it a small one.
func crowded(t *testing.T) *world {
	w := start(t, nil)
	w.submit(long("runs", 2, 10), long("wide", 4, 1), long("small", 1, 1))
	w.until("runs", "active", "running")
	w.until("small", "active", "running") // fifo lets it pass
	return w
}

// A strategy is looked at, switched to and gone back from; jobs stay.
func TestSwitchStrategy(t *testing.T) {
	w := crowded(t)
	ask := func(q whatif.SwitchRequest) whatif.Switched {
		t.Helper()
		out, err := w.client.SwitchStrategy(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	decides := func(want string) {
		t.Helper()
		if c, err := w.client.Cluster(t.Context()); err != nil || c.Strategy != want {
			t.Fatalf("%s decides, expected %s (%v)", c.Strategy, want, err)
		}
	}
	dry := ask(whatif.SwitchRequest{Strategy: "srtf", DryRun: true, HorizonS: 86400})
	if dry.Applied || dry.From != "fifo" || dry.To != "srtf" || dry.Ahead == nil || dry.Ahead.Base.Finished != 3 || !strings.Contains(dry.Words, "nothing was changed") {
		t.Errorf("a dry run says %+v", dry)
	}
	decides("fifo")
	if did := ask(whatif.SwitchRequest{Strategy: "srtf"}); !did.Applied || did.From != "fifo" || did.To != "srtf" || did.Ahead != nil {
		t.Errorf("switched: %+v", did)
	}
	decides("srtf")
	if back := ask(whatif.SwitchRequest{Undo: true, DryRun: true}); back.Applied || back.To != "fifo" {
		t.Errorf("what undoing would do: %+v", back)
	}
	decides("srtf")
	ask(whatif.SwitchRequest{Undo: true})
	decides("fifo")
	for body, want := range map[string]string{
		`{"undo": true}`:                     "409 no other strategy",
		`{"undo": true, "dry_run": true}`:    "409 no other strategy",
		`{"strategy": "fifo"}`:               "409 fifo decides already",
		`{"strategy": "best"}`:               "400 neither a strategy",
		`{}`:                                 "400 expected a strategy, or undo",
		`{"strategy": "x", "undo": true}`:    "400 expected a strategy, or undo",
		`{"strategy": "las", "horizon_s":1}`: "400 dry run",
		`{"strategi": "las"}`:                "400 strategi",
	} {
		status, answer := w.do("POST", "/v1/strategy", "application/json", body)
		number, text, _ := strings.Cut(want, " ")
		if fmt.Sprint(status) != number || !strings.Contains(answer, text) {
			t.Errorf("%s: %d %s, expected %s", body, status, answer, want)
		}
	}
	w.until("runs", "active", "running")
	w.until("small", "active", "running")
	w.until("wide", "waiting", "")
}

// What if, of this moment and of the time since the server began.
func TestWhatIf(t *testing.T) {
	w := crowded(t)
	ask := func(q whatif.Request) whatif.Answer {
		t.Helper()
		a, err := w.client.WhatIf(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := ask(whatif.Request{AddNodes: 2})
	if a.Base.Devices != 4 || a.Alternative.Devices != 8 || len(a.Jobs) != 1 || a.Jobs[0].Job != "wide" || a.Alternative.MeanWaitS >= a.Base.MeanWaitS {
		t.Errorf("two more nodes: %+v", a)
	}
	a = ask(whatif.Request{Job: "{name: next, workers: 1, estimate: 1h}"})
	if len(a.Submitted) != 1 || !a.Submitted[0].Fits || a.Words == "" {
		t.Errorf("a job that is not there yet: %+v", a.Submitted)
	}
	if a = ask(whatif.Request{Strategy: "fifo-strict", LastS: 3600}); a.Base.Strategy != "fifo" || a.Alternative.Strategy != "fifo-strict" || a.FromUs >= unit.Time(time.Now().UnixMicro()) {
		t.Errorf("the last hour: %+v", a)
	}
	for body, want := range map[string]string{
		`{}`:                                     "400 nothing is different",
		`{"remove_nodes": ["none"]}`:             `400 no node`,
		`{"queue": {"name": "none"}}`:            "404 no such queue",
		`{"job": "name: x\nworkers: none"}`:      "400 workers",
		`{"job": "name: small"}`:                 "409 choose another name",
		`{"add_nodes": 1, "model": "tpu"}`:       "400 tpu",
		`{"strategy": "srtf", "horizon_s": -1}`:  "400 horizon_s",
		`{"add_nodes": 1, "wish": "everything"}`: "400 wish",
	} {
		status, answer := w.do("POST", "/v1/whatif", "application/json", body)
		number, text, _ := strings.Cut(want, " ")
		if fmt.Sprint(status) != number || !strings.Contains(answer, text) {
			t.Errorf("%s: %d %s, expected %s", body, status, answer, want)
		}
	}
	// Names are used once, also of jobs that are over.
	w.finish("small", 0)
	w.until("small", "finished", "")
	if status, answer := w.do("POST", "/v1/whatif", "application/json", `{"job": "name: small"}`); status != http.StatusBadRequest || !strings.Contains(answer, "choose another name") {
		t.Errorf("the name of a job that is over: %d %s", status, answer)
	}
}

// Two may look ahead at once, and who comes then is told to try again.
func TestWhatIfAtOnce(t *testing.T) {
	w := start(t, nil)
	var jobs []workload.Job
	for i := range 600 {
		jobs = append(jobs, long(fmt.Sprint("job-", i), 1+int32(i%4), 1+i%7))
	}
	w.submit(jobs...)
	var mu sync.Mutex
	seen := map[int]int{}
	for try := 0; try < 20 && seen[http.StatusTooManyRequests] == 0; try++ {
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				status, _ := w.do("POST", "/v1/whatif", "application/json", `{"strategy": "srtf"}`)
				mu.Lock()
				defer mu.Unlock()
				seen[status]++
			})
		}
		all.Wait()
	}
	if seen[http.StatusOK] < 2 || seen[http.StatusTooManyRequests] == 0 || len(seen) != 2 {
		t.Errorf("answers by status: %v", seen)
	}
}

// What becomes of others' jobs stays with those who see them; the sums are everybody's.
func TestWhatIfVeiled(t *testing.T) {
	w := share(t)
	submit := func(who string, j workload.Job, tenant string) {
		t.Helper()
		j.Tenant = tenant
		if _, err := w.as(who).Submit(t.Context(), []workload.Job{j}, ""); err != nil {
			t.Fatal(err)
		}
	}
	submit("olga", long("hush-runs", 4, 10), "ops")
	w.until("hush-runs", "active", "running")
	submit("olga", long("hush-waits", 4, 5), "ops")
	submit("sue", long("hers", 4, 1), "research/vision")
	job := "{name: mine, workers: 2, estimate: 1m, tenant: research/vision}"
	for _, who := range []string{"sue", "vera", "olga"} {
		q := whatif.Request{Strategy: "srtf"}
		if who == "sue" {
			q.Job = job
		}
		a, err := w.as(who).WhatIf(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		told := fmt.Sprintf("%+v", a)
		if who == "olga" {
			if !strings.Contains(told, "hush-waits") || a.JobsLeftOut != 0 {
				t.Errorf("an operator is told %s", told)
			}
			continue
		}
		if strings.Contains(told, "hush") || !strings.Contains(told, "hers") || a.JobsLeftOut == 0 || a.Base.Finished != 3 {
			t.Errorf("%s is told %s", who, told)
		}
		if who == "sue" && (len(a.Submitted) != 1 || len(a.Submitted[0].Preempts) == 0) {
			t.Errorf("her job displaces %+v", a.Submitted)
		}
	}
	if _, err := w.as("sue").WhatIf(t.Context(), whatif.Request{Job: "{name: x, tenant: ops}"}); err == nil || !strings.Contains(err.Error(), "tenant") {
		t.Errorf("a job of another tenant: %v", err)
	}
	if _, err := w.as("sue").WhatIf(t.Context(), whatif.Request{Job: "{name: hush-waits}"}); err == nil || strings.Contains(err.Error(), "waiting") {
		t.Errorf("a name that is taken elsewhere: %v", err)
	}
	list, err := w.audit.Read(access.Query{Limit: 50})
	if err != nil || len(list) == 0 {
		t.Errorf("%d lines in the audit log, %v", len(list), err)
	}
}
