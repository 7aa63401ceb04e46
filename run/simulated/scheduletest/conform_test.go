package scheduletest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// broken is an order that breaks a promise.
type broken struct {
	key   func(v plan.View, id plan.JobID) (schedule.Key, unit.Time)
	rules schedule.Rules
}

func (b broken) Key(v plan.View, id plan.JobID) (schedule.Key, unit.Time) { return b.key(v, id) }
func (b broken) Rules() schedule.Rules                                    { return b.rules }

// stopped is what failing does to the suite under test.
type stopped struct{ why string }

type recorder struct{}

func (recorder) Fatalf(format string, args ...any) { panic(stopped{fmt.Sprintf(format, args...)}) }

// busy is a history in which jobs wait, run and are overtaken on four devices.
func busy() Jobs {
	var jobs Jobs
	for i := range 6 {
		at := unit.Time(i) * unit.Time(100*unit.Second)
		jobs = append(jobs, Job{workload.Job{Name: fmt.Sprint("j", i), Submit: at, Resources: workload.Resources{Gang: 2, Devices: 1, Share: unit.Whole},
			Checkpoint: workload.Checkpoint{OnRequest: true}}, workload.Truth{Duration: unit.Duration(700-100*i) * unit.Second}})
	}
	return jobs
}

// TestSuiteFails: an order that breaks a promise does not pass.
func TestSuiteFails(t *testing.T) {
	made := int64(0)
	for _, c := range []struct {
		name string
		make func() schedule.Order
		why  string
	}{
		{"a waiting job's rank that improves as it waits", func() schedule.Order {
			return broken{key: func(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
				return schedule.Key{-int64(v.WaitedFor(id))}, unit.Never
			}}
		}, "waits with rank"},
		{"a running job's rank that gets worse as it runs", func() schedule.Order {
			return broken{key: func(v plan.View, id plan.JobID) (schedule.Key, unit.Time) {
				return schedule.Key{v.Service(id)}, unit.Never
			}, rules: schedule.Rules{Preempt: true}}
		}, "runs with rank"},
		{"an order that differs from one time to the next", func() schedule.Order {
			made++
			sign := made%2*2 - 1
			return broken{key: func(_ plan.View, id plan.JobID) (schedule.Key, unit.Time) {
				return schedule.Key{sign * int64(id)}, unit.Never
			}}
		}, "other decisions"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if s, ok := recover().(stopped); !ok || !strings.Contains(s.why, c.why) {
					t.Errorf("the suite says %q, expected %q", s.why, c.why)
				}
			}()
			conform(recorder{}, Nodes(1, 4, 0), busy(), c.make)
		})
	}
}

// TestPastWatched: a rank must hold for some time, or the scheduler asks forever.
func TestPastWatched(t *testing.T) {
	s := plan.NewState(Nodes(1, 1, 0))
	id := s.Admit("job", plan.Asked{})
	w := watch(broken{key: func(v plan.View, _ plan.JobID) (schedule.Key, unit.Time) { return schedule.Key{}, v.Now() }})
	if w.Key(s.View(), id); w.broken == nil {
		t.Error("a rank that holds until now is no fault")
	}
}

// TestRulesWatched: a decision against the order's rules is a fault.
func TestRulesWatched(t *testing.T) {
	s := plan.NewState(Nodes(1, 1, 0))
	s.Admit("job", plan.Asked{})
	s.Runs = []plan.Run{{Began: 0}}
	s.Now = unit.Time(unit.Minute)
	displaced := &plan.Commit{Changes: []plan.Change{{Verb: plan.Stop, Reason: plan.Reason{Code: plan.MadeWayFor}}}}
	for rules, fault := range map[schedule.Rules]bool{
		{}: true, {Preempt: true}: false, {Preempt: true, MinimumRun: unit.Minute}: false, {Preempt: true, MinimumRun: unit.Hour}: true,
	} {
		w := watch(broken{rules: rules})
		w.justPreempted(s.View(), displaced)
		if got := w.broken != nil; got != fault {
			t.Errorf("%+v: fault %v, want %v", rules, w.broken, fault)
		}
	}
}

// nth wants the size of a job at one place in its list.
type nth struct{ at int32 }

func (n nth) Want(v plan.View, job plan.JobID, _ allocate.Crowd) int32 {
	return v.Shape(job).Sizes[n.at]
}

// TestPartSuiteFails: a sizer that differs from one time to the next does not pass.
func TestPartSuiteFails(t *testing.T) {
	made := int32(-1)
	jobs := busy()
	for i := range jobs {
		jobs[i].Sizes = []int32{2, 4}
	}
	defer func() {
		if s, ok := recover().(stopped); !ok || !strings.Contains(s.why, "other decisions") {
			t.Errorf("the suite says %q, expected other decisions", s.why)
		}
	}()
	conformPart(recorder{}, Nodes(1, 4, 0), jobs, allocate.SizePart, func() any { made++; return nth{made} }, nature{})
}
