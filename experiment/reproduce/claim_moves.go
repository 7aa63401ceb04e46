package reproduce

import (
	"fmt"
	"strconv"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// between is the time from one job that comes to the next. Nobody leaves, so all that depends on
// it is who has run for too short a time to be moved.
const between = unit.Minute

// moving packs with the engine, under a composition that decides as it does live: a placer alone
// moves nobody. What is told to stop or to start does so at once.
type moving struct {
	e     *engine.Engine
	now   unit.Time
	asked *asked
	load  unit.Duration // what a run that is moved loses

	moves, starts int     // runs moved, and jobs that they made room for
	price         float64 // device-seconds
}

func newMoving(c *cluster.Cluster, asked *asked, composed catalogue.Composition, env catalogue.Env, load unit.Duration) (*moving, error) {
	built, err := composed.Build(env, false)
	if err != nil {
		return nil, err
	}
	return &moving{e: engine.New(c, built.Scheduler, engine.DefaultPolicy()), asked: asked, load: load}, nil
}

func (m *moving) state() *plan.State { return m.e.State() }

// lets has a job come, and turns it away where it does not start.
func (m *moving) lets(shape int32) (bool, error) {
	m.now = m.now.Add(between)
	m.step(engine.Event{Kind: engine.Submit, Spec: m.jobOf(&m.asked.shapes[shape])})
	id := plan.JobID(m.e.View().Jobs() - 1)
	switch phase := m.e.View().Job(id).Phase; phase {
	case plan.Active:
		return true, nil
	case plan.Waiting:
		m.step(engine.Event{Kind: engine.Cancel, Job: id})
		return false, nil
	default:
		return false, fmt.Errorf("job %d of shape %+v is %s when it has come", id, m.asked.shapes[shape], phase)
	}
}

// jobOf is a job that asks for a shape and saves when asked.
func (m *moving) jobOf(s *plan.Shape) *workload.Job {
	job := &workload.Job{Name: strconv.Itoa(m.e.View().Jobs()), Checkpoint: workload.Checkpoint{OnRequest: true, Load: m.load},
		Resources: workload.Resources{Gang: s.Gang, Devices: s.Devices, Share: unit.Milli(s.Share), CPU: unit.Milli(s.CPU), HostMemory: unit.MiB(s.Host)}}
	models := m.e.View().Cluster().Models
	if s.Models == 1<<len(models)-1 {
		return job
	}
	for i := range models {
		if s.Models&(1<<i) != 0 {
			job.Models = append(job.Models, models[i].Name)
		}
	}
	if job.Models == nil {
		job.Models = []string{"none of these"}
	}
	return job
}

// step has events happen, and what is told because of them.
func (m *moving) step(events ...engine.Event) {
	for len(events) > 0 {
		out := m.e.Step(m.now, events)
		events = nil
		m.count(out.Commit)
		for _, c := range out.Ready {
			switch ev := (engine.Event{Kind: engine.Started, Job: c.Job, Attempt: c.Attempt}); c.Verb {
			case plan.Start:
				events = append(events, ev)
			case plan.Stop:
				ev.Kind, ev.Kept = engine.Stopped, m.now.Sub(m.e.View().Run(c.Run).Began)
				events = append(events, ev)
			}
		}
	}
}

// count adds up the moves of a decision.
func (m *moving) count(c *plan.Commit) {
	if c == nil {
		return
	}
	before := m.moves
	for i := range c.Changes {
		if x := &c.Changes[i]; x.Verb == plan.Stop {
			shape := m.e.View().Shape(x.Job)
			m.moves++
			m.price += x.Price.Seconds() * float64(shape.Milli(shape.Gang)) / 1000
		}
	}
	if m.moves > before {
		m.starts++
	}
}

// figures are what the moves were, and what they cost for each device-hour of what was let in, as
// long as the trace says that it runs.
func (m *moving) figures(into map[string]float64, taken int64) {
	into["moves"], into["starts_by_moves"], into["moves_device_s"] = float64(m.moves), float64(m.starts), m.price
	if m.asked.hours > 0 {
		into["moves_s_per_device_hour"] = m.price / (float64(taken) / 1000 * m.asked.hours)
	}
}
