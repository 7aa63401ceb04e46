package reproduce

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// started is a start as its dossier tells it at that moment.
type started struct {
	job    string
	change plan.Change
	notes  []plan.Note
	steps  []view.Step
	// choice says that another node, or another job, could have been taken instead.
	otherNode bool
}

// starts simulates a setup and draws a sample of its starts.
func starts(t *testing.T, s Setup, sample int) []started {
	t.Helper()
	s.Explain = true
	chance := rand.New(rand.NewPCG(1, 0))
	var drawn []started
	seen := 0
	s.Commit = func(v plan.View, c *plan.Commit) {
		for i := range c.Changes {
			if c.Changes[i].Verb != plan.Start {
				continue
			}
			seen++ // every start is as likely as any other to be in the sample
			at := len(drawn)
			if at >= sample {
				if at = chance.IntN(seen); at >= sample {
					continue
				}
			} else {
				drawn = append(drawn, started{})
			}
			drawn[at] = describe(v, c, &c.Changes[i])
		}
	}
	if _, err := Simulate(s); err != nil {
		t.Fatal(err)
	}
	if len(drawn) < sample {
		t.Fatalf("only %d starts happened", len(drawn))
	}
	t.Logf("%d of %d starts", len(drawn), seen)
	return drawn
}

// describe lets the console's words be made of a start.
func describe(v plan.View, c *plan.Commit, change *plan.Change) started {
	s := started{job: v.Name(change.Job), change: *change}
	for _, n := range c.Notes {
		if n.Change == change.ID {
			s.notes = append(s.notes, n)
		}
	}
	entry := plane.Entry{At: v.Now(), Verb: change.Verb.String(), Attempt: change.Attempt, Words: change.Reason.Words(v), Notes: s.notes}
	words := view.StepsOf(v, plane.JobInfo{Dossier: []plane.Entry{entry}}, change.Job)
	s.steps = words.Decisions[0].Steps
	s.otherNode = otherNode(v, change)
	return s
}

// otherNode reports whether another node than the chosen one has room for all of a
// start's workers even after the commit, so that it surely had it before.
func otherNode(v plan.View, c *plan.Change) bool {
	shape := v.Shape(c.Job)
	on := plan.NodeID(plan.None)
	v.GrantsOf(c.Run, func(g plan.Grant) { on = g.Node })
	for id := range plan.NodeID(v.Nodes()) {
		n := v.Node(id)
		if id == on || n.Status != plan.Up || shape.Models&(1<<n.Model) == 0 {
			continue
		}
		idle := int32(0)
		for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
			held := false
			v.GrantsOn(d, func(plan.Grant) { held = true })
			if !held && v.Device(d).Status == plan.Steady {
				idle++
			}
		}
		if idle >= shape.WholeDevices(v.Run(c.Run).Workers) && n.FreeCPU >= shape.CPU*v.Run(c.Run).Workers {
			return true
		}
	}
	return false
}

// TestDossiers: each of a thousand starts says of all six steps what was chosen, what
// was rejected where there was something else, and both numbers, in words too.
func TestDossiers(t *testing.T) {
	for _, c := range []struct{ trace, cluster, strategy string }{
		{"gen:rw-a?jobs=1000", "gpus:15x4", "tiresias"},
		{"gen:rw-l?jobs=1500", "gpus:15x4", "srsf"},
	} {
		t.Run(c.trace, func(t *testing.T) {
			s := Defaults()
			s.Trace, s.Cluster, s.Strategy = c.trace, c.cluster, c.strategy
			alternatives := map[plan.Step]int{}
			for _, one := range starts(t, s, 1000) {
				if problem := one.check(alternatives); problem != "" {
					t.Fatalf("the start of %s, attempt %d: %s\nnotes %+v\nwords %+v", one.job, one.change.Attempt, problem, one.notes, one.steps)
				}
			}
			t.Logf("starts with a rejected alternative, by step: %v", alternatives)
			if alternatives[plan.Allocation] < 100 || alternatives[plan.Scheduling] < 100 {
				t.Errorf("hardly any start had an alternative: %v", alternatives)
			}
		})
	}
}

// check says what is missing in the dossier of a start.
func (s *started) check(alternatives map[plan.Step]int) string {
	by := map[plan.Step]plan.Note{}
	for _, n := range s.notes {
		if _, twice := by[n.Step]; twice {
			return fmt.Sprintf("step %s twice", n.Step)
		}
		by[n.Step] = n
	}
	if len(s.steps) != len(by) {
		return "a note was not put in words"
	}
	for i, step := 0, plan.Profiling; step <= plan.Execution; i, step = i+1, step+1 {
		n, ok := by[step]
		if !ok {
			return fmt.Sprintf("nothing of step %s", step)
		}
		w := s.steps[i]
		if w.Number != int(step) || w.Name == "" || w.Chose == "" || w.Rejected == "" || w.Because == "" {
			return fmt.Sprintf("step %s in words lacks something", step)
		}
		if problem := s.checkStep(n, w, alternatives); problem != "" {
			return fmt.Sprintf("step %s: %s", step, problem)
		}
	}
	return ""
}

// checkStep compares the words of a step with its note where there was an alternative.
func (s *started) checkStep(n plan.Note, w view.Step, alternatives map[plan.Step]int) string {
	names := func(numbers ...string) string {
		for _, number := range numbers {
			if !strings.Contains(w.Because, number) {
				return fmt.Sprintf("%q does not name %s", w.Because, number)
			}
		}
		return ""
	}
	switch n.Step {
	case plan.Allocation:
		if n.Rejected == plan.None {
			if s.otherNode {
				return "another node had room and was not named"
			}
			return ""
		}
		alternatives[n.Step]++
		if !strings.Contains(w.Rejected, "node") {
			return "the rejected node is not named: " + w.Rejected
		}
		return names(fmt.Sprint(n.Won), fmt.Sprint(n.Lost), "against")
	case plan.Scheduling:
		if n.Chosen != int64(s.change.Job) {
			return "another job was chosen than the one that started"
		}
		if n.Rejected == plan.None {
			return ""
		}
		alternatives[n.Step]++
		if w.Rejected == w.Chose {
			return "the job was preferred to itself"
		}
		return names(fmt.Sprint(n.Won), fmt.Sprint(n.Lost), "against")
	case plan.Profiling:
		if n.Rejected > 0 && n.Rejected != n.Chosen {
			alternatives[n.Step]++
			return names(view.Span(unit.Duration(n.Won)), view.Span(unit.Duration(n.Lost)))
		}
	}
	return ""
}
