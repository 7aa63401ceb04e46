package parallel

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/musterdl/muster/pipeline"
)

// Plan spreads a model over devices.
type Plan struct {
	Samples   int        `json:"samples"` // of one microbatch
	Sequence  Sequence   `json:"sequence"`
	Pipelines []Pipeline `json:"pipelines"` // copies of the model, which share the batch
}

// Sequence is an order of passes and its name.
type Sequence struct {
	Name  string
	Order pipeline.Ordering
}

// MarshalText writes a sequence as its name.
func (s Sequence) MarshalText() ([]byte, error) { return []byte(s.Name), nil }

// UnmarshalText reads the name alone: whoever knows the sequences adds the order.
func (s *Sequence) UnmarshalText(text []byte) error {
	*s = Sequence{Name: string(text)}
	return nil
}

// Pipeline is one copy of the model.
type Pipeline struct {
	Microbatches int    `json:"microbatches"`
	Ranks        []Rank `json:"ranks"`
	// Cuts hold the first layer of each stage but the first. The sequence says on which rank a
	// stage stands; it may want several on each.
	Cuts []int32 `json:"cuts"`
	// Ways are how each layer runs, of those that its profile names; none is the first for all.
	Ways []int8 `json:"ways,omitempty"`
}

// Rank is one place in a pipeline. Each of its replicas, of so many devices, takes its part of
// the samples of a microbatch.
type Rank struct {
	Tensor   int     `json:"tensor"`
	Replicas int     `json:"replicas"`
	Devices  []int32 `json:"devices"`
	// Experts is over how many copies of the rank, neighbours in the plan, the experts of its layers are
	// spread; of 0 or 1 each copy has them all.
	Experts int `json:"experts,omitempty"`
}

// Shape is a plan of like pipelines.
type Shape struct {
	Sequence     Sequence `json:"sequence"`
	Samples      int      `json:"samples"`
	Microbatches int      `json:"microbatches"`
	Tensor       int      `json:"tensor"`
	Ranks        int      `json:"ranks"`
	Copies       int      `json:"copies"`
	// Apart is in how many groups the copies stand, each on devices of its own, so that no pipeline
	// leaves those; 0 is one.
	Apart   int     `json:"apart,omitempty"`
	Experts int     `json:"experts,omitempty"` // as of a rank
	Cuts    []int32 `json:"cuts,omitempty"`
	Ways    []int8  `json:"ways,omitempty"`
}

// Plan puts the pipelines on the first devices. The devices of a layer are neighbours, then
// come those of the other copies of the stage, then those of the next stage: what talks most
// is nearest, and copies of a small model share nodes. So it is in each group of copies that stand apart.
func (s *Shape) Plan() Plan {
	beside := s.Copies / max(1, s.Apart) // of a group
	p := Plan{Samples: s.Samples, Sequence: s.Sequence, Pipelines: make([]Pipeline, s.Copies)}
	for i := range p.Pipelines {
		one := Pipeline{Microbatches: s.Microbatches, Cuts: s.Cuts, Ways: s.Ways, Ranks: make([]Rank, s.Ranks)}
		for r := range one.Ranks {
			devices := make([]int32, s.Tensor)
			for d := range devices {
				devices[d] = int32(((i/beside*s.Ranks+r)*beside+i%beside)*s.Tensor + d)
			}
			one.Ranks[r] = Rank{Tensor: s.Tensor, Replicas: 1, Devices: devices, Experts: s.Experts}
		}
		p.Pipelines[i] = one
	}
	return p
}

// Short is a plan as it is kept: its shape, where that says it all, or the whole plan; JSON.
func (p *Plan) Short() ([]byte, error) {
	if s, like := p.Shape(); like {
		return json.Marshal(&s)
	}
	return json.Marshal(p)
}

// On is the plan with other devices in the place of those that it numbers from 0: a plan is made for
// so many devices of a kind, and carried out on some of them.
func (p *Plan) On(devices []int32) Plan {
	other := *p
	other.Pipelines = slices.Clone(p.Pipelines)
	for i := range other.Pipelines {
		one := &other.Pipelines[i]
		one.Ranks = slices.Clone(one.Ranks)
		for r := range one.Ranks {
			one.Ranks[r].Devices = slices.Clone(one.Ranks[r].Devices)
			for k, d := range one.Ranks[r].Devices {
				one.Ranks[r].Devices[k] = devices[d]
			}
		}
	}
	return other
}

// Shape is what a plan of like pipelines on the first devices is made from, and whether it is one.
func (p *Plan) Shape() (Shape, bool) {
	one := p.Pipelines[0]
	s := Shape{Sequence: p.Sequence, Samples: p.Samples, Microbatches: one.Microbatches, Tensor: one.Ranks[0].Tensor, Ranks: len(one.Ranks), Copies: len(p.Pipelines), Experts: one.Ranks[0].Experts, Cuts: one.Cuts, Ways: one.Ways}
	if s.Ranks > 1 {
		// The second rank comes behind those of the first that are in its group.
		if beside := int(one.Ranks[1].Devices[0]) / s.Tensor; beside > 0 && beside < s.Copies && s.Copies%beside == 0 {
			s.Apart = s.Copies / beside
		}
	}
	like := s.Plan()
	return s, reflect.DeepEqual(like.Pipelines, p.Pipelines)
}

