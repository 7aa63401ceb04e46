package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/internal/client"
	"github.com/musterdl/muster/internal/costtest"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/workload"
)

// array is one of so many copies of a job.
func array(name string, n int32) workload.Job {
	j := job(name, 1)
	j.Array = n
	return j
}

// TestAnArrayIsCalledByItsName: every verb that takes a job takes an array, and does it to all
// copies that it can be done to.
func TestAnArrayIsCalledByItsName(t *testing.T) {
	w := start(t, nil)
	out, err := w.client.Submit(t.Context(), []workload.Job{job("first", 1), array("sweep", 6)}, "k")
	if want := []view.Ref{{ID: 0, Name: "first"}, {ID: 1, Name: "sweep", Array: 6}}; err != nil || !slices.Equal(out.Jobs, want) {
		t.Fatalf("submitted %+v, %v, expected %+v", out.Jobs, err, want)
	}
	show := func() view.Job {
		t.Helper()
		j, err := w.client.Job(t.Context(), "sweep")
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	// Four devices, and one of them is another job's.
	if j := show(); j.Name != "sweep" || j.ID != 1 || j.Phase != "active" || j.Copies["active"] != 3 || j.Copies["waiting"] != 3 || !strings.Contains(j.Reason, "sweep-3 waiting") {
		t.Errorf("it is %+v", j)
	}
	if why, err := w.client.Why(t.Context(), "sweep"); err != nil || why.Job != "sweep-3" {
		t.Errorf("why: %+v, %v", why, err)
	}
	var refused *client.Error
	if err := w.client.Logs(t.Context(), "sweep", client.LogOptions{}, &strings.Builder{}); !errors.As(err, &refused) || !strings.Contains(refused.Message, "sweep-0") {
		t.Errorf("the log of an array: %v", err)
	}
	if _, err := w.client.ChangeJob(t.Context(), "sweep-4", "cancel"); err != nil {
		t.Fatal(err)
	}
	if j, err := w.client.ChangeJob(t.Context(), "sweep", "hold"); err != nil || j.Copies["held"] < 2 || j.Copies["cancelled"] != 1 {
		t.Errorf("held it is %+v, %v", j, err)
	}
	for _, verb := range []string{"release", "cancel"} {
		if _, err := w.client.ChangeJob(t.Context(), "sweep", verb); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
	}
	j, err := w.client.Wait(t.Context(), "sweep")
	if err != nil || j.Phase != "cancelled" || j.Copies["cancelled"] != 6 || j.Ended.IsZero() {
		t.Errorf("cancelled it is %+v, %v", j, err)
	}
	if _, err := w.client.ChangeJob(t.Context(), "sweep", "cancel"); !errors.As(err, &refused) || refused.Status != http.StatusConflict {
		t.Errorf("an array that is over is cancelled again: %v", err)
	}
	if _, err := w.client.ChangeJob(t.Context(), "sweep", "requeue"); err != nil {
		t.Fatal(err)
	}
	if j := show(); j.Copies["cancelled"] != 0 {
		t.Errorf("requeued it is %+v", j)
	}
}

// TestAnArrayIsAllOrNone: a name that is taken, by a copy or by an array, refuses all of a
// submission, and so does any other job in it.
func TestAnArrayIsAllOrNone(t *testing.T) {
	w := start(t, nil)
	w.submit(job("sweep-7", 1), job("other", 1), array("there", 2))
	for name, jobs := range map[string][]workload.Job{
		"a copy's name":            {array("sweep", 10)},
		"the array's name":         {array("other", 2)},
		"an array's name as a job": {job("there", 1)},
		"another job of it":        {array("good", 10), job("other", 1)},
		"twice in it":              {array("good", 10), job("good-3", 1)},
		"array and job in it":      {array("good", 10), job("good", 1)},
		"a copy called as one":     {array("x", 2), {Name: "y", Resources: job("y", 1).Resources, After: []string{"x-2"}}},
	} {
		var refused *client.Error
		if _, err := w.client.Submit(t.Context(), jobs, ""); !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	list, err := w.client.Jobs(t.Context(), client.ListOptions{})
	if err != nil || len(list.Jobs) != 4 {
		t.Errorf("%d jobs are there, expected 4 (%v)", len(list.Jobs), err)
	}
	last := job("last", 1)
	last.After = []string{"x-1"}
	if _, err := w.client.Submit(t.Context(), []workload.Job{last, array("x", 2)}, ""); err != nil {
		t.Errorf("after a copy of the same submission: %v", err)
	}
}

// TestHundredThousandCopies: an array as large as a file may ask for is one durable append.
func TestHundredThousandCopies(t *testing.T) {
	w, copies := start(t, nil), 100_000
	if costtest.Slowed {
		copies = 10_000 // what is looked for beside the race detector needs no more of them
	}
	seconds, _ := costtest.Of(t, func() {
		out, err := w.client.Submit(t.Context(), []workload.Job{array("s", int32(copies))}, "k")
		if err != nil || len(out.Jobs) != 1 {
			t.Fatalf("%v (%v)", out, err)
		}
	})
	t.Logf("%d copies took %.2f s of processor time", copies, seconds)
	if seconds > 2 && !costtest.Slowed {
		t.Errorf("%d copies took %.2f s of processor time, 2 s at most were expected", copies, seconds)
	}
	if last, err := w.client.Job(t.Context(), fmt.Sprintf("s-%d", copies-1)); err != nil || int(last.ID) != copies-1 {
		t.Errorf("the last is %+v, %v", last, err)
	}
	began := time.Now()
	j, err := w.client.ChangeJob(t.Context(), "s", "cancel")
	if err != nil || j.Copies["waiting"] != 0 {
		t.Errorf("cancelled it is %+v (%v)", j.Copies, err)
	}
	t.Logf("cancelling them took %v", time.Since(began))
}
