package scenario

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
)

// What the day holds besides the trace.
const (
	services      = 12
	trials        = 64 // in each of two groups
	fineTunes     = 40
	foundations   = 5
	debugs        = 60
	deadlinePart  = 0.3
	warmDays      = 7
	replicasTop   = 4.0   // the devices that a service's busiest window takes, one replica each
	failPart      = 0.429 // of Seren's GPU jobs, by number
	failEarly     = 0.376 // they fail within this part of their run: then 12.4 % of the time is theirs
	opportunistic = 0.25  // of the single-device jobs
	leastLoad     = 0.85  // of the day's mix
)

// larges are the workers of the large models' jobs.
var larges = [...]int32{32, 32, 32, 32, 64, 64, 64, 64, 128, 128, 128, 256}

// item is a job with its truth and what it is.
type item struct {
	job   workload.Job
	truth workload.Truth
	kind  kind
	menu  plan.Menu // the true rates, for the second count
}

// kind says which part of the mix a job is.
type kind uint8

const (
	batch kind = iota
	large      // the LLM jobs
	trial
	fineTune
	debug
	replica // of a service
)

// mix is the workload of one seed: the week before and the day.
type mix struct {
	warm, day []item
	streams   []stream
	perSec    []float64 // by service: what one replica on a whole device answers
	real      bool      // trace and streams are published ones
	// trace and asked say where the jobs and the requests come from.
	trace, asked string
	// load is what all jobs of the day ask, in reference device time, over what the
	// cluster's devices could do in it at their speeds, replicas of services by the
	// devices they ask for; factor is how many of the trace's jobs come for each that
	// came.
	load, factor float64
	replicaOf    map[string]int // job name: service
}

// newMix draws the workload of a seed for a cluster, at an offered load of the day.
func newMix(s Setup, c *cluster.Cluster, load float64) (*mix, error) {
	m, data, seed := &mix{replicaOf: map[string]int{}}, s.Data, s.Seed
	week, err := m.venus(data, seed)
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(seed, 1))
	all := classes()
	for i := range week {
		dress(&week[i], all, r)
	}
	cut := unit.Time(warmDays * unit.Day)
	for _, it := range week {
		if it.job.Submit < cut {
			m.warm = append(m.warm, it)
		} else {
			it.job.Submit -= cut
			m.day = append(m.day, it)
		}
	}
	m.day = append(m.day, extras(all, r)...)
	m.serve(data, seed)
	m.scale(worth(c)*unit.Day.Seconds(), load)
	for i := range m.day {
		if it := &m.day[i]; it.kind == batch && r.Float64() < deadlinePart {
			it.job.Deadline = unit.Duration(float64(it.truth.Duration)*(1.2+2.8*r.Float64())) + 30*unit.Minute
		}
	}
	slices.SortStableFunc(m.day, func(a, b item) int { return cmp.Compare(a.job.Submit, b.job.Submit) })
	return m, m.check(c)
}

