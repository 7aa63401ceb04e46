package remaining_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/remaining"
)

// running is a state with one job that runs on so many workers since the beginning.
func running(shape plan.Shape, estimate unit.Duration, workers int32) *plan.State {
	s := plan.NewState(cluster.Uniform("one", 1, 1, cluster.Model{Name: "gpu"}, 1))
	s.Shapes = []plan.Shape{shape}
	id := s.Admit("job", plan.Asked{})
	s.Jobs[id].Estimate = estimate
	s.Jobs[id].Phase, s.Jobs[id].Run = plan.Active, 0
	s.Runs = []plan.Run{{Job: id, Status: plan.Running, Workers: workers}}
	return s
}

func TestOf(t *testing.T) {
	rigid := plan.Shape{Gang: 2, Devices: 1, Share: 1000}
	elastic := rigid
	elastic.Sizes = [8]int32{1, 4}
	for _, c := range []struct {
		name        string
		shape       plan.Shape
		estimate    unit.Duration
		workers     int32
		now         unit.Duration
		left, until unit.Duration
	}{
		{"half way", rigid, unit.Hour, 2, 30 * unit.Minute, 30 * unit.Minute, unit.Hour + 1},
		{"at its end", rigid, unit.Hour, 2, unit.Hour, 0, unit.Hour + 1},
		{"overrun", rigid, unit.Hour, 2, unit.Hour + 1, unit.Hour - 1, 2*unit.Hour + 1},
		{"overrun twice", rigid, unit.Hour, 2, 3 * unit.Hour, unit.Hour, 4*unit.Hour + 1},
		{"on more workers", elastic, unit.Hour, 4, 10 * unit.Minute, 40 * unit.Minute, 30*unit.Minute + 1},
		{"on fewer workers", elastic, unit.Hour, 1, 40 * unit.Minute, 40 * unit.Minute, 2*unit.Hour + 1},
	} {
		s := running(c.shape, c.estimate, c.workers)
		s.Now = unit.Time(c.now)
		left, until, known := remaining.Of(s.View(), 0)
		if !known || left != c.left || until != unit.Time(c.until) {
			t.Errorf("%s: %s left until %s, want %s until %s", c.name, left, unit.Duration(until), c.left, c.until)
		}
		s.Jobs[0].Run = plan.None
		if _, until, _ := remaining.Of(s.View(), 0); until != unit.Never {
			t.Errorf("%s: a job that does not run changes at %s", c.name, unit.Duration(until))
		}
	}
	s := running(rigid, 0, 2)
	if _, _, known := remaining.Of(s.View(), 0); known {
		t.Error("a job without an estimate is known")
	}
}

// TestLevel: a level holds until the instant said and no longer, and is the number of
// times that a device-minute must be doubled to be more than the service.
func TestLevel(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		workers := rapid.Int32Range(1, 64).Draw(t, "workers")
		s := running(plan.Shape{Gang: workers, Devices: 1, Share: 1000}, 0, workers)
		s.Now = unit.Time(rapid.Int64Range(0, int64(30*unit.Day)).Draw(t, "now"))
		level, until := remaining.Level(s.View(), 0)
		want := int64(0)
		for bound := 60.0; s.Now.Seconds()*float64(workers) >= bound; bound *= 2 {
			want++
		}
		if level != want {
			t.Fatalf("level %d, want %d", level, want)
		}
		s.Now = until - 1
		if before, same := remaining.Level(s.View(), 0); before != level || same != until {
			t.Fatalf("just before %s the level is %d until %s, was %d", unit.Duration(until), before, unit.Duration(same), level)
		}
		s.Now = until
		if after, _ := remaining.Level(s.View(), 0); after != level+1 {
			t.Fatalf("at %s the level is %d, was %d", unit.Duration(until), after, level)
		}
	})
}

// TestCores: work without devices attains no service and stays on the first level.
func TestCores(t *testing.T) {
	s := running(plan.Shape{Gang: 2, Share: 1000}, 0, 2)
	s.Now = unit.Time(unit.Day)
	if level, until := remaining.Level(s.View(), 0); level != 0 || until != unit.Never {
		t.Errorf("level %d until %s", level, unit.Duration(until))
	}
}
