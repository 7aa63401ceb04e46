package main

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/cgroup"
	"github.com/musterdl/muster/run/local/cgroup/cgrouptest"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

// Two slots of half a core: the machine may have other work for the rest.
const (
	lifeStrategy = "order: srtf\nestimate: declared\nsize: equal-share\n"
	lifeSlots    = 2
	lifeCPU      = 500
)

// paced trains no faster than a step in 100 ms and worker: how fast this machine is at a
// moment depends on who else is here by a third and more, which is not what is tested.
const paced = `exec "$0" trainer --steps "$1" --dim 16 --batch 4 --checkpoint-every 0 --step-delay "$((100 / WORLD_SIZE))ms"`

// kind is a sort of training job, with what a profile found of it.
type kind struct {
	name  string
	steps int
	sizes []int32         // the first is what it asks for
	ran   []unit.Duration // by size
	again []unit.Duration // likewise, after the workload: the machine is not as it was
}

// menu is how fast it goes on each size.
func (k *kind) menu(ran func(i int) unit.Duration) (menu []workload.Offer) {
	for i, n := range k.sizes {
		menu = append(menu, workload.Offer{Workers: n, Rate: float64(ran(0)) / float64(ran(i))})
	}
	return menu
}

// truly is how long it runs on a size, as both profiles have it.
func (k *kind) truly(i int) unit.Duration { return (k.ran[i] + k.again[i]) / 2 }

// profiled is what was measured before the workload: of each kind how long it runs,
// and of all what starting, stopping and starting again take.
type profiled struct {
	kinds             []kind
	start, save, load unit.Duration
}

// job is a job of a kind; one that shall run on a given size is not elastic.
func (k *kind) job(t *testing.T, name string, size int32, estimate unit.Duration) workload.Job {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	j := workload.Job{Name: name, Resources: workload.Resources{Gang: k.sizes[0], Devices: 1, Share: unit.Whole}, Estimate: estimate, Checkpoint: workload.Checkpoint{OnRequest: true},
		Program: workload.Program{Env: []string{"PATH=" + os.Getenv("PATH"), "MUSTER_TEST_AS_MUSTER=1"},
			Command: []string{"sh", "-c", paced, exe, fmt.Sprint(k.steps)}}}
	if size > 0 {
		j.Gang = size
	} else if len(k.sizes) > 1 {
		j.Sizes = k.sizes
		j.Menu = k.menu(func(i int) unit.Duration { return k.ran[i] })
	}
	return j
}

// submitted submits a job and lets it run to its end.
func (p *controlPlane) submitted(j workload.Job) {
	p.t.Helper()
	if _, err := p.client.Submit(p.t.Context(), []workload.Job{j}, j.Name); err != nil {
		p.t.Fatal(err)
	}
}

func (p *controlPlane) alone(j workload.Job) view.Job {
	p.t.Helper()
	p.submitted(j)
	p.muster("wait", j.Name)
	return p.show(j.Name)
}

// records are those of the first worker of an attempt, by kind the last.
func (p *controlPlane) records(name string, attempt int32) map[supervise.Kind]supervise.Record {
	p.t.Helper()
	list, _, err := supervise.ReadRecords(filepath.Join(p.state, "attempts", fmt.Sprintf("%s.%d", name, attempt), "0"), 0)
	if err != nil {
		p.t.Fatal(err)
	}
	last := map[supervise.Kind]supervise.Record{}
	for _, r := range list {
		last[r.Kind] = r
	}
	return last
}

// ran is how long an attempt ran, as the control plane reckons.
func (p *controlPlane) ran(name string, attempt int32) unit.Duration {
	r := p.records(name, attempt)
	return r[supervise.Ended].At.Sub(r[supervise.Started].At)
}

// solo runs every kind by itself, on each of its sizes, and returns how long it ran, by
// kind and size, and what the starts took.
func (p *controlPlane) solo(when string, kinds []kind) (ran [][]unit.Duration, starts []unit.Duration) {
	for i := range kinds {
		k := &kinds[i]
		ran = append(ran, nil)
		for _, size := range k.sizes {
			name := fmt.Sprintf("%s-%s-%d", when, k.name, size)
			j := p.alone(k.job(p.t, name, size, unit.Minute))
			ran[i] = append(ran[i], p.ran(name, 1))
			starts = append(starts, p.records(name, 1)[supervise.Started].At.Sub(unit.Time(j.Submitted.UnixMicro())))
		}
		p.t.Logf("%s %s the workload: %v by itself on %v workers", k.name, when, ran[i], k.sizes)
	}
	return ran, starts
}

