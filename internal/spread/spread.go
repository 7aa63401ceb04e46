// Package spread writes the menus of jobs that train a published model: for each kind of device
// of a cluster and each number of workers that the job may have, the plan by which a planner
// would spread the model over them, and how fast that goes. It is asked when a job is submitted,
// outside the cycle that decides; what it answers is kept with the job, and whoever sizes or
// places it goes by that.
package spread

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Maker writes menus for a cluster. It may be asked from several goroutines.
type Maker struct {
	Cluster   *cluster.Cluster
	Planner   parallel.Planner
	Sequences []parallel.Sequence

	mu   sync.Mutex
	made map[question]answer
}

// orders are those that a planner chooses from: each is another trade of bubble for memory, and
// cheap to write. Frameworks know them (docs/plan.md).
var orders = [...]string{"1f1b", "interleaved", "zb-h1", "zbv"}

// For is a maker with the planner of a composition or, where it has none, ptd-p.
func For(c *cluster.Cluster, of catalogue.Composition) (*Maker, error) {
	m := &Maker{Cluster: c}
	for _, name := range orders {
		filled, err := fill("sequence: " + name + "\n")
		if err != nil {
			return nil, err
		}
		m.Sequences = append(m.Sequences, parallel.Sequence{Name: name, Order: strategy.In[pipeline.Ordering](filled, pipeline.SequencePart)})
	}
	filled, err := of.Fill(catalogue.Env{})
	if err == nil && filled[parallel.PlannerPart].Strategy == nil {
		filled, err = fill("planner: ptd-p\n")
	}
	if err != nil {
		return nil, err
	}
	m.Planner = strategy.In[parallel.Planner](filled, parallel.PlannerPart)
	return m, nil
}

func fill(text string) (strategy.Filled, error) {
	c, err := catalogue.Parse("the planner", text)
	if err != nil {
		return nil, err
	}
	return c.Fill(catalogue.Env{})
}

// question is all that a plan depends on.
type question struct {
	model          string
	batch          int
	kind           string
	nodes, perNode int
	out            unit.Mbps
}

type answer struct {
	plan workload.Spread
	why  parallel.Why
}

// Write gives a job that names a model its menu, and leaves any other as it is; or it says why
// no size of the job has a plan.
func (m *Maker) Write(j *workload.Job) *objection.Objection {
	if j.Pipeline.Model == "" {
		return nil
	}
	if _, why := shape.Find(j.Pipeline.Model); why != "" {
		return &objection.Objection{Field: "pipeline.model", Found: string(why)}
	}
	var menu []workload.Offer
	var reference unit.Duration // a step on the job's own workers, of the first model that has one
	var why parallel.Why
	for kind := range m.Cluster.Models {
		name := m.Cluster.Models[kind].Name
		if len(j.Models) > 0 && !slices.Contains(j.Models, name) {
			continue
		}
		for _, workers := range sizes(j) {
			a := m.plan(j, int32(kind), workers)
			if a.why != "" {
				why = cmp.Or(why, a.why)
				continue
			}
			if reference == 0 || workers == j.Gang && menu[0].Model == name {
				reference = a.plan.Step
			}
			nodes := int32(1)
			if workers*max(1, j.Devices) > m.perNode(int32(kind)) {
				nodes = 2
			}
			menu = append(menu, workload.Offer{Model: name, Workers: workers, Nodes: nodes, Plan: a.plan})
		}
	}
	if len(menu) == 0 {
		return &objection.Objection{Field: "pipeline.model", Found: fmt.Sprintf("no plan for %s on %d workers of this cluster: %s", j.Pipeline.Model, j.Gang, why),
			Do: "ask for more workers, another batch or a smaller model; muster plan shows what fits"}
	}
	for i := range menu {
		menu[i].Rate = reference.Seconds() / menu[i].Plan.Step.Seconds()
	}
	j.Menu = menu
	return nil
}

// sizes are the numbers of workers that a job may have, ascending.
func sizes(j *workload.Job) []int32 {
	all := append([]int32{j.Gang}, j.Sizes...)
	slices.Sort(all)
	return slices.Compact(all)
}

// perNode is how many devices the largest node of a kind has.
func (m *Maker) perNode(kind int32) (most int32) {
	for i := range m.Cluster.Nodes {
		if n := &m.Cluster.Nodes[i]; n.Model == kind {
			most = max(most, n.Count)
		}
	}
	return most
}

// plan is the fastest plan on so many workers of a kind, on as few nodes as can be.
func (m *Maker) plan(j *workload.Job, kind, workers int32) answer {
	model, most, devices := &m.Cluster.Models[kind], int(m.perNode(kind)), int(workers*max(1, j.Devices))
	q := question{model: j.Pipeline.Model, batch: int(j.Pipeline.Batch), kind: model.Name, perNode: min(devices, most)}
	if most == 0 || devices%q.perNode != 0 {
		return answer{why: parallel.Why(fmt.Sprintf("%d devices are no whole number of nodes of %d", devices, most))}
	}
	q.nodes = devices / q.perNode
	for i := range m.Cluster.Nodes {
		if n := &m.Cluster.Nodes[i]; n.Model == kind {
			q.out = n.Uplink // like nodes are taken to have like links
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a, seen := m.made[q]
	if !seen {
		if m.made == nil {
			m.made = map[question]answer{}
		}
		a = m.ask(q, model.Memory)
		m.made[q] = a
	}
	return a
}

func (m *Maker) ask(q question, memory unit.MiB) answer {
	device, why := deviceLike(q.kind, memory)
	if why != "" {
		return answer{why: why}
	}
	s, why := shape.Find(q.model)
	if why != "" {
		return answer{why: why}
	}
	profile, whys := shape.New(s, shape.Half)
	if len(whys) > 0 {
		return answer{why: whys[0]}
	}
	x := parallel.NewSimulator(&parallel.Model{Name: q.model, Profile: profile, Batch: q.batch, State: parallel.MixedAdam}, parallel.Even(device, q.nodes, q.perNode, q.out))
	all, why := m.Planner.Plans(x, parallel.Limits{Sequences: m.Sequences})
	if why != "" {
		return answer{why: why}
	}
	best := &all[0]
	text, err := best.Plan.Short()
	if err != nil {
		return answer{why: parallel.Why(err.Error())}
	}
	return answer{plan: workload.Spread{Name: best.Plan.String(), Shape: string(text), Step: best.Result.Step}}
}

// deviceLike is the preset that a cluster's device model names: the same but for capitals, or
// the first of those that begin so whose memory is nearest.
func deviceLike(name string, memory unit.MiB) (best parallel.Device, why parallel.Why) {
	off := math.Inf(1)
	for _, known := range shape.Devices() {
		if !strings.HasPrefix(strings.ToLower(known), strings.ToLower(name)) {
			continue
		}
		d, not := shape.Device(known, shape.Half)
		if not != "" {
			why = not
			continue
		}
		if by := math.Abs(float64(d.Memory - memory)); by < off {
			best, off = d, by
		}
	}
	if math.IsInf(off, 1) {
		return best, cmp.Or(why, parallel.Why(fmt.Sprintf("there is no device %q: expected one of %v, or how one of them begins", name, shape.Devices())))
	}
	if memory > 0 {
		best.Memory = memory
	}
	return best, ""
}
