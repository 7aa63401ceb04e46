package apitest

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	podresource "k8s.io/component-helpers/resource"
)

// needs is what a pod takes of a node: thousandths for cpu, whole units for all else.
type needs map[corev1.ResourceName]int64

func needsOf(p *corev1.Pod) needs {
	n := amounts(podresource.PodRequests(p, podresource.PodResourcesOptions{}))
	n[corev1.ResourcePods] = 1
	return n
}

func amounts(l corev1.ResourceList) needs {
	n := make(needs, len(l)+1)
	for name, q := range l {
		n[name] = amount(name, q)
	}
	return n
}

func amount(name corev1.ResourceName, q resource.Quantity) int64 {
	if name == corev1.ResourceCPU {
		return q.MilliValue()
	}
	return q.Value()
}

// room is what a node has and what is taken of it.
type room struct {
	has  needs // nil where the node is gone
	used needs
}

// lacks names a resource that a pod would take too much of; "" where it fits.
func (r *room) lacks(n needs) corev1.ResourceName {
	lacking := []corev1.ResourceName{}
	for name, amount := range n {
		if amount > 0 && r.used[name]+amount > r.has[name] {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) == 0 {
		return ""
	}
	return slices.Min(lacking)
}

func (r *room) take(n needs, sign int64) {
	for name, amount := range n {
		r.used[name] += sign * amount
	}
}

// onlooker sees what is on nodes and how gangs stand, as somebody who only watches.
type onlooker struct {
	options     *Options
	clock       *clock
	store       *store
	kubelets    *kubelets
	controllers *controllers
	judge       *judge
	rooms       map[string]*room
	gangs       map[string]*gangState
	history     []PartialGang
	halted      map[types.UID]bool // suspended by a client
}

func (ol *onlooker) setRoom(node string, n *corev1.Node) {
	r := ol.rooms[node]
	if r == nil {
		r = &room{used: needs{}}
		ol.rooms[node] = r
	}
	r.has = nil
	if n != nil {
		r.has = amounts(n.Status.Allocatable)
	}
}

// watchRoom counts what a pod takes of its node, and sees that it stays there.
func (ol *onlooker) watchRoom(s *podState, p *corev1.Pod, gone bool) {
	node := p.Spec.NodeName
	if node != s.node && s.node != "" {
		ol.judge.violate("pod %s/%s moves from node %s to %q", p.Namespace, p.Name, s.node, node)
	}
	held := !gone && node != "" && !ended(p)
	if held == s.held {
		return
	}
	r := ol.rooms[node]
	if r == nil { // the node is not there, or not there yet
		r = &room{used: needs{}}
		ol.rooms[node] = r
	}
	if held {
		s.node, s.held = node, true
		if lacking := r.lacks(s.needs); lacking != "" && r.has != nil {
			ol.judge.violate("node %s is over-committed: pod %s/%s takes %d of %s, %d of %d are taken", node, p.Namespace, p.Name, s.needs[lacking], lacking, r.used[lacking], r.has[lacking])
		}
		r.take(s.needs, 1)
		return
	}
	s.held = false
	r.take(s.needs, -1)
}

// gangState is a gang as an onlooker sees it: the pods of a Job, of a JobSet, of a
// label, or one pod.
type gangState struct {
	name    string
	jobs    []types.UID // whose pods it has
	members map[types.UID]bool
	size    int // where no Job tells
	done    int // where no Job tells: pods that succeeded
	bound   int
	whole   int // how many it had when it was last complete, 0 since it had none
	partial *PartialGang
}

// PartialGang is a stretch of time in which a gang had some pods on nodes but not all.
// Pods that ended or are told to stop do not count. Pods that a gang was not complete
// with before, when it grows, are not missed.
type PartialGang struct {
	Gang        string
	Bound, Need int // when it began
	From        time.Duration
	For         time.Duration
	Broken      bool // it was complete before, and lost pods
}

// Labels that make gangs.
const (
	labelGang     = "muster.dev/gang"
	labelGangSize = "muster.dev/gang-size"
)

func (ol *onlooker) gang(name string) *gangState {
	g := ol.gangs[name]
	if g == nil {
		g = &gangState{name: name, members: map[types.UID]bool{}}
		ol.gangs[name] = g
	}
	return g
}

// watchJob has a Job be, or no longer be, part of a gang.
func (ol *onlooker) watchJob(s *jobState, u *unstructured.Unstructured, gone bool) {
	if s.gang == nil {
		name := "Job " + u.GetNamespace() + "/" + u.GetName()
		if ref, ok := controller(u); ok && ol.controllers.sets[ref.UID] != nil {
			name = "JobSet " + u.GetNamespace() + "/" + ref.Name
		}
		s.gang = ol.gang(name)
		s.gang.jobs = append(s.gang.jobs, u.GetUID())
	}
	if gone {
		s.gang.jobs = slices.DeleteFunc(s.gang.jobs, func(uid types.UID) bool { return uid == u.GetUID() })
	}
	ol.assess(s.gang)
}

// join finds the gang of a new pod.
func (ol *onlooker) join(p *corev1.Pod, s *podState) {
	ref, owned := controller(p)
	if owned {
		s.job = ol.controllers.jobs[ref.UID]
	}
	if p.Spec.SchedulerName != ol.options.Scheduler {
		return
	}
	label := p.Labels[labelGang]
	if label == "" {
		label = p.Annotations[labelGang]
	}
	job, _ := ol.store.byUID[ref.UID].(*unstructured.Unstructured)
	switch {
	case label != "" && (s.job == nil || number(job.Object, "spec.parallelism", 1) == 1):
		s.gang = ol.gang("gang " + p.Namespace + "/" + label)
		s.gang.size, _ = strconv.Atoi(cmp.Or(p.Labels[labelGangSize], p.Annotations[labelGangSize]))
	case s.job != nil:
		s.gang = s.job.gang
	default:
		s.gang = ol.gang("Pod " + p.Namespace + "/" + p.Name)
		s.gang.size = 1
	}
	s.gang.members[p.UID] = true
}

// watchGang counts a pod in its gang.
func (ol *onlooker) watchGang(s *podState, p *corev1.Pod, gone bool) {
	g := s.gang
	if g == nil {
		return
	}
	if bound := !gone && p.Spec.NodeName != "" && active(p); bound != s.bound {
		s.bound = bound
		if bound {
			g.bound++
		} else {
			g.bound--
		}
	}
	if g.members[p.UID] && (gone || ended(p)) {
		delete(g.members, p.UID)
		if p.Status.Phase == corev1.PodSucceeded {
			g.done++
		}
	}
	ol.assess(g)
	if g.partial == nil && len(g.members) == 0 && len(g.jobs) == 0 {
		delete(ol.gangs, g.name)
	}
}

// wanted is how many pods of a gang should be on nodes now. Those of Jobs that a client
// has suspended count only with suspended.
func (ol *onlooker) wanted(g *gangState, count suspension) (n int) {
	for _, uid := range g.jobs {
		job := ol.store.byUID[uid].(*unstructured.Unstructured)
		n += int(ol.wantedOf(job, count))
	}
	if len(g.jobs) == 0 && len(g.members) > 0 {
		return max(g.size-g.done, 0)
	}
	return n
}

// suspension says whether gangs that a client has suspended want pods.
type suspension uint8

const (
	without suspension = iota
	suspended
)

func (ol *onlooker) wantedOf(job *unstructured.Unstructured, count suspension) int64 {
	s := ol.controllers.jobs[job.GetUID()]
	if s == nil || finished(job) {
		return 0
	}
	if truth(job.Object, "spec.suspend") {
		ref, _ := controller(job)
		if count == without || !ol.halted[job.GetUID()] && !ol.halted[ref.UID] {
			return 0
		}
	}
	return min(s.left(job.Object))
}

// halt notes that a client has suspended an object, which therefore still waits.
func (ol *onlooker) halt(o *unstructured.Unstructured, suspended bool) {
	if ol.halted[o.GetUID()] = suspended; !suspended {
		delete(ol.halted, o.GetUID())
	}
}

// assess sees whether a gang has some of its pods on nodes but not all.
func (ol *onlooker) assess(g *gangState) {
	want := ol.wanted(g, without)
	broken := g.whole > 0
	need := want
	if broken {
		need = min(want, g.whole)
	}
	switch {
	case g.bound == 0:
		g.whole = 0
	case g.bound >= want:
		g.whole = want
	}
	at := ol.clock.since()
	isPartial := g.bound > 0 && g.bound < need
	if isPartial && g.partial == nil {
		g.partial = &PartialGang{Gang: g.name, Bound: g.bound, Need: need, From: at, Broken: broken}
	}
	if !isPartial && g.partial != nil {
		if g.partial.For = at - g.partial.From; g.partial.For > 0 {
			ol.history = append(ol.history, *g.partial)
		}
		g.partial = nil
	}
}

// Partial are the gangs that are partial now, by name.
func (w *World) Partial() (all []PartialGang) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.onlooker.gangs)) {
		if p := w.onlooker.gangs[name].partial; p != nil {
			now := *p
			now.For = w.clock.since() - p.From
			all = append(all, now)
		}
	}
	return all
}