// profile runs every kind by itself, and one job that gives way in the middle to
// another.
func (p *controlPlane) profile(kinds []kind) profiled {
	found := profiled{kinds: kinds}
	ran, starts := p.solo("before", kinds)
	for i := range kinds {
		kinds[i].ran = ran[i]
	}
	slices.Sort(starts)
	found.start = starts[len(starts)/2]
	wide := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.sizes[0] == 2 })]
	p.submitted(wide.job(p.t, "yields", 2, unit.Minute))
	p.until("yields", "on its way", func(j view.Job) bool { return j.Progress > 0.4 })
	p.muster("submit", "--name", "takes", "--workers", "2", "--estimate", "1s", "--", "sleep", "0.2")
	p.muster("wait", "takes", "yields")
	first := p.records("yields", 1)
	found.save = first[supervise.Ended].At.Sub(first[supervise.StopRequested].At)
	found.load = max(0, first[supervise.Checkpoint].At.Sub(first[supervise.Started].At)+p.ran("yields", 2)-wide.ran[0])
	p.t.Logf("starting takes %s, stopping %s, starting again %s more", found.start, found.save, found.load)
	return found
}

// simulate runs the same jobs in simulated nature, submitted at the same instants.
func (f *profiled) simulate(t *testing.T, strategy string, jobs []workload.Job, of []int) (jct map[string]unit.Duration, preempted int32) {
	t.Helper()
	composition, err := catalogue.Parse("life", strategy)
	if err != nil {
		t.Fatal(err)
	}
	built, err := composition.Build(catalogue.Env{Seed: 1}, false)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := local.Detect(local.Slots{Count: lifeSlots, CPU: lifeCPU, Memory: 1024})
	if err != nil {
		t.Fatal(err)
	}
	source := &listed{}
	for i := range jobs {
		j := jobs[i]
		j.Checkpoint.Save, j.Checkpoint.Load = f.save, f.load
		source.jobs = append(source.jobs, j)
		k := &f.kinds[of[i]]
		truth := workload.Truth{Duration: k.truly(0)}
		if len(j.Sizes) > 0 {
			truth.Menu = k.menu(k.truly)
		}
		source.truths = append(source.truths, truth)
	}
	c := report.NewCollector(report.Limits{})
	if _, err := simulated.Run(t.Context(), simulated.Config{Cluster: machine.Cluster, Jobs: source, Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(),
		Prices: simulated.Prices{Start: f.start}, Collector: c}); err != nil {
		t.Fatal(err)
	}
	jct = map[string]unit.Duration{}
	for _, r := range c.View().Jobs {
		jct[r.Name], preempted = r.JCT(), preempted+r.Preemptions
	}
	return jct, preempted
}

// listed is a source of jobs.
type listed struct {
	jobs   []workload.Job
	truths []workload.Truth
}

func (l *listed) Next() (j workload.Job, t workload.Truth, err error) {
	if len(l.jobs) == 0 {
		return j, t, io.EOF
	}
	j, t = l.jobs[0], l.truths[0]
	l.jobs, l.truths = l.jobs[1:], l.truths[1:]
	return j, t, nil
}

// mixes are what is run live and predicted: a strategy, and how many jobs of each kind come.
var mixes = []struct {
	name, strategy string
	of             []int // by kind
}{
	{"first come", "order: fifo\nestimate: declared\n", []int{3, 2, 2, 1}},
	{"short first", lifeStrategy, []int{4, 2, 1, 1}},
	{"elastic", "order: fifo\nestimate: declared\nsize: equal-share\n", []int{2, 2, 1, 3}},
}

