// Package spread writes the menus of jobs that train a published model: for each kind of device
// of a cluster and each number of workers that the job may have, the plan by which a planner
// would spread the model over them, and how fast that goes. It is asked when a job is submitted,
// outside the cycle that decides; what it answers is kept with the job, and whoever sizes or
// places it goes by that.
//
// What a menu leaves out: workers that are no whole number of nodes, kinds of device without a
// preset, and nodes of a kind that are unlike (the largest counts). A planner is told of racks where none has as
// many nodes as an offer needs, and fills one after the other; of one that would do, but is full, it does not know. A job that is placed otherwise than an offer says has no plan there, and goes as
// fast as its menu says for what is nearest.
package spread

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/objection"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Maker writes menus for a cluster. It may be asked from several goroutines. What was planned
// once is kept: jobs of the same model, batch and sizes share their plans, and so the journal
// has each once.
type Maker struct {
	Cluster   *cluster.Cluster
	Planner   parallel.Planner
	Sequences []parallel.Sequence
	// Declared are the kinds of device, by name, that have no preset. One is asked for when it is first
	// planned for: it may have to be measured.
	Declared map[string]func() (Kind, parallel.Why)
	// Live offers only plans that a run can be told (Tell).
	Live bool

	mu   sync.Mutex
	made map[question]answer
	read map[kept]*parallel.Candidate
}

// Kind is a kind of device, and how models are trained on it.
type Kind struct {
	Device    parallel.Device
	Precision shape.Precision
	State     parallel.State
	// Keeps says that who trains there computes nothing again: plans keep all activations.
	Keeps bool
	// Waits says that who trains there waits at borders (parallel.Model).
	Waits bool
}

// mostKept bounds what is remembered: whoever submits chooses the batches.
const mostKept = 4096

// question is all that a plan depends on.
type question struct {
	model, shape   string
	batch          int
	kind           string
	nodes, perNode int
	out            unit.Mbps
	// perRack is how many nodes a rack has, and rackOut its uplink; 0 is that racks do not count.
	perRack int
	rackOut unit.Mbps
}

type answer struct {
	plan workload.Spread
	why  parallel.Why
	// best is the plan itself, by which another world can judge it.
	best *parallel.Plan
}

// Write gives a job that names a model its menu, and leaves any other as it is; or it says why
// there is no plan. The job is left the kinds of device on which what it asks for has a plan,
// and the sizes that have one on all of these. Rates are relative to what it asks for on the
// first of them.
func (m *Maker) Write(j *workload.Job) *objection.Objection {
	if j.Pipeline.Model == "" {
		return nil
	}
	if _, why := shape.Of(j.Pipeline.Model, j.Pipeline.Shape); why != "" {
		return &objection.Objection{Field: "pipeline.model", Found: string(why)}
	}
	var kinds []string
	var why parallel.Why
	all := sizes(j)
	for kind := range m.Cluster.Models {
		name := m.Cluster.Models[kind].Name
		if len(j.Models) > 0 && !slices.Contains(j.Models, name) {
			continue
		}
		if a := m.plan(j, int32(kind), j.Gang); a.why != "" {
			why = cmp.Or(why, a.why)
			continue
		}
		kinds = append(kinds, name)
		all = slices.DeleteFunc(all, func(n int32) bool { return m.plan(j, int32(kind), n).why != "" })
	}
	if len(kinds) == 0 {
		return &objection.Objection{Field: "pipeline.model", Found: fmt.Sprintf("no plan for %s on %d workers of this cluster: %s", j.Pipeline.Model, j.Gang, why),
			Do: "ask for more workers, another batch or a smaller model; muster plan shows what fits"}
	}
	if j.Models = kinds; len(j.Sizes) > 0 {
		j.Sizes = all
	}
	j.Menu = nil
	for _, name := range kinds {
		kind, _ := m.Cluster.ModelID(name)
		for _, workers := range all {
			nodes := int32(1)
			if workers*max(1, j.Devices) > m.perNode(kind) {
				nodes = 2
			}
			j.Menu = append(j.Menu, workload.Offer{Model: name, Workers: workers, Nodes: nodes, Plan: m.plan(j, kind, workers).plan})
		}
	}
	// Who shares links sees what the job asked for sends, as of any job.
	at := slices.IndexFunc(j.Menu, func(o workload.Offer) bool { return o.Workers == j.Gang })
	if sends := j.Menu[at].Plan.Sends; j.Traffic == 0 && sends > 0 {
		kind, _ := m.Cluster.ModelID(j.Menu[at].Model)
		q, _ := m.question(j, kind, j.Gang)
		each := unit.Mbps(max(1, q.perNode/int(max(1, j.Devices)))) // workers of a node
		j.Traffic = (sends + each - 1) / each
	}
	// Rates are relative: the engine knows a job's length as what it takes on what it asks for.
	for i := range j.Menu {
		j.Menu[i].Rate = j.Menu[at].Plan.Step.Seconds() / j.Menu[i].Plan.Step.Seconds()
	}
	return nil
}