// WerePartial are the stretches of time in which gangs were partial and that are over,
// but for those that took no time.
func (w *World) WerePartial() []PartialGang {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.onlooker.history)
}

// Waiting are the gangs that lack pods on nodes, those included that a client has
// suspended.
func (w *World) Waiting() (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.onlooker.waiting()
}

func (ol *onlooker) waiting() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(ol.gangs)) {
		if g := ol.gangs[name]; g.bound < ol.wanted(g, suspended) {
			names = append(names, name)
		}
	}
	return names
}

// Settled reports whether no gang lacks pods on nodes.
func (w *World) Settled() bool { return len(w.Waiting()) == 0 }

// Worked is how long the pods of a Job have run, that of pods left out whose work was
// lost when they were stopped.
func (w *World) Worked(namespace, job string) (all time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	mine := namespace + "/Job/" + job + "/"
	for of, kept := range w.kubelets.saved {
		if strings.HasPrefix(of, mine) {
			for _, d := range kept {
				all += d
			}
		}
	}
	for uid, s := range w.kubelets.pods {
		if p, ok := w.store.byUID[uid].(*corev1.Pod); ok && s.running && strings.HasPrefix(progress(p), mine) {
			all += s.done + w.clock.now.Sub(s.since)
		}
	}
	return all
}
