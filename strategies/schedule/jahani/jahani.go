// Package jahani decides at every arrival and every end which machines to rent, which
// jobs run on how many devices of which of them and which are postponed, so that rent
// and lateness together cost least (Jahani et al., ICCCS 2019).
//
// What a node costs is its rent until its first job ends, for then it is decided anew; a
// job that runs costs its lateness, one that is postponed the lateness that is feared for
// it, many times over. The published program is Exact. What decides here is Search: jobs
// in order of pressure go to the node where all in all they cost least, which is cut up
// anew by dynamic programming among all who are on it, until no move saves anything.
//
// After the abstract and what later papers of the group say of the model: the constants,
// the search's moves and how time-outs are replaced by counted rounds are ours, as is
// that a job without a deadline is late from the start and that moving one costs it its
// checkpoint, and that on many nodes it is tried on some of them at a time. Left out: gangs
// on several machines, and the program as the decider (it is minutes where the search is
// milliseconds, and saves a percent).
package jahani

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/figures"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "jahani", System: "Jahani et al.", Step: "schedule", Part: allocate.JointPart, Status: "after",
	Source: "Jahani et al., ICCCS 2019 (abstract), and the ANDREAS line of the same group",
	Idea:   "rents the machines, cuts them up among jobs and postpones others so that rent and lateness cost least",
	Acts:   []strategy.Act{strategy.Rent},
	Goal:   "cost", Needs: "rates by device model and count, an estimate of the run time, prices", Live: "cannot, because no driver rents nodes: only simulation does",
}

// Decider is the strategy.
type Decider struct {
	config Config
	kinds  []machineKind
	stock  []stock      // by kind
	kind   []int        // by node: its place in kinds, or none
	jobs   []plan.JobID // of the problem, in its order
	want   []plan.NodeID
	taken  []bool      // by node: it is in the plan
	before before      // the last plan, in the order of the jobs
	on     []int       // jobs of the plan, node by node
	first  []int       // by node of the plan: its first in on
	times  []float64   // of the problem that was asked last
	last   []spot      // the last plan, by job
	slots  []plan.Slot // of this decision's wishes
	// Of large problems: what the last was put about, and what came back.
	posed struct {
		jobs  []plan.JobID
		kinds []machineKind
	}
	posedAt unit.Time
	answer  *answer
}

// machineKind is a machine of the problem: its device model, how many there are on it, and its
// price per hour in thousandths.
type machineKind struct{ model, count, price int32 }

// stock is the nodes of a kind.
type stock struct {
	nodes []plan.NodeID
	next  [3]int // by how ready a node is: no such node before is free, see concrete
}

// spot is where a plan has a job.
type spot struct {
	job     plan.JobID
	node    plan.NodeID
	devices int
}

// before is the last plan as now finds it, with its memory.
type before struct {
	was    []plan.NodeID // by job: where it was
	rented []int
	jobs   []Choice
	place  []int // by node: its place in the plan, counted from 1
}

var (
	_ allocate.Joint       = (*Decider)(nil)
	_ allocate.Renter      = (*Decider)(nil)
	_ strategy.Remembering = (*Decider)(nil)
)

// New returns the strategy; the configuration must be valid.
func New(c Config) *Decider { return &Decider{config: c} }

// Wishes are the places that the search finds. It begins with its last plan, carried out
// or not yet, so that it does not go to and fro while changes are under way.
func (d *Decider) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	d.want, d.taken = d.want[:0], append(d.taken[:0], make([]bool, v.Nodes())...)
	if len(jobs) == 0 {
		d.last = d.last[:0]
		return into, unit.Never
	}
	d.survey(v, jobs)
	now := d.now()
	var found Plan
	if nodes := d.nodes(now); d.large(nodes) {
		found = d.answered(now)
	} else {
		found = Search(d.problem(v, nodes), now)
	}
	d.sort(found)
	was, spots := d.before.was, d.last[:0]
	d.slots = slices.Grow(d.slots[:0], len(d.jobs))
	for n, m := range found.Rented {
		if m == none {
			continue
		}
		on := d.on[d.first[n]:d.first[n+1]]
		node := d.concrete(v, m, on, was)
		if node == plan.None {
			continue // it was lost since the plan was made
		}
		d.taken[node] = true
		d.want = append(d.want, node)
		for _, i := range on {
			devices := found.Jobs[i].Devices
			spots = append(spots, spot{d.jobs[i], node, devices})
			into = append(into, d.wish(v, d.jobs[i], node, devices))
		}
	}
	slices.SortFunc(spots, func(a, b spot) int { return int(a.job) - int(b.job) })
	d.last = spots
	return into, v.Now().Add(unit.Seconds(d.config.HorizonSec))
}

