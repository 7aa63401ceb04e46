// Package planning compares plans of a model on devices: what planners choose, what else could
// have been chosen and why it lost, and what the best would take on slower links and with a
// node less.
package planning

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/musterdl/muster/internal/spec"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/overlap"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/pipeline/shape"
)

// Task is what is to be planned.
type Task struct {
	Model  *parallel.Model
	On     *parallel.Devices
	Limits parallel.Limits
	// Gradients says in which messages replicas exchange them; nil is one when all passes are done.
	Gradients overlap.Merger
	// Tokens says in how many chunks they go to experts that are spread; nil is one.
	Tokens overlap.Chunker
	// Cut is how else plans are cut than into times as equal as can be, where a cut was named.
	Cut   pipeline.Partitioner
	Hosts []string // of the nodes
	// Sites are those of the nodes, and PerHour is what a node costs there, in thousandths of a unit of money.
	Sites   *spec.Sites
	PerHour []int32
	// Outlook is what a lost node is priced with.
	Outlook Outlook
	// SimulatedOnly says by sequence why no process here goes by it.
	SimulatedOnly map[string]string
	// Over ends the planning: the best that was found until then is told.
	Over parallel.TimeIsOver
	// Progress is told which planner is asked, of how many. Nil tells nobody.
	Progress func(name string, done, all int)
}

// Named is a planner and what users call it.
type Named struct {
	Name    string
	Planner parallel.Planner
	// Auto says that nobody named it: then it is asked of few devices only.
	Auto bool
	// Sequences are those of which it may choose; none is all that there are.
	Sequences []parallel.Sequence
}

// mostAsked is the most devices for which planners are asked that nobody named: some go through
// plans for each device.
const mostAsked = 16

// plans asks a planner for its plans that have the sizes that were asked for.
func (p *Named) plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	if why := x.Over.Why(); why != "" {
		return nil, why
	}
	if p.Auto && x.On.Len() > mostAsked {
		return nil, parallel.Why(fmt.Sprintf("not asked of more than %d devices unless it is named: add --strategy %s", mostAsked, p.Name))
	}
	if p.Sequences != nil {
		l.Sequences = p.Sequences
	}
	all, why := p.Planner.Plans(x, l)
	all = slices.DeleteFunc(all, func(one parallel.Candidate) bool { return !l.Allow(&one.Plan) })
	if len(all) == 0 {
		why = cmp.Or(why, "none of its plans has the sizes that were asked for")
	}
	return all, why
}

// Cutting is a planner that goes through the grid with a cut of its own.
type Cutting struct{ Cut pipeline.Partitioner }

var _ parallel.Planner = Cutting{}

// Plans goes through the grid.
func (c Cutting) Plans(x *parallel.Simulator, l parallel.Limits) ([]parallel.Candidate, parallel.Why) {
	g := parallel.Grid{Sequences: l.Sequences, Cut: c.Cut}
	all, why := g.Search(x, l)
	return parallel.Pareto(all), why
}

// Row is one plan, or why there is none.
type Row struct {
	Plan string   `json:"plan"`
	By   []string `json:"by,omitempty"` // who chose it
	// StepSec is absent where there is no plan; PeakMiB is known of what did not fit, too.
	StepSec    float64 `json:"step_s,omitempty"`
	MFUPct     float64 `json:"mfu_pct,omitempty"` // absent where the useful operations are not known
	BubblePct  float64 `json:"bubble_pct"`
	ExposedSec float64 `json:"exposed_exchange_s"`
	UpdateSec  float64 `json:"update_s"`
	// Overlap is how long two things go on at once; absent where there is no plan.
	Overlap   *Overlap `json:"overlap,omitempty"`
	PeakMiB   float64  `json:"peak_mib,omitempty"`
	DeviceMiB float64  `json:"device_mib,omitempty"` // the least memory of its devices; absent where it is endless
	// ReserveMiB is the part of that which no plan may count on. InReserve says that the plan holds what programs usually
	// need for themselves, which can only be where that was asked for.
	ReserveMiB float64 `json:"reserve_mib,omitempty"`
	InReserve  bool    `json:"in_reserve,omitempty"`
	// SimulatedOnly says why no process here goes by it, of plans for a job's own stages.
	SimulatedOnly string `json:"simulated_only_because,omitempty"`
	Lost          string `json:"lost_because,omitempty"`
	// Crosses is what goes from site to site, where there are several: stages, copies, both or nothing.
	Crosses string `json:"crosses_sites,omitempty"`

	made *parallel.Candidate
}

// Overlap is how long a rank has two things going on at once in a step, in the mean over the ranks:
// two passes, a pass and a transfer from or to it, two such transfers.
type Overlap struct {
	ComputeComputeSec   float64 `json:"compute_compute_s"`
	ComputeTransferSec  float64 `json:"compute_transfer_s"`
	TransferTransferSec float64 `json:"transfer_transfer_s"`
}

