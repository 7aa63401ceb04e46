package server_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/budget"
	"github.com/musterdl/muster/internal/costtest"
	"github.com/musterdl/muster/model/workload"
)

// thronged is a world of many nodes and jobs: some run, most wait, some are over. Half of the
// jobs are copies of one array that sue sees, the rest are of a hundred other tenants.
func thronged(t *testing.T, nodes, jobs int) *shared {
	w := shareOn(t, nodes, io.Discard)
	w.set(named("ops", 0, 1), named("research", 0, 2), named("research/vision", 2, 1))
	hers, over := array("hers", int32(jobs/2)), array("over", int32(jobs/4))
	hers.Tenant, hers.User = "research/vision", "sue"
	w.submit(hers, over)
	if _, err := w.client.ChangeJob(t.Context(), "over", "cancel"); err != nil {
		t.Fatal(err)
	}
	for left := jobs / 4; left > 0; {
		var list []workload.Job
		for ; left > 0 && len(list) < 1000; left-- {
			one := job(fmt.Sprintf("theirs-%d", left), 2)
			one.Tenant, one.User = fmt.Sprintf("ops/%d", left%100), fmt.Sprintf("user%d", left%100)
			list = append(list, one)
		}
		w.submit(list...)
	}
	log := filepath.Join(w.logs, "hers-0", "1", "0", "log")
	if err := errors.Join(os.MkdirAll(filepath.Dir(log), 0o700), os.WriteFile(log, nil, 0o600), os.Truncate(log, 64<<20)); err != nil {
		t.Fatal(err)
	}
	for busy := time.Second; busy > 20*time.Millisecond; { // what was submitted is decided, told and promised
		began := budget.Used() // to watch the heap as well would itself take as much
		time.Sleep(500 * time.Millisecond)
		busy = budget.Used() - began
	}
	return w
}

// dearest are questions of a route that cost more than it does without any.
var dearest = map[string][]string{
	"GET /v1/jobs":            {"?limit=10000", "?all=1&limit=10000", "?phase=waiting&limit=10000", "?phase=cancelled&limit=1"},
	"GET /v1/jobs/{job}/logs": {"?rank=0"},
	"GET /v1/shadows":         {"?regret=1"},
	"GET /v1/snapshot":        {"?anonymise=1"},
	"GET /v1/audit":           {"?limit=1000"},
}

// No question about a cluster of many jobs costs more than a request may: not one route that
// is read, whoever asks and about whichever job. What reads the whole history is an
// operator's alone, and costs what the history is long.
func TestNoViewCostsMore(t *testing.T) {
	if costtest.Slowed {
		t.Skip("beside the race detector nothing is measured")
	}
	nodes, jobs := 200, 2000
	if os.Getenv("MUSTER_LONG") != "" {
		nodes, jobs = 2000, 40_000
	}
	w := thronged(t, nodes, jobs)
	// As much again as the state may wait to be collected, which is not what an answer holds: collect sooner.
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	seen := map[int]int{}
	for _, route := range w.server.Table() {
		path, read := strings.CutPrefix(route.Pattern, "GET ")
		if !read {
			continue
		}
		abouts := []string{""}
		if strings.Contains(path, "{job}") {
			abouts = []string{"hers", "hers-0", fmt.Sprintf("hers-%d", jobs/2-1), "theirs-1"}
		}
		for _, question := range append([]string{""}, dearest[route.Pattern]...) {
			whole := question == "?regret=1" || route.Pattern == "GET /v1/snapshot"
			for _, about := range abouts {
				asked := strings.NewReplacer("{$}", "", "{job}", about).Replace(path) + question
				if strings.Contains(asked, "{") {
					t.Errorf("%s: say here what it is asked about", route.Pattern)
				}
				for _, who := range []string{"sue", "wide", "root"} {
					status := w.priced(who, asked, !whole || who != "root")
					if seen[status]++; status >= 500 || whole && who != "root" && status != http.StatusForbidden {
						t.Errorf("%s asks %s: %d", who, asked, status)
					}
				}
			}
		}
	}
	if seen[http.StatusOK] < 80 {
		t.Errorf("answers by status: %v", seen)
	}
	t.Logf("answers by status: %v", seen)
}

// priced asks something, and holds it to what a request may cost unless that is open.
func (w *shared) priced(who, asked string, held bool) (status int) {
	w.t.Helper()
	ask := func() { status = w.read(io.Discard, who, "GET", asked, "", "", "") }
	what := fmt.Sprintf("%s asks %s", who, asked)
	if held {
		costtest.Within(w.t, what, 1, ask)
		return status
	}
	seconds, mib := costtest.Of(w.t, ask)
	w.t.Logf("%s: %.2f s, %.0f MiB, which is not held to anything", what, seconds, mib)
	return status
}
