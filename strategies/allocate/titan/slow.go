package titan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/plan"
)

// For many jobs the look-ahead takes longer than a decision may: it is asked for outside,
// and until the answer comes those merge that the last one named.

var (
	_ allocate.Slow        = (*Decider)(nil)
	_ strategy.Remembering = (*Decider)(nil)
)

// join says that a job is to be the guest of another.
type join struct{ Host, Guest int32 }

// mostAsked is how many of the jobs without devices are looked ahead for in one answer.
// Those behind them are in it when they have come to the front.
const mostAsked = 12

// question is what Solve needs to know: the runs, each by its jobs.
type question struct {
	Devices   int32
	DeviceMiB float64
	Runs      [][]asked
}

// asked is a tune as text; Model counts the models of the configuration from 1.
type asked struct {
	ID, Gang             int32
	Model                int     `json:",omitempty"`
	Batch, Steps, Memory float64 `json:",omitempty"`
}

func (t *Decider) outside(jobs []plan.JobID) bool { return len(jobs) > t.atOnce }

// Question asks whom to merge when jobs have come or gone since the last one and any of
// those without devices is of a known model.
func (t *Decider) Question(v plan.View, jobs []plan.JobID) []byte {
	if !t.config.Merge || !t.outside(jobs) || slices.Equal(t.posed, jobs) {
		return nil
	}
	t.posed = append(t.posed[:0], jobs...)
	if !t.known(v, jobs) {
		return nil
	}
	devices, memory := room(v)
	runs, waiting := t.read(v, jobs, devices)
	all, _ := t.config.line(runs, waiting, &t.lineup)
	q := question{Devices: devices, DeviceMiB: memory, Runs: make([][]asked, len(all))}
	for i, g := range all {
		for _, j := range g.jobs {
			a := asked{ID: j.id, Gang: j.gang, Batch: j.batch, Steps: j.steps, Memory: j.memory}
			for m := range t.config.Models {
				if j.model == &t.config.Models[m] {
					a.Model = m + 1
				}
			}
			q.Runs[i] = append(q.Runs[i], a)
		}
	}
	b, err := json.Marshal(q)
	if err != nil {
		panic("titan: " + err.Error()) // plain figures always encode
	}
	return b
}

// known reports whether a job that waits is of a known model.
func (t *Decider) known(v plan.View, jobs []plan.JobID) bool {
	return slices.ContainsFunc(jobs, func(id plan.JobID) bool {
		base := v.ProfileOf(id).Base
		return v.Job(id).Run == plan.None && base != "" && slices.ContainsFunc(t.config.Models, func(m Model) bool { return m.Name == base })
	})
}

// Solve looks ahead for the first in line.
func (t *Decider) Solve(text []byte) ([]byte, error) {
	var q question
	if err := json.Unmarshal(text, &q); err != nil {
		return nil, fmt.Errorf("titan's question: %w", err)
	}
	var runs []*group
	for _, jobs := range q.Runs {
		if len(jobs) == 0 {
			return nil, errors.New("titan's question has a run of nobody")
		}
		g := &group{gang: jobs[0].Gang}
		for _, a := range jobs {
			j := &tune{id: a.ID, gang: a.Gang, batch: a.Batch, steps: a.Steps, memory: a.Memory}
			if a.Model > len(t.config.Models) {
				return nil, errors.New("titan's question is of a model that is not known here")
			}
			if a.Model > 0 {
				j.model = &t.config.Models[a.Model-1]
			}
			g.jobs = append(g.jobs, j)
		}
		runs = append(runs, g)
	}
	_, joins := t.config.merge(runs, t.config.sort(runs, &lineup{}), q.Devices, q.DeviceMiB, mostAsked)
	return json.Marshal(joins)
}

// Learn keeps whom to merge until the next answer; one that cannot be read is none.
func (t *Decider) Learn(reply []byte) {
	if t.joins = t.joins[:0]; json.Unmarshal(reply, &t.joins) != nil {
		t.joins = nil
	}
}

// together fills the devices as plan does, with the merges of an answer: of those who
// still find no room themselves, where the host still goes before them.
func (c *Config) together(all []*group, joins []join, devices int32, deviceMiB float64, in *lineup) []*group {
	free, merged := devices, false
	for i := 0; i < len(all) && len(joins) > 0; i++ {
		if g := all[i]; g.gang <= free {
			free -= g.gang
			continue
		} else if len(g.jobs) > 1 {
			continue
		}
		guest := all[i].jobs[0]
		at := slices.IndexFunc(joins, func(p join) bool { return p.Guest == guest.id })
		if at < 0 {
			continue
		}
		k := slices.IndexFunc(all[:i], func(g *group) bool { return g.jobs[0].id == joins[at].Host })
		if k >= 0 && all[k].fits(guest, deviceMiB) {
			all[k].jobs, merged = append(all[k].jobs, guest), true
			all = slices.Delete(all, i, i+1)
			i--
		}
	}
	if merged {
		c.sort(all, in)
	}
	return in.fill(all, devices)
}

// Remember encodes the last answer.
func (t *Decider) Remember() []byte {
	b := figures.PutCount(nil, len(t.joins))
	for _, p := range t.joins {
		b = figures.Put(b, int64(p.Host), int64(p.Guest))
	}
	return b
}

// Recall reads what Remember wrote.
func (t *Decider) Recall(memory []byte) error {
	t.joins, t.posed = nil, nil
	r := figures.Read(memory)
	for range r.Counted {
		t.joins = append(t.joins, join{int32(r.Next()), int32(r.Next())})
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of titan: %w", err)
	}
	return nil
}
