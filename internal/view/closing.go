package view

import (
	"fmt"
	"iter"
	"strings"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/calendar"
)

// Closing is what a maintenance window of a node means to jobs.
type Closing struct {
	// Stops are those that run there and are not expected to be over when it begins: they are stopped then.
	Stops Some `json:"stops"`
	// Loses are those of them that lose all that they did.
	Loses Some `json:"loses"`
	// Waits are those that wait and will not start there before it, as nobody knows that they are over by then and they would lose
	// what they did.
	Waits Some `json:"waits"`
}

// Some are jobs, of which the first are named.
type Some struct {
	Count int      `json:"count"`
	Jobs  []string `json:"jobs"`
}

const mostNamed = 20

func (s *Some) add(name string) {
	if s.Count++; s.Count <= mostNamed {
		s.Jobs = append(s.Jobs, name)
	}
}

// String names some of them.
func (s *Some) String() string {
	text := count(s.Count, "job", "jobs") + ": " + strings.Join(s.Jobs, ", ")
	if more := s.Count - len(s.Jobs); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ClosingOf is what it would mean to the jobs that have not ended if a node were closed from an instant on.
func ClosingOf(v plan.View, node plan.NodeID, from unit.Time, live iter.Seq[plan.JobID]) *Closing {
	c := &Closing{Stops: Some{Jobs: []string{}}, Loses: Some{Jobs: []string{}}, Waits: Some{Jobs: []string{}}}
	for id := range live {
		j := v.Job(id)
		switch {
		case j.Phase == plan.Active && on(v, j.Run, node) && calendar.Told(v, j.Run) > from:
			c.Stops.add(v.Name(id))
			if !j.Checkpoint.Saves() {
				c.Loses.add(v.Name(id))
			}
		case j.Phase == plan.Waiting && v.Allows(v.Shape(id), node) && from > v.Now():
			if end := v.Now().Add(calendar.Length(v, id, v.Shape(id).Gang)); min(end, calendar.Into(v, id)) > from {
				c.Waits.add(v.Name(id))
			}
		}
	}
	return c
}

// on reports whether a run has something of a node.
func on(v plan.View, run plan.RunID, node plan.NodeID) (is bool) {
	v.GrantsOf(run, func(g plan.Grant) { is = is || g.Node == node })
	return is
}

// Lines say it, one fact each.
func (c *Closing) Lines() (lines []string) {
	if c.Stops.Count > 0 {
		lines = append(lines, "will be stopped when it begins, and goes on elsewhere or behind it: "+c.Stops.String())
	}
	if c.Loses.Count > 0 {
		lines = append(lines, "of these, loses all that it did, as it saves nothing: "+c.Loses.String())
	}
	if c.Waits.Count > 0 {
		lines = append(lines, "will not start there before it, as nobody knows that it is over by then (--estimate, --time-limit) and it would lose what it did: "+c.Waits.String())
	}
	if len(lines) == 0 {
		lines = []string{"no job is in the way"}
	}
	return lines
}
