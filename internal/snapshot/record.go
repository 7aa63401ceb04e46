package snapshot

import (
	"math"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

// recorder follows a history and keeps the books that a simulation keeps: who waited,
// what was occupied, and what it was used for.
type recorder struct {
	collector *report.Collector
	start     unit.Time // of the first batch
	now       unit.Time
	begun     bool
	next      plan.JobID // of the next submission
	jobs      []tracked
	at        map[plan.JobID]int // in jobs, where that is not their number
	waiting   int
	occupied  int64 // thousandths of devices
	capacity  int64

	capacityTime, occupiedTime unit.DeviceTime   // from the devices' side
	useful, lost, overhead     unit.DeviceTime   // from the runs' side
	starts                     []unit.Duration   // how long first starts took
	later                      []simulated.Later // what happened besides jobs and their runs
	events                     int64
	shared                     bool // a run had less of a device than its job asks for
}

// tracked is what is remembered of a job.
type tracked struct {
	id       plan.JobID
	spec     *workload.Job
	submit   unit.Time
	waits    bool
	ran      unit.Duration // running time, lost work included
	executed unit.Duration // whose work is kept, as of the last look
	work     float64       // the same in microseconds on the gang it asked for and the reference device
	runs     []tracking
}

// tracking is one run that occupies devices.
type tracking struct {
	id       plan.RunID
	attempt  int32
	status   plan.RunStatus
	since    unit.Time // of the status
	milli    int64
	rate     float64 // of work, by the devices' declared speed
	ran      unit.Duration
	overhead unit.Duration
}

func newRecorder() *recorder {
	// Weeks are compared by their jobs: all are kept, and nothing for pictures.
	return &recorder{collector: report.NewCollector(report.Limits{Points: 2, Jobs: math.MaxInt})}
}

// recordBatch looks at what a batch did.
func (r *recorder) recordBatch(v plan.View, m plane.Moment) {
	if !r.begun {
		r.begun, r.start, r.now, r.capacity = true, v.Now(), v.Now(), healthy(v)
	}
	r.advance(v.Now())
	all := false
	for i := range m.Events {
		e := &m.Events[i]
		r.repeat(e)
		switch e.Kind {
		case engine.Tick, engine.Rebuilt:
			continue // no simulation has them
		case engine.Submit:
			copies := e.Spec.Copies()
			for k := range copies {
				r.add(v, r.next, &copies[k])
				r.next++
			}
		case engine.Assembled:
			r.assemble(v, e.Image)
			all = true
		case engine.Drain, engine.NodeDown, engine.NodeUp, engine.DeviceDown, engine.DeviceUp, engine.Switched:
			all = true
		default:
			r.touch(v, e.Job)
		}
		r.events++
	}
	if c := m.Out.Commit; c != nil {
		for i := range c.Changes {
			r.touch(v, c.Changes[i].Job)
		}
	}
	for i := range m.Out.Ready {
		r.touch(v, m.Out.Ready[i].Job)
	}
	for _, id := range m.Out.Over {
		r.touch(v, id)
	}
	if all {
		r.capacity = healthy(v)
		for id := range r.jobs {
			r.touch(v, r.jobs[id].id)
		}
	}
}

// add tracks a job from now on.
func (r *recorder) add(v plan.View, id plan.JobID, spec *workload.Job) {
	if r.at != nil {
		r.at[id] = len(r.jobs)
	}
	r.jobs = append(r.jobs, tracked{id: id, spec: spec, submit: r.now})
	r.touch(v, id)
}

// assemble begins with a state that was put together from elsewhere: what waits or runs
// there arrives now, and the world around it is as it is there.
func (r *recorder) assemble(v plan.View, img *engine.Image) {
	r.jobs, r.at, r.next = nil, map[plan.JobID]int{}, plan.JobID(v.Jobs())
	r.waiting, r.occupied, r.capacity = 0, 0, healthy(v)
	for id, spec := range img.Specs {
		if id < v.Jobs() && v.Name(plan.JobID(id)) != "" && !v.Job(plan.JobID(id)).Phase.Over() {
			r.add(v, plan.JobID(id), spec)
		}
	}
	later := func(e engine.Event) { r.later = append(r.later, simulated.Later{At: r.now, Event: e}) }
	for set := range int32(v.NodeSets()) {
		later(engine.Event{Kind: engine.Confined, Outside: engine.Outside{Set: set + 1, Within: v.NodeSet(set + 1)}})
	}
	for id := range plan.NodeID(v.Nodes()) {
		n, use := v.Node(id), engine.Use{}
		use.CPU, use.Memory = unit.Milli(n.OtherCPU), unit.MiB(n.OtherHost)
		for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
			if v.Device(d).Status == plan.Elsewhere {
				use.Devices++
			}
		}
		if use != (engine.Use{}) {
			later(engine.Event{Kind: engine.Occupied, Node: id, Outside: engine.Outside{Use: &use}})
		}
	}
}

