package engine

import (
	"slices"

	"github.com/musterdl/muster/plan"
)

// noteSaved notes whether a run that was asked to save did. Where it did not, whoever starts in its room has
// to make up for more than was believed.
func noteSaved(s *plan.State, ev *Event, run plan.RunID) {
	j, r := &s.Jobs[ev.Job], &s.Runs[run]
	if !ev.Unsaved {
		if ev.Kept > 0 {
			j.Checkpoint.Answer(true)
		}
		return
	}
	if j.Checkpoint.OnRequest {
		lost := max(0, s.View().Executed(ev.Job)-j.Executed-ev.Kept)
		owe(s, r.Change, (int64(lost)*s.Shapes[j.Shape].Milli(r.Workers)+999)/1000)
	}
	j.Checkpoint.Answer(false)
}

// owe has those who start in the room that a stop leaves make up for so many device-microseconds more.
func owe(s *plan.State, stop, lost int64) {
	for i := range s.Pending {
		p := &s.Pending[i]
		if p.Gone || p.Change.Verb != plan.Start || !slices.Contains(p.Left, stop) {
			continue
		}
		if why := &s.Jobs[p.Change.Job].Reason; why.Code == plan.TookRoomOf {
			why.B += lost
		}
	}
}
