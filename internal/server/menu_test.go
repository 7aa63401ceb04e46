package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/server"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/workload"
)

// TestMenusAreWritten: a job that names a model has its menu written before it is submitted, or is
// told why there is none; one that names none is not planned, and no request plans many.
func TestMenusAreWritten(t *testing.T) {
	asked := 0
	w := start(t, func(c *server.Config) {
		c.Menu = func(j *workload.Job) *objection.Objection {
			if asked++; j.Pipeline.Model == "none" {
				return &objection.Objection{Field: "pipeline.model", Found: "no plan"}
			}
			j.Menu = []workload.Offer{{Model: "gpu", Workers: 1, Rate: 1}}
			return nil
		}
	})
	named := func(name, model string) workload.Job {
		j := job(name, 1)
		j.Pipeline = workload.Pipeline{Model: model, Batch: 8}
		return j
	}
	w.submit(job("plain", 1), named("planned", "some"))
	if asked != 1 {
		t.Errorf("asked %d times, want once", asked)
	}
	if _, err := w.client.Submit(t.Context(), []workload.Job{named("lost", "none")}, ""); err == nil || !strings.Contains(err.Error(), "no plan") {
		t.Errorf("%v, want why there is no plan", err)
	}
	var many []workload.Job
	for i := range 9 {
		many = append(many, named(fmt.Sprint("many", i), "some"))
	}
	if _, err := w.client.Submit(t.Context(), many, ""); err == nil || !strings.Contains(err.Error(), "more than 8 jobs that name a model") {
		t.Errorf("%v, want a refusal", err)
	}
}