// Comparison is all of them, the best first.
type Comparison struct {
	Model   string `json:"model"`
	Cluster string `json:"cluster,omitempty"`
	Devices int    `json:"devices"`
	Batch   int    `json:"batch"`
	Layers  int    `json:"layers"`
	Rows    []Row  `json:"plans"`
	// Memory is what the ranks of the best hold when they hold most.
	Memory []Held `json:"memory,omitempty"`
	// HalfBandwidthSec is a step of the best over links between nodes of half the bandwidth.
	HalfBandwidthSec float64 `json:"half_bandwidth_step_s,omitempty"`
	// HalfSitesSec is one over links between sites of half the bandwidth; absent where there is one site.
	HalfSitesSec float64 `json:"half_sites_bandwidth_step_s,omitempty"`
	// Sites are where else the model could be trained; absent where there is one site.
	Sites *Places `json:"sites,omitempty"`
	// Lost is what it costs to lose a node of the best; absent where it stands on one.
	Lost *Loss `json:"lost_node,omitempty"`
	// Experience is what measured steps on such devices took, as multiples of what is predicted; absent where none was measured.
	Experience *Experience `json:"measured_over_predicted,omitempty"`
	// Unfinished says that the time for planning was over before all plans had been looked at. Then it is not told what
	// slower links and a lost node would do.
	Unfinished bool `json:"unfinished,omitempty"`

	task *Task
}

