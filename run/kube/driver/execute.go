package driver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/driver/fleet"
	"github.com/musterdl/muster/run/kube/filter"
	"github.com/musterdl/muster/run/kube/gang"
)

// Annotations that a binding leaves on a pod: the run it belongs to, and its devices
// by index on the node.
const (
	noteJob     = "muster.dev/job"
	noteAttempt = "muster.dev/attempt"
	noteDevices = "muster.dev/on-devices"
)

// Order takes a change of the engine's to carry out.
func (c *Core) Order(o run.Order) {
	e := c.roster.byJob[o.Job]
	switch o.Verb {
	case plan.Start:
		if e == nil {
			c.box.report(engine.Event{Kind: engine.NotStarted, Job: o.Job, Attempt: o.Attempt, Ending: engine.Ending{Class: plan.Hindered}})
			return
		}
		if e.run != nil {
			c.runs.leaveSeats(e) // it was lost with its node, which needs no order
		}
		e.run = c.runs.execution(&o)
		e.run.recorded = len(o.Workers) == 1
		c.again.stir(e)
	case plan.Stop:
		if e == nil || e.run == nil || e.run.attempt != o.Attempt {
			c.box.report(engine.Event{Kind: engine.Stopped, Job: o.Job, Attempt: o.Attempt})
			return
		}
		e.run.stopping, e.run.until = true, c.config.Now()
		c.runs.stop(e)
		c.again.stir(e)
	default:
		c.config.Log.Error("Kubernetes has no way to do this", "verb", o.Verb.String(), "job", o.Name)
	}
}

// runs carries out what the engine decided: it has pods made, gives them the seats of a run,
// binds them, and sends them away.
type runs struct {
	config *Config
	box    *outbox
	again  *again
	voice  *voice
	fleet  *fleet.Fleet
	sets   *fleet.Sets
	keeper *keeper
	pods   map[types.UID]*member // all, by the Core's account
}

func (rn *runs) execution(o *run.Order) *execution {
	x := &execution{attempt: o.Attempt}
	for _, w := range o.Workers {
		s := seat{machine: w.Node, node: rn.fleet.KubeNode(w.Node), share: w.Share}
		first := plan.DeviceID(rn.fleet.Cluster().Nodes[w.Node].First)
		for _, d := range w.Devices {
			s.devices = append(s.devices, int32(d-first))
		}
		x.workers = append(x.workers, s)
	}
	return x
}

// follow brings a run up to date with the pods of its gang.
func (rn *runs) follow(e *entry, s *gang.State) {
	rn.clearSeats(e)
	x := e.run
	switch {
	case x.stopping:
		rn.stopped(e)
	case x.failed:
		rn.gaveUp(e)
	case rn.finished(e, s):
	case e.last.leave != plan.NoFailure:
		rn.leave(e)
	case e.gang.Missing && len(e.pods) == 0:
		rn.box.report(engine.Event{Kind: engine.Cancel, Job: e.job, By: "kubernetes"})
	case e.gang.Suspended && e.paused && x.resumed:
		// Whoever led before was stopping it, and could not write that down.
		if rn.clear(e, "its gang makes way") == 0 {
			rn.exit(e, plan.NodeFailure, nil)
		}
	case e.gang.Suspended && !e.paused && !e.resuming && x.resumed:
		rn.box.report(engine.Event{Kind: engine.Hold, Job: e.job, By: "kubernetes"})
	default:
		rn.start(e, s)
	}
}

// leave ends a run that is known to end since a pod of it is lost, or asks for that.
func (rn *runs) leave(e *entry) {
	x := e.run
	if !x.started || e.gang.Stop != gang.Suspend || e.gang.Missing {
		rn.exit(e, e.last.leave, nil)
		return
	}
	// Its owner takes the others away and makes all anew. Were they evicted, the Job
	// controller would count each as a failure, wait longer with each, and give up.
	if !x.requeued {
		x.requeued = true
		rn.box.report(engine.Event{Kind: engine.Requeue, Job: e.job, By: "kubernetes"})
	}
}

// clearSeats empties the seats whose pods are not there, and sees which pods are lost with
// their nodes.
func (rn *runs) clearSeats(e *entry) {
	x := e.run
	for i := range x.workers {
		w := &x.workers[i]
		if w.pod != nil && w.pod.pod.Spec.NodeName != "" && w.pod.pod.Spec.NodeName != w.node {
			rn.fleet.Touch(w.pod.pod.Spec.NodeName) // somebody else put it elsewhere
			w.pod, w.state = nil, empty
			x.failed = !x.stopping
		}
		if w.pod != nil && rn.pods[w.pod.pod.UID] == nil { // it is gone
			if !x.stopping && !ended(w.pod.pod) && rn.fleet.Out(w.machine) {
				e.last.leave = plan.NodeFailure
			}
			rn.fleet.Touch(w.node)
			w.pod, w.state = nil, empty
		}
		if w.pod != nil && rn.stranded(w) {
			e.last.leave = plan.NodeFailure
		}
	}
}