// check refuses a workload that is no test: one that asks too little, or with a job that
// could never run, for which a simulation would wait for ever.
func (m *mix) check(c *cluster.Cluster) error {
	if m.load < leastLoad {
		return fmt.Errorf("the day's mix asks for %.2f of the cluster: expected %.2f at least", m.load, leastLoad)
	}
	for _, list := range [][]item{m.warm, m.day} {
		for i := range list {
			if err := list[i].runnable(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// runnable says why a job can run nowhere; nil where it can.
func (it *item) runnable(c *cluster.Cluster) error {
	j, room := &it.job, 0
	for i := range c.Nodes {
		n := &c.Nodes[i]
		model := &c.Models[n.Model]
		rated := len(j.Menu) == 0 || slices.ContainsFunc(j.Menu, func(o workload.Offer) bool { return o.Model == model.Name && o.Rate > 0 })
		if rated && j.Memory <= model.Memory && (len(j.Models) == 0 || slices.Contains(j.Models, model.Name)) {
			room += int(n.Count)
		}
	}
	if ask := int(j.Workers()) / 1000; ask > room {
		return fmt.Errorf("job %s of class %q asks for %d devices and could run on %d (models %v): it would wait for ever", j.Name, j.Class, ask, room, j.Models)
	}
	return nil
}

// venus reads the busiest day of the trace, by the device time submitted in it, with
// the seven days before; the generated trace of its shape stands in where it is absent.
func (m *mix) venus(data string, seed uint64) ([]item, error) {
	path := filepath.Join(data, "helios")
	ref, opt := "helios:"+path, trace.Options{}
	if _, err := os.Stat(path); err != nil {
		ref, opt = "gen:helios", trace.Options{Seed: seed, Devices: 1064, Load: 0.85}
	} else {
		m.real = true
	}
	m.trace = "Helios Venus"
	if !m.real {
		m.trace = "generated, shaped like Helios Venus"
	}
	r, err := trace.Open(ref, opt)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []item
	var area []float64 // by day
	for {
		job, truth, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		day := int(job.Submit / unit.Time(unit.Day))
		for day >= len(area) {
			area = append(area, 0)
		}
		area[day] += float64(job.Gang) * truth.Duration.Seconds()
		all = append(all, item{job: job, truth: truth})
	}
	busiest := min(warmDays, len(area)-1)
	for d := range area {
		if d >= warmDays && area[d] > area[busiest] {
			busiest = d
		}
	}
	m.trace += fmt.Sprintf(", day %d of %d", busiest+1, len(area))
	from, to := unit.Time(busiest-warmDays)*unit.Time(unit.Day), unit.Time(busiest+1)*unit.Time(unit.Day)
	var week []item
	for _, it := range all {
		if it.job.Submit >= from && it.job.Submit < to {
			it.job.Submit -= from
			it.job.Name = fmt.Sprintf("%s-%d", "venus", len(week))
			week = append(week, it)
		}
	}
	return week, nil
}

// dress gives a job of the trace a family of what was measured, an owner's guess at its
// run time, and a failure at Acme's rate. Guesses are off by a factor that is lognormal
// with deviation 1: the trace has none.
func dress(it *item, all []class, r *rand.Rand) {
	j := &it.job
	c := all[r.IntN(len(all))]
	for j.Gang > 1 && !c.scales {
		c = all[r.IntN(len(all))]
	}
	j.Class, j.Tenant, j.Memory = c.name, "train", 8<<10
	it.truth.Busy, it.truth.Sensitivity = busy(r), c.sensitivity()
	j.Menu, j.Models = c.menu(j.Gang), c.runsOn(j.Gang)
	if len(j.Menu) > 0 && c.scales && j.Gang <= 8 && j.Gang&(j.Gang-1) == 0 && r.Float64() < 0.3 {
		j.Sizes, j.Models = []int32{1, 2, 4, 8}, c.runsOn(8)
	}
	kept := unit.Duration(it.truth.Busy * 100 * float64(unit.Millisecond))
	j.Phase = workload.Phase{Compute: kept, Communicate: 100*unit.Millisecond - kept}
	if rest := 1 - it.truth.Busy; rest > 0.05 { // it sends while it does not compute
		j.Traffic = unit.Mbps(min(25_000, float64(c.traffic(j.Gang))/rest))
	} else {
		j.Traffic = c.traffic(j.Gang)
	}
	j.Opportunistic = j.Gang == 1 && r.Float64() < opportunistic
	if j.Opportunistic {
		j.Law = control.ForGuests
	}
	j.Estimate = unit.Duration(math.Max(float64(unit.Minute), float64(it.truth.Duration)*math.Exp(r.NormFloat64())))
	j.Checkpoint = workload.Checkpoint{Every: 30 * unit.Minute, Save: 10 * unit.Second, Load: 60 * unit.Second}
	if r.Float64() < failPart {
		it.truth.FailAfter = 1 + unit.Duration(float64(it.truth.Duration)*failEarly*r.Float64())
	}
}

// extras are the parts of the mix that no trace has.
func extras(all []class, r *rand.Rand) (list []item) {
	at := func() unit.Time { return unit.Time(r.Float64() * float64(unit.Day) * 0.8) }
	single := func(name string, k kind, median, sigma float64) *item {
		it := item{kind: k}
		it.job = workload.Job{Name: name, Resources: workload.Resources{Gang: 1, Devices: 1, Share: unit.Whole}, Submit: at()}
		it.truth.Duration = unit.Duration(median * math.Exp(sigma*r.NormFloat64()) * float64(unit.Second))
		list = append(list, it)
		return &list[len(list)-1]
	}
	for i, gang := range larges {
		it := single(fmt.Sprint("llm-", i), large, 4*3600, 0.2)
		dress(it, all[:1], r)
		it.job.Gang, it.job.Menu, it.job.Sizes, it.job.Opportunistic, it.job.Law, it.truth.FailAfter = gang, nil, nil, false, "", 0
		it.job.Models, it.truth.Busy, it.truth.Sensitivity, it.job.Traffic = models[:1], 0.95, 0.1, 2500
		it.job.Pipeline = llm(8, 32)
		it.job.Class = "llm"
	}
	for g := range 2 {
		begin := at()
		for i := range trials {
			it := single(fmt.Sprintf("sweep%d-%d", g, i), trial, 2400, 0.7)
			dress(it, all, r)
			it.job.Submit, it.job.Group, it.truth.FailAfter = begin, fmt.Sprint("sweep", g), 0
		}
	}
	for i := range fineTunes {
		it := single(fmt.Sprint("lora-", i), fineTune, 1800, 0.8)
		dress(it, all, r)
		it.job.Base, it.truth.Merge, it.truth.FailAfter = fmt.Sprint("base-", r.IntN(foundations)), 0.2, 0
	}
	for i := range debugs {
		it := single(fmt.Sprint("debug-", i), debug, 120, 0.8)
		dress(it, all, r)
		it.truth.Duration = min(it.truth.Duration, 10*unit.Minute)
		it.job.Tenant, it.job.Estimate, it.job.TimeLimit, it.job.Opportunistic, it.job.Law = "debug", 10*unit.Minute, 20*unit.Minute, false, ""
		it.truth.FailAfter = 0
	}
	return list
}

// llm is a chain of like layers with a heavy end: an embedding in front, the
// vocabulary's projection behind, which an equal cut does not know of.
func llm(stages, microbatches int32) workload.Pipeline {
	p := workload.Pipeline{Stages: stages, Microbatches: microbatches}
	p.Layers = append(p.Layers, workload.Layer{Name: "embed", Forward: 400, Backward: 800, ParamKiB: 400 << 10, OutputKiB: 16 << 10, ActivationKiB: 16 << 10})
	for i := range 3 * stages {
		p.Layers = append(p.Layers, workload.Layer{Name: fmt.Sprint("block", i), Forward: 3000, Backward: 6000, ParamKiB: 300 << 10, OutputKiB: 16 << 10, ActivationKiB: 200 << 10})
	}
	p.Layers = append(p.Layers, workload.Layer{Name: "head", Forward: 9000, Backward: 18000, ParamKiB: 400 << 10, OutputKiB: 1, ActivationKiB: 64 << 10})
	return p
}

// scale takes so many of the trace's jobs that the day's mix asks for the wanted part of
// the cluster: fewer where the day brought more, some again, at another hour, where it
// brought less. Which hundredths of the jobs are left out decides whether one of the few
// jobs that make up the load is among them; of the hundred ways to begin counting, the
// one that comes nearest is taken.
func (m *mix) scale(worth, load float64) {
	traced, rest := 0.0, 0.0
	var day []item
	kept := m.day[:0:0]
	for _, it := range m.day {
		if it.kind == batch {
			traced += it.area()
			day = append(day, it)
		} else {
			rest += it.area()
			kept = append(kept, it)
		}
	}
	m.factor = max(0.1, (load*worth-rest)/max(1, traced))
	whole, part := int(m.factor), m.factor-math.Floor(m.factor)
	also := func(i, phase int) bool { return float64((i+phase)%100) < part*100 }
	best, miss := 0, math.Inf(1)
	for phase := range 100 {
		sum := float64(whole) * traced
		for i := range day {
			if also(i, phase) {
				sum += day[i].area()
			}
		}
		if off := math.Abs(sum + rest - load*worth); off < miss {
			best, miss = phase, off
		}
	}
	for i, it := range day {
		copies := whole
		if also(i, best) {
			copies++
		}
		for n := range copies {
			again := it
			if n > 0 {
				again.job.Name = fmt.Sprintf("%s-again%d", it.job.Name, n)
				again.job.Submit = (it.job.Submit + unit.Time(n)*unit.Time(37*unit.Minute)) % unit.Time(unit.Day)
			}
			kept = append(kept, again)
		}
	}
	m.day, m.load = kept, 0
	for i := range kept {
		m.load += kept[i].area() / worth
	}
}

// area is the device time, of the reference, that a job asks for, in seconds.
func (it *item) area() float64 { return float64(it.job.Workers()) / 1000 * it.effective() }

// effective is how long a job runs on what it asks for, to its failure where it fails.
func (it *item) effective() float64 {
	if f := it.truth.FailAfter; f > 0 && it.kind != replica {
		return min(f, it.truth.Duration).Seconds()
	}
	return it.truth.Duration.Seconds()
}

// source hands out items in order.
type source struct {
	left   []item
	offset unit.Time
	adjust func(*item)
}

// Next returns the next job.
func (s *source) Next() (workload.Job, workload.Truth, error) {
	if len(s.left) == 0 {
		return workload.Job{}, workload.Truth{}, io.EOF
	}
	it := s.left[0]
	s.left = s.left[1:]
	it.job.Submit += s.offset
	s.adjust(&it)
	return it.job, it.truth, nil
}

// ends are the events that end the replicas of the day, numbered behind the jobs before.
func (m *mix) ends(before int, from unit.Time) []simulated.Later {
	var later []simulated.Later
	for i := range m.day {
		if it := &m.day[i]; it.kind == replica {
			at := from + it.job.Submit.Add(it.truth.Duration)
			later = append(later, simulated.Later{At: at, Event: engine.Event{Kind: engine.Cancel, Job: plan.JobID(before + i)}})
		}
	}
	slices.SortStableFunc(later, func(a, b simulated.Later) int { return cmp.Compare(a.At, b.At) })
	return later
}
