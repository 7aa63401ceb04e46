package taskgraph

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Wait is what a task on the critical path waited for.
type Wait uint8

// What a task may have waited for.
const (
	Nothing     Wait = iota // it started at once
	Predecessor             // the end of the task before it on the path
	Wire                    // the arrival of the transfer before it
	Room                    // the task before it to leave a resource that both need
)

// Step is a task on the critical path.
type Step struct {
	Task int32
	Wait Wait
	// Resource is what it had to wait for room on; -1 where it waited for none.
	Resource int32
}

// critical follows back what each task waited for.
func (c *clock) critical() (path []Step) {
	t := int32(slices.Index(c.line.End, unit.Time(c.line.Makespan)))
	for t >= 0 {
		step := Step{Task: t, Resource: -1}
		w := c.tasks[t].waited
		switch before := max(w, -w) - 1; {
		case w == 0:
		case w < 0:
			step.Wait, step.Resource = Room, c.shared(t, before)
		case c.routes[c.g.Tasks[before].Resource].fluid:
			step.Wait = Wire
		default:
			step.Wait = Predecessor
		}
		path = append(path, step)
		t = max(w, -w) - 1
	}
	slices.Reverse(path)
	return path
}

// shared is the first serial resource that two tasks need.
func (c *clock) shared(a, b int32) int32 {
	others := c.routes[c.g.Tasks[b].Resource].serial
	serial := c.routes[c.g.Tasks[a].Resource].serial
	return serial[slices.IndexFunc(serial, func(r int32) bool { return slices.Contains(others, r) })]
}
