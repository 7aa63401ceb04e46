package trace

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// handful yields entries.
type handful []entry

// Next returns the next one.
func (h *handful) Next() (workload.Job, workload.Truth, error) {
	if len(*h) == 0 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	e := (*h)[0]
	*h = (*h)[1:]
	return e.job, e.truth, nil
}

// Close does nothing.
func (h *handful) Close() error { return nil }

// assumed reads jobs to their end with what is assumed of how they save.
func assumed(t *testing.T, jobs []entry, saving Saving, seed uint64) (all []entry, about string) {
	t.Helper()
	left := handful(jobs)
	s := WithSaving(&left, saving, seed)
	for {
		job, truth, err := s.Next()
		if errors.Is(err, io.EOF) {
			return all, s.About()
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry{job, truth})
	}
}

// TestSavingKeepsWords: what a trace says of how a job saves stays, whatever is assumed of others.
func TestSavingKeepsWords(t *testing.T) {
	words := []entry{
		{job: workload.Job{Checkpoint: workload.Checkpoint{OnRequest: true}}},
		{job: workload.Job{Checkpoint: workload.Checkpoint{Every: unit.Hour, Load: unit.Second}}},
		{truth: workload.Truth{NeverSaves: true}},
	}
	silent := entry{job: workload.Job{Checkpoint: workload.Checkpoint{Save: unit.Second}}}
	for _, saving := range []Saving{{}, {Never: 1}, {Every: unit.Minute}} {
		got, _ := assumed(t, append(words, silent), saving, 1)
		for i := range words {
			if got[i].job.Checkpoint != words[i].job.Checkpoint {
				t.Errorf("%+v: %+v became %+v", saving, words[i].job.Checkpoint, got[i].job.Checkpoint)
			}
		}
		want := workload.Checkpoint{OnRequest: saving.Never == 0, Every: saving.Every, Save: unit.Second}
		if got := got[3].job.Checkpoint; got != want {
			t.Errorf("%+v: of whom nothing is said %+v is assumed, expected %+v", saving, got, want)
		}
	}
}

// TestSavingIsDrawnByItself: the part that is asked for never saves, another seed draws others, and what is
// drawn for a job does not depend on what others say.
func TestSavingIsDrawnByItself(t *testing.T) {
	const many = 30_000
	jobs := make([]entry, many)
	never := func(seed uint64) (list []bool) {
		all, about := assumed(t, jobs, Saving{Never: 1. / 3}, seed)
		for i := range all {
			list = append(list, !all[i].job.Checkpoint.OnRequest)
		}
		if !strings.Contains(about, "of 30000 jobs save") {
			t.Errorf("it is said of them: %s", about)
		}
		return list
	}
	first, other := never(1), never(2)
	for i := range many / 2 {
		jobs[2*i].job.Checkpoint.OnRequest = true
	}
	alike, part := 0, 0
	for i, is := range never(1) {
		alike, part = alike+count(first[i] == other[i]), part+count(first[i])
		if i%2 == 1 && is != first[i] {
			t.Fatalf("job %d is drawn otherwise because of what the one before it says", i)
		}
	}
	if math.Abs(float64(part)/many-1./3) > .01 || alike > many*6/10 {
		t.Errorf("%d of %d never save; by another seed it is the same of %d", part, many, alike)
	}
}