// repeat keeps an event that happens in a replay too.
func (r *recorder) repeat(e *engine.Event) {
	if !repeats(e.Kind) || r.at != nil && e.Kind == engine.Arranged {
		return
	}
	again := *e
	if r.at != nil && e.Kind >= engine.Cancel && e.Kind <= engine.Requeue {
		i, known := r.at[e.Job]
		if !known {
			return
		}
		again.Job = plan.JobID(i)
	}
	r.later = append(r.later, simulated.Later{At: r.now, Event: again})
}

// find is where a job is tracked, -1 if it is not.
func (r *recorder) find(id plan.JobID) int {
	if r.at != nil {
		if i, known := r.at[id]; known {
			return i
		}
		return -1
	}
	if id < 0 || int(id) >= len(r.jobs) {
		return -1
	}
	return int(id)
}

// repeats reports whether an event happens in a replay too, at its instant: all that
// people ask and all that breaks, but not what drivers report of runs, which may be
// others there.
func repeats(k engine.Kind) bool {
	switch k {
	case engine.Submit, engine.Tick, engine.Rebuilt, engine.Switched, engine.Truth, engine.Answered, engine.Started, engine.NotStarted,
		engine.Stopped, engine.Exited, engine.Suspended, engine.Resumed, engine.Reshaped, engine.Observed, engine.Joined, engine.Assembled:
		return false
	}
	return true
}

// healthy is what there is, in thousandths of a device: lost devices and nodes are not.
func healthy(v plan.View) (milli int64) {
	for id := range plan.DeviceID(v.Devices()) {
		if d := v.Device(id); !d.Status.Out() && v.Node(d.Node).Status != plan.Down {
			milli += 1000
		}
	}
	return milli
}

// advance integrates up to an instant. Several batches may have the same: what is seen
// is how the last of them left things.
func (r *recorder) advance(at unit.Time) {
	if at <= r.now {
		return
	}
	r.observe()
	r.capacityTime = r.capacityTime.Plus(unit.Use(r.capacity, at.Sub(r.now)))
	r.occupiedTime = r.occupiedTime.Plus(unit.Use(r.occupied, at.Sub(r.now)))
	r.now = at
}

func (r *recorder) observe() {
	r.collector.Queue(r.now, r.waiting)
	r.collector.Busy(r.now, unit.Milli(r.occupied), unit.Milli(r.capacity))
}

// touch brings what is tracked of a job up to date.
func (r *recorder) touch(v plan.View, id plan.JobID) {
	at := r.find(id)
	if at < 0 {
		return
	}
	t, j := &r.jobs[at], v.Job(id)
	if waits := j.Phase.Waits(); waits != t.waits {
		t.waits = waits
		if waits {
			r.waiting++
		} else {
			r.waiting--
		}
	}
	kept := j.Executed - t.executed
	t.executed = j.Executed
	t.runs = slices.DeleteFunc(t.runs, func(run tracking) bool {
		if status := r.status(v, id, &run); status != plan.Gone {
			return false
		}
		r.leave(t, &run, plan.Gone)
		r.gone(t, &run, kept)
		kept = 0
		return true
	})
	t.work += float64(kept) // of a run that came and went within this batch
	for i := range t.runs {
		run := &t.runs[i]
		if status := r.status(v, id, run); status != run.status {
			r.leave(t, run, status)
		}
	}
	for _, run := range [...]plan.RunID{j.Leaving, j.Run} {
		if run != plan.None {
			r.begin(v, t, run)
		}
	}
}

// status is where a tracked run stands now.
func (r *recorder) status(v plan.View, id plan.JobID, run *tracking) plan.RunStatus {
	if now := v.Run(run.id); now.Job == id && now.Attempt == run.attempt {
		return now.Status
	}
	return plan.Gone
}

