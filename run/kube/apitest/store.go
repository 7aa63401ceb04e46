package apitest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/musterdl/muster/run/kube/api"
)

// id names an object. kind has the API group behind it (Job.batch) where it is not
// the core group.
type id struct{ kind, namespace, name string }

func idOf(o object) id {
	var kind string
	switch o.(type) { // typed objects need not say what they are
	default:
		kind = o.GetObjectKind().GroupVersionKind().GroupKind().String()
	case *corev1.Pod:
		kind = kindPod
	case *corev1.Node:
		kind = kindNode
	case *policyv1.PodDisruptionBudget:
		kind = kindBudget
	}
	if kind == "" {
		if all, _, err := scheme.Scheme.ObjectKinds(o); err == nil {
			kind = all[0].GroupKind().String()
		}
	}
	return id{kind, o.GetNamespace(), o.GetName()}
}

// Kinds as an id has them.
const (
	kindPod        = "Pod"
	kindNode       = "Node"
	kindNamespace  = "Namespace"
	kindJob        = "Job.batch"
	kindJobSet     = "JobSet.jobset.x-k8s.io"
	kindReplicaSet = "ReplicaSet.apps"
	kindBudget     = "PodDisruptionBudget.policy"
)

// refer is the id that a reference is to.
func refer(ref corev1.ObjectReference) id {
	kind := ref.Kind
	if group, _, ok := strings.Cut(ref.APIVersion, "/"); ok {
		kind += "." + group
	}
	return id{kind, ref.Namespace, ref.Name}
}

