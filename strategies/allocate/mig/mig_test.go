package mig

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/allocate/allocatetest"
	"github.com/musterdl/muster/allocate/envelope"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

func newPlacer() allocate.Placer { return New(Default()) }

// Without models that can be cut it places like any other.
func TestConforms(t *testing.T) { allocatetest.Conform(t, newPlacer) }

// a100s is one node of so many devices that can be cut.
func a100s(t testing.TB, n int) (*plan.State, *envelope.Table) {
	t.Helper()
	table, ok := envelope.MIG("A100", 0)
	if !ok {
		t.Fatal("A100s have no profiles")
	}
	s := plan.NewState(cluster.Uniform("a100s", 1, n, cluster.Model{Name: "A100", Memory: 40 << 10, Speed: 1, Geometries: table.Geometries()}, 1))
	s.Shapes = []plan.Shape{{Gang: 1, Devices: 1, Share: 1000, Models: 1}}
	for _, profile := range []int{0, 2, 3} { // 1g, 2g and 3g
		part := table.Part(envelope.Instance{Profile: profile})
		s.Shapes = append(s.Shapes, plan.Shape{Gang: 1, Devices: 1, Share: int32(part.Milli), Memory: int32(part.Memory), Models: 1})
	}
	return s, table
}

// start places one more job and carries all out at once, as compose does.
func start(t testing.TB, s *plan.State, p allocate.Placer, shape int32) (job plan.JobID, ok bool) {
	t.Helper()
	job = s.Admit("job", plan.Asked{Shape: shape, Profile: plan.None})
	found := p.Place(s.View(), allocate.Need{Job: job, Workers: s.Shapes[shape].Gang, Shape: &s.Shapes[shape]}, 1, nil)
	if len(found) == 0 {
		return job, false
	}
	d := s.Edit()
	for _, cut := range found[0].Cut {
		if !d.Reshape(cut.Device, cut.Geometry, plan.Reason{}) {
			t.Fatalf("device %d cannot be cut into geometry %d", cut.Device, cut.Geometry)
		}
	}
	if run, why := d.Start(job, found[0].Slots, plan.DefaultTerms().WithShare(found[0].Share), plan.Reason{}); run == plan.None {
		t.Fatalf("cannot start on %v after %v: %v", found[0].Slots, found[0].Cut, why)
	}
	changes, _ := d.Commit()
	for _, c := range append([]plan.Change(nil), changes...) {
		if c.Verb == plan.Reshape {
			s.Devices[c.Device].Status = plan.Steady
		}
		s.Confirm(c.ID)
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	return job, true
}

func end(s *plan.State, job plan.JobID) {
	s.EndRun(s.Jobs[job].Run, 0)
	s.SetPhase(job, plan.Finished, plan.Reason{})
}

// part says where on its device a job is.
func part(s *plan.State, job plan.JobID) (text string) {
	s.View().GrantsOf(s.Jobs[job].Run, func(g plan.Grant) {
		text = fmt.Sprint("whole of ", g.Device)
		if g.Part > 0 {
			text = fmt.Sprintf("%d@%d of %d", s.View().PartOf(g).Milli, s.View().PartOf(g).Start, g.Device)
		}
	})
	return text
}

// On one device: a small instance goes to the end, where it spoils least; a large one
// goes to the other half, cut while the small one stays; what does not fit waits; and
// once all are gone the device is made whole for work that wants it whole.
func TestCuts(t *testing.T) {
	s, _ := a100s(t, 1)
	p := newPlacer()
	var jobs []plan.JobID
	for _, step := range []struct {
		shape int32
		want  string
	}{{1, "142@6 of 0"}, {3, "428@0 of 0"}, {2, "285@4 of 0"}, {1, ""}, {0, ""}} {
		job, ok := start(t, s, p, step.shape)
		if ok {
			jobs = append(jobs, job)
		}
		if ok != (step.want != "") || ok && part(s, job) != step.want {
			t.Fatalf("shape %d: placed is %v, want %q", step.shape, ok, step.want)
		}
	}
	for _, job := range jobs {
		end(s, job)
	}
	if job, ok := start(t, s, p, 0); !ok || part(s, job) != "whole of 0" {
		t.Errorf("an idle device is not made whole: %v", ok)
	}
}

// Whatever comes and goes, gangs and memory included, what the placer offers can be cut
// and started, and a whole device that is idle is never refused.
func TestHistory(t *testing.T) {
	draws.Check(t, func(r *rapid.T) {
		s, _ := a100s(t, rapid.IntRange(1, 3).Draw(r, "devices"))
		p := newPlacer()
		var living []plan.JobID
		for range rapid.IntRange(1, 30).Draw(r, "events") {
			if len(living) > 0 && rapid.Bool().Draw(r, "one ends") {
				i := rapid.IntRange(0, len(living)-1).Draw(r, "who")
				end(s, living[i])
				living = append(living[:i], living[i+1:]...)
				continue
			}
			idle := false
			for _, d := range s.Devices {
				idle = idle || d.First == plan.None
			}
			shape := plan.Shape{Gang: rapid.Int32Range(1, 4).Draw(r, "gang"), Devices: 1, Share: rapid.SampledFrom([]int32{100, 142, 200, 285, 428, 500, 571, 600, 1000}).Draw(r, "share"),
				Memory: rapid.SampledFrom([]int32{0, 4 << 10, 8 << 10, 20 << 10, 36 << 10}).Draw(r, "memory"), Models: 1}
			s.Shapes = append(s.Shapes, shape)
			job, ok := start(t, s, p, int32(len(s.Shapes)-1))
			if ok {
				living = append(living, job)
			} else if s.SetPhase(job, plan.Cancelled, plan.Reason{}); idle && shape.Gang == 1 {
				r.Fatalf("there is no place for %+v, but a device is idle", shape)
			}
		}
	})
}

func TestConfig(t *testing.T) {
	if strategy.Check(Default()) != nil || strategy.Check(Config{}) == nil {
		t.Error("validation")
	}
}