// Devices are all devices of a plan, in order.
func (p *Plan) Devices() (all []int32) {
	for _, one := range p.Pipelines {
		for _, r := range one.Ranks {
			all = append(all, r.Devices...)
		}
	}
	slices.Sort(all)
	return all
}

// Batch is how many samples a step takes.
func (p *Plan) Batch() (samples int) {
	for _, one := range p.Pipelines {
		samples += one.Microbatches * p.Samples
	}
	return samples
}

// String is a plan as people write it, such as "tp8 pp12 dp32 zbv m64", or "tp4 ep8 pp8 dp16 1f1b m32" where experts
// are spread; of unlike pipelines, such as "2*pp3,4*pp4", it says how many there are, and from how many to how many
// microbatches they take.
func (p *Plan) String() string {
	first := p.Pipelines[0]
	like, even := true, true
	fewest, most := first.Microbatches, first.Microbatches
	for _, one := range p.Pipelines {
		like = like && len(one.Ranks) == len(first.Ranks) && slices.Equal(one.Cuts, first.Cuts)
		fewest, most = min(fewest, one.Microbatches), max(most, one.Microbatches)
		for _, r := range one.Ranks {
			even = even && r.Tensor == first.Ranks[0].Tensor && r.Replicas == first.Ranks[0].Replicas
		}
	}
	var b strings.Builder
	switch {
	case like && even:
		fmt.Fprintf(&b, "tp%d ", first.Ranks[0].Tensor)
		if e := first.Ranks[0].Experts; e > 1 {
			fmt.Fprintf(&b, "ep%d ", e)
		}
		fmt.Fprintf(&b, "pp%d dp%d ", len(first.Ranks), len(p.Pipelines)*first.Ranks[0].Replicas)
	case like:
		for i, r := range first.Ranks {
			fmt.Fprintf(&b, "%stp%dx%d", strings.Repeat(",", min(i, 1)), r.Tensor, r.Replicas)
		}
		fmt.Fprintf(&b, " dp%d ", len(p.Pipelines))
	default:
		for i := 0; i < len(p.Pipelines); {
			ranks, from := len(p.Pipelines[i].Ranks), i
			for i < len(p.Pipelines) && len(p.Pipelines[i].Ranks) == ranks {
				i++
			}
			if from > 0 {
				b.WriteByte(',')
			}
			if i-from > 1 {
				fmt.Fprintf(&b, "%d*", i-from)
			}
			fmt.Fprintf(&b, "pp%d", ranks)
		}
		b.WriteByte(' ')
	}
	fmt.Fprintf(&b, "%s m%d", p.Sequence.Name, fewest)
	if most > fewest {
		fmt.Fprintf(&b, "-%d", most)
	}
	if p.Samples > 1 {
		fmt.Fprintf(&b, "x%d", p.Samples)
	}
	return b.String()
}

// Check says what is wrong with a plan for a model on devices.
func (p *Plan) Check(m *Model, on *Devices) Why {
	if p.Samples < 1 || len(p.Pipelines) == 0 || p.Sequence.Order == nil {
		return whyf("microbatches of %d samples, %d pipelines, sequence %q: expected at least 1 of each and a sequence", p.Samples, len(p.Pipelines), p.Sequence.Name)
	}
	if got := p.Batch(); got != m.Batch {
		return whyf("the pipelines take %d samples a step: expected the batch of %d", got, m.Batch)
	}
	taken := make([]bool, on.Len())
	for i, one := range p.Pipelines {
		if len(one.Ranks) == 0 || one.Ways != nil && len(one.Ways) != m.Profile.Layers() {
			return whyf("pipeline %d: %d ranks, ways of %d layers: expected at least 1, and none or %d", i, len(one.Ranks), len(one.Ways), m.Profile.Layers())
		}
		for r, rank := range one.Ranks {
			if rank.Tensor < 1 || rank.Replicas < 1 || len(rank.Devices) != rank.Tensor*rank.Replicas || p.Samples%rank.Replicas != 0 {
				return whyf("pipeline %d, rank %d: tensor %d, %d replicas, %d devices, microbatches of %d samples: expected tensor times replicas devices, and samples that the replicas divide",
					i, r, rank.Tensor, rank.Replicas, len(rank.Devices), p.Samples)
			}
			for _, d := range rank.Devices {
				if d < 0 || int(d) >= on.Len() || taken[d] {
					return whyf("pipeline %d, rank %d: device %d is not there or taken twice", i, r, d)
				}
				taken[d] = true
			}
			for group := range slices.Chunk(rank.Devices, rank.Tensor) {
				for _, d := range group {
					if on.NodeOf(d) != on.NodeOf(group[0]) {
						return whyf("pipeline %d, rank %d: tensor %d over several nodes: expected all in one", i, r, rank.Tensor)
					}
				}
			}
		}
	}
	return p.checkExperts(m, on)
}
