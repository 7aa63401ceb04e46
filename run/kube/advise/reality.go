package advise

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/driver/fleet"
	"github.com/musterdl/muster/run/kube/gang"
	"github.com/musterdl/muster/run/kube/inventory"
)

// reality is what is known of the real cluster, up to the last batch of changes. It
// makes of each batch a moment for the other world to live through.
type reality struct {
	scheduler string
	all       bool
	rules     inventory.Rules

	owners  map[ownerKey]*unstructured.Unstructured
	nodes   map[string]*corev1.Node
	stories map[gang.Key]*story
	of      map[types.UID]*story
	ofName  map[types.NamespacedName][]*story
	orphans map[types.UID]*corev1.Pod // whose owners were not all there
	shown   map[types.UID]bool        // pods of nobody that were passed on
	first   bool                      // nothing was taken in yet

	dirty map[*story]bool
}

type ownerKey struct{ group, kind, namespace, name string }

// moment is a batch of changes for the other world.
type moment struct {
	at      unit.Time
	changes []api.Change
	arrive  []arrival
	turns   []turned
}

// arrival is a pod that a gang has from now on, as it was asked for.
type arrival struct {
	story *story
	pod   *corev1.Pod
}

// turned is how a gang stands from now on.
type turned struct {
	story *story
	turn  turn
}

func newReality(scheduler string, all bool, rules inventory.Rules) *reality {
	return &reality{scheduler: scheduler, all: all, rules: rules, first: true,
		owners: map[ownerKey]*unstructured.Unstructured{}, nodes: map[string]*corev1.Node{}, stories: map[gang.Key]*story{},
		of: map[types.UID]*story{}, ofName: map[types.NamespacedName][]*story{}, orphans: map[types.UID]*corev1.Pod{},
		shown: map[types.UID]bool{}, dirty: map[*story]bool{}}
}

// Find implements gang.Owners.
func (r *reality) Find(ref metav1.OwnerReference, namespace string) (*unstructured.Unstructured, bool) {
	group, _, ok := strings.Cut(ref.APIVersion, "/")
	if !ok {
		group = ""
	}
	o, ok := r.owners[ownerKey{group, ref.Kind, namespace, ref.Name}]
	if !ok || ref.UID != "" && o.GetUID() != ref.UID {
		return nil, false
	}
	return o, true
}

func keyOf(o *unstructured.Unstructured) ownerKey {
	k := o.GroupVersionKind()
	return ownerKey{k.Group, k.Kind, o.GetNamespace(), o.GetName()}
}

// apply takes in a batch of changes.
func (r *reality) apply(at unit.Time, changes []api.Change) *moment {
	m := &moment{at: at}
	before := map[*story]turn{}
	for i := range changes {
		c := &changes[i]
		switch o := c.Object.(type) {
		case *corev1.Node:
			if was := r.nodes[o.Name]; c.Gone || was == nil || !fleet.SameNode(was, o) {
				m.changes = append(m.changes, *c)
			}
			put(r.nodes, o.Name, o, c.Gone)
		case *corev1.Pod:
			r.takePod(at, o, c.Gone)
		case *unstructured.Unstructured:
			r.takeOwner(m, o, c.Gone)
		default:
			m.changes = append(m.changes, *c)
		}
	}
	for s := range r.dirty {
		before[s] = s.turn
		s.read(at, r)
		r.decide(s)
		for _, p := range s.made {
			if _, was := s.shown[p.UID]; s.followed && !was {
				s.shown[p.UID] = 0
				m.arrive = append(m.arrive, arrival{s, p})
			}
		}
	}
	slices.SortFunc(m.arrive, func(a, b arrival) int {
		return cmp.Or(a.story.key.Compare(b.story.key), strings.Compare(string(a.pod.UID), string(b.pod.UID)))
	})
	clear(r.dirty)
	for s, was := range before {
		if s.followed && s.turn != was {
			m.turns = append(m.turns, turned{s, s.turn})
		}
	}
	slices.SortFunc(m.turns, func(a, b turned) int { return a.story.key.Compare(b.story.key) })
	for i := range changes {
		if p, ok := changes[i].Object.(*corev1.Pod); ok {
			r.pass(m, p, changes[i].Gone)
		}
	}
	r.first = false
	return m
}

