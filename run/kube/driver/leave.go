package driver

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/gang"
)

// stranded reports whether the pod of a seat is told to go on a node that is out of
// service: nobody there will say when it has gone.
func (rn *runs) stranded(w *seat) bool {
	return w.pod.pod.DeletionTimestamp != nil && rn.fleet.Out(w.machine)
}

// finished ends a run whose gang has ended by its own account, and reports whether.
func (rn *runs) finished(e *entry, s *gang.State) bool {
	phase := e.gang.Ending.Phase
	if phase != gang.Succeeded && phase != gang.Failed {
		phase = s.Phase
	}
	switch phase {
	case gang.Succeeded:
		rn.exit(e, plan.NoFailure, nil)
	case gang.Failed:
		class := s.Failure
		if class == plan.NoFailure {
			class = plan.UserFailure
		}
		rn.exit(e, class, rn.failure(e, s))
	default:
		return false
	}
	return true
}

// mostPrinted is how much is told of what a pod printed last, in bytes; an event holds little.
const mostPrinted = 600

// failure is how the gang of a run failed. What the pod printed last is told, and kept
// nowhere.
func (rn *runs) failure(e *entry, s *gang.State) *plan.Failure {
	f := &plan.Failure{Rank: -1, Node: plan.None, Why: s.Reason}
	if p := s.Cause; p != nil {
		f.Why, f.Code, f.Signal, f.Limit = p.String(), p.Code, p.Signal, p.Limit
		for i := range e.run.workers {
			w := &e.run.workers[i]
			if w.pod != nil && w.pod.pod.UID == p.Pod.UID {
				f.Rank = int32(i)
			}
			if w.node == p.Pod.Spec.NodeName && (f.Rank < 0 || f.Rank == int32(i)) {
				f.Node = w.machine
			}
		}
		e.last.printed = strings.ToValidUTF8(p.LastLines[max(0, len(p.LastLines)-mostPrinted):], "")
	}
	return f
}

// exit tells the engine that a run ended, and lets go of its seats. Pods that are left
// are nobody's: they count as others' use until they are gone.
func (rn *runs) exit(e *entry, class plan.FailureClass, failure *plan.Failure) {
	x := e.run
	if e.last.failed = ""; failure != nil {
		e.last.failed = failure.Why
	}
	kept := rn.kept(e)
	if class == plan.NoFailure && x.started {
		kept = rn.config.Now().Sub(x.began)
	}
	kind := engine.Exited
	switch {
	case x.started:
	case class == plan.NodeFailure:
		kind, class = engine.NotStarted, plan.Hindered
	case class == plan.NoFailure:
		rn.box.report(engine.Event{Kind: engine.Started, Job: e.job, Attempt: x.attempt})
	}
	rn.box.report(engine.Event{Kind: kind, Job: e.job, Attempt: x.attempt, Ending: engine.Ending{Class: class, Kept: kept, Failure: failure}})
	rn.leaveSeats(e)
}

func (rn *runs) leaveSeats(e *entry) {
	for i := range e.run.workers {
		rn.fleet.Touch(e.run.workers[i].node)
	}
	e.run, e.last.leave = nil, plan.NoFailure
	rn.again.stir(e)
}

// kept is the running time whose work a run has saved.
func (rn *runs) kept(e *entry) unit.Duration {
	if !e.run.started || e.spec == nil {
		return 0
	}
	until := rn.config.Now()
	if e.run.stopping {
		until = e.run.until // what it does in its grace period is to save
	}
	ran := until.Sub(e.run.began)
	switch cp := e.spec.Checkpoint; {
	case cp.OnRequest && e.run.stopping && e.last.leave == plan.NoFailure: // a gang without a member saves nothing
		return ran
	case cp.Every > 0:
		return ran - ran%cp.Every
	}
	return 0
}

// giveUp ends a start that cannot be carried out where it was decided.
func (rn *runs) giveUp(e *entry, node, words string) {
	rn.config.Log.Info("a start is given up", "job", e.name, "why", words)
	if node != "" && e.spec != nil {
		rn.sets.Bar(e.spec.NodeSet, node)
	}
	for i := range e.run.workers {
		if w := &e.run.workers[i]; w.state == empty {
			w.pod = nil
		}
	}
	if e.gang.Stop == gang.EvictForGood && len(e.run.pods()) > 0 {
		// Nobody would make again what is bound already: the rest is tried again in a moment.
		rn.voice.warn(e.reference(), "CannotStart", words)
		rn.again.delay(e)
		return
	}
	e.run.failed = true
	rn.again.stir(e)
}