// Truly is a job's menu as it would be if the layers and the links were otherwise than was
// believed: each offer's plan, which stays the same, simulated again.
func (m *Maker) Truly(j *workload.Job, layers func(parallel.Profile) parallel.Profile, links float64) []workload.Offer {
	menu := slices.Clone(j.Menu)
	for i := range menu {
		// The plan stays: it was made for what was believed, and is only as good as that.
		o := &menu[i]
		kind, _ := m.Cluster.ModelID(o.Model)
		q, memory := m.question(j, kind, o.Workers)
		x, why := m.simulator(q, memory)
		if why != "" {
			continue
		}
		x.Model.Profile = layers(x.Model.Profile)
		for n := range x.On.Nodes {
			x.On.Nodes[n].Out = unit.Mbps(links * float64(x.On.Nodes[n].Out))
		}
		for n := range x.On.Racks {
			x.On.Racks[n] = unit.Mbps(links * float64(x.On.Racks[n]))
		}
		for k := range x.On.Kinds {
			x.On.Kinds[k].Memory = 0 // it was planned for
		}
		c := parallel.Candidate{Plan: *m.plan(j, kind, o.Workers).best}
		if c.Result, why = x.Simulate(&c.Plan); why == "" {
			o.Rate *= o.Plan.Step.Seconds() / c.Result.Step.Seconds()
			o.Plan.Step, o.Plan.Spare = c.Result.Step, c.Result.Spare(&c.Plan)
			q.links(x, &c, &o.Plan)
		}
	}
	return menu
}

// Doubt is a job's menu in a world in which plans take what measured steps took of what was predicted of them (shape.Draw):
// each offer's step and rate. Where same is set the rate of what the job asks for stays 1, since its length is told by that.
func Doubt(menu []workload.Offer, seed uint64, same bool) []workload.Offer {
	menu = slices.Clone(menu)
	by, of := make([]float64, len(menu)), 1.
	for i := range menu {
		o := &menu[i]
		by[i] = shape.Draw(seed, o.Model, o.Plan.Name, shape.Half)
		if same && o.Rate == 1 && of == 1 {
			of = by[i]
		}
	}
	for i := range menu {
		o := &menu[i]
		o.Rate *= of / by[i]
		o.Plan.Step = unit.Duration(math.Round(float64(o.Plan.Step) * by[i]))
		o.Plan.Shares = slices.Clone(o.Plan.Shares)
		for k := range o.Plan.Shares {
			o.Plan.Shares[k].Step = unit.Duration(math.Round(float64(o.Plan.Shares[k].Step) * by[i]))
		}
	}
	return menu
}

// sizes are the legal numbers of workers that a job may have, ascending.
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
	q, memory := m.question(j, kind, workers)
	if q.nodes == 0 {
		return answer{why: parallel.Why(fmt.Sprintf("%d workers are no whole number of nodes of %s", workers, q.kind))}
	}
	if m.Declared[q.kind] != nil && j.Devices > 1 {
		return answer{why: parallel.Why(fmt.Sprintf("%d devices per worker: a worker on %s is a process with one of them", j.Devices, q.kind))}
	}
	// One question at a time: who asks the same meanwhile finds the answer, and planning leaves
	// the other processors to the control plane.
	m.mu.Lock()
	defer m.mu.Unlock()
	a, seen := m.made[q]
	if !seen {
		if m.made == nil || len(m.made) >= mostKept {
			m.made = map[question]answer{}
		}
		a = m.ask(q, memory)
		m.made[q] = a
	}
	return a
}