// reference points at an object.
func reference(o object) corev1.ObjectReference {
	k := o.GetObjectKind().GroupVersionKind()
	ref := corev1.ObjectReference{APIVersion: k.GroupVersion().String(), Kind: k.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
	if _, ok := o.(*corev1.Pod); ok {
		ref.APIVersion, ref.Kind = "v1", kindPod
	}
	return ref
}

// logged is a change that clients are to be told.
type logged struct {
	api.Change
	id    id
	at    time.Duration // since the start
	added bool
}

// stamp is the time as objects carry it, in whole seconds.
func (w *World) stamp() metav1.Time { return metav1.NewTime(w.now.Truncate(time.Second)) }

// add puts a new object into the store. The object belongs to the store from now on.
func (w *World) add(o object) error {
	key := idOf(o)
	if _, there := w.objects[key]; there {
		return fmt.Errorf("%s %s/%s is there already", key.kind, key.namespace, key.name)
	}
	w.made++
	o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", w.made)))
	o.SetCreationTimestamp(w.stamp())
	o.SetGeneration(1)
	w.put(o)
	return nil
}

// put replaces an object by a changed copy, which nobody may alter afterwards.
func (w *World) put(o object) {
	w.version++
	o.SetResourceVersion(strconv.FormatInt(w.version, 10))
	w.store(o)
}

// store puts an object as it is.
func (w *World) store(o object) {
	key := idOf(o)
	old := w.objects[key]
	if old != nil && old.GetUID() != o.GetUID() { // only a tape replaces one by another
		w.drop(old)
		old = nil
	}
	w.objects[key], w.byUID[o.GetUID()] = o, o
	if old == nil {
		for _, ref := range o.GetOwnerReferences() {
			w.below[ref.UID] = append(w.below[ref.UID], o.GetUID())
		}
	}
	w.tell(logged{Change: api.Change{Object: o}, id: key, added: old == nil})
	w.changed(old, o)
}

// drop takes an object out of the store.
func (w *World) drop(o object) {
	key := idOf(o)
	if now := w.objects[key]; now == nil || now.GetUID() != o.GetUID() {
		return
	}
	delete(w.objects, key)
	delete(w.byUID, o.GetUID())
	for _, ref := range o.GetOwnerReferences() {
		w.below[ref.UID] = slices.DeleteFunc(w.below[ref.UID], func(u types.UID) bool { return u == o.GetUID() })
	}
	w.tell(logged{Change: api.Change{Object: o, Gone: true}, id: key})
	w.changed(o, nil)
	w.after(w.options.Timing.Controller, func() { w.collect(o.GetUID()) })
}

// collect deletes what an object that is gone has owned.
func (w *World) collect(owner types.UID) {
	for _, uid := range slices.Clone(w.below[owner]) {
		w.remove(w.byUID[uid], "")
	}
	delete(w.below, owner)
	w.collectRecords(owner)
}

// remove deletes an object, a pod in its own time.
func (w *World) remove(o object, disruption string) {
	switch o := o.(type) {
	case nil:
	case *corev1.Pod:
		w.terminate(o, disruption)
	default:
		w.drop(o)
	}
}

func (w *World) tell(l logged) {
	l.at = w.now.Sub(w.start)
	w.log = append(w.log, l)
	if w.tape != nil {
		w.tape.steps = append(w.tape.steps, step{at: w.now, change: l.Change})
	}
}

// changed has those look at a change whom it concerns. old is nil for what is new, now
// for what is gone.
func (w *World) changed(old, now object) {
	o := now
	if now == nil {
		o = old
	}
	switch o.(type) {
	case *corev1.Pod:
		was, _ := old.(*corev1.Pod)
		is, _ := now.(*corev1.Pod)
		w.podChanged(was, is)
	case *corev1.Node:
		is, _ := now.(*corev1.Node)
		w.setRoom(o.GetName(), is)
	case *policyv1.PodDisruptionBudget:
		w.mark(o.GetUID())
	case *unstructured.Unstructured:
		was, _ := old.(*unstructured.Unstructured)
		is, _ := now.(*unstructured.Unstructured)
		w.ownerChanged(was, is)
	}
}

// ownerChanged has the controllers of an object and of its owner look at it.
func (w *World) ownerChanged(was, is *unstructured.Unstructured) {
	o := is
	if is == nil {
		o = was
	}
	switch idOf(o).kind {
	case kindJob:
		w.jobChanged(o, is == nil)
	case kindJobSet:
		w.setChanged(o, is == nil)
	}
	w.mark(o.GetUID())
	for _, ref := range o.GetOwnerReferences() {
		w.mark(ref.UID)
	}
}

// mark has the controller of an object look at it soon; many changes are one look.
func (w *World) mark(uid types.UID) {
	if w.marked[uid] || w.play != nil {
		return
	}
	w.marked[uid] = true
	w.after(w.options.Timing.Controller, func() {
		delete(w.marked, uid)
		w.sync(uid)
	})
}

// sync is one look of a controller at its object.
func (w *World) sync(uid types.UID) {
	switch o := w.byUID[uid].(type) {
	case *policyv1.PodDisruptionBudget:
		w.syncBudget(o)
	case *unstructured.Unstructured:
		switch idOf(o).kind {
		case kindJob:
			w.syncJob(o)
		case kindJobSet:
			w.syncJobSet(o)
		case kindReplicaSet:
			w.syncReplicaSet(o)
		}
	}
}

// children are the pods that an object owns, in the order in which they were made.
func (w *World) children(owner types.UID) (pods []*corev1.Pod) {
	for _, uid := range w.below[owner] {
		if p, ok := w.byUID[uid].(*corev1.Pod); ok {
			pods = append(pods, p)
		}
	}
	return pods
}

// rank is the order of kinds in a list: nodes first, pods after what owns them.
func rank(o object) int {
	switch o.(type) {
	case *corev1.Node:
		return 0
	case *corev1.Pod:
		return 2
	}
	return 1
}

// all are the objects as a list has them, each kind in the order it was made.
func (w *World) all() []api.Change {
	list := make([]object, 0, len(w.objects))
	for _, o := range w.objects {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b object) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(string(a.GetUID()), string(b.GetUID())))
	})
	changes := make([]api.Change, len(list))
	for i, o := range list {
		changes[i].Object = o
	}
	return changes
}

// get returns an object of the store.
func get[O object](w *World, key id) (O, bool) {
	o, ok := w.objects[key].(O)
	return o, ok
}
