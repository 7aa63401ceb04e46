package compose_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// then is a site of four devices on which jobs come after others.
type then struct{ *site }

func newThen(t rapid.TB) then {
	return then{newSite(t, cluster.Uniform("gpus", 1, 4, cluster.Model{Name: "gpu", Speed: 1}, 1), queue.Tree{Queues: []queue.Queue{queue.Root()}}, build(t, "fifo"))}
}

// comes submits a job of 100 s, or an array, behind others.
func (s then) comes(array int32, after ...string) plan.JobID {
	j := saves("", 0, 1)
	j.Array, j.After = array, after
	for k := range plan.JobID(array) {
		s.truth[plan.JobID(s.e.View().Jobs())+k] = 100 * unit.Second
	}
	return s.submit(j, 100*unit.Second)
}

// name is what a job that was submitted is called.
func (s then) name(id plan.JobID) string { return s.e.View().Name(id) }

// is fails the test where a job is in another phase.
func (s then) is(id plan.JobID, want plan.Phase) {
	if got := s.e.View().Job(id).Phase; got != want {
		s.t.Fatalf("at %d s %s is %s, expected %s", s.now/1e6, s.name(id), got, want)
	}
}

func (s then) ask(kind engine.Kind, id plan.JobID) { s.step(engine.Event{Kind: kind, Job: id}) }

// later lets so much time go by.
func (s then) later(d unit.Duration) { s.until(s.now.Add(d)) }

// TestAfter: a job starts when those that it comes after have ended as it says, and only then.
func TestAfter(t *testing.T) {
	s := newThen(t)
	first := s.comes(0)
	well, ended, failed := s.comes(0, s.name(first)), s.comes(0, "any:"+s.name(first)), s.comes(0, "failed:"+s.name(first))
	for _, id := range []plan.JobID{well, ended, failed} {
		s.is(id, plan.Blocked)
	}
	s.ask(engine.Cancel, first)
	s.is(well, plan.Failed)
	s.is(ended, plan.Active)
	s.is(failed, plan.Active)
	s.ask(engine.Requeue, first)
	s.is(well, plan.Blocked) // since it is to be run again
	s.later(unit.Hour)
	for _, id := range []plan.JobID{first, well, ended, failed} {
		s.is(id, plan.Finished)
	}

	good := s.comes(0)
	mends := s.comes(0, "failed:"+s.name(good))
	s.later(unit.Hour)
	s.is(mends, plan.Cancelled)
	s.is(s.comes(0, "failed:"+s.name(good)), plan.Cancelled)
	s.is(s.comes(0, s.name(good)), plan.Active)
	s.is(s.comes(0, s.name(mends)), plan.Failed)
}

// TestAfterArray: the name of an array stands for all copies.
func TestAfterArray(t *testing.T) {
	s := newThen(t)
	sweep := s.comes(6)
	well, ended, failed := s.comes(0, "j1"), s.comes(2, "any:j1"), s.comes(0, "failed:j1")
	s.later(150 * unit.Second) // four of six have ended
	s.is(sweep+3, plan.Finished)
	s.is(sweep+4, plan.Active)
	s.is(well, plan.Blocked)
	s.truth[sweep+1] = unit.Hour / 2
	s.ask(engine.Requeue, sweep+1)
	s.later(80 * unit.Second) // the two that were left
	s.is(sweep+5, plan.Finished)
	s.is(well, plan.Blocked)
	s.later(unit.Hour)
	for _, id := range []plan.JobID{sweep + 1, well, ended, ended + 1} {
		s.is(id, plan.Finished)
	}
	s.is(failed, plan.Cancelled)

	other := s.comes(3)
	well = s.comes(0, "j5")
	failed = s.comes(0, "failed:j5")
	s.ask(engine.Cancel, other+2)
	s.is(well, plan.Failed)
	s.is(failed, plan.Blocked)
	s.later(unit.Hour)
	s.is(failed, plan.Finished)
	s.is(s.comes(0, "failed:j5", "j1"), plan.Active)
}

// TestAfterBoth: one of two that a job comes after does not count twice when it is run again.
func TestAfterBoth(t *testing.T) {
	s := newThen(t)
	one, other := s.comes(0), s.submit(saves("", 0, 1), unit.Hour)
	both := s.comes(0, "j1", "j2")
	s.later(5 * unit.Minute)
	s.ask(engine.Requeue, one)
	s.later(5 * unit.Minute)
	s.is(one, plan.Finished)
	s.is(other, plan.Active)
	s.is(both, plan.Blocked)
	s.later(unit.Hour)
	s.is(both, plan.Finished)
}

// TestAfterAnything: whatever is submitted, cancelled and run again, who waits for others waits for as many as have not
// ended, nobody else does, and all end; across restarts.
func TestAfterAnything(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		s := newThen(t)
		counted := func() {
			state := s.e.State()
			waits := make([]int32, len(state.Jobs))
			for i := range state.Links {
				l := state.Links[i]
				over, bad := int32(0), int32(0)
				for id := l.Before; l.Of(id); id++ {
					if p := state.Jobs[id].Phase; p.Over() {
						if over++; p != plan.Finished {
							bad++
						}
					}
				}
				if l.Over != over || l.Bad != bad {
					t.Fatalf("%+v: %d have ended, %d of them badly", l, over, bad)
				}
				if l.Fate() == plan.Open {
					waits[l.After]++
				}
			}
			for id := range state.Jobs {
				if j := &state.Jobs[id]; (j.Phase == plan.Blocked) != (j.Blockers > 0) && !j.Phase.Over() || j.Phase == plan.Blocked && j.Blockers != waits[id] {
					t.Fatalf("%s is %s, for %d of %d", state.Names[id], j.Phase, j.Blockers, waits[id])
				}
			}
		}
		var names []string
		for range rapid.IntRange(2, 30).Draw(t, "acts") {
			switch rapid.IntRange(0, 4).Draw(t, "act") {
			case 0, 1:
				var after []string
				for k := rapid.IntRange(0, 2).Draw(t, "after"); k > 0 && len(names) > 0; k-- {
					text := rapid.SampledFrom([]string{"", "any:", "failed:"}).Draw(t, "when") + rapid.SampledFrom(names).Draw(t, "whom")
					after = append(after, text)
				}
				n := rapid.Int32Range(0, 3).Draw(t, "array")
				if n == 1 {
					n = 0
				}
				s.comes(n, after...)
				names = append(names, fmt.Sprint("j", s.names))
			case 2, 3:
				kind := rapid.SampledFrom([]engine.Kind{engine.Cancel, engine.Requeue}).Draw(t, "kind")
				if n := s.e.View().Jobs(); n > 0 {
					ev := engine.Event{Kind: kind, Job: plan.JobID(rapid.IntRange(0, n-1).Draw(t, "job"))}
					if s.e.Accept(&ev) == nil {
						s.step(ev)
					}
				}
			case 4:
				s.later(unit.Duration(rapid.IntRange(1, 300).Draw(t, "later")) * unit.Second)
			}
			counted()
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				s.restart()
			}
		}
		s.later(2 * unit.Day)
		counted()
		for id := range plan.JobID(s.e.View().Jobs()) {
			if p := s.e.View().Job(id).Phase; !p.Over() {
				t.Fatalf("%s is %s after two days", s.name(id), p)
			}
		}
	})
}