// sort lists the jobs of a plan node by node.
func (d *Decider) sort(p Plan) {
	d.first = append(d.first[:0], make([]int, len(p.Rented)+2)...)
	for _, c := range p.Jobs {
		if c.Devices > 0 {
			d.first[c.Node+2]++
		}
	}
	for n := range p.Rented {
		d.first[n+2] += d.first[n+1]
	}
	d.on = append(d.on[:0], make([]int, len(p.Jobs))...)
	for i, c := range p.Jobs {
		if c.Devices > 0 {
			d.on[d.first[c.Node+1]] = i
			d.first[c.Node+1]++
		}
	}
}

// wish is a place for a job. That it pays to move one that runs elsewhere, others' gains
// included, was weighed already.
func (d *Decider) wish(v plan.View, job plan.JobID, node plan.NodeID, devices int) allocate.Wish {
	w := allocate.Wish{Job: job, Workers: int32(devices) / max(1, v.Shape(job).Devices), Reason: plan.Reason{Code: plan.RoundPlan}}
	if run := v.RunOf(job); run != plan.None {
		v.GrantsOf(run, func(g plan.Grant) {
			if g.Node != node {
				w.Reason.Code = plan.Moved
			}
		})
	}
	d.slots = append(d.slots, plan.Slot{Node: node, Device: plan.None, Workers: w.Workers})
	w.Slots = d.slots[len(d.slots)-1 : len(d.slots) : len(d.slots)]
	return w
}

// Rentals are the nodes of the plan, and all others, which may be given back.
func (d *Decider) Rentals(v plan.View) (want, unwanted []plan.NodeID) {
	for id := range plan.NodeID(v.Nodes()) {
		if v.Cluster().Nodes[id].Rental && v.Node(id).Status == plan.Up && !d.taken[id] {
			unwanted = append(unwanted, id)
		}
	}
	return d.want, unwanted
}

// problem is what the search is asked, about so many nodes.
func (d *Decider) problem(v plan.View, nodes int) *Problem {
	p := &Problem{Nodes: nodes, HorizonSec: d.config.HorizonSec + d.config.NoticeSec, Rho: d.config.Rho, Jobs: make([]Work, len(d.jobs))}
	for m, k := range d.kinds {
		p.Machines = append(p.Machines, Machine{PricePerHour: float64(k.price) / 1000, Devices: int(k.count), Most: len(d.stock[m].nodes)})
	}
	width := 0
	for _, m := range p.Machines {
		width += m.Devices
	}
	d.times = append(d.times[:0], make([]float64, len(d.jobs)*width)...)
	times, rows := d.times, make([][]float64, 0, len(d.jobs)*len(d.kinds))
	for i, id := range d.jobs {
		for _, m := range p.Machines {
			rows, times = append(rows, times[:m.Devices:m.Devices]), times[m.Devices:]
		}
		p.Jobs[i].Seconds, rows = rows[:len(d.kinds)], rows[len(d.kinds):]
		d.work(v, id, &p.Jobs[i])
	}
	return p
}

// nodes is how many nodes a plan may have: one for every job, and those it has.
func (d *Decider) nodes(now Plan) (nodes int) {
	for i := range d.stock {
		nodes += len(d.stock[i].nodes)
	}
	return max(min(nodes, len(d.jobs)), len(now.Rented))
}

// now is the last plan, as far as its jobs and its nodes are still there.
func (d *Decider) now() Plan {
	b := &d.before
	b.was = append(b.was[:0], make([]plan.NodeID, len(d.jobs))...)
	for i := range b.was {
		b.was[i] = plan.None
	}
	now := Plan{Rented: b.rented[:0], Jobs: append(b.jobs[:0], make([]Choice, len(d.jobs))...)}
	b.place = append(b.place[:0], make([]int, len(d.kind))...)
	i, place := 0, b.place
	for _, at := range d.last { // both are in order of id
		for i < len(d.jobs) && d.jobs[i] < at.job {
			i++
		}
		if i == len(d.jobs) || d.jobs[i] != at.job {
			continue
		}
		if b.was[i] = at.node; int(at.node) >= len(d.kind) || d.kind[at.node] == none {
			continue
		}
		if place[at.node] == 0 {
			now.Rented = append(now.Rented, d.kind[at.node])
			place[at.node] = len(now.Rented)
		}
		now.Jobs[i] = Choice{place[at.node] - 1, at.devices}
	}
	b.rented, b.jobs = now.Rented, now.Jobs
	return now
}

