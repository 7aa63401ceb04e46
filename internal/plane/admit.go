package plane

import (
	"errors"
	"fmt"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// admit returns the events of a request that are to happen, or says what is wrong with
// it; events are accepted already, and names are taken by them. It takes the names of
// the jobs it admits.
func (p *Plane) admit(m *message, events []engine.Event, taken map[string]bool) (accepted []engine.Event, err error) {
	if m.enter != nil {
		if slices.ContainsFunc(events, func(e engine.Event) bool { return e.Kind == engine.Switched }) {
			return nil, errors.New("another strategy was chosen at this moment: look at which, and try again")
		}
		m.events[0].Setting, err = m.enter()
		return m.events, err
	}
	for i := range m.events {
		e := &m.events[i]
		refused := p.acceptable(e, taken)
		if refused == nil {
			accepted = append(accepted, *e)
			p.claim(e.Spec, taken, true)
			continue
		}
		if err = refused; m.each {
			continue
		}
		for k := range accepted {
			p.claim(accepted[k].Spec, taken, false)
		}
		return nil, err
	}
	if len(accepted) > 0 {
		err = nil
	}
	return accepted, err
}

// claim notes that the names of a job, if it is one, are taken, or are not after all.
func (p *Plane) claim(w *workload.Job, taken map[string]bool, are bool) {
	if w == nil {
		return
	}
	set := func(name string) {
		if are {
			taken[name] = true
		} else {
			delete(taken, name)
		}
	}
	set(w.Name)
	set(w.ArrayName())
	for name := range w.Names() {
		set(name)
	}
}

// acceptable says what is wrong with one event, if anything.
func (p *Plane) acceptable(e *engine.Event, taken map[string]bool) error {
	if e.Kind != engine.Submit {
		return p.engine.Accept(e)
	}
	alone := *e.Spec
	if len(alone.After) > 0 { // what was accepted just now is there when this happens
		alone.After = slices.DeleteFunc(slices.Clone(alone.After), func(text string) bool {
			name, _ := workload.ParseAfter(text)
			return taken[name]
		})
	}
	if err := p.engine.Accept(&engine.Event{Kind: engine.Submit, Spec: &alone}); err != nil {
		return err
	}
	if _, is := p.arrays[alone.Name]; is {
		return fmt.Errorf("an array named %q is already there: choose another name", alone.Name)
	}
	at := func(name string) error {
		return fmt.Errorf("a job named %q was submitted at this moment: choose another name", name)
	}
	if taken[alone.Name] {
		return at(alone.Name)
	}
	for name := range alone.Names() {
		if _, is := p.arrays[name]; is {
			return fmt.Errorf("an array named %q is already there: choose another name", name)
		}
		if taken[name] {
			return at(name)
		}
	}
	return nil
}

// keep takes in what is known of jobs that were admitted, by id.
func (p *Plane) keep(jobs []JobInfo) {
	if p.arrays == nil {
		p.arrays = map[string]Array{}
	}
	for i := range jobs {
		if w := jobs[i].Spec; w != nil && w.Copy > 0 {
			a := p.arrays[w.ArrayName()]
			if a.Count++; w.Copy == 1 {
				a = Array{First: plan.JobID(len(p.jobs) + i), Count: 1}
			}
			p.arrays[w.ArrayName()] = a
		}
	}
	p.jobs = append(p.jobs, jobs...)
}
