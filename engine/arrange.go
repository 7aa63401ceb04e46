package engine

import (
	"fmt"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Move gives a job a run on the devices it names. A job that runs is stopped, with time
// to save, and goes on there; a job that waits starts there.
type Move struct {
	Job plan.JobID `json:"job"`
	// Attempt is that of the run to come: if anything has happened to the job since the
	// move was planned, it is another.
	Attempt int32   `json:"attempt"`
	Places  []Place `json:"places"`
	// Price is the running time that the stop is expected to cost.
	Price unit.Duration `json:"price_us,omitempty"`
	// Terms are those of a job that waits, DefaultTerms where they are nil, and Pipeline
	// is the plan that they are to name. One that runs keeps its own.
	Terms    *plan.Terms    `json:"terms,omitempty"`
	Pipeline *plan.Pipeline `json:"pipeline,omitempty"`
}

// Place is workers on one node, on the devices that On lists in order; work that has no
// devices lists none.
type Place struct {
	Node    plan.NodeID     `json:"node"`
	Workers int32           `json:"workers"`
	On      []plan.DeviceID `json:"on,omitempty"`
}

// PlacesOf says where a run is.
func PlacesOf(v plan.View, run plan.RunID) []Place {
	var places []Place
	perWorker, grants := max(1, int(v.Shape(v.Run(run).Job).Devices)), 0
	v.GrantsOf(run, func(g plan.Grant) {
		if n := len(places); n == 0 || places[n-1].Node != g.Node {
			places, grants = append(places, Place{Node: g.Node}), 0
		}
		p := &places[len(places)-1]
		if g.Device != plan.None {
			p.On = append(p.On, g.Device)
		}
		grants++
		p.Workers = int32(grants / perWorker)
	})
	return places
}

// slots are the places as a draft takes them.
func (m *Move) slots() []plan.Slot {
	slots := make([]plan.Slot, 0, len(m.Places))
	for _, p := range m.Places {
		slots = append(slots, plan.Slot{Node: p.Node, Device: plan.None, Workers: p.Workers, On: p.On})
	}
	return slots
}

// acceptMoves checks moves against the state of this moment.
func (e *Engine) acceptMoves(ev *Event) error {
	d := e.state.Edit()
	defer d.Discard()
	return e.move(d, ev)
}

// arrange makes all of the moves or, where one of them does not fit the state any more,
// none. Everything that has to be stopped is told to at once; the starts wait for those
// whose room they take.
func (e *Engine) arrange(ev *Event) {
	d := e.state.Edit()
	if e.move(d, ev) != nil {
		d.Discard()
		return
	}
	changes, _ := d.Commit()
	e.forced = append(e.forced, changes...)
	for i := range changes {
		e.send(&changes[i])
	}
	for i := range ev.Moves {
		e.touch(ev.Moves[i].Job)
	}
	e.why.Room = true
}

// move edits a draft: first all stops, then all starts in their order. The job of the
// event is the one that room is made for.
func (e *Engine) move(d *plan.Draft, ev *Event) error {
	reason := plan.Reason{Code: plan.Defragmented, A: int64(ev.Job)}
	if len(ev.Moves) == 0 {
		return fmt.Errorf("there is nothing to move")
	}
	terms := make([]plan.Terms, len(ev.Moves))
	for i := range ev.Moves {
		m := &ev.Moves[i]
		if !e.valid(m.Job) {
			return fmt.Errorf("there is no job %d", m.Job)
		}
		j := d.Job(m.Job)
		if j.Attempt+1 != m.Attempt {
			return fmt.Errorf("job %s was started or stopped since the moves were planned: plan them again", e.state.Names[m.Job])
		}
		if m.Job == ev.Job {
			continue // it waits, or its start is refused below
		}
		if j.Run == plan.None || d.Run(j.Run).Status != plan.Running {
			return fmt.Errorf("job %s does not run any more: plan the moves again", e.state.Names[m.Job])
		}
		terms[i] = d.Run(j.Run).Terms
		d.Stop(j.Run, reason, m.Price)
	}
	for i := range ev.Moves {
		m, why := &ev.Moves[i], reason
		if m.Job == ev.Job {
			why = plan.Reason{Code: plan.Fits, A: d.Shape(m.Job).Milli(workers(m.Places))}
			terms[i] = m.waitingTerms(d)
		}
		if _, not := d.Start(m.Job, m.slots(), terms[i], why); not.Code != plan.NoReason {
			return fmt.Errorf("job %s does not fit where it was to go any more: plan the moves again", e.state.Names[m.Job])
		}
	}
	return nil
}

// waitingTerms are the terms of a job that waits.
func (m *Move) waitingTerms(d *plan.Draft) plan.Terms {
	t := plan.DefaultTerms()
	if m.Terms != nil {
		t = *m.Terms
	}
	t.Plan.ID = plan.None
	if m.Pipeline != nil {
		t.Plan.ID = d.PlanID(*m.Pipeline)
	}
	return t
}

func workers(places []Place) (n int32) {
	for _, p := range places {
		n += p.Workers
	}
	return n
}