func put[K comparable, V any](m map[K]V, k K, v V, gone bool) {
	if gone {
		delete(m, k)
		return
	}
	m[k] = v
}

// ours reports whether a pod is for the scheduler that is followed.
func (r *reality) ours(p *corev1.Pod) bool {
	return cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName) == r.scheduler && !daemon(p)
}

func (r *reality) takePod(at unit.Time, p *corev1.Pod, gone bool) {
	s := r.of[p.UID]
	if s == nil {
		if gone {
			delete(r.orphans, p.UID)
			return
		}
		if !r.ours(p) {
			return
		}
		if s = r.enrol(at, p); s == nil {
			return
		}
	}
	s.age(at)
	s.put(at, p, gone)
	r.dirty[s] = true
}

// enrol finds the story of a pod that is new.
func (r *reality) enrol(at unit.Time, p *corev1.Pod) *story {
	key, _ := gang.Find(p, r)
	if key == (gang.Key{}) {
		r.orphans[p.UID] = p
		return nil
	}
	delete(r.orphans, p.UID)
	s := r.story(at, key)
	r.of[p.UID] = s
	return s
}

func (r *reality) story(at unit.Time, key gang.Key) *story {
	s := r.stories[key]
	if s == nil {
		s = newStory(key, at)
		r.stories[key] = s
		object := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
		r.ofName[object] = append(r.ofName[object], s)
	}
	return s
}

// decide says once whether a gang is followed. What was there already and had a node
// is not: nobody knows how long it waited and ran before.
func (r *reality) decide(s *story) {
	if s.decided || len(s.pods)+len(s.made) == 0 {
		return
	}
	s.decided = true
	if r.first && s.bound() {
		return
	}
	s.followed = r.all || s.size > 1
	for _, p := range s.pods {
		s.followed = s.followed || r.wantsDevices(p)
	}
	for _, p := range s.made {
		s.followed = s.followed || r.wantsDevices(p)
	}
}

func (r *reality) wantsDevices(p *corev1.Pod) bool {
	if len(p.Spec.ResourceClaims) > 0 {
		return true
	}
	counts := func(list corev1.ResourceList) bool {
		for name, q := range list {
			if !q.IsZero() && r.rules.Counts(name) {
				return true
			}
		}
		return false
	}
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			if counts(containers[i].Resources.Requests) || counts(containers[i].Resources.Limits) {
				return true
			}
		}
	}
	return false
}

// pass hands a pod on: as an arrival where its gang is followed, and as it is where it
// is none of ours and holds a part of a node.
func (r *reality) pass(m *moment, p *corev1.Pod, gone bool) {
	s := r.of[p.UID]
	switch {
	case s != nil && s.followed:
		if gates, was := s.shown[p.UID]; !gone && !s.lost && len(s.made) == 0 && s.started >= m.at && (!was || gates != len(p.Spec.SchedulingGates)) {
			s.shown[p.UID] = len(p.Spec.SchedulingGates)
			m.arrive = append(m.arrive, arrival{s, p})
		}
	case gone && r.shown[p.UID]:
		delete(r.shown, p.UID)
		m.changes = append(m.changes, api.Change{Object: p, Gone: true})
	case !gone && p.Spec.NodeName != "":
		r.shown[p.UID] = true
		delete(r.orphans, p.UID)
		m.changes = append(m.changes, api.Change{Object: p})
	}
	if gone {
		delete(r.of, p.UID)
		if s != nil {
			delete(s.shown, p.UID)
		}
		if s != nil && len(s.pods) == 0 && (s.turn.over || !s.followed) {
			r.forget(s)
		}
	}
}

func (r *reality) forget(s *story) {
	delete(r.stories, s.key)
	object := types.NamespacedName{Namespace: s.key.Namespace, Name: s.key.Name}
	if r.ofName[object] = slices.DeleteFunc(r.ofName[object], func(o *story) bool { return o == s }); len(r.ofName[object]) == 0 {
		delete(r.ofName, object)
	}
}