// gaveUp waits until nothing of a start that failed is left.
func (rn *runs) gaveUp(e *entry) {
	if left := rn.clear(e, "its gang could not be started as a whole"); left > 0 {
		return
	}
	kind, class := engine.NotStarted, plan.Hindered
	if e.run.started {
		kind, class = engine.Exited, plan.NodeFailure
	}
	rn.box.report(engine.Event{Kind: kind, Job: e.job, Attempt: e.run.attempt, Ending: engine.Ending{Class: class, Kept: rn.kept(e)}})
	rn.leaveSeats(e)
}

// clear evicts what is bound of a run and returns how many pods are not gone yet.
func (rn *runs) clear(e *entry, why string) (left int) {
	for i := range e.run.workers {
		w := &e.run.workers[i]
		switch {
		case w.pod == nil || ended(w.pod.pod) || rn.stranded(w):
		case w.state == binding:
			left++ // until it is known how that went
		case w.state == empty:
			w.pod = nil
		default:
			left++
			rn.evict(e, w.pod.pod, why)
		}
	}
	return left + rn.ashore(e, why, true)
}

// stop asks a gang to leave: its owner takes the pods away, or they are evicted.
func (rn *runs) stop(e *entry) {
	g := &e.gang
	if g.Stop != gang.Suspend || g.Missing || e.paused || e.run.evicts {
		return // stopped evicts
	}
	if f := rn.config.Filter; f != nil {
		if violating, words := f.Disruptable(e.run.pods()); violating > 0 {
			rn.again.delay(e) // suspending goes by no budget: we do
			rn.voice.warn(e.reference(), "EvictionRefused", strings.Join(words, "; "))
			return
		}
	}
	e.paused, e.resuming = true, false
	object, field := g.Control, g.SuspendField
	rn.box.do(Task{Lane: Binding, About: g.Name + ": suspend",
		Do: func(ctx context.Context) error { return rn.config.Owners.Suspend(ctx, object, field, true) },
		Then: func(err error) {
			if err != nil && !api.IsGone(err) {
				e.paused = false
				if e.run != nil {
					e.run.evicts = true
				}
				rn.config.Log.Warn("an owner cannot be suspended; its pods are evicted", "job", e.name, "error", err)
			}
			rn.again.stir(e)
		}})
}

// stopped waits until no pod of a run is left.
func (rn *runs) stopped(e *entry) {
	left := 0
	if e.paused {
		for i := range e.run.workers {
			if w := &e.run.workers[i]; w.pod != nil && !ended(w.pod.pod) && !rn.stranded(w) {
				if w.state == empty {
					w.pod = nil
					continue
				}
				left++
			}
		}
		left += rn.ashore(e, "", false)
	} else {
		if rn.stop(e); e.paused || e.gang.Stop == gang.Suspend && !e.gang.Missing && !e.run.evicts && len(e.run.pods()) > 0 {
			return // it is being suspended, or a budget holds that up
		}
		left = rn.clear(e, "its gang makes way")
	}
	if left > 0 {
		return
	}
	rn.box.report(engine.Event{Kind: engine.Stopped, Job: e.job, Attempt: e.run.attempt, Ending: engine.Ending{Kept: rn.kept(e)}})
	forGood := e.gang.Stop == gang.EvictForGood
	rn.leaveSeats(e)
	if forGood && !e.over {
		rn.box.report(engine.Event{Kind: engine.Cancel, Job: e.job, By: "kubernetes"})
	}
}

// evict asks a pod to leave; a disruption budget may make it wait.
func (rn *runs) evict(e *entry, p *corev1.Pod, why string) {
	m := e.pods[p.UID]
	if m == nil || m.leaving || p.DeletionTimestamp != nil {
		return
	}
	m.leaving = true
	rn.box.do(Task{Lane: Binding, About: p.Name + ": evict",
		Do: func(ctx context.Context) error { return rn.config.Pods.Evict(ctx, p, why) },
		Then: func(err error) {
			if err != nil && !api.IsGone(err) {
				m.leaving = false // it is tried again when something changes, or after a while
				rn.again.delay(e)
				if api.IsRefused(err) {
					rn.voice.warn(referenceTo(p), "EvictionRefused", err.Error())
				}
			}
		}})
}

// evictStrays sends away pods that are bound although the engine gave them no room:
// members of a gang that could not be bound as a whole.
func (rn *runs) evictStrays(e *entry, pods []*corev1.Pod) {
	if e.gang.Stop == gang.EvictForGood {
		return // nobody would make it again
	}
	for _, p := range pods {
		if p.Spec.NodeName != "" {
			rn.evict(e, p, "its gang does not run")
		}
	}
}
