package engine

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// window adds a maintenance window of a node to the calendar, or takes all of the
// node's out; one that has begun is ended.
func (e *Engine) window(ev *Event) {
	if e.Accept(ev) != nil {
		return
	}
	if ev.Kind == Close {
		e.state.Close(plan.Window{Node: ev.Node, From: max(ev.From, e.state.Now), To: ev.To})
	} else {
		open := slices.ContainsFunc(e.state.Windows, func(w plan.Window) bool { return w.Node == ev.Node && w.Open && !w.Kept })
		e.state.Reopen(ev.Node, unit.Never)
		if open {
			e.node(&Event{Kind: Uncordon, Node: ev.Node})
		}
	}
	e.why.Room = true
}

// nextWindow is when the next maintenance window begins or ends.
func (e *Engine) nextWindow() unit.Time {
	next := unit.Never
	for _, w := range e.state.Windows {
		if w.Open {
			next = min(next, w.To)
		} else {
			next = min(next, w.From)
		}
	}
	return next
}

// turnWindows drains the nodes whose windows begin and opens those whose windows end.
func (e *Engine) turnWindows() {
	if e.nextWindow() > e.state.Now {
		return
	}
	windows := slices.Clone(e.state.Windows)
	for i := range windows {
		if w := &windows[i]; !w.Open && w.From <= e.state.Now && w.To > e.state.Now {
			w.Open, w.Kept = true, e.state.Nodes[w.Node].Status == plan.Cordoned
			e.node(&Event{Kind: Drain, Node: w.Node})
		}
	}
	e.state.Windows = windows
	for _, w := range windows {
		if w.To <= e.state.Now {
			e.state.Windows = slices.DeleteFunc(slices.Clone(e.state.Windows), func(o plan.Window) bool { return o == w })
			if w.Open && !w.Kept {
				e.node(&Event{Kind: Uncordon, Node: w.Node})
			}
		}
	}
	e.why.Room = true
}
