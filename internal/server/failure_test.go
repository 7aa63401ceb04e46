package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// How a job failed is for all who see it; what it printed for those who may read its log.
func TestFailureIsShown(t *testing.T) {
	w := share(t)
	if _, err := w.as("sue").Submit(t.Context(), []workload.Job{job("broken", 2), job("absent", 1)}, ""); err != nil {
		t.Fatal(err)
	}
	w.until("broken", "active", "")
	w.until("absent", "active", "")
	dir := filepath.Join(w.logs, "broken", "1", "1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "log"), []byte("one\n\x1b[31mno data\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	j, err := w.client.Job(t.Context(), "broken")
	if err != nil {
		t.Fatal(err)
	}
	w.driver.report(engine.Event{Kind: engine.Exited, Job: plan.JobID(j.ID), Attempt: j.Attempt, Ending: engine.Ending{Class: plan.UserFailure,
		Failure: &plan.Failure{Rank: 1, Node: 1, Code: 7, Why: "exit code 7"}}})
	w.until("broken", "failed", "")
	w.driver.report(engine.Event{Kind: engine.Exited, Job: plan.JobID(j.ID + 1), Attempt: 1, Ending: engine.Ending{Class: plan.UserFailure,
		Failure: &plan.Failure{Code: 127, Why: "no such program: KEY=hush"}}})
	w.until("absent", "failed", "")
	for who, printed := range map[string]bool{"sue": true, "olga": true, "sam": false, "wide": false} {
		for _, path := range []string{"/v1/jobs/absent", "/v1/jobs/absent/why", "/v1/jobs?all=1"} {
			if status, text := w.whole(who, path); status != http.StatusOK || !strings.Contains(text, "(rank 0 on node0)") || strings.Contains(text, "KEY=hush") != printed {
				t.Errorf("%s is told at %s: %d %s", who, path, status, text)
			}
		}
		for _, path := range []string{"/v1/jobs/broken", "/v1/jobs/broken?wait=1", "/v1/jobs/broken/why"} {
			status, text := w.whole(who, path)
			if status != http.StatusOK || !strings.Contains(text, `"words":"exit code 7 (rank 1 on node1)"`) || !strings.Contains(text, `"exit_code":7`) || strings.Contains(text, "no data") != printed {
				t.Errorf("%s is told at %s: %d %s", who, path, status, text)
			}
		}
		if status, text := w.whole(who, "/v1/jobs?all=1"); status != http.StatusOK || !strings.Contains(text, "exit code 7 (rank 1") || strings.Contains(text, "no data") {
			t.Errorf("%s is listed: %d %s", who, status, text)
		}
	}
	job, err := w.as("sue").Job(t.Context(), "broken")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := view.WriteJob(&text, &job, view.TextOptions{}); err != nil || !strings.Contains(text.String(), "attempt 1 (user): exit code 7 (rank 1 on node1)") || !strings.Contains(text.String(), "\n  no data\n") {
		t.Errorf("%v:\n%s", err, &text)
	}
}
