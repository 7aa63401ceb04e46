package stand

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/sharing"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world"
	"github.com/musterdl/muster/run/simulated/world/serving"
)

func init() {
	register("services", "inference services on V100s as iGniter measured them: its example of three, in an order of arrival for each seed, or so many with random rates and objectives (count); requests come evenly or with this variation (cv); what is believed of services is off (error); every-s: one after the other; start-s: what another process takes; devices", services)
}

// services come one after the other and stay. Each answers its own requests from the
// moment at which it is up first.
func services(open Data, o *Options, seed uint64) (*Stand, error) {
	count, cv, off := o.Int("count", 0), o.Float("cv", 0), o.Float("error", 0)
	start := unit.Seconds(o.Float("start-s", 0))
	measured, err := serving.V100(open)
	if err != nil {
		return nil, err
	}
	law, err := measured.Fit()
	if err != nil {
		return nil, err
	}
	believed := law
	if off > 0 {
		again := measured.Again(off, rand.New(rand.NewPCG(seed, 6)))
		if believed, err = again.Fit(); err != nil {
			return nil, fmt.Errorf("fitting what was measured with errors: %w", err)
		}
	}
	all, every := exampleServices(seed), unit.Minute
	if count > 0 {
		all, every = randomServices(law, count, seed), unit.Second
	}
	every = unit.Seconds(o.Float("every-s", every.Seconds()))
	devices, stay := o.Int("devices", len(all)), 10*unit.Minute
	end := unit.Time(0).Add(unit.Duration(len(all))*every + stay)
	for i := range all {
		j := &all[i].Job
		j.Gang, j.Devices, j.Share, j.Submit = 1, 1, unit.Whole, unit.Time(0).Add(unit.Duration(i)*every)
		all[i].Truth.Duration = end.Sub(0) + unit.Hour
	}
	r := &servicesRun{law: law, cv: cv, seed: seed, end: end, lines: map[plan.JobID]*line{}}
	s := &Stand{Cluster: cluster.Uniform("v100s", devices, 1, cluster.Model{Name: "v100", Memory: 32 << 10, Speed: 1}, 1), Jobs: list(all),
		Prices: simulated.Prices{Start: start}, Services: believed, Figures: r.figures}
	r.jobs = s.Jobs.(*List).Jobs
	s.World = world.Config{Services: map[string]*sharing.Law{"v100": law}, Answers: r.answers}
	s.Set = func(c *simulated.Config) { c.Until = end }
	return s, nil
}

// exampleServices is the example of iGniter's public code, in one of its six orders.
func exampleServices(seed uint64) []item {
	left := []item{served("alexnet", 15, 500), served("resnet50", 40, 400), served("vgg19", 60, 200)}
	var all []item
	for order := int(seed-1) % 6; len(left) > 0; {
		n := order % len(left)
		order, all, left = order/len(left), append(all, left[n]), slices.Delete(left, n, n+1)
	}
	return all
}

// randomServices are of the four networks alike, at 20 to 300 requests per second, within
// one to two times what the network needs at all.
func randomServices(law *sharing.Law, count int, seed uint64) (all []item) {
	dice := rand.New(rand.NewPCG(seed, 0))
	for range count {
		n := dice.IntN(len(law.Services))
		all = append(all, served(law.Services[n].Name, []float64{15, 40, 60, 100}[n]*(1+dice.Float64()), 20+280*dice.Float64()))
	}
	return all
}

func served(network string, sloMs, perSec float64) item {
	return item{Job: workload.Job{Traits: workload.Traits{Class: network, Service: workload.Service{RatePerSec: perSec, SLO: unit.Seconds(sloMs / 1000)}}}}
}

// servicesRun is the requests of one history.
type servicesRun struct {
	law   *sharing.Law
	jobs  []workload.Job
	cv    float64
	seed  uint64
	end   unit.Time
	lines map[plan.JobID]*line
}

// line is the requests of one service: next is when the next comes, a gap after the last.
type line struct {
	world.Line
	next float64
	gap  func() float64
	now  world.Answers
}

// answers lets the requests come up to now, and the service answer otherwise from now on.
func (r *servicesRun) answers(now unit.Time, job plan.JobID, a world.Answers) {
	at, l := now.Seconds(), r.lines[job]
	if l == nil {
		l = &line{Line: world.Line{WaitSec: r.jobs[job].Service.SLO.Seconds() / 2}, next: at, gap: r.gaps(job)}
		r.lines[job] = l
	}
	l.until(at)
	l.Change(at, a)
	l.now = a
}

// gaps are those between the requests of a service: even, or gamma distributed.
func (r *servicesRun) gaps(job plan.JobID) func() float64 {
	perSec := r.jobs[job].Service.RatePerSec
	if r.cv == 0 {
		return func() float64 { return 1 / perSec }
	}
	shape := 1 / (r.cv * r.cv)
	return distuv.Gamma{Alpha: shape, Beta: shape * perSec, Src: rand.NewPCG(r.seed, 1<<32+uint64(job))}.Rand
}

func (l *line) until(at float64) {
	for ; l.next < at; l.next += l.gap() {
		l.Arrive(l.next)
	}
	l.Until(at)
}

// figures are how long requests took, and what every service of the example has in the
// end: late is a service of whose requests more than one in a hundred missed the
// objective, or that never came up.
func (r *servicesRun) figures(o *Finished) map[string]float64 {
	var late, requests, missed, took, tail float64
	out := map[string]float64{}
	for id := range plan.JobID(o.View.Jobs()) {
		slo, l := r.jobs[id].Service.SLO.Seconds(), r.lines[id]
		if l == nil {
			late++
			continue
		}
		l.until(r.end.Seconds())
		slices.Sort(l.TookSec)
		n := len(l.TookSec)
		in, _ := slices.BinarySearch(l.TookSec, math.Nextafter(slo, 1))
		all := float64(n + l.Overdue(r.end.Seconds(), slo))
		if requests, missed = requests+all, missed+all-float64(in); float64(in) < .99*all {
			late++
		}
		for _, t := range l.TookSec {
			took += t / slo
		}
		if n > 0 {
			tail += l.TookSec[n*99/100] / slo
		}
	}
	jobs := float64(o.View.Jobs())
	out["late_services"], out["late_requests"], out["requests"] = late, missed/max(1, requests), requests
	out["mean_over_slo"], out["p99_over_slo"] = took/max(1, requests), tail/jobs
	r.devices(o.View, out)
	return out
}

// devices says what the devices in use do, and what each service has, by name where
// there is one of a kind.
func (r *servicesRun) devices(v plan.View, out map[string]float64) {
	for d := range plan.DeviceID(v.Devices()) {
		var on []sharing.Tenant
		v.GrantsOn(d, func(g plan.Grant) {
			run := v.Run(g.Run)
			name, share := r.jobs[run.Job].Class, float64(g.Reserve)/10
			on = append(on, sharing.Tenant{Model: r.law.Find(name), Batch: int(run.Terms.Share.Batch), SharePercent: share})
			out[name+"_share_percent"], out[name+"_batch"] = share, float64(run.Terms.Share.Batch)
			if l := r.lines[run.Job]; l != nil && l.now.Largest() > 0 {
				out[name+"_ms"] = 1000 * l.now.Takes[l.now.Largest()]
			}
		})
		if on != nil {
			out["devices"]++
			_, watts, mhz := r.law.Device.Predict(on, nil)
			out["power_w"], out["clock_mhz"] = max(out["power_w"], watts), max(out["clock_mhz"], mhz)
		}
	}
}