// live submits the jobs of a mix at random instants and returns them, as they were
// submitted, with their kinds, how long they took and how often they gave way.
func (p *controlPlane) live(mix int, found *profiled, chance *rand.Rand) (jobs []workload.Job, of []int, took map[string]unit.Duration, preempted int32) {
	p.t.Helper()
	file := filepath.Join(p.state, fmt.Sprintf("mix%d.yaml", mix))
	if err := os.WriteFile(file, []byte(mixes[mix].strategy), 0o644); err != nil {
		p.t.Fatal(err)
	}
	p.muster("strategies", "switch", file)
	for k, n := range mixes[mix].of {
		of = append(of, slices.Repeat([]int{k}, n)...)
	}
	chance.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
	const gap = 2 * time.Second
	for i, k := range of {
		if i > 0 {
			time.Sleep(time.Duration(chance.ExpFloat64() * float64(gap)))
		}
		// A tenth more than it took, as people say what a job may take: whoever outruns his estimate by a
		// moment is believed to need as long again, and an order by size stops him for it.
		j := found.kinds[k].job(p.t, fmt.Sprintf("m%d-%s-%d", mix, found.kinds[k].name, i), 0, found.kinds[k].ran[0]*11/10)
		p.submitted(j)
		jobs = append(jobs, j)
	}
	begin := unit.Time(0)
	took = map[string]unit.Duration{}
	for i := range jobs {
		p.muster("wait", jobs[i].Name)
		j := p.show(jobs[i].Name)
		if j.Phase != plan.Finished.String() {
			p.t.Fatalf("%s is %s", j.Name, j.Phase)
		}
		at := unit.Time(j.Submitted.UnixMicro())
		if i == 0 {
			begin = at
		}
		jobs[i].Submit = unit.Time(at.Sub(begin))
		took[j.Name], preempted = unit.Duration(j.Ended.Sub(j.Submitted).Microseconds()), preempted+j.Preemptions
	}
	return jobs, of, took, preempted
}

// TestPredictionAgainstLife runs three mixes of jobs live and simulates the same with the
// speeds and delays that short profiles before and after measured: completion times agree.
func TestPredictionAgainstLife(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("four minutes; set MUSTER_LONG=1")
	}
	if support := cgroup.Probe(); !support.CPU {
		t.Skip(support)
	}
	p := planeOf(t, lifeStrategy, "--slots", fmt.Sprint(lifeSlots), "--slot-cpu", fmt.Sprintf("%dm", lifeCPU), "--summary-every", "100ms",
		"--checkpoint-wait", "20s", "--grace", "10s")
	p.muster("submit", "--name", "first", "--estimate", "1s", "--", "sleep", "0.1")
	p.muster("wait", "first")
	g := p.records("first", 1)[supervise.Prepared].Group
	cgrouptest.Favour(t, g.CPU, g.Unified)
	found := p.profile([]kind{{name: "short", steps: 40, sizes: []int32{1}}, {name: "middle", steps: 80, sizes: []int32{1}},
		{name: "wide", steps: 110, sizes: []int32{2}}, {name: "elastic", steps: 130, sizes: []int32{1, 2}}})
	chance := rand.New(rand.NewPCG(5, 0))
	var jobs [][]workload.Job
	var of [][]int
	var took []map[string]unit.Duration
	var preempted, displaced int32
	for mix := range mixes {
		j, k, l, n := p.live(mix, &found, chance)
		jobs, of, took, preempted = append(jobs, j), append(of, k), append(took, l), preempted+n
	}
	ran, _ := p.solo("after", found.kinds)
	drift := 0.0
	for i := range found.kinds {
		k := &found.kinds[i]
		k.again = ran[i]
		for n := range k.ran {
			drift = max(drift, math.Abs(k.again[n].Seconds()/k.ran[n].Seconds()-1))
		}
	}
	var lives, predicted float64
	var off []float64
	for mix := range mixes {
		jct, n := found.simulate(t, mixes[mix].strategy, jobs[mix], of[mix])
		displaced += n
		for _, j := range jobs[mix] {
			l, s := took[mix][j.Name].Seconds(), jct[j.Name].Seconds()
			lives, predicted, off = lives+l, predicted+s, append(off, math.Abs(s/l-1))
			t.Logf("%s: %-13s submitted at %5.1f s: %5.2f s live, %5.2f s predicted (%+.1f %%)", mixes[mix].name, j.Name, unit.Duration(j.Submit).Seconds(), l, s, 100*(s/l-1))
		}
	}
	slices.Sort(off)
	mean, p90 := math.Abs(predicted/lives-1), off[(9*len(off)+9)/10-1]
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("%d jobs, mean JCT %.2f s live, %.2f s predicted: off by %.1f %%; nine of ten jobs by at most %.1f %%, the worst by %.1f %%; %d preemptions live, %d predicted; profiles %.1f %% apart; load %s",
		len(off), lives/float64(len(off)), predicted/float64(len(off)), 100*mean, 100*p90, 100*off[len(off)-1], preempted, displaced, 100*drift, load)
	if mean > .05 || p90 > .15 {
		t.Errorf("the mean is off by %.1f %%, nine of ten jobs by up to %.1f %%: promised are 5 and 15\n%s", 100*mean, 100*p90, p.jobs())
	}
}
