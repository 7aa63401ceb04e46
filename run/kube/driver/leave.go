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
func (c *Core) stranded(w *seat) bool { return w.pod.pod.DeletionTimestamp != nil && c.out(w) }

// finished ends a run whose gang has ended by its own account, and reports whether.
func (c *Core) finished(e *entry, s *gang.State) bool {
	phase := e.gang.Ending.Phase
	if phase != gang.Succeeded && phase != gang.Failed {
		phase = s.Phase
	}
	switch phase {
	case gang.Succeeded:
		c.exit(e, plan.NoFailure, nil)
	case gang.Failed:
		class := s.Failure
		if class == plan.NoFailure {
			class = plan.UserFailure
		}
		c.exit(e, class, c.failure(e, s))
	default:
		return false
	}
	return true
}

// mostPrinted is how much is told of what a pod printed last, in bytes; an event holds little.
const mostPrinted = 600

// failure is how the gang of a run failed. What the pod printed last is told, and kept
// nowhere.
func (c *Core) failure(e *entry, s *gang.State) *plan.Failure {
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
func (c *Core) exit(e *entry, class plan.FailureClass, failure *plan.Failure) {
	x := e.run
	if e.last.failed = ""; failure != nil {
		e.last.failed = failure.Why
	}
	kept := c.kept(e)
	if class == plan.NoFailure && x.started {
		kept = c.config.Now().Sub(x.began)
	}
	kind := engine.Exited
	switch {
	case x.started:
	case class == plan.NodeFailure:
		kind, class = engine.NotStarted, plan.Misplaced
	case class == plan.NoFailure:
		c.report(engine.Event{Kind: engine.Started, Job: e.job, Attempt: x.attempt})
	}
	c.report(engine.Event{Kind: kind, Job: e.job, Attempt: x.attempt, Ending: engine.Ending{Class: class, Kept: kept, Failure: failure}})
	c.leaveSeats(e)
}

func (c *Core) leaveSeats(e *entry) {
	for i := range e.run.workers {
		c.dirtyNodes[e.run.workers[i].node] = true
	}
	e.run, e.last.leave = nil, plan.NoFailure
	c.stir(e)
}

// kept is the running time whose work a run has saved.
func (c *Core) kept(e *entry) unit.Duration {
	if !e.run.started || e.spec == nil {
		return 0
	}
	until := c.config.Now()
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
func (c *Core) giveUp(e *entry, node, words string) {
	c.config.Log.Info("a start is given up", "job", e.name, "why", words)
	if node != "" && e.spec != nil {
		c.bar(e.spec.NodeSet, node)
	}
	for i := range e.run.workers {
		if w := &e.run.workers[i]; w.state == empty {
			w.pod = nil
		}
	}
	if e.gang.Stop == gang.EvictForGood && len(e.run.pods()) > 0 {
		// Nobody would make again what is bound already: the rest is tried again in a moment.
		c.config.Voice.Say(e.reference(), corev1.EventTypeWarning, "CannotStart", words)
		c.later = append(c.later, e)
		return
	}
	e.run.failed = true
	c.stir(e)
}

// gaveUp waits until nothing of a start that failed is left.
func (c *Core) gaveUp(e *entry) {
	if left := c.clear(e, "its gang could not be started as a whole"); left > 0 {
		return
	}
	kind, class := engine.NotStarted, plan.Misplaced
	if e.run.started {
		kind, class = engine.Exited, plan.NodeFailure
	}
	c.report(engine.Event{Kind: kind, Job: e.job, Attempt: e.run.attempt, Ending: engine.Ending{Class: class, Kept: c.kept(e)}})
	c.leaveSeats(e)
}

// clear evicts what is bound of a run and returns how many pods are not gone yet.
func (c *Core) clear(e *entry, why string) (left int) {
	for i := range e.run.workers {
		w := &e.run.workers[i]
		switch {
		case w.pod == nil || ended(w.pod.pod) || c.stranded(w):
		case w.state == binding:
			left++ // until it is known how that went
		case w.state == empty:
			w.pod = nil
		default:
			left++
			c.evict(e, w.pod.pod, why)
		}
	}
	return left + c.ashore(e, why, true)
}

// stop asks a gang to leave: its owner takes the pods away, or they are evicted.
func (c *Core) stop(e *entry) {
	g := &e.gang
	if g.Stop != gang.Suspend || g.Missing || e.paused || e.run.evicts {
		return // stopped evicts
	}
	if f := c.config.Filter; f != nil {
		if violating, words := f.Disruptable(e.run.pods()); violating > 0 {
			c.later = append(c.later, e) // suspending goes by no budget: we do
			c.config.Voice.Say(e.reference(), corev1.EventTypeWarning, "EvictionRefused", strings.Join(words, "; "))
			return
		}
	}
	e.paused, e.resuming = true, false
	object, field := g.Control, g.SuspendField
	c.tasks = append(c.tasks, Task{Lane: Binding, About: g.Name + ": suspend",
		Do: func(ctx context.Context) error { return c.config.Owners.Suspend(ctx, object, field, true) },
		Then: func(err error) {
			if err != nil && !api.IsGone(err) {
				e.paused = false
				if e.run != nil {
					e.run.evicts = true
				}
				c.config.Log.Warn("an owner cannot be suspended; its pods are evicted", "job", e.name, "error", err)
			}
			c.stir(e)
		}})
}

// stopped waits until no pod of a run is left.
func (c *Core) stopped(e *entry) {
	left := 0
	if e.paused {
		for i := range e.run.workers {
			if w := &e.run.workers[i]; w.pod != nil && !ended(w.pod.pod) && !c.stranded(w) {
				if w.state == empty {
					w.pod = nil
					continue
				}
				left++
			}
		}
		left += c.ashore(e, "", false)
	} else {
		if c.stop(e); e.paused || e.gang.Stop == gang.Suspend && !e.gang.Missing && !e.run.evicts && len(e.run.pods()) > 0 {
			return // it is being suspended, or a budget holds that up
		}
		left = c.clear(e, "its gang makes way")
	}
	if left > 0 {
		return
	}
	c.report(engine.Event{Kind: engine.Stopped, Job: e.job, Attempt: e.run.attempt, Ending: engine.Ending{Kept: c.kept(e)}})
	forGood := e.gang.Stop == gang.EvictForGood
	c.leaveSeats(e)
	if forGood && !e.over {
		c.report(engine.Event{Kind: engine.Cancel, Job: e.job, By: "kubernetes"})
	}
}

// evict asks a pod to leave; a disruption budget may make it wait.
func (c *Core) evict(e *entry, p *corev1.Pod, why string) {
	m := e.pods[p.UID]
	if m == nil || m.leaving || p.DeletionTimestamp != nil {
		return
	}
	m.leaving = true
	c.tasks = append(c.tasks, Task{Lane: Binding, About: p.Name + ": evict",
		Do: func(ctx context.Context) error { return c.config.Pods.Evict(ctx, p, why) },
		Then: func(err error) {
			if err != nil && !api.IsGone(err) {
				m.leaving = false // it is tried again when something changes, or after a while
				c.later = append(c.later, e)
				if api.IsRefused(err) {
					c.config.Voice.Say(referenceTo(p), corev1.EventTypeWarning, "EvictionRefused", err.Error())
				}
			}
		}})
}
