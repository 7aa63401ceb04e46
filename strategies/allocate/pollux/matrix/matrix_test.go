package matrix_test

import (
	"reflect"
	"testing"

	"github.com/musterdl/muster/allocate/search"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/pollux/matrix"
)

// situation is two nodes of 4 devices and a job of 1, 2 or 4 workers that runs with two
// on the second.
func situation(t *testing.T) matrix.Situation {
	t.Helper()
	s := plan.NewState(cluster.Uniform("two", 2, 4, cluster.Model{Name: "gpu", Speed: 1}, 2))
	s.Shapes = []plan.Shape{{Gang: 2, Devices: 1, Share: 1000, Models: 1, Sizes: [8]int32{1, 2, 4}}}
	d := s.Edit()
	if run, why := d.Start(s.Admit("job", plan.Asked{Profile: plan.None}), []plan.Slot{{Node: 1, Device: plan.None, Workers: 2}}, plan.DefaultTerms(), plan.Reason{}); run == plan.None {
		t.Fatal(why)
	}
	d.Commit()
	var q matrix.Situation
	if present := q.Look(s.View()); present != 1 {
		t.Fatalf("models %b are present, expected the first", present)
	}
	q.Jobs = append(q.Jobs, matrix.Describe(s.View(), 0, 1, 4))
	return q
}

// TestTravels: a situation and rows are read as they were written, and one that was cut off
// is not.
func TestTravels(t *testing.T) {
	q := situation(t)
	if j := q.Jobs[0]; !reflect.DeepEqual(j.Base, []matrix.Cell{{Node: 1, Workers: 2}}) || !reflect.DeepEqual(j.Legal, []int32{0, 1, 2, 2, 4}) {
		t.Fatalf("the job is %+v", j)
	}
	b := q.Put(nil)
	r := figures.Read(b)
	if got := matrix.Read(r); r.End() != nil || !reflect.DeepEqual(got, q) {
		t.Errorf("%+v was read as %+v (%v)", q, got, r.End())
	}
	r = figures.Read(b[:len(b)-1])
	if matrix.Read(r); r.End() == nil {
		t.Error("a situation that was cut off was read")
	}
	rows := []matrix.Row{{Job: 3, Cells: []matrix.Cell{{Node: 1, Workers: 2}}}, {Job: 4}}
	r = figures.Read(matrix.PutRows(nil, rows))
	if got := matrix.ReadRows(r); r.End() != nil || !reflect.DeepEqual(got, rows) {
		t.Errorf("%+v was read as %+v (%v)", rows, got, r.End())
	}
}

// TestRows: what a job may not have is taken from the node with fewest, and a row of today
// is the problem's base.
func TestRows(t *testing.T) {
	q := situation(t)
	if row := q.Problem(false).Base.Row(0); row[0] != 0 || row[1] != 2 {
		t.Errorf("today's row is %v", row)
	}
	for _, test := range []struct {
		devices [2]uint8
		want    []matrix.Cell
	}{
		{[2]uint8{3, 1}, []matrix.Cell{{Node: 0, Workers: 3}, {Node: 1, Workers: 1}}},
		{[2]uint8{1, 2}, []matrix.Cell{{Node: 1, Workers: 2}}},
		{[2]uint8{0, 3}, []matrix.Cell{{Node: 1, Workers: 2}}},
		{[2]uint8{0, 0}, nil},
	} {
		m := search.NewMatrix(1, 2)
		copy(m.Row(0), test.devices[:])
		if got := q.Rows(m)[0].Cells; !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v devices are %v, expected %v", test.devices, got, test.want)
		}
	}
}