// survey notes the jobs and sorts the nodes that are there or can be had into kinds. Our
// own cost nothing more when they are used.
func (d *Decider) survey(v plan.View, jobs []plan.JobID) {
	d.jobs, d.kinds, d.stock, d.kind = append(d.jobs[:0], jobs...), d.kinds[:0], d.stock[:0], d.kind[:0]
	for id := range plan.NodeID(v.Nodes()) {
		d.kind = append(d.kind, none)
		n, c := v.Node(id), &v.Cluster().Nodes[id]
		if n.Status != plan.Up && n.Status != plan.Away && n.Status != plan.Coming {
			continue
		}
		k := machineKind{model: n.Model, count: n.Count}
		if c.Rental {
			k.price = c.MilliPerHour
		}
		i := slices.Index(d.kinds, k)
		if i < 0 {
			i = len(d.kinds)
			d.kinds, d.stock = append(d.kinds, k), append(d.stock, stock{})
		}
		d.kind[id] = i
		d.stock[i].nodes = append(d.stock[i].nodes, id)
	}
}

// work is a job as the problem sees it. Where it runs now it just goes on; anywhere else
// it has to be stopped and started. The times are all 0 before.
func (d *Decider) work(v plan.View, id plan.JobID, w *Work) {
	j, shape := v.Job(id), v.Shape(id)
	left, known := v.Left(id)
	if !known {
		left = d.config.Guess
	}
	w.Weight, w.DueSec = d.config.LatePerHour/3600, j.Submit.Add(j.Deadline).Sub(v.Now()).Seconds()
	each := max(1, shape.Devices)
	model, workers := int32(plan.None), int32(0)
	if j.Run != plan.None {
		workers = v.Run(j.Run).Workers
		v.GrantsOf(j.Run, func(g plan.Grant) { model = v.Node(g.Node).Model })
	}
	for m, k := range d.kinds {
		for n := int32(1); n*each <= k.count; n++ {
			if !shape.MayHave(n) {
				continue
			}
			rate := v.Rate(id, k.model, n, false)
			if rate <= 0 {
				continue
			}
			t := left.Seconds() * float64(plan.FullRate) / float64(rate)
			if j.Run != plan.None && (k.model != model || n != workers) {
				t += (j.Checkpoint.Save + j.Checkpoint.Load).Seconds()
			}
			w.Seconds[m][n*each-1] = max(t, 1e-3)
		}
	}
}

// concrete picks the node that a node of the plan is to be: one that had most of its
// jobs in the last plan, else one that is there, else one that is coming, else any.
func (d *Decider) concrete(v plan.View, kind int, jobs []int, was []plan.NodeID) plan.NodeID {
	best, score := plan.NodeID(plan.None), 0
	for _, i := range jobs {
		id := was[i]
		if id == plan.None || int(id) >= len(d.kind) || d.kind[id] != kind || d.taken[id] {
			continue
		}
		s := ready(v, id)
		for _, k := range jobs {
			if was[k] == id {
				s += len(readiness)
			}
		}
		if s > score || s == score && id < best {
			best, score = id, s
		}
	}
	k := &d.stock[kind]
	for level := len(readiness) - 1; level >= 0 && best == plan.None; level-- {
		at := &k.next[level]
		for *at < len(k.nodes) && (d.taken[k.nodes[*at]] || ready(v, k.nodes[*at]) != level) {
			*at++
		}
		if *at < len(k.nodes) {
			best = k.nodes[*at]
		}
	}
	return best
}

// readiness are what a node of a kind may be, the readiest last.
var readiness = [3]plan.NodeStatus{plan.Away, plan.Coming, plan.Up}

func ready(v plan.View, id plan.NodeID) int { return slices.Index(readiness[:], v.Node(id).Status) }

// Remember encodes the last plan.
func (d *Decider) Remember() []byte {
	b := figures.PutCount(nil, len(d.last))
	for _, at := range d.last {
		b = figures.Put(b, int64(at.job), int64(at.node), int64(at.devices))
	}
	return b
}

// Recall reads what Remember wrote.
func (d *Decider) Recall(memory []byte) error {
	d.last, d.answer = d.last[:0], nil
	d.posed.jobs, d.posed.kinds = nil, nil
	r := figures.Read(memory)
	for range r.Counted {
		d.last = append(d.last, spot{plan.JobID(r.Next()), plan.NodeID(r.Next()), int(r.Next())})
	}
	if err := r.End(); err != nil {
		return fmt.Errorf("the memory of jahani: %w", err)
	}
	return nil
}