// begin tracks a run that occupies devices and is not tracked yet.
func (r *recorder) begin(v plan.View, t *tracked, id plan.RunID) {
	now := v.Run(id)
	if now.Status == plan.Promised || now.Status == plan.Gone ||
		slices.ContainsFunc(t.runs, func(run tracking) bool { return run.id == id && run.attempt == now.Attempt }) {
		return
	}
	r.shared = r.shared || v.Beside(id)
	run := tracking{id: id, attempt: now.Attempt, status: now.Status, since: r.now}
	speed := math.Inf(1)
	v.GrantsOf(id, func(g plan.Grant) {
		if g.Device != plan.None {
			run.milli += int64(g.Reserve)
		}
		if s := v.Cluster().Models[v.Node(g.Node).Model].Speed; s > 0 {
			speed = min(speed, s)
		}
	})
	if math.IsInf(speed, 1) {
		speed = 1
	}
	run.rate = speed * float64(now.Workers) / float64(max(1, v.Shape(now.Job).Gang))
	if run.status != plan.Suspended {
		r.occupied += run.milli
	}
	t.runs = append(t.runs, run)
}

// leave books the status that a run is in up to now, and moves it on.
func (r *recorder) leave(t *tracked, run *tracking, next plan.RunStatus) {
	passed := r.now.Sub(run.since)
	switch run.status {
	case plan.Starting:
		if run.attempt == 1 && next == plan.Running {
			r.starts = append(r.starts, passed)
		}
		run.overhead += passed
	case plan.Stopping, plan.Resuming:
		run.overhead += passed
	case plan.Running:
		run.ran += passed
		t.ran += passed
	}
	held, holds := run.status != plan.Suspended, next != plan.Suspended && next != plan.Gone
	switch {
	case holds && !held:
		r.occupied += run.milli
	case held && !holds:
		r.occupied -= run.milli
	}
	run.status, run.since = next, r.now
}

// gone takes a run off the books, of which so much running time was kept. A driver may
// have seen more of that than was reported while it ran.
func (r *recorder) gone(t *tracked, run *tracking, kept unit.Duration) {
	r.book(run, min(max(0, kept), run.ran))
	t.work += float64(kept) * run.rate
}

func (r *recorder) book(run *tracking, useful unit.Duration) {
	r.useful = r.useful.Plus(unit.Use(run.milli, useful))
	r.lost = r.lost.Plus(unit.Use(run.milli, run.ran-useful))
	r.overhead = r.overhead.Plus(unit.Use(run.milli, run.overhead))
}

// closeHistory brings everything up to the end of the history, where runs may be alive.
func (r *recorder) closeHistory(v plan.View) {
	for id := range r.jobs {
		r.touch(v, r.jobs[id].id)
		for i := range r.jobs[id].runs {
			run := &r.jobs[id].runs[i]
			r.leave(&r.jobs[id], run, run.status)
		}
	}
}

// close books what is alive at the end, and adds up.
func (r *recorder) close(v plan.View, truths []workload.Truth) report.Result {
	for id := range r.jobs {
		t := &r.jobs[id]
		for i := range t.runs {
			r.book(&t.runs[i], t.runs[i].ran)
		}
		r.collector.Job(r.job(v, t, truths[id].Duration))
	}
	r.observe()
	var out report.Result
	seconds := func(t unit.DeviceTime) float64 { return t.Hours() * 3600 }
	out.DeviceSec, out.UsefulDeviceSec, out.LostDeviceSec = seconds(r.capacityTime), seconds(r.useful), seconds(r.lost)
	out.OverheadDeviceSec, out.IdleDeviceSec = seconds(r.overhead), out.DeviceSec-seconds(r.occupiedTime)
	out.Balanced = r.useful.Plus(r.lost).Plus(r.overhead) == r.occupiedTime
	out.Events = r.events
	return r.collector.Result(out)
}

// job is the record of a job, as a simulation writes it.
func (r *recorder) job(v plan.View, t *tracked, alone unit.Duration) report.JobRecord {
	id := t.id
	j, shape := v.Job(id), v.Shape(id)
	return report.JobRecord{ID: int32(id), Name: v.Name(id), Tenant: t.spec.Tenant, Submit: t.submit, FirstStart: j.Started, End: min(j.Ended, r.now),
		Gang: shape.Gang, Devices: unit.Milli(shape.Milli(shape.Gang)), Alone: alone, Run: t.ran, Waited: v.WaitedFor(id),
		Preemptions: j.Preemptions, Restarts: j.Restarts, Outcome: simulated.Outcome(j), Deadline: j.Deadline}
}
