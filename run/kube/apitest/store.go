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

// store is the objects, as the API server has them. It knows neither who makes them nor who
// is concerned by a change.
type store struct {
	clock    *clock
	feed     *feed
	changed  func(old, now object) // is told what has changed
	version  int64                 // resourceVersion of the latest write
	made     int64                 // objects so far
	budgeted int                   // disruption budgets
	objects  map[id]object
	byUID    map[types.UID]object
	below    map[types.UID][]types.UID // what an object owns, in the order it was made
}

// add puts a new object into the store. The object belongs to the store from now on.
func (st *store) add(o object) error {
	key := idOf(o)
	if _, there := st.objects[key]; there {
		return fmt.Errorf("%s %s/%s is there already", key.kind, key.namespace, key.name)
	}
	st.made++
	o.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", st.made)))
	o.SetCreationTimestamp(st.clock.stamp())
	o.SetGeneration(1)
	st.put(o)
	return nil
}

// put replaces an object by a changed copy, which nobody may alter afterwards.
func (st *store) put(o object) {
	st.version++
	o.SetResourceVersion(strconv.FormatInt(st.version, 10))
	st.set(o)
}

// set puts an object as it is.
func (st *store) set(o object) {
	key := idOf(o)
	old := st.objects[key]
	if old != nil && old.GetUID() != o.GetUID() { // only a tape replaces one by another
		st.drop(old)
		old = nil
	}
	st.objects[key], st.byUID[o.GetUID()] = o, o
	if old == nil {
		for _, ref := range o.GetOwnerReferences() {
			st.below[ref.UID] = append(st.below[ref.UID], o.GetUID())
		}
	}
	st.feed.tell(logged{Change: api.Change{Object: o}, id: key, added: old == nil})
	st.changed(old, o)
}

// drop takes an object out of the store.
func (st *store) drop(o object) {
	key := idOf(o)
	if now := st.objects[key]; now == nil || now.GetUID() != o.GetUID() {
		return
	}
	delete(st.objects, key)
	delete(st.byUID, o.GetUID())
	for _, ref := range o.GetOwnerReferences() {
		st.below[ref.UID] = slices.DeleteFunc(st.below[ref.UID], func(u types.UID) bool { return u == o.GetUID() })
	}
	st.feed.tell(logged{Change: api.Change{Object: o, Gone: true}, id: key})
	st.changed(o, nil)
}

// forget lets go of what an object owned that is gone.
func (st *store) forget(owner types.UID) { delete(st.below, owner) }

// children are the pods that an object owns, in the order in which they were made.
func (st *store) children(owner types.UID) (pods []*corev1.Pod) {
	for _, uid := range st.below[owner] {
		if p, ok := st.byUID[uid].(*corev1.Pod); ok {
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
func (st *store) all() []api.Change {
	list := make([]object, 0, len(st.objects))
	for _, o := range st.objects {
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
func get[O object](st *store, key id) (O, bool) {
	o, ok := st.objects[key].(O)
	return o, ok
}

// update puts a changed copy of a pod. What change replaces must be new, too.
func (st *store) update(p *corev1.Pod, change func(*corev1.Pod)) {
	c := *p
	change(&c)
	st.put(&c)
}

// unique is a name that nothing else has had.
func (st *store) unique(prefix string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789" // as in Kubernetes: no words come out
	suffix, n := make([]byte, 5), (st.made+1)*2654435761%14348907
	for i := range suffix {
		suffix[i] = letters[n%27]
		n /= 27
	}
	return prefix + "-" + string(suffix)
}
