package victims_test

import (
	"math"
	"testing"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/victims"
)

// A gang of two workers runs for an hour and ten minutes, of which it was suspended
// for ten, after an hour in an earlier run that is kept.
func TestPrice(t *testing.T) {
	const m = unit.Minute
	for _, test := range []struct {
		name          string
		keeps         plan.Checkpointing
		status        plan.RunStatus
		saved         unit.Duration
		share         int32
		lost, restart unit.Duration
		micros        int64
	}{
		{"never saves", plan.Checkpointing{Load: m}, plan.Running, 0, 1000, 60 * m, m, int64(61 * m * 2)},
		{"saves by itself", plan.Checkpointing{Every: 25 * m, Save: 3 * m, Load: m}, plan.Running, 0, 1000, 10 * m, m, int64(11 * m * 2)},
		{"saved right now", plan.Checkpointing{Every: 20 * m}, plan.Running, 0, 1000, 0, 0, 0},
		{"has not saved yet", plan.Checkpointing{Every: 90 * m}, plan.Running, 0, 1000, 60 * m, 0, int64(60 * m * 2)},
		{"reported a later save", plan.Checkpointing{Every: 25 * m}, plan.Running, 56 * m, 1000, 4 * m, 0, int64(4 * m * 2)},
		{"reported an earlier one", plan.Checkpointing{Every: 25 * m}, plan.Running, 5 * m, 1000, 10 * m, 0, int64(10 * m * 2)},
		{"reported more than it ran", plan.Checkpointing{}, plan.Running, 70 * m, 1000, 0, 0, 0},
		{"saves when asked", plan.Checkpointing{OnRequest: true, Save: 3 * m, Load: m}, plan.Running, 0, 1000, 0, 4 * m, int64(4 * m * 2)},
		{"saves when asked, for free", plan.Checkpointing{OnRequest: true}, plan.Running, 0, 1000, 0, 0, 0},
		{"shares", plan.Checkpointing{Load: m}, plan.Running, 0, 300, 60 * m, m, int64(61 * m * 600 / 1000)},
		{"cores alone", plan.Checkpointing{Load: m}, plan.Running, 0, 0, 60 * m, m, 0},
		{"suspended", plan.Checkpointing{Every: 25 * m, Load: m}, plan.Suspended, 0, 1000, 10 * m, m, int64(11 * m * 2)},
		{"starting", plan.Checkpointing{OnRequest: true, Save: 3 * m, Load: m}, plan.Starting, 0, 1000, 0, m, int64(m * 2)},
		{"promised", plan.Checkpointing{Load: m}, plan.Promised, 0, 1000, 0, 0, 0},
		{"beyond all numbers", plan.Checkpointing{Load: unit.Forever}, plan.Running, 0, 1000, 60 * m, unit.Forever, math.MaxInt64},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &scene{state: plan.NewState(cluster.Uniform("two", 1, 2, cluster.Model{Name: "gpu"}, 1))}
			shape := plan.Shape{Gang: 2, Devices: 1, Share: test.share, Models: 1}
			if test.share == 0 {
				shape = plan.Shape{Gang: 2, Share: 1000, CPU: 1000, Models: 1}
			}
			run := s.start(shape)
			s.state.Jobs[0].Checkpoint, s.state.Jobs[0].Executed = test.keeps, unit.Hour
			if test.status != plan.Promised {
				s.state.Dispatch(run)
			}
			if test.status == plan.Running || test.status == plan.Suspended {
				s.state.Began(run)
				s.state.Now = s.state.Now.Add(70 * m)
				s.state.Runs[run].Paused, s.state.Runs[run].Saved = 10*m, test.saved
			}
			if test.status == plan.Suspended {
				d := s.state.Edit()
				d.Suspend(run, plan.Reason{})
				d.Commit()
				s.state.Now = s.state.Now.Add(unit.Hour)
			}
			lost, restart, micros := victims.Price(s.state.View(), run)
			if lost != test.lost || restart != test.restart || micros != test.micros {
				t.Errorf("costs %v, %v and %d, want %v, %v and %d", lost, restart, micros, test.lost, test.restart, test.micros)
			}
		})
	}
}

// A microsecond of a thousandth of a device is not free.
func TestPriceRoundsUp(t *testing.T) {
	s := &scene{state: plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))}
	run := s.start(plan.Shape{Gang: 1, Devices: 1, Share: 1, Models: 1})
	s.state.Dispatch(run)
	s.state.Began(run)
	s.state.Now++
	if _, _, micros := victims.Price(s.state.View(), run); micros != 1 {
		t.Errorf("costs %d, want 1", micros)
	}
}
