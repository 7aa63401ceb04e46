// Package titan merges fine-tuning jobs of one foundation model into one multi-task run
// (Titan, Gao et al., SoCC 2022). The model's structure is fixed, so one profile tells
// how long every job on it takes; jobs go shortest remaining time first; and who finds
// no room joins a run of its model and size, the backbone in memory once and computed
// once over the sum of the batches, if by that profile all jobs together then end
// earlier.
//
// After the abstract and the authors' published profiles: how they choose what to merge
// is not public, so the rule is ours, a look ahead over what is known with and without
// the merge. A run falls apart when the job that brought the devices ends; who is left
// is planned anew. Left out: joining a run of another size; the pipelined switch, since what
// a start and a stop cost is the world's and the same for all strategies; the integer program for few jobs, since
// the look-ahead already decides on the sum of ends that it would minimise; and devices
// of several models, which are taken as alike. Many jobs are looked ahead for outside,
// the first in line of them (ours); until the answer comes those merge that it named last.
package titan

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/allocate"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule/remaining"
)

// Description is what the strategy says about itself.
var Description = strategy.Description{
	Name: "titan", System: "Titan", Step: "allocate", Part: allocate.JointPart, Status: "after",
	Source: "Gao et al., SoCC 2022; profiles of gaow0007/TitanSched",
	Idea:   "shortest first, and fine-tunes of one foundation model in one run where all then end earlier",
	Acts:   []strategy.Act{strategy.Merge},
	Goal:   "throughput", Needs: "the foundation model and the remaining time",
	Live:  "cannot, because no trainer here trains several tasks in one process; beside each other they would only take turns",
	Inner: "the predicted sum of completion times of a plan of merged runs",
}

// Config holds what is known of the foundation models, and whether jobs merge.
type Config struct {
	// Merge lets jobs of one foundation model share a run; without, the strategy is
	// shortest remaining time first.
	Merge bool `yaml:"merge"`
	// HeadPercent is what the jobs' own heads cost, of the backbone's time per sample.
	HeadPercent float64 `yaml:"head-percent" least:"0"`
	// Batch is the samples per step and device of a job whose menu does not say.
	Batch int32 `yaml:"batch" least:"1"`
	// Models is the table of foundation models.
	Models []Model `yaml:"models"`
}

// Model is the profile of one foundation model: a step on so many devices takes a
// constant and a time per sample on each device.
type Model struct {
	Name string `yaml:"name"`
	// StepUS is the constant on 1, 2, 4 and 8 devices: launch and synchronisation.
	StepUS [4]float64 `yaml:"step-us" above:"0"`
	// SampleUS is the time per sample of a device's batch.
	SampleUS float64 `yaml:"sample-us" above:"0"`
	// MemoryMiB is what the weights take, SampleMiB what each sample adds.
	MemoryMiB float64 `yaml:"memory-mib" least:"0"`
	SampleMiB float64 `yaml:"sample-mib" least:"0"`
}

// Default returns the configuration used where none is given. The models are fitted to
// the authors' profiles on A100 (gaow0007/TitanSched, MIT); the fit is tested. Two of
// them are there as measured on V100, too.
func Default() Config {
	return Config{Merge: true, HeadPercent: 1, Batch: 16, Models: []Model{
		{"vit", [4]float64{17267, 18469, 23045, 33122}, 1890, 519, 97.0},
		{"vit-large", [4]float64{38654, 43366, 56532, 94188}, 5014, 1796, 260.2},
		{"roberta-base", [4]float64{11236, 12422, 13271, 28527}, 5033, 658, 525.4},
		{"vit-large on V100", [4]float64{70730, 70532, 70765, 141704}, 5487, 1795, 260.2},
		{"roberta-base on V100", [4]float64{20559, 20967, 21070, 41733}, 10553, 657, 525.4},
	}}
}

// Validate says which model has no name.
func (c Config) Validate() error {
	if i := slices.IndexFunc(c.Models, func(m Model) bool { return m.Name == "" }); i >= 0 {
		return fmt.Errorf("models[%d] has no name", i)
	}
	return nil
}

// Decider is the strategy. Who is whose guest it reads from the State.
type Decider struct {
	config Config
	atOnce int // above so many jobs the look-ahead is outside
	joins  []join
	posed  []plan.JobID // the jobs of the last question

	tunes  []tune // of this decision, with the memory of those before, as all below
	alone  []*tune
	hosts  []*group
	all    []group
	runs   []*group
	shares []plan.ShareTerms // of wishes
	lineup lineup
}

var _ allocate.Joint = (*Decider)(nil)

// New returns the strategy; the configuration must be valid.
func New(c Config) *Decider { return &Decider{config: c, atOnce: 100} }

