package shadow

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// asking is what a shadow is asked with: an engine of its own, which goes along as long
// as it decides what was decided, to the byte. Where it would do otherwise it is put back
// to where the cluster is, with its caches built anew from that as after a restart; what
// it noted itself it keeps.
type asking struct {
	state  plan.State
	engine *engine.Engine // over the state; nil has to be put back
	mirror *plane.Mirror  // that it goes along with
	active bool           // its own strategy decides

	memory []byte
	claims []plan.Claim
	own    []own // by job
}

// own is what a strategy keeps of a job in the state.
type own struct {
	memo     [2]int64
	estimate unit.Duration
}

// worthAsking reports whether a batch could have been decided about: not where drivers
// only told how far runs are, and nothing came of it.
func worthAsking(events []engine.Event, commits []store.Record) bool {
	for i := range events {
		if events[i].Kind != engine.Observed {
			return true
		}
	}
	return len(commits) > 0
}

// ask lets a strategy decide a batch, and says what it would do. Of the strategy that
// decides itself that is what it does, by definition: it is not asked, and ok is false.
func (a *asking) ask(c catalogue.Composition, m *plane.Mirror, next *plane.Next) (would []string, ok bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.engine = nil
			err = fmt.Errorf("it panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if c.Text == next.Strategy.Text {
		a.engine, a.active = nil, true
		return nil, false, nil
	}
	if a.engine == nil || a.mirror != m {
		if err := a.putBack(c, m, next); err != nil {
			return nil, false, err
		}
	}
	out := a.engine.Step(next.At, next.Events)
	v := a.state.View()
	would = deeds(out.Commit, v)
	var line []byte
	if out.Commit != nil {
		line = out.Commit.AppendJSON(nil, v)
	}
	if !bytes.Equal(line, next.Line) {
		a.note(&a.state)
		a.engine = nil
	}
	return would, true, nil
}

// putBack begins with the state as it is, in which what the shadow noted stands in place
// of what the active strategy did. No lease is the shadow's: all ended when the strategy
// before was left.
func (a *asking) putBack(c catalogue.Composition, m *plane.Mirror, next *plane.Next) error {
	built, err := c.Build(catalogue.Env{Seed: next.Seed}, false)
	if err != nil {
		return err
	}
	if a.engine != nil {
		a.note(&a.state) // it went along with a mirror that is no more
	}
	if a.active {
		a.note(m.State()) // its strategy decided until now
		a.active = false
	}
	m.State().CopyInto(&a.state)
	s := &a.state
	for i := range s.Jobs {
		if i < len(a.own) {
			s.Jobs[i].Memo, s.Jobs[i].Estimate = a.own[i].memo, a.own[i].estimate
		} else {
			s.Jobs[i].Memo = [2]int64{}
		}
	}
	for i := range s.Runs {
		s.Runs[i].Until = unit.Never
	}
	s.Memory, s.Claims = a.memory, a.claims
	a.engine, a.mirror = engine.Restore(s, built.Scheduler, next.Policy), m
	return nil
}

// note keeps what a strategy noted in a state.
func (a *asking) note(s *plan.State) {
	a.own = a.own[:0]
	for i := range s.Jobs {
		a.own = append(a.own, own{s.Jobs[i].Memo, s.Jobs[i].Estimate})
	}
	a.memory, a.claims = s.Memory, s.Claims
}

// deed is what a change does: "start a on node0:0,1", "stop b".
func deed(c *plan.Change, v plan.View) string {
	text := c.Verb.String()
	if c.Job == plan.None {
		return text
	}
	text += " " + v.Name(c.Job)
	if c.Verb != plan.Start {
		return text
	}
	var b strings.Builder
	for i, p := range engine.PlacesOf(v, c.Run) {
		if i == 0 {
			b.WriteString(" on")
		}
		b.WriteString(" " + v.Cluster().Nodes[p.Node].Name)
		for k, id := range p.On {
			b.WriteByte(":,"[min(k, 1)])
			b.WriteString(strconv.Itoa(int(id) - int(v.Cluster().Nodes[p.Node].First)))
		}
	}
	return text + b.String()
}