// question is what a job asks on so many workers of a kind, and the memory of a device; of no
// nodes where they fill no whole number.
func (m *Maker) question(j *workload.Job, kind, workers int32) (question, unit.MiB) {
	model, most, devices := &m.Cluster.Models[kind], int(m.perNode(kind)), int(workers*max(1, j.Devices))
	q := question{model: j.Pipeline.Model, shape: j.Pipeline.Shape, batch: int(j.Pipeline.Batch), kind: model.Name, perNode: min(devices, most)}
	if q.perNode > 0 && devices%q.perNode == 0 {
		q.nodes = devices / q.perNode
	}
	for i := range m.Cluster.Nodes {
		if n := &m.Cluster.Nodes[i]; n.Model == kind {
			q.out = n.Uplink // like nodes are taken to have like links
		}
	}
	if limits := m.Cluster.RackLimits(); limits != nil {
		nodes := make([]int, len(limits))
		for i := range m.Cluster.Nodes {
			if n := &m.Cluster.Nodes[i]; n.Model == kind {
				nodes[n.Rack]++
			}
		}
		// Like racks are taken to have like links, too.
		if largest := slices.Max(nodes); q.nodes > largest {
			q.perRack, q.rackOut = largest, limits[slices.Index(nodes, largest)]
		}
	}
	return q, model.Memory
}

func (m *Maker) ask(q question, memory unit.MiB) answer {
	x, why := m.simulator(q, memory)
	if why != "" {
		return answer{why: why}
	}
	all, why := m.Planner.Plans(x, parallel.Limits{Sequences: m.Sequences})
	if why != "" {
		return answer{why: why}
	}
	// Of plans that no run can be told of, none is offered: the fastest of the others is.
	best := &all[0]
	for i := range all {
		best, why = &all[i], ""
		if m.Live {
			why = m.untold(best)
		}
		if why == "" {
			break
		}
	}
	if why != "" {
		return answer{why: why}
	}
	text, err := best.Plan.Short()
	if err != nil {
		return answer{why: parallel.Why(err.Error())}
	}
	a := answer{plan: workload.Spread{Name: best.Plan.String(), Shape: string(text), Step: best.Result.Step, Spare: best.Result.Spare(&best.Plan)}, best: &best.Plan}
	q.links(x, best, &a.plan)
	return a
}

// links says what a plan does on the links of its nodes, where it has several.
func (q *question) links(x *parallel.Simulator, c *parallel.Candidate, to *workload.Spread) {
	to.Sends, to.Shares = 0, nil
	if q.nodes < 2 || q.out == 0 {
		return
	}
	most := slices.Max(x.Sent(c))
	// A KiB in a microsecond are 8,192 Mbps.
	if to.Shares = x.Shares(&c.Plan); to.Shares != nil && most > 0 {
		to.Sends = max(1, unit.Mbps(8192*float64(most)/float64(c.Result.Step)))
	}
}

// kind is what is known of a kind of device with so much memory.
func (m *Maker) kind(name string, memory unit.MiB) (k Kind, why parallel.Why) {
	if declared := m.Declared[name]; declared != nil {
		k, why = declared()
		k.Device.Name, k.Device.Memory = name, memory
		return k, why
	}
	k = Kind{Precision: shape.Half, State: parallel.MixedAdam, Waits: true}
	k.Device, why = shape.Like(name, memory, k.Precision)
	return k, why
}

// simulator is one of the question's model on its devices.
func (m *Maker) simulator(q question, memory unit.MiB) (*parallel.Simulator, parallel.Why) {
	kind, why := m.kind(q.kind, memory)
	if why != "" {
		return nil, why
	}
	s, why := shape.Of(q.model, q.shape)
	if why != "" {
		return nil, why
	}
	profile, whys := shape.New(s, kind.Precision)
	if len(whys) > 0 {
		return nil, parallel.Why(whys[0].Error())
	}
	model := &parallel.Model{Name: q.model, Profile: profile, Batch: q.batch, State: kind.State, Waits: kind.Waits}
	if kind.Keeps {
		model.Profile = keeping{profile}
	}
	on := parallel.Even(kind.Device, q.nodes, q.perNode, q.out)
	if q.perRack > 0 {
		for i := range on.Nodes {
			on.Nodes[i].Rack = int32(i / q.perRack)
		}
		on.Racks = slices.Repeat([]unit.Mbps{q.rackOut}, (q.nodes+q.perRack-1)/q.perRack)
		on.Index()
	}
	return parallel.NewSimulator(model, on), ""
}

// keeping is a profile of which each layer runs in its fastest way, which keeps all that it can.
type keeping struct{ parallel.Profile }

// Ways is the first of them.
func (k keeping) Ways(layer int, on *parallel.Device, tensor, samples int) ([]parallel.Layer, parallel.Why) {
	all, why := k.Profile.Ways(layer, on, tensor, samples)
	return all[:min(1, len(all))], why
}
