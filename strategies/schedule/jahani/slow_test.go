package jahani

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/musterdl/muster/plan"
)

// TestQuestion: a problem comes back as it went out, but for less than a microsecond,
// and so does an answer; what is cut or goes on is none.
func TestQuestion(t *testing.T) {
	p := draw(1, 20, 5, 3)
	now := Search(p, Plan{})
	q := question{Problem: p, now: now}
	for i := range p.Jobs {
		q.jobs = append(q.jobs, plan.JobID(3*i))
	}
	for i := range p.Machines {
		q.kinds = append(q.kinds, machineKind{int32(i), int32(p.Machines[i].Devices), 1000})
	}
	b := q.encode()
	other, err := decodeQuestion(b)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(other.jobs, q.jobs) || !slices.Equal(other.kinds, q.kinds) || !slices.Equal(other.now.Rented, now.Rented) || !slices.Equal(other.now.Jobs, now.Jobs) {
		t.Errorf("the plan came back as %+v of %v and %v", other.now, other.jobs, other.kinds)
	}
	for i := range p.Jobs {
		same := other.Jobs[i].Weight == p.Jobs[i].Weight && math.Abs(other.Jobs[i].DueSec-p.Jobs[i].DueSec) < 1e-6
		for m := range p.Machines {
			for g := range p.Machines[m].Devices {
				same = same && math.Abs(other.Jobs[i].Seconds[m][g]-p.Jobs[i].Seconds[m][g]) < 1e-6
			}
		}
		if !same {
			t.Fatalf("job %d came back as %+v, was %+v", i, other.Jobs[i], p.Jobs[i])
		}
	}
	a := answer{now, q.jobs, q.kinds}
	text := a.encode()
	if back, err := decodeAnswer(text); err != nil || !reflect.DeepEqual(*back, a) {
		t.Errorf("the answer came back as %+v, %v", back, err)
	}
	for _, wrong := range [][]byte{b[:len(b)-1], append(b, 0)} {
		if _, err := decodeQuestion(wrong); err == nil {
			t.Error("a question of another length is taken")
		}
	}
	for _, wrong := range [][]byte{text[:len(text)-1], append(text, 0)} {
		if _, err := decodeAnswer(wrong); err == nil {
			t.Error("an answer of another length is taken")
		}
	}
}

// TestSearchOnMany: where a job is tried on some nodes only, the plan is one, costs at
// most a quarter more than with all nodes tried, and going on from it makes it no dearer.
func TestSearchOnMany(t *testing.T) {
	p := draw(1, 260, mostNodes+1, 3)
	q := draw(1, 260, mostNodes, 3) // every node is tried
	plan := Search(p, Plan{})
	got, all := p.Cost(plan), q.Cost(Search(q, Plan{}))
	again := p.Cost(Search(p, plan))
	t.Logf("cost %.2f, with every node tried %.2f (one node less), going on %.2f", got, all, again)
	if math.IsInf(got, 1) || got > 1.25*all || again > got+1e-6 {
		t.Errorf("cost %.2f, with every node tried %.2f, going on %.2f", got, all, again)
	}
}
