package advise

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// job is a gang in the other world.
type job struct {
	story *story
	id    plan.JobID // None until it has been submitted
	real  turn       // how it stands in reality at this instant

	pods    []*corev1.Pod          // as they are here
	names   []types.NamespacedName // of what makes them
	dropped bool                   // it was withdrawn without having run

	submit unit.Time
	worker int64 // of devices per worker, in thousandths
	milli  int64 // that its run holds
	execution
	first unit.Time     // start; Never before
	ran   unit.Duration // with devices, in runs that are over
	over  unit.Time     // Never before

	refused bool
	partial episode
}

// execution is a job's run, or its last.
type execution struct {
	holds    bool // it has a run
	attempt  int32
	since    unit.Time     // when that got its devices
	began    unit.Time     // when that computes; Never before
	executed unit.Duration // what was kept of runs before
	cost     unit.Duration // until it computes
	ready    unit.Time     // when its pods run; Never is not to come
	leaves   unit.Time     // when its pods are gone; Never is not to come
}

// end is when a run ends if it goes on as it does: by what is known that is the
// earliest where known is false.
func (j *job) end(now unit.Time) (at unit.Time, known bool) {
	if j.story.never() {
		return unit.Never, true // it is cancelled when that happens in reality
	}
	began := j.began
	if began == unit.Never {
		began = j.since.Add(j.cost)
	}
	length, known := j.story.length(now)
	return began.Add(max(length-j.executed, 0)), known && j.began != unit.Never
}

// schedulerName is whose pods the copies are.
const schedulerName = "muster-advise"

// copyOf is a pod as it was asked for.
func copyOf(p *corev1.Pod) *corev1.Pod {
	c := &corev1.Pod{TypeMeta: p.TypeMeta, ObjectMeta: p.ObjectMeta, Spec: p.Spec}
	c.DeletionTimestamp, c.Spec.NodeName, c.Spec.SchedulerName = nil, "", schedulerName
	c.Spec.SchedulingGates = withoutKueue(p.Spec.SchedulingGates)
	c.Status = corev1.PodStatus{Phase: corev1.PodPending, ResourceClaimStatuses: p.Status.ResourceClaimStatuses}
	return c
}

func indexOfPod(j *job, uid types.UID) int {
	return slices.IndexFunc(j.pods, func(p *corev1.Pod) bool { return p.UID == uid })
}

// submitted finds the jobs of gangs that the engine took.
func (a *Adviser) submitted(events []engine.Event) {
	for i := range events {
		if e := &events[i]; e.Kind == engine.Submit {
			if id, ok := a.engine.Find(e.Spec.Name); ok {
				a.specs[id] = e.Spec
			}
		}
	}
	a.asked = slices.DeleteFunc(a.asked, func(j *job) bool {
		id := a.core.JobOf(j.story.key)
		if id == plan.None {
			return false
		}
		shape := a.engine.View().Shape(id)
		a.account.change(a.now, j, func() { j.id, j.submit, j.worker = id, a.now, shape.Milli(1) })
		a.byID[id] = j
		return true
	})
}

// starts takes in that a run holds devices from now on.
func (a *Adviser) starts(j *job, id plan.RunID) {
	if j == nil {
		return
	}
	v := a.engine.View()
	milli := v.Shape(j.id).Milli(v.Run(id).Workers)
	a.account.change(a.now, j, func() { j.holds, j.milli = true, milli })
	j.since, j.first = a.now, min(j.first, a.now)
	j.executed, j.attempt = v.Job(j.id).Executed, v.Job(j.id).Attempt
	j.cost = 0
	if v.Job(j.id).Attempt > 1 && j.ran > 0 {
		j.cost = a.options.Restart + v.Job(j.id).Checkpoint.Load
	}
	a.live = append(a.live, j)
}

// started takes in that a run computes.
func (a *Adviser) started(j *job) {
	if j.holds {
		j.began = a.now
	}
}

// left takes in which runs are over.
func (a *Adviser) left() {
	v := a.engine.View()
	a.live = slices.DeleteFunc(a.live, func(j *job) bool {
		if a.engine.State().RunOf(j.id, j.attempt) != plan.None {
			return false
		}
		a.account.change(a.now, j, func() { j.holds = false })
		now := v.Job(j.id)
		ran := a.now.Sub(j.since)
		j.ran += ran
		if !now.Phase.Over() && ran > 0 {
			a.account.preemptions++
		}
		if !j.dropped {
			a.account.lost = a.account.lost.Plus(unit.Use(j.milli, max(ran-(now.Executed-j.executed), 0)))
		}
		j.began = unit.Never
		return true
	})
}
