package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/local/supervise"
	"github.com/musterdl/muster/run/trainer/progress"
)

// planning is what a run was told of plans while it went on, and what its program said.
type planning struct {
	file  string    // of the plan that it goes by, without its folder; empty is none
	since int64     // the step behind which it does
	asked string    // of one that it was told of and has not answered; empty is none
	at    time.Time // when it was told
	made  int64     // steps a little later; 0 is not known
	// stages are the times of stages that were told last, and written when they were measured.
	stages  []unit.Duration
	written time.Time
	devices devices
	// pending says that stages take other times now than was told, and that it is not known yet why.
	// What they take is summed up over reports since then.
	pending bool
	sums    []unit.Duration
	reports unit.Duration
}

// Who is told of a plan answers at the end of a step. A program that makes more steps than
// silentSteps and has not done so does not read such requests; one that reports no steps is given
// silentFor. Steps are counted from heard on: by then its control file holds the request.
const (
	silentSteps = 3
	silentFor   = unit.Minute
	heard       = unit.Second
)

// drift is how many hundredths the time of a stage must have changed to be told.
const drift = 10

// whyMost bounds what is kept of a program's words.
const whyMost = 300

// planFile is the name of the file with the plan of an order. It has the plan's number in it, by
// which a program's answer is understood, also by a control plane that was started again.
func planFile(o *run.Order) string {
	return fmt.Sprintf("plan.%d.%d.json", o.Attempt, o.Terms.Plan.ID)
}

// planOf is the number of the plan in such a file; None where there is none.
func planOf(file string) int32 {
	var attempt, id int32
	if n, err := fmt.Sscanf(file, "plan.%d.%d.json", &attempt, &id); n != 2 || err != nil {
		return plan.None
	}
	return id
}

// begunBy is the file of the plan that rank 0 was started with.
func (a *attempt) begunBy() string {
	for _, kv := range supervise.Look(a.dirs[0]).Spec.Env {
		if path, is := strings.CutPrefix(kv, "MUSTER_PLAN="); is {
			return filepath.Base(path)
		}
	}
	return ""
}

// tellPlan tells all workers of the plan of their run, if it is another than they go by.
func (a *attempt) tellPlan(o *run.Order) {
	file := planFile(o)
	if o.Plan == nil || len(o.Plan.JSON) == 0 || file == a.plan.file || file == a.plan.asked {
		return
	}
	a.plan.asked, a.plan.at, a.plan.made = file, time.Now(), 0
	who, err := identity(o.Spec.User, a.driver.config.AllowRoot)
	home := ""
	if err == nil {
		home, err = a.home(who)
	}
	path := filepath.Join(home, file)
	if err == nil {
		err = give(path, o.Plan.JSON, who)
	}
	if err != nil {
		a.declined("it cannot be written down: " + err.Error())
		return
	}
	for rank := range a.seen {
		if a.seen[rank].ended == nil {
			a.send(rank, supervise.Plan(path))
		}
	}
}

// answered takes in what a program said of a plan.
func (a *attempt) answered(r *supervise.Record) {
	p := &a.plan
	file, pending := r.Report.Path, p.asked == r.Report.Path
	if r.Why != "" {
		if pending {
			a.declined("its program refuses it: " + r.Why)
		}
		return
	}
	late := !pending && file != p.file
	p.file, p.since, p.stages, p.pending, p.sums = file, r.Report.Step, nil, false, nil
	if pending {
		p.asked = ""
	}
	// It was believed to say nothing, or nobody had told it, and then the engine is told. While a
	// control plane takes in what was said before it began it does not know yet what was asked.
	if late && p.asked == "" && !p.at.IsZero() {
		a.goes("its program took this one up later")
	}
}

// watchPlan looks at a report of rank 0 for what it tells about the plan: a request that is not
// answered, or how long stages take.
func (a *attempt) watchPlan(rank int, r *supervise.Record) {
	p := &a.plan
	if rank != 0 {
		return
	}
	if p.asked == "" {
		if e := a.event(engine.Observed, plan.NoFailure, 0); a.measured(&e) {
			a.driver.report(e)
		}
		return
	}
	switch waited := unit.Duration(time.Since(p.at).Microseconds()); {
	case r.Report.Step == 0 && waited > silentFor:
		a.declined(fmt.Sprintf("its program says nothing of it, and reported no step in %s", silentFor))
	case r.Report.Step > 0 && p.made == 0 && waited > heard:
		p.made = r.Report.Step
	case p.made > 0 && r.Report.Step >= p.made+silentSteps:
		a.declined(fmt.Sprintf("its program made %d steps and said nothing of it", r.Report.Step-p.made))
	}
}

// declined gives up a plan that was told: the run goes on by the one before, and the engine is
// told so.
func (a *attempt) declined(why string) {
	a.driver.config.Log.Warn("a run does not go by another plan", "attempt", a.String(), "plan", a.plan.asked, "why", why)
	a.plan.asked = ""
	a.goes(why)
}

// goes reports by which plan the run goes on.
func (a *attempt) goes(why string) {
	e := a.event(engine.Observed, plan.NoFailure, 0)
	e.Goes = &engine.Going{Plan: planOf(a.plan.file), Why: fmt.Sprintf("%.*s", whyMost, why)}
	a.driver.report(e)
}

// measured adds to an observation how long a microbatch takes in each stage, and how slow the devices
// are, where rank 0 wrote that down since it goes by its plan, and where it is news.
func (a *attempt) measured(e *engine.Event) bool {
	p, path := &a.plan, supervise.TimingsPath(a.dirs[0])
	info, err := os.Stat(path)
	if p.file == "" || err != nil || info.Size() == 0 || info.ModTime().Equal(p.written) {
		return false
	}
	p.written = info.ModTime()
	// What is half written is read when it is written the next time.
	t, err := progress.ReadTimings(path)
	if err != nil || t.Step <= p.since {
		return false
	}
	var stages []unit.Duration
	for _, us := range t.StageUs() {
		stages = append(stages, max(unit.Microsecond, unit.Duration(us)))
	}
	if len(stages) == 0 {
		return false
	}
	if !t.Devices.Tells(len(a.order.Workers)) {
		return p.tells(e, stages, nil)
	}
	p.devices.learn(t.Devices, len(a.order.Workers))
	if p.differ(stages) && !p.pending {
		// It is looked at for a while: is it a device, or layers?
		p.pending, p.sums, p.reports = true, nil, 0
		p.devices.again()
		return false
	}
	if p.reports++; len(p.sums) != len(stages) {
		p.sums, p.reports = make([]unit.Duration, len(stages)), 1
	}
	for i := range stages {
		p.sums[i] += stages[i]
		stages[i] = p.sums[i] / p.reports
	}
	if !p.devices.known() {
		return false
	}
	p.pending = false
	return p.tells(e, stages, p.devices.slow())
}

// tells adds it to an observation, if it is news.
func (p *planning) tells(e *engine.Event, stages []unit.Duration, slow []float64) bool {
	if !p.differ(stages) && !p.devices.other(slow) {
		return false
	}
	if p.stages = stages; slow != nil {
		p.devices.told = slow
	}
	e.Stages, e.Slow = stages, slow
	return true
}

// differ reports whether stages take other times than was told last.
func (p *planning) differ(stages []unit.Duration) bool {
	if len(stages) != len(p.stages) {
		return true
	}
	for i, is := range stages {
		if 100*max(is-p.stages[i], p.stages[i]-is) > drift*p.stages[i] {
			return true
		}
	}
	return false
}