// takeOwner takes in an object that makes pods, and hands it on as it was made: what
// it says of how far its pods are, and whether it is suspended, is so in reality only.
func (r *reality) takeOwner(m *moment, o *unstructured.Unstructured, gone bool) {
	key := keyOf(o)
	was := r.owners[key]
	put(r.owners, key, o, gone)
	if !gone && (was == nil || was.GetUID() != o.GetUID()) {
		m.changes = append(m.changes, api.Change{Object: asMade(o)})
		r.make(m, o)
	} else if gone {
		m.changes = append(m.changes, api.Change{Object: o, Gone: true})
	}
	for _, p := range r.orphanList() {
		if s := r.enrol(m.at, p); s != nil {
			s.put(m.at, p, false)
			r.dirty[s] = true
		}
	}
	for depth := 0; o != nil && depth < 8; depth++ {
		for _, s := range r.ofName[types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}] {
			r.dirty[s] = true
		}
		o = r.above(o)
	}
}

func (r *reality) orphanList() []*corev1.Pod {
	list := make([]*corev1.Pod, 0, len(r.orphans))
	for _, p := range r.orphans {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return list
}

func (r *reality) above(o *unstructured.Unstructured) *unstructured.Unstructured {
	for _, ref := range o.GetOwnerReferences() {
		if x, ok := r.Find(ref, o.GetNamespace()); ok {
			return x
		}
	}
	return nil
}

// asMade is an owner without what became of it.
func asMade(o *unstructured.Unstructured) *unstructured.Unstructured {
	c := o.DeepCopy()
	unstructured.RemoveNestedField(c.Object, "status")
	unstructured.RemoveNestedField(c.Object, "metadata", "deletionTimestamp")
	unstructured.RemoveNestedField(c.Object, "spec", "suspend")
	unstructured.RemoveNestedField(c.Object, "spec", "runPolicy", "suspend")
	return c
}

// What Kueue holds back a Job, or a pod, with.
const (
	labelKueue = "kueue.x-k8s.io/queue-name"
	gateKueue  = "kueue.x-k8s.io/"
)

// make makes the pods of a Job that Kueue keeps suspended until its turn: it waits from
// now on, though it has no pods in reality.
func (r *reality) make(m *moment, o *unstructured.Unstructured) {
	suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend")
	if !suspended || o.GetKind() != "Job" || o.GroupVersionKind().Group != batchv1.GroupName || !r.queued(o) {
		return
	}
	var j batchv1.Job
	if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &j) != nil {
		return // its pods will come, and be read then
	}
	first := podOf(&j, 0)
	key, _ := gang.Find(first, r)
	if key == (gang.Key{}) || podsOf(&j) > mostPods || !r.ours(first) {
		return
	}
	s := r.story(m.at, key)
	if s.decided && len(s.made) == 0 {
		return // it has pods
	}
	for i := range podsOf(&j) {
		s.made = append(s.made, podOf(&j, i))
	}
	r.dirty[s] = true
}

// queued reports whether Kueue has a Job, or what owns it, in a queue.
func (r *reality) queued(o *unstructured.Unstructured) bool {
	for depth := 0; o != nil && depth < 8; depth++ {
		if o.GetLabels()[labelKueue] != "" {
			return true
		}
		o = r.above(o)
	}
	return false
}

// mostPods is more than any Job has at a time that is scheduled as a gang.
const mostPods = 10_000

// podsOf is how many pods a Job has at a time.
func podsOf(j *batchv1.Job) int {
	n := int32(1)
	if j.Spec.Parallelism != nil {
		n = *j.Spec.Parallelism
	}
	if c := j.Spec.Completions; c != nil {
		n = min(n, *c)
	}
	return int(n)
}

// podOf is the pod that the Job controller will make for an index.
func podOf(j *batchv1.Job, index int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: *j.Spec.Template.ObjectMeta.DeepCopy(), Spec: j.Spec.Template.Spec}
	n, yes := strconv.Itoa(index), true
	p.Namespace, p.Name, p.UID = j.Namespace, j.Name+"-"+n, types.UID(string(j.UID)+"/"+n)
	p.CreationTimestamp = j.CreationTimestamp
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: j.Name, UID: j.UID, Controller: &yes}}
	if j.Spec.CompletionMode != nil && *j.Spec.CompletionMode == batchv1.IndexedCompletion {
		for _, m := range []*map[string]string{&p.Labels, &p.Annotations} {
			if *m == nil {
				*m = map[string]string{}
			}
			(*m)[batchv1.JobCompletionIndexAnnotation] = n
		}
	}
	return p
}