// Experience is what so many measured steps took at least and at most.
type Experience struct {
	Device string  `json:"device"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Steps  int     `json:"steps"`
}

// experience is that of the devices, where all are of one kind.
func experience(t *Task) *Experience {
	p, shaped := t.Model.Profile.(*shape.Profile)
	if !shaped || len(t.On.Kinds) != 1 {
		return nil
	}
	e, known := shape.Experienced(t.On.Kinds[0].Name, p.Precision())
	if !known {
		return nil
	}
	return &Experience{Device: t.On.Kinds[0].Name, Low: e.Low, High: e.High, Steps: e.Steps}
}

// Held is what a device of a rank holds at most, in its pipeline.
type Held struct {
	Rank           int     `json:"rank"`
	ParamsMiB      float64 `json:"params_mib"` // with gradients and the state of the optimiser
	VersionsMiB    float64 `json:"versions_mib,omitempty"`
	ActivationsMiB float64 `json:"activations_mib"`
	WaitingMiB     float64 `json:"waiting_mib,omitempty"` // for the gradients of weights
}

// Candidate is the plan of a row; nil is none.
func (r *Row) Candidate() *parallel.Candidate { return r.made }

// Best is the plan that the comparison is led by; nil is none.
func (c *Comparison) Best() *parallel.Candidate { return c.Rows[0].made }

// Task is what was planned.
func (c *Comparison) Task() *Task { return c.task }

// Compare asks all planners, looks at what else could have been chosen, and ranks it.
func Compare(t *Task, planners []Named) *Comparison {
	c := &Comparison{Model: t.Model.Name, Devices: t.On.Len(), Batch: t.Model.Batch, Layers: t.Model.Profile.Layers(), Experience: experience(t), task: t}
	x := parallel.NewSimulator(t.Model, t.On)
	x.Gradients, x.Tokens, x.Over = t.Gradients, t.Tokens, t.Over
	best := &parallel.Candidate{Result: parallel.Result{Step: unit.Forever}}
	for i := range planners {
		p := &planners[i]
		if t.Progress != nil {
			t.Progress(p.Name, i, len(planners))
		}
		all, why := p.plans(x, t.Limits)
		if len(all) == 0 {
			row := Row{Plan: p.Name, Lost: string(why)}
			if len(p.Sequences) == 1 {
				row.SimulatedOnly = t.SimulatedOnly[p.Sequences[0].Name]
			}
			c.add(row)
		}
		for k := range all {
			row := c.row(x, &all[k])
			if row.By = []string{p.Name}; t.Limits.Stages {
				row.SimulatedOnly = t.SimulatedOnly[all[k].Plan.Sequence.Name]
				if row.Plan = p.Name; p.Sequences == nil {
					row.Plan += "+" + all[k].Plan.Sequence.Name
				}
			}
			c.add(row)
			if all[k].Result.Step < best.Result.Step {
				best = &all[k]
			}
		}
	}
	if t.Progress != nil {
		t.Progress("", len(planners), len(planners))
	}
	if best.Plan.Pipelines != nil && !t.Limits.Stages {
		c.rivals(x, best)
	}
	c.rank()
	c.Unfinished = t.Over != nil && t.Over()
	if best = c.Best(); best == nil {
		return c
	}
	if c.Memory = held(best); !c.Unfinished {
		c.halve(x, best)
		c.places(best)
		c.lose(x, best, planners)
	}
	return c
}

// add takes a row in, unless it is there. Of two plans of the same sizes, on other devices, the faster stays.
func (c *Comparison) add(row Row) {
	if i := slices.IndexFunc(c.Rows, func(r Row) bool { return r.Plan == row.Plan }); i >= 0 {
		if old := &c.Rows[i]; old.StepSec > 0 && row.StepSec > 0 && row.StepSec != old.StepSec {
			if row.StepSec < old.StepSec {
				*old = row
			}
			return
		}
		for _, by := range row.By {
			if !slices.Contains(c.Rows[i].By, by) {
				c.Rows[i].By = append(c.Rows[i].By, by)
			}
		}
		return
	}
	c.Rows = append(c.Rows, row)
}

// row is a plan that fits.
func (c *Comparison) row(x *parallel.Simulator, one *parallel.Candidate) Row {
	r := &one.Result
	o := r.Overlap()
	row := Row{Crosses: crossing(x.On, int32(c.Layers), one), Overlap: &Overlap{o.ComputeCompute.Seconds(), o.ComputeTransfer.Seconds(), o.TransferTransfer.Seconds()},
		Plan: text(x, &one.Plan), StepSec: r.Step.Seconds(), MFUPct: 100 * r.MFU, BubblePct: 100 * r.Bubble,
		ExposedSec: r.Exposed.Seconds(), UpdateSec: r.Update.Seconds(), PeakMiB: float64(r.PeakKiB()) / 1024, made: one}
	if least := c.least(&one.Plan); least != nil {
		row.DeviceMiB, row.ReserveMiB = float64(least.Memory), float64(least.Reserve)
		row.InReserve = row.PeakMiB > row.DeviceMiB-float64(shape.Reserve(least.Memory))
	}
	return row
}

// text is a plan as people write it, with how its layers run.
func text(x *parallel.Simulator, p *parallel.Plan) string {
	if len(x.On.Sites) > 1 {
		if s, like := p.Shape(); like && s.Apart > 1 {
			return fmt.Sprintf("%s apart%d", wayText(x, p), s.Apart)
		}
	}
	return wayText(x, p)
}

func wayText(x *parallel.Simulator, p *parallel.Plan) string {
	if one := p.Pipelines[0]; one.Ways != nil {
		layer := len(one.Ways) / 2
		if l, why := x.Layer(layer, x.On.Nodes[x.On.NodeOf(one.Ranks[0].Devices[0])].Kind, one.Ranks[0].Tensor, p.Samples, one.Ways); why == "" && l.Way != "" {
			return p.String() + " " + l.Way
		}
	}
	return p.String()
}

// least is the device of a plan with the least room; nil is that nothing bounds it.
func (c *Comparison) least(p *parallel.Plan) (least *parallel.Device) {
	for _, d := range p.Devices() {
		if kind := c.task.On.Kind(d); kind.Memory > 0 && (least == nil || kind.Room() < least.Room()) {
			least = kind
		}
	}
	return least
}

func held(best *parallel.Candidate) (all []Held) {
	for r, m := range best.Result.Parts[0].Timing.Peak {
		all = append(all, Held{Rank: r, ParamsMiB: float64(m.ParamKiB) / 1024, VersionsMiB: float64(m.StashKiB) / 1024,
			ActivationsMiB: float64(m.ActivationKiB) / 1024, WaitingMiB: float64(m.WaitingKiB) / 1024})
	}
	return all
}

// halve simulates the best over slower links.
func (c *Comparison) halve(x *parallel.Simulator, best *parallel.Candidate) {
	half := func(b unit.Mbps) unit.Mbps {
		if b > 0 {
			b = max(1, b/2)
		}
		return b
	}
	slow := *c.task.On
	slow.Nodes = slices.Clone(slow.Nodes)
	endless := true
	for i := range slow.Nodes {
		endless = endless && slow.Nodes[i].Out == 0
		slow.Nodes[i].Out = half(slow.Nodes[i].Out)
	}
	step := func(on *parallel.Devices) float64 {
		if r, why := x.Like(x.Model, on).Simulate(&best.Plan); why == "" {
			return r.Step.Seconds()
		}
		return 0
	}
	if !endless {
		c.HalfBandwidthSec = step(&slow)
	}
	if len(c.task.On.Sites) > 1 {
		apart := *c.task.On
		apart.Sites = make([][]parallel.Link, len(apart.Sites))
		for i, links := range c.task.On.Sites {
			apart.Sites[i] = slices.Clone(links)
			for k := range links {
				apart.Sites[i][k].Bandwidth = half(links[k].Bandwidth)
			}
		}
		c.HalfSitesSec = step(&apart)
	}
}
