package export

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/pipeline/parallel"
)

// Made is a plan with what it was made for.
type Made struct {
	Model *parallel.Model
	On    *parallel.Devices
	Hosts []string // of the nodes
	*parallel.Candidate
}

// Unable says why a target cannot express a plan, and the sequences that it can.
type Unable struct {
	Why       string
	Sequences []string // none where another sequence would not help
}

// Error is why.
func (u *Unable) Error() string { return u.Why }

func unable(sequences []string, format string, args ...any) error {
	return &Unable{fmt.Sprintf(format, args...), sequences}
}

// alike is the shape of a plan, or why a target, whose launcher makes all pipelines and ranks
// alike, cannot express it.
func (m *Made) alike(target string, sequences []string) (parallel.Shape, error) {
	s, like := m.Plan.Shape()
	switch {
	case !like:
		return s, unable(nil, "%s has like pipelines on all devices in their order, and %v has not: ptd-p plans such ones", target, &m.Plan)
	case !slices.Contains(sequences, s.Sequence.Name):
		return s, unable(sequences, "%s has no sequence %s: it has %v", target, s.Sequence.Name, sequences)
	}
	return s, nil
}

// way names how the layers of a plan run, or says that they run in unlike ways.
func (m *Made) way() (name string, uniform bool) {
	one := &m.Plan.Pipelines[0]
	x := parallel.NewSimulator(m.Model, m.On)
	// Layers that have one way only, as an embedding has, are in every way.
	kind, uniform := m.On.Nodes[m.On.NodeOf(one.Ranks[0].Devices[0])].Kind, true
	for i := range m.Model.Profile.Layers() {
		all, why := x.Ways(i, kind, one.Ranks[0].Tensor, m.Plan.Samples)
		if why != "" || len(all) < 2 || one.Ways == nil {
			continue // it has no choice
		}
		if got := all[one.Ways[i]].Way; name == "" {
			name = got
		} else if got != name {
			uniform = false
		}
	}
	return name, uniform
}

// stages are how many layers each stage has.
func (m *Made) stages() (all []int32) {
	// Cuts hold where stages begin, so the end of the last is added.
	first := int32(0)
	for _, end := range append(slices.Clone(m.Plan.Pipelines[0].Cuts), int32(m.Model.Profile.Layers())) {
		all, first = append(all, end-first), end
	}
	return all
}
