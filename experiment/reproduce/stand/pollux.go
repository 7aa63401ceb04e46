package stand

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/musterdl/muster/experiment/trace"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/run/simulated/world/pollux"
)

func init() {
	register("pollux", "a workload (workload: its number, or seed, odd or even for the one of the seed; load; or jobs: newtrace or saturn, as Sia's artefact draws them) of the Pollux artefact "+
		"on 16 nodes of 4 T4 with its measured rates: batches tuned or as asked (batch), sizes in powers of two or fine (sizes), "+
		"submissions seen at ticks (tick-s), restarts (restart-s), reports of progress (report-s; 0 is none)", polluxStand)
}

// polluxFolder has the measurements and workloads in the published data.
const polluxFolder = "pollux-sia/"

// polluxStand is the set-up of the artefact (Qiao et al., OSDI 2021). Who is submitted between
// two ticks is seen at the next there, and the first start takes as long as a restart; here
// it is free, so that a job comes that much later. Both count as waiting.
func polluxStand(open Data, o *Options, seed uint64) (*Stand, error) {
	restart, tick := unit.Seconds(o.Float("restart-s", 30)), unit.Seconds(o.Float("tick-s", 60))
	reports := unit.Seconds(o.Float("report-s", 0))
	batch, sizes := o.Text("batch", "tuned"), o.Text("sizes", "powers")
	if batch != "tuned" && batch != "asked" || sizes != "powers" && sizes != "fine" {
		return nil, fmt.Errorf("batch is %q and sizes %q: expected tuned or asked, and powers or fine", batch, sizes)
	}
	apps, err := pollux.LoadFrom(func(path string) (io.ReadCloser, error) { return open(polluxFolder + "profiles/" + path) })
	if err != nil {
		return nil, err
	}
	jobs, err := polluxJobs(open, o, seed)
	if err != nil {
		return nil, err
	}
	seen := &ticked{Reader: Timed(jobs, apps, batch == "asked", sizes == "fine"), every: tick, first: restart}
	s := &Stand{Cluster: cluster.Uniform("pollux", 16, 4, cluster.Model{Name: "t4", Speed: 1}, 16), Jobs: seen, Prices: simulated.Prices{Restart: restart}, Figures: seen.figures}
	if reports > 0 {
		s.Set = func(c *simulated.Config) { c.ObserveEvery = reports }
	}
	return s, nil
}

// polluxJobs opens a workload of the artefact's archive, or one of the longer or otherwise
// drawn ones that Sia's artefact has beside it.
func polluxJobs(open Data, o *Options, seed uint64) (trace.Reader, error) {
	file, folder := polluxFolder+"pollux_workloads.tar.gz", "workloads"
	if load := o.Text("load", ""); load != "" {
		folder += "-" + load
	}
	number, err := polluxNumber(o.Text("workload", "6"), seed)
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s#%s/workload-%d.csv", file, folder, number)
	switch drawn := o.Text("jobs", ""); {
	case drawn != "" && folder != "workloads" || drawn != "" && drawn != "newtrace" && drawn != "saturn":
		return nil, fmt.Errorf("jobs is %q: expected newtrace or saturn, and no load beside them", drawn)
	case drawn != "":
		file = fmt.Sprintf("%sworkloads/%s/workload-%d.csv", polluxFolder, drawn, number)
		name = file
	}
	return trace.OpenFrom("pollux", name, func() (io.ReadCloser, error) { return open(file) }, trace.Options{})
}

// polluxNumber is that of a workload: what is written, or the one of the seed, of all or of
// every other.
func polluxNumber(text string, seed uint64) (number uint64, err error) {
	switch text {
	case "seed":
		return seed, nil
	case "odd":
		return 2*seed - 1, nil
	case "even":
		return 2 * seed, nil
	}
	if number, err = strconv.ParseUint(text, 10, 32); err != nil {
		return 0, fmt.Errorf("workload is %q: expected its number, seed, odd or even", text)
	}
	return number, nil
}

// ticked submits jobs a first start after the next tick.
type ticked struct {
	trace.Reader
	every, first unit.Duration
	late         []unit.Duration // by job
}

// Next returns the next job.
func (t *ticked) Next() (workload.Job, workload.Truth, error) {
	j, truth, err := t.Reader.Next()
	if err == nil {
		every := unit.Time(max(1, t.every))
		at := ((j.Submit + every - 1) / every * every).Add(t.first)
		t.late, j.Submit = append(t.late, at.Sub(j.Submit)), at
	}
	return j, truth, err
}

// figures are the mean completion time from when a job was truly submitted, and how many
// never ended.
func (t *ticked) figures(o *Finished) map[string]float64 {
	sum := 0.0
	for i := range o.Jobs {
		sum += (o.Jobs[i].JCT() + t.late[i]).Seconds()
	}
	return map[string]float64{"jct_s": sum / float64(len(o.Jobs)), "unfinished": float64(o.Result.Jobs - o.Result.Finished)}
}

// Timed gives the jobs of a pollux trace their durations and menus, from the profiles that
// were measured: at the batch their users asked for where that is fixed, else at the best
// one of each size, which is a power of two unless sizes are fine.
func Timed(r trace.Reader, apps map[string]*pollux.Application, fixed, fine bool) trace.Reader {
	return &timed{Reader: r, apps: apps, fixed: fixed, fine: fine, known: map[pollux.Request]pollux.Menu{}}
}

type timed struct {
	trace.Reader
	apps        map[string]*pollux.Application
	fixed, fine bool
	known       map[pollux.Request]pollux.Menu
}

// Next returns the next job with its duration and menu.
func (t *timed) Next() (workload.Job, workload.Truth, error) {
	job, truth, err := t.Reader.Next()
	if err != nil {
		return job, truth, err
	}
	r := pollux.Request{Replicas: int(job.Gang)}
	var batch string
	r.Application, batch, _ = strings.Cut(job.Class, "/")
	if _, err := fmt.Sscan(batch, &r.Batch); err != nil {
		return job, truth, fmt.Errorf("job %s: class %q: expected APPLICATION/BATCH", job.Name, job.Class)
	}
	r.Name = r.Application
	app, ok := t.apps[r.Application]
	if !ok {
		return job, truth, fmt.Errorf("job %s: application %q was not measured", job.Name, r.Application)
	}
	menu, ok := t.known[r]
	if !ok {
		if menu, err = app.Menu(r, !t.fixed, t.fine); err != nil {
			return job, truth, err
		}
		t.known[r] = menu
	}
	truth.Duration = unit.Seconds(menu.Seconds)
	job.Sizes, job.Menu = menu.Sizes, menu.Offers
	return job, truth, nil
}

// Polluxes finds the measured profiles where they lie: in the first of the folders that has
// them.
func Polluxes(folders ...string) (map[string]*pollux.Application, error) {
	var all error
	for _, folder := range folders {
		apps, err := pollux.Load(folder)
		if err == nil {
			return apps, nil
		}
		all = errors.Join(all, err)
	}
	return nil, fmt.Errorf("a pollux trace needs the measured profiles: %w", all)
}