// start carries a start on: its owner makes the pods, the record is written, the pods
// are bound, and all of them run.
func (rn *runs) start(e *entry, s *gang.State) {
	x := e.run
	if !x.resumed {
		rn.resume(e)
	}
	if rn.others(e, s) {
		return
	}
	members := e.members(s)
	if len(members) == 0 && s.Succeeded == 0 {
		return
	}
	if !rn.seat(e, s, members) || !x.recorded {
		return
	}
	rn.sayStuck(e, members)
	running, done := countRunning(members), int(s.Succeeded)
	if !x.started && running+done >= min(len(x.workers), len(members)+done) && running+done > 0 && x.whole() {
		x.started, x.began = true, rn.config.Now()
		rn.box.report(engine.Event{Kind: engine.Started, Job: e.job, Attempt: x.attempt})
	}
}

// sayStuck tells people why a pod of a run cannot start; once is enough: the kubelet repeats
// itself.
func (rn *runs) sayStuck(e *entry, members []*member) {
	x := e.run
	for _, m := range members {
		if words := gang.Stuck(m.pod); words != "" && !x.started && x.stuck == "" {
			x.stuck = words
			rn.voice.warn(e.reference(), "CannotStart", words)
		}
	}
}

func countRunning(members []*member) (n int) {
	for _, m := range members {
		if m.pod.Status.Phase == corev1.PodRunning && m.pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// others sends pods of the gang away that an earlier run has left, and reports whether
// there are any: their places are not those of this one.
func (rn *runs) others(e *entry, s *gang.State) bool {
	attempt, are := strconv.Itoa(int(e.run.attempt)), false
	for _, p := range s.Members {
		m := e.pods[p.UID]
		if p.Spec.NodeName != "" && e.run.seatOf(m) < 0 && e.run.boarded[p.UID] == "" && p.Annotations[noteAttempt] != attempt {
			are = true
			rn.evict(e, p, "its gang starts anew")
		}
	}
	return are
}

// whole reports whether every seat is bound; seats of pods that are made late may be
// empty.
func (x *execution) whole() bool {
	for i := range x.workers {
		if x.workers[i].state == binding {
			return false
		}
	}
	return true
}

// resume lets the owner make the pods of the run, as many as it has workers.
func (rn *runs) resume(e *entry) {
	x, g := e.run, &e.gang
	x.resumed = true
	if n := int32(len(x.workers)) + e.riding; n != g.Size && len(g.Resize.Targets) > 0 {
		target := g.Resize.Targets[0]
		rn.box.do(Task{Lane: Binding, About: g.Name + ": resize",
			Do: func(ctx context.Context) error {
				return rn.config.Owners.Set(ctx, target.Object, target.Fields, n-g.Resize.Others)
			},
			Then: func(err error) { rn.ordered(e, x, "resize", err) }})
	}
	if g.Suspended || e.paused {
		object, field := g.Control, g.SuspendField
		e.paused, e.resuming = false, true
		rn.box.do(Task{Lane: Binding, About: g.Name + ": resume",
			Do: func(ctx context.Context) error { return rn.config.Owners.Suspend(ctx, object, field, false) },
			Then: func(err error) {
				if err != nil {
					e.paused, e.resuming = true, false
				}
				rn.ordered(e, x, "resume", err)
			}})
	}
}

// ordered takes in how a write to an owner went.
func (rn *runs) ordered(e *entry, x *execution, what string, err error) {
	if err == nil || e.run != x {
		return
	}
	rn.config.Log.Warn("an owner did not let itself be changed", "job", e.name, "what", what, "error", err)
	if !x.started && !x.stopping {
		rn.voice.warn(e.reference(), "CannotStart", fmt.Sprintf("%s: %v", what, err))
		x.failed = true
		rn.again.stir(e)
	}
}

// seat gives pods their seats and binds those that are not bound, and reports whether
// the run may go on. Before the first of a gang is bound all of it must be there.
func (rn *runs) seat(e *entry, s *gang.State, members []*member) bool {
	x := e.run
	seated := 0
	for i := range x.workers {
		if x.workers[i].pod != nil {
			seated++
		}
	}
	needed := len(x.workers)
	if first := int(e.gang.First); first > 0 && first < int(e.gang.Size) {
		needed = min(needed, first-int(e.riding))
	}
	riders := e.along(s)
	needed = min(needed, int(s.Needed)-len(riders))
	if seated == 0 && len(members) < needed {
		return false
	}
	fresh := x.seats(e, members)
	if len(fresh) > 0 && !rn.fits(e, fresh) {
		return false
	}
	boarding, ok := rn.board(e, fresh, riders)
	if !ok && len(fresh) > 0 {
		rn.giveUp(e, "", "there is no node for a pod of the gang that asks for no device")
		return false
	}
	if !x.recorded && len(fresh)+len(boarding) > 0 {
		rn.keeper.keep(e, true)
		return false
	}
	for _, i := range fresh {
		rn.bind(e, i)
	}
	for _, p := range boarding {
		rn.bindRider(e, p)
	}
	return true
}

// seats gives pods without a seat an empty one, their own rank's where it is, and
// returns the seats whose pods are to be bound.
func (x *execution) seats(e *entry, members []*member) (fresh []int) {
	for rank, m := range members {
		if x.seatOf(m) >= 0 || m.pod.DeletionTimestamp != nil {
			continue
		}
		if r, ok := e.gang.Rank(m.pod); ok && e.riding == 0 {
			rank = int(r)
		}
		if at := x.seatFor(m.pod, rank); at >= 0 {
			w := &x.workers[at]
			w.pod, w.state, m.seat = m, empty, at
			if m.pod.Spec.NodeName != "" {
				w.state = bound
			}
		}
	}
	for i := range x.workers {
		if w := &x.workers[i]; w.pod != nil && w.state == empty {
			fresh = append(fresh, i)
		}
	}
	return fresh
}

// seatFor is the seat for a pod: the one it was bound for, or else that of its rank if
// it is empty, or the next empty one.
func (x *execution) seatFor(p *corev1.Pod, rank int) int {
	for i := range x.workers {
		at := (rank + i) % len(x.workers)
		w := &x.workers[at]
		if w.pod == nil && (p.Spec.NodeName == "" || p.Spec.NodeName == w.node && p.Annotations[noteDevices] == join(w.devices)) {
			return at
		}
	}
	return -1
}

// bind puts a pod on the node of its seat.
func (rn *runs) bind(e *entry, i int) {
	x := e.run
	w := &x.workers[i]
	pod, node := w.pod.pod, w.node
	notes, problem := rn.notesFor(e, w, pod)
	if problem != "" {
		rn.giveUp(e, node, problem)
		return
	}
	w.state = binding
	m := w.pod
	hold, pods := rn.config.Filter, rn.config.Pods
	if rn.config.Supposed {
		hold = nil
	}
	rn.box.do(Task{Lane: Binding, About: pod.Name,
		Do: func(ctx context.Context) error {
			if hold == nil {
				return pods.Bind(ctx, pod, node, notes)
			}
			return reserveAndBind(ctx, hold, pods, pod, node, notes)
		},
		Then: func(err error) { rn.wasBound(e, x, i, m, err) }})
}

// reserveAndBind chooses volumes and claims, writes them, and binds.
func reserveAndBind(ctx context.Context, hold *filter.Host, pods api.Pods, pod *corev1.Pod, node string, notes map[string]string) error {
	reserved, refusal, err := hold.Reserve(ctx, pod, node)
	if err == nil && refusal == nil {
		if refusal, err = reserved.PreBind(ctx); err == nil && refusal == nil {
			err = pods.Bind(ctx, pod, node, notes)
		}
		if err != nil || refusal != nil {
			reserved.Undo(ctx)
		}
	}
	if err == nil && refusal != nil {
		err = refused{refusal}
	}
	return err
}

// refused is a Refusal as an error.
type refused struct{ *filter.Refusal }

// Error is the refusal in words.
func (r refused) Error() string { return r.Words() }

// wasBound takes in how a binding went.
func (rn *runs) wasBound(e *entry, x *execution, i int, m *member, err error) {
	w := &x.workers[i]
	if w.pod != m {
		return // it is gone
	}
	now := rn.pods[m.pod.UID]
	here := now != nil && now.pod.Spec.NodeName == w.node
	switch {
	case api.IsConflict(err) && !here:
		w.state = bound // perhaps by us, whose answer was lost: its object will say where it is
	case err == nil || here:
		w.state = bound
		rn.box.count(time.UnixMicro(int64(rn.config.Now())).Sub(m.pod.CreationTimestamp.Time))
		rn.voice.mention(referenceTo(m.pod), "Scheduled", "bound to "+w.node+" by muster, attempt "+strconv.Itoa(int(x.attempt)))
	case api.IsGone(err):
		w.pod, w.state = nil, empty
	default:
		w.state = empty
		if e.run == x && !x.stopping {
			rn.giveUp(e, w.node, err.Error())
		}
	}
	rn.again.stir(e)
}

// notesFor are the annotations of a binding.
func (rn *runs) notesFor(e *entry, w *seat, pod *corev1.Pod) (notes map[string]string, problem string) {
	notes = map[string]string{noteJob: strconv.Itoa(int(e.job)), noteAttempt: strconv.Itoa(int(e.run.attempt))}
	if len(w.devices) > 0 {
		notes[noteDevices] = join(w.devices)
	}
	if m := rn.fleet.Machine(w.machine); m != nil && m.Fractions {
		devices := make([]int, len(w.devices))
		for i, d := range w.devices {
			devices[i] = int(d)
		}
		more, p := rn.config.Rules.BindAnnotations(*m, pod, devices, rn.config.Now())
		if !p.None() {
			return nil, p.Text
		}
		for k, v := range more {
			notes[k] = v
		}
	}
	return notes, ""
}

func splitComma(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func join(list []int32) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(int(n)))
	}
	return b.String()
}

// reference points at what people look at: the owner, or else a pod.
func (e *entry) reference() corev1.ObjectReference {
	if e.gang.Control.Kind != "" {
		return e.gang.Control
	}
	for _, p := range e.list() {
		return referenceTo(p)
	}
	return corev1.ObjectReference{Namespace: e.key.Namespace, Name: e.key.Name, Kind: e.key.Kind}
}
