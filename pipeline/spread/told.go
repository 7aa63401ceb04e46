package spread

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// kept is a plan as an offer keeps it, and what it was asked for.
type kept struct {
	question
	text string
}

// Read makes the plan of an offer for so many workers of a kind again from the shape that is kept of it,
// with what it takes as is believed now; or it says why there is none. Nobody changes the answer.
func (m *Maker) Read(j *workload.Job, kind, workers int32, text string) (*parallel.Candidate, parallel.Why) {
	q, memory := m.question(j, kind, workers)
	m.mu.Lock()
	defer m.mu.Unlock()
	key := kept{q, text}
	if c, seen := m.read[key]; seen {
		return c, ""
	}
	s, why := m.shape(text)
	if why != "" {
		return nil, why
	}
	if q.nodes == 0 {
		return nil, parallel.Why(fmt.Sprintf("%d workers are no whole number of nodes of %s", workers, q.kind))
	}
	x, why := m.simulator(q, memory)
	if why != "" {
		return nil, why
	}
	all, why := x.Candidates(s.Plan())
	if why != "" {
		return nil, why
	}
	if m.read == nil || len(m.read) >= mostKept {
		m.read = map[kept]*parallel.Candidate{}
	}
	m.read[key] = &all[0]
	return &all[0], ""
}

// shape reads what is kept of a plan, with the order of its sequence.
func (m *Maker) shape(text string) (s parallel.Shape, why parallel.Why) {
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return s, parallel.Why(fmt.Sprintf("what is kept of the plan is no shape: %v", err))
	}
	return s, m.known(&s)
}

// known puts the order in a shape that names its sequence, or says why it cannot be made, where
// it comes from another program.
func (m *Maker) known(s *parallel.Shape) parallel.Why {
	at := slices.IndexFunc(m.Sequences, func(q parallel.Sequence) bool { return q.Name == s.Sequence.Name })
	if at < 0 {
		return parallel.Why(fmt.Sprintf("no sequence %q can be carried out here", s.Sequence.Name))
	}
	if s.Sequence = m.Sequences[at]; min(s.Samples, s.Microbatches, s.Tensor, s.Ranks, s.Copies) < 1 {
		return "what is kept of the plan has no size of at least 1 of each"
	}
	return ""
}

// untold says why no run can be told of a plan.
func (m *Maker) untold(c *parallel.Candidate) parallel.Why {
	s, like := c.Plan.Shape()
	if !like {
		return parallel.Why(fmt.Sprintf("the planner's %v has unlike pipelines, of which no run can be told", &c.Plan))
	}
	if why := m.known(&s); why != "" {
		return why
	}
	_, why := c.Staged()
	return why
}

// Tell is what a run is told of the plan of its offer, as JSON: the stages, orders and routes that the
// plan's shape stands for, the shape itself, and the model. That is written here alone, so that the
// journal keeps the shape.
func (m *Maker) Tell(j *workload.Job, kind, workers int32, text string) ([]byte, parallel.Why) {
	c, why := m.Read(j, kind, workers, text)
	if why != "" {
		return nil, why
	}
	told := shape.Told{Batch: int(j.Pipeline.Batch)}
	if told.Plan, why = c.Staged(); why != "" {
		return nil, why
	}
	model, why := shape.Of(j.Pipeline.Model, j.Pipeline.Shape)
	if why != "" {
		return nil, why
	}
	sizes, _ := c.Plan.Shape()
	told.Model, told.Shape = &model, &sizes
	data, err := json.Marshal(told)
	if err != nil {
		return nil, parallel.Why(err.Error())
	}
	return data, ""
}
