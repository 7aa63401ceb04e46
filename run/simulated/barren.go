package simulated

import (
	"fmt"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// barren counts what comes to nothing since a job last ended. A history with more of it
// than barrenMost, and ten for every device, would go on for ever.
type barren struct {
	commits int
	asked   int // decisions that changed nothing, when nothing else was to come
}

const barrenMost = 100_000

// goesOn ends a history in which nothing gets on, by an error that says who is to blame.
func (s *Simulation) goesOn(at unit.Time, events []engine.Event, out *engine.Out) error {
	v := s.engine.View()
	most := barrenMost + 10*v.Devices()
	switch {
	case out.Commit != nil:
		s.barren.commits++
	case s.config.Until == 0 && s.next.done && len(s.config.Later) == 0 && s.queue.news == 0:
		s.barren.asked++
	}
	switch b := s.barren; {
	case b.commits > most:
		return fmt.Errorf("at %s: no job has ended in the last %d commits: jobs keep displacing each other and lose their work; let them checkpoint", unit.Duration(at), b.commits)
	case b.asked > most:
		return fmt.Errorf("at %s: %s was asked %d times since a job last ended, with nothing else to come, and changed nothing; it was asked last because %s, with %s, and wants to be asked again at %s: let it start one of them, or not ask to be asked again",
			unit.Duration(at), s.strategy(), b.asked, occasion(events), left(v), unit.Duration(out.Wake))
	}
	return nil
}

// strategy is what errors call the strategy.
func (s *Simulation) strategy() string {
	if s.config.Strategy == "" {
		return "the strategy"
	}
	return "the strategy " + s.config.Strategy
}

// occasion says for what a decision was asked for.
func occasion(events []engine.Event) string {
	if len(events) == 0 {
		return "the instant came that it had named"
	}
	return fmt.Sprintf("it was told of %d events, the first of kind %s", len(events), events[0].Kind)
}

// left says who has not ended.
func left(v plan.View) string {
	waiting, others, first := 0, 0, ""
	for id := range plan.JobID(v.Jobs()) {
		switch p := v.Job(id).Phase; {
		case p.Over():
			continue
		case p.Waits():
			waiting++
		default:
			others++
		}
		if first == "" {
			first = v.Name(id)
		}
	}
	return fmt.Sprintf("%d jobs waiting and %d not (the first is %s)", waiting, others, first)
}
