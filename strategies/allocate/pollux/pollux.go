// Package pollux gives devices to all jobs at once where they are worth most, shares
// kept fair (Pollux, Qiao et al., OSDI 2021; artefact petuum/adaptdl, branch
// osdi21-artifact; status read).
//
// What a job has is worth its speed over that on a fair share; the cluster's worth is
// the harmonic mean over jobs, so the job that fares worst counts most. A change of a
// job's place multiplies its speed by what restarts leave of its time. Once an
// interval the matrix of workers per job and node is searched anew, two jobs that span
// nodes never sharing one, by the artefact's genetic search or, where there are too
// many jobs for it, by a greedy one; the reply names which.
//
// Left out: choosing batches, which is the training loop's part (a job's menu holds the
// best batch of each size), fitting online, which is
// the estimator's part, and growing the cluster. The rule that a job at most doubles what
// it was measured on is off by default (see Config.Double). Pollux knows one kind of device: on several kinds a job is
// taken to have its lowest rate among those it may use. A job that never ran loses
// nothing by starting, where the artefact discounts it by its age.
package pollux

import (
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/allocate/pollux/matrix"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "pollux", System: "Pollux", Step: "allocate", Part: allocate.JointPart, Status: "read",
	Source: "Qiao et al., OSDI 2021; petuum/adaptdl, branch osdi21-artifact",
	Idea:   "search for the matrix of devices per job and node of most goodput, fairly weighted",
	Goal:   "throughput", Challenges: []string{"C4"}, Needs: "rates by workers, on one node and on several (menu)",
	Live:  "resizes by checkpoint and restart; batches are the training loop's",
	Inner: "the harmonic mean over jobs of the predicted speedup over a fair share",
}

// Config tunes the search.
type Config struct {
	// Interval is the time between two decisions.
	Interval unit.Duration `yaml:"interval" above:"0"`
	// Population and Generations bound the genetic search.
	Population  int `yaml:"population" least:"2"`
	Generations int `yaml:"generations" least:"1"`
	// GreedyAbove is the number of jobs from which on the greedy search decides.
	GreedyAbove int `yaml:"greedy-above" least:"0"`
	// Avoid keeps two jobs that span nodes from sharing one.
	Avoid bool `yaml:"avoid-interference"`
	// Double lets a job have at most twice the workers it ever had, one at first, as the
	// artefact does with jobs whose rates it has to measure.
	Double bool `yaml:"double"`
	// Seed draws the genetic search.
	Seed uint64 `yaml:"seed"`
}

// Default returns the published configuration, but that the genetic search ends
// after 20 generations that brought nothing.
func Default() Config {
	return Config{Interval: unit.Minute, Population: 100, Generations: 100, GreedyAbove: 500, Avoid: true}
}

// Policy decides for all jobs at once. The search is put outside as a question, since
// it takes longer than a cycle has; until the reply is here all stays as it is.
type Policy struct {
	config Config
	memory memory
}

// memory is what is kept beside the State.
type memory struct {
	Asked bool
	At    unit.Time // of the last question
	Reply reply
	Had   []had // by job
}

// had is the most workers that a job has had.
type had struct {
	Job     plan.JobID
	Workers int32
}

var (
	_ allocate.Joint       = (*Policy)(nil)
	_ allocate.Rhythm      = (*Policy)(nil)
	_ allocate.Slow        = (*Policy)(nil)
	_ strategy.Remembering = (*Policy)(nil)
)

// New returns the policy; the configuration must be valid.
func New(c Config) *Policy { return &Policy{config: c} }

// Every is the interval.
func (p *Policy) Every() unit.Duration { return p.config.Interval }

// Question describes the jobs and nodes once an interval.
func (p *Policy) Question(v plan.View, jobs []plan.JobID) []byte {
	if len(jobs) == 0 || p.memory.Asked && v.Now() < p.memory.At.Add(p.config.Interval) {
		return nil
	}
	p.widen(v, jobs)
	q := ask(v, jobs, &p.config, p.memory.Had)
	if len(q.Jobs) == 0 {
		return nil
	}
	p.memory.Asked, p.memory.At = true, v.Now()
	return q.encode()
}

// widen takes in what jobs have now, where that bounds what they may have next; who is
// over is forgotten.
func (p *Policy) widen(v plan.View, jobs []plan.JobID) {
	if !p.config.Double {
		return
	}
	before := p.memory.Had
	p.memory.Had = nil
	for _, id := range jobs { // in order of id
		h := had{Job: id}
		if at, ok := slices.BinarySearchFunc(before, id, func(h had, id plan.JobID) int { return int(h.Job) - int(id) }); ok {
			h = before[at]
		}
		if run := v.Job(id).Run; run != plan.None {
			h.Workers = max(h.Workers, v.Run(run).Workers)
		}
		p.memory.Had = append(p.memory.Had, h)
	}
}

// Solve searches.
func (p *Policy) Solve(q []byte) ([]byte, error) {
	asked, err := decodeQuestion(q)
	if err != nil {
		return nil, err
	}
	return asked.solve().encode(nil), nil
}

// Learn takes the reply. One that cannot be read changes nothing.
func (p *Policy) Learn(r []byte) {
	f := figures.Read(r)
	if answer := decodeReply(f); f.End() == nil {
		p.memory.Reply = answer
	}
}

// Wishes are the rows of the last reply. A job that came since waits for the next, one
// that runs without a row goes on, and one that needs no devices has what it asked for.
func (p *Policy) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	rows := p.memory.Reply.Rows
	var slots []plan.Slot // in one piece for all, new each time, since changes keep them
	for _, id := range jobs {
		w := allocate.Wish{Job: id, Reason: plan.Reason{Code: plan.RoundPlan}}
		at, ok := slices.BinarySearchFunc(rows, id, func(r matrix.Row, id plan.JobID) int { return int(r.Job) - int(id) })
		if ok {
			first := len(slots)
			for _, c := range rows[at].Cells {
				w.Workers += c.Workers
				slots = append(slots, plan.Slot{Node: c.Node, Device: plan.None, Workers: c.Workers})
			}
			if len(slots) > first {
				w.Slots = slots[first:len(slots):len(slots)]
			}
		} else if shape := v.Shape(id); shape.Devices == 0 {
			w.Workers = shape.Gang
		} else if run := v.Job(id).Run; run != plan.None {
			w.Workers = v.Run(run).Workers
		}
		into = append(into, w)
	}
	if len(jobs) == 0 {
		return into, unit.Never
	}
	return into, max(v.Now(), p.memory.At).Add(p.config.Interval)
}

// Search names the search that made the last reply: genetic or greedy.
func (p *Policy) Search() string { return p.memory.Reply.Search }