// Wishes gives devices to the shortest, and lets others join them as guests.
func (t *Decider) Wishes(v plan.View, jobs []plan.JobID, into []allocate.Wish) ([]allocate.Wish, unit.Time) {
	devices, memory := room(v)
	runs, waiting := t.read(v, jobs, devices)
	var on []*group
	if t.outside(jobs) {
		all, _ := t.config.line(runs, waiting, &t.lineup)
		on = t.config.together(all, t.joins, devices, memory, &t.lineup)
	} else {
		on = t.config.plan(runs, waiting, devices, memory, &t.lineup)
	}
	t.shares = slices.Grow(t.shares[:0], len(jobs))
	again := unit.Never
	for _, g := range on {
		host := plan.JobID(g.jobs[0].id)
		w := allocate.Wish{Job: host, Workers: v.Shape(host).Gang, Share: t.share(), Reason: plan.Reason{Code: plan.Fits, A: int64(g.gang) * 1000}}
		if run := v.RunOf(host); run != plan.None {
			_, w.Workers = v.Works(run)
		}
		into = append(into, w)
		if g.jobs[0].model == nil { // no profile tells how long it takes
			again = min(again, remaining.Outruns(v, host)) // then it is not the shortest any more
		}
		if v.RunOf(host) == plan.None || len(g.jobs) == 1 {
			continue // its guests come when it is there
		}
		slots := places(v, v.Job(host).Run)
		for _, j := range g.jobs[1:] {
			if !v.Shape(plan.JobID(j.id)).MayHave(w.Workers) {
				continue // its host has been left fewer than both ask for
			}
			w.Job, w.Slots, w.Reason = plan.JobID(j.id), slots, plan.Reason{Code: plan.Merged, A: int64(host)}
			w.Share = t.share()
			w.Share.Guest, w.Share.Bond = host, plan.InOne
			into = append(into, w)
		}
	}
	return into, again
}

// share is that of one more wish; there is room for one of each job.
func (t *Decider) share() *plan.ShareTerms {
	t.shares = append(t.shares, *plan.NewShare())
	return &t.shares[len(t.shares)-1]
}

// room is how many devices there are, and the memory of the largest, MiB.
func room(v plan.View) (devices int32, memoryMiB float64) {
	for id := range plan.NodeID(v.Nodes()) {
		if n := v.Node(id); n.Status == plan.Up && n.Count > 0 {
			devices, memoryMiB = devices+n.Count, max(memoryMiB, float64(v.Device(n.First).Memory))
		}
	}
	return devices, memoryMiB
}

// read makes runs of the jobs that train together and the rest wait, or run alone. What
// takes more than there is, or no whole devices, counts as the smallest that fits.
func (t *Decider) read(v plan.View, jobs []plan.JobID, devices int32) (runs []*group, waiting []*tune) {
	n := len(jobs)
	t.tunes, t.all, t.alone = slices.Grow(t.tunes[:0], n)[:n], slices.Grow(t.all[:0], n)[:n], slices.Grow(t.alone[:0], n)[:n]
	t.hosts = append(t.hosts[:0], make([]*group, n)...)
	tunes, groups, alone, hosts := t.tunes, t.all, t.alone, t.hosts
	runs = t.runs[:0]
	var guests []*tune
	for i, id := range jobs {
		j := &tunes[i]
		t.tune(v, id, j)
		j.gang = min(max(j.gang, 1), max(devices, 1))
		if run := v.RunOf(id); run != plan.None && v.Run(run).Terms.Share.Guest != plan.None {
			guests = append(guests, j)
			continue
		}
		alone[i] = j
		groups[i] = group{jobs: alone[i : i+1 : i+1], gang: j.gang}
		hosts[i] = &groups[i]
		runs = append(runs, hosts[i])
	}
	for _, j := range guests {
		host := v.Run(v.Job(plan.JobID(j.id)).Run).Terms.Share.Guest
		if i, lives := slices.BinarySearch(jobs, host); lives && hosts[i] != nil {
			hosts[i].jobs = append(hosts[i].jobs, j)
		} else {
			waiting = append(waiting, j)
		}
	}
	t.runs = runs
	return runs, waiting
}

func (t *Decider) tune(v plan.View, id plan.JobID, j *tune) {
	shape, base := v.Shape(id), v.ProfileOf(id).Base
	*j = tune{id: int32(id), gang: shape.Gang * shape.Devices, memory: float64(shape.Memory)}
	for i := range t.config.Models {
		if m := &t.config.Models[i]; m.Name == base && shape.Devices > 0 && shape.Share == 1000 {
			j.model = m
		}
	}
	j.batch = float64(t.config.Batch * j.gang)
	if b := v.Menu(id).Batch(plan.None, shape.Gang, false); b > 0 {
		j.batch = float64(b)
	}
	left, known := v.Left(id)
	if !known {
		left = 365 * unit.Day // behind all that are known
	}
	j.steps = float64(left) / t.config.step([]*tune{j}, max(j.gang, 1))
}

// places are the devices of a run as slots.
func places(v plan.View, run plan.RunID) (slots []plan.Slot) {
	perWorker := max(1, v.Shape(v.Run(run).Job).Devices)
	v.GrantsOf(run, func(h plan.Grant) {
		if n := len(slots); n == 0 || slots[n-1].Node != h.Node {
			slots = append(slots, plan.Slot{Node: h.Node, Device: plan.None})
		}
		s := &slots[len(slots)-1]
		s.On = append(s.On, h.Device)
		s.Workers = int32(len(s.On)) / perWorker
	})
	return slots
}
