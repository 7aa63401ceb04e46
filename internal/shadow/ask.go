package shadow

import (
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/unit"
)

// asking is what a shadow is asked with: a copy of the state, and what it noted itself
// when it was asked before.
type asking struct {
	state  plan.State
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

// ask lets a strategy decide a batch on a copy of the state before it. Its caches are
// built anew from that, as after a restart, so nothing of what it decided earlier and
// was not done misleads it.
func (a *asking) ask(c catalogue.Composition, before *plan.State, next *plane.Next) (would []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v\n%s", p, debug.Stack())
		}
	}()
	built, err := c.Build(catalogue.Env{Seed: next.Seed}, false)
	if err != nil {
		return nil, err
	}
	before.CopyInto(&a.state)
	if c.Text != next.Strategy.Text {
		a.dress()
	}
	out := engine.Restore(&a.state, built.Scheduler, next.Policy).Step(next.At, next.Events)
	would = deeds(out.Commit, a.state.View())
	a.note()
	return would, nil
}

// dress puts in the state what the shadow noted, in place of what the active strategy
// did. No lease is the shadow's: all ended when the strategy before was left.
func (a *asking) dress() {
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
}

// note keeps what the shadow noted.
func (a *asking) note() {
	s := &a.state
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
