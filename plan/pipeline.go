package plan

import (
	"bytes"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Pipeline is a plan of a run's layers. Step 4 says where each later stage begins, in
// which order each stage works, and how long one iteration should take; step 2 in which
// groups they come.
type Pipeline struct {
	Cuts     []int32
	Schedule string // the strategies that were asked
	// Lacks is why they had no plan for the pipeline, which goes as without them then; nothing where they had.
	Lacks     string `json:",omitempty"`
	Iteration unit.Duration
	JSON      []byte // as the trainer reads it
	// Spare is what is believed that the plan leaves of its devices.
	Spare workload.Spare `json:",omitzero"`
	// Groups are the ends of the groups of layers in which the run's memory is brought to
	// its devices, the first of which compute while others come; nil is as a whole.
	Groups []int32 `json:",omitempty"`
	// Layers are what all passes of a microbatch through each layer were believed to take where
	// the plan was made for what was measured of a run; nil is what the job's profile says.
	Layers []unit.Duration `json:",omitempty"`
	// Slow is how many times as long the devices of each rank were believed to take as they should,
	// where the plan was made for that; nil is as they should.
	Slow []float64 `json:",omitempty"`
}

// Title is the schedule as people are shown it.
func (p *Pipeline) Title() string {
	if p.Lacks == "" {
		return p.Schedule
	}
	return p.Schedule + ", which has no plan: " + p.Lacks
}

func (p *Pipeline) equals(q Pipeline) bool {
	return p.Schedule == q.Schedule && p.Lacks == q.Lacks && p.Iteration == q.Iteration && p.Spare.Equal(q.Spare) && slices.Equal(p.Cuts, q.Cuts) && bytes.Equal(p.JSON, q.JSON) && slices.Equal(p.Groups, q.Groups) && slices.Equal(p.Layers, q.Layers) && slices.Equal(p.Slow, q.Slow)
}
