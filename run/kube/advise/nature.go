package advise

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/api"
)

// nature is what surrounds the driver in the other world: it stands behind the
// interfaces of package api, binds copies of pods, has them run at once, and makes
// them again when they are evicted or their owner is resumed.
type nature struct {
	adviser *Adviser
	objects map[objectKey]api.Change // that the driver was told, for one that begins anew
	back    []api.Change             // to be told
	later   []api.Change             // to be told after that
	byPod   map[types.UID]*job
	byName  map[types.NamespacedName][]*job       // that are not over, by what makes their pods
	parted  map[types.NamespacedName][]api.Change // objects that went in reality and are needed here
	silent  map[string]unit.Time                  // nodes that are not ready, since when
	due     map[*job]bool                         // jobs for which something comes
}

// objectKey tells objects apart as the driver does: pods by UID, others by name.
type objectKey struct {
	kind, namespace, name string
	uid                   types.UID
}

var (
	_ api.Pods   = (*nature)(nil)
	_ api.Owners = (*nature)(nil)
	_ api.Voice  = (*nature)(nil)
)

func newNature(a *Adviser) *nature {
	return &nature{adviser: a, objects: map[objectKey]api.Change{}, byPod: map[types.UID]*job{}, byName: map[types.NamespacedName][]*job{},
		parted: map[types.NamespacedName][]api.Change{},
		silent: map[string]unit.Time{}, due: map[*job]bool{}}
}

// tolerance is how long Kubernetes leaves pods on a node that is not ready.
const tolerance = 300 * unit.Second

// next is when something happens by itself.
func (n *nature) next() unit.Time {
	t := unit.Never
	for j := range n.due {
		t = min(t, j.ready, j.leaves)
	}
	for _, at := range n.silent {
		t = min(t, at)
	}
	return t
}

// happen has happen what is due.
func (n *nature) happen(now unit.Time) {
	for _, j := range n.sorted() {
		if j.leaves <= now {
			n.leave(j)
		}
		if j.ready <= now {
			j.ready = unit.Never
			for i, p := range j.pods {
				if p.Spec.NodeName != "" {
					n.set(j, i, running(p))
				}
			}
		}
		if j.leaves == unit.Never && j.ready == unit.Never {
			delete(n.due, j)
		}
	}
	for _, node := range slices.Sorted(maps.Keys(n.silent)) {
		if n.silent[node] <= now {
			n.silent[node] = unit.Never
			n.lose(node)
		}
	}
}

func (n *nature) sorted() []*job {
	return slices.SortedFunc(maps.Keys(n.due), func(a, b *job) int { return a.story.key.Compare(b.story.key) })
}

// changed tells the Core what changed in reality, and has happen what follows for pods
// from nodes that are lost. Owners of gangs that are not over here stay.
func (n *nature) changed(changes []api.Change) {
	for i := range changes {
		c := &changes[i]
		if o, ok := c.Object.(*unstructured.Unstructured); ok && c.Gone && len(n.byName[nameOf(o)]) > 0 {
			n.parted[nameOf(o)] = append(n.parted[nameOf(o)], *c)
			continue
		}
		n.pass(*c)
		switch o := c.Object.(type) {
		case *corev1.Node:
			_, was := n.silent[o.Name]
			switch {
			case c.Gone:
				delete(n.silent, o.Name)
				n.lose(o.Name)
			case ready(o):
				delete(n.silent, o.Name)
			case !was:
				n.silent[o.Name] = n.adviser.now.Add(tolerance)
			}
		case *unstructured.Unstructured:
			n.replaced(o)
		}
	}
}

// pass has the Core told of a change, unless what goes has been replaced already.
func (n *nature) pass(c api.Change) {
	key := keyFor(c.Object)
	if o, ok := c.Object.(*unstructured.Unstructured); ok && c.Gone {
		if now, there := n.objects[key].Object.(*unstructured.Unstructured); !there || now.GetUID() != o.GetUID() {
			return
		}
	}
	put(n.objects, key, c, c.Gone)
	n.back = append(n.back, c)
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func keyFor(o any) objectKey {
	switch o := o.(type) {
	case *corev1.Pod:
		return objectKey{kind: "Pod", uid: o.UID}
	case *unstructured.Unstructured:
		return objectKey{kind: o.GroupVersionKind().GroupKind().String(), namespace: o.GetNamespace(), name: o.GetName()}
	case metav1.Object:
		return objectKey{kind: fmt.Sprintf("%T", o), namespace: o.GetNamespace(), name: o.GetName()}
	}
	return objectKey{}
}

// all are the objects as they are, nodes first.
func (n *nature) all() []api.Change {
	keys := slices.SortedFunc(maps.Keys(n.objects), func(a, b objectKey) int {
		isNode := func(k objectKey) int { return map[bool]int{true: 0, false: 1}[k.kind == keyFor(&corev1.Node{}).kind] }
		return cmp.Or(isNode(a)-isNode(b), strings.Compare(a.kind, b.kind), strings.Compare(a.namespace, b.namespace),
			strings.Compare(a.name, b.name), strings.Compare(string(a.uid), string(b.uid)))
	})
	changes := make([]api.Change, 0, len(keys))
	for _, k := range keys {
		changes = append(changes, n.objects[k])
	}
	return changes
}

func ready(o *corev1.Node) bool {
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// tell hands the Core what happened to the copies, and reports whether there was
// anything. What is made again is told after what it replaces has been seen to go.
func (n *nature) tell() bool {
	if len(n.back) == 0 {
		for _, c := range n.later {
			n.pass(c)
		}
		n.later = nil
	}
	if len(n.back) == 0 {
		return false
	}
	n.adviser.core.Take(n.back)
	n.back = nil
	return true
}

// put gives a gang a pod, or takes in that its gates are others.
func (n *nature) put(j *job, p *corev1.Pod) {
	i := indexOfPod(j, p.UID)
	if i >= 0 {
		if j.pods[i].Spec.NodeName == "" {
			c := *j.pods[i]
			c.Spec.SchedulingGates = withoutKueue(p.Spec.SchedulingGates)
			n.set(j, i, &c)
		}
		return
	}
	j.pods = append(j.pods, copyOf(p))
	n.byPod[p.UID] = j
	n.needs(j, p)
	n.set(j, len(j.pods)-1, j.pods[len(j.pods)-1])
}

// needs notes which objects make a pod of a gang.
func (n *nature) needs(j *job, p *corev1.Pod) {
	names := []types.NamespacedName{{Namespace: j.story.key.Namespace, Name: j.story.key.Name}}
	refs := p.OwnerReferences
	for depth := 0; len(refs) > 0 && depth < 8; depth++ {
		names = append(names, types.NamespacedName{Namespace: p.Namespace, Name: refs[0].Name})
		gv, _ := schema.ParseGroupVersion(refs[0].APIVersion)
		o, _ := n.objects[objectKey{kind: gv.WithKind(refs[0].Kind).GroupKind().String(), namespace: p.Namespace, name: refs[0].Name}].Object.(*unstructured.Unstructured)
		if refs = nil; o != nil {
			refs = o.GetOwnerReferences()
		}
	}
	for _, name := range names {
		if !slices.Contains(j.names, name) {
			j.names = append(j.names, name)
			n.byName[name] = append(n.byName[name], j)
		}
	}
}

// set puts a pod of a gang in the place of what it was.
func (n *nature) set(j *job, i int, p *corev1.Pod) {
	j.pods[i] = p
	n.pass(api.Change{Object: p})
}

func withoutKueue(gates []corev1.PodSchedulingGate) (left []corev1.PodSchedulingGate) {
	for _, g := range gates {
		if !strings.HasPrefix(g.Name, gateKueue) {
			left = append(left, g)
		}
	}
	return left
}

func running(p *corev1.Pod) *corev1.Pod {
	c := *p
	c.Status.Phase = corev1.PodRunning
	return &c
}

// Bind implements api.Pods: the pod runs at once, or, where it starts again, when that
// is done.
func (n *nature) Bind(_ context.Context, pod *corev1.Pod, node string, notes map[string]string) error {
	j := n.byPod[pod.UID]
	if j == nil || indexOfPod(j, pod.UID) < 0 {
		return nil // it has ended
	}
	i := indexOfPod(j, pod.UID)
	c := *j.pods[i]
	c.Spec.NodeName, c.Annotations = node, merged(c.Annotations, notes)
	if j.cost > 0 {
		j.ready = n.adviser.now.Add(j.cost)
		n.due[j] = true
		n.set(j, i, &c)
		return nil
	}
	n.set(j, i, running(&c))
	return nil
}

func merged(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, b)
	return m
}

// Evict implements api.Pods: the whole gang leaves, after it has saved what it did.
func (n *nature) Evict(_ context.Context, pod *corev1.Pod, _ string) error {
	if j := n.byPod[pod.UID]; j != nil {
		n.stop(j)
	}
	return nil
}

// Explain implements api.Pods: nobody reads it.
func (n *nature) Explain(context.Context, *corev1.Pod, string, string) error { return nil }

// Say implements api.Voice: nobody listens.
func (n *nature) Say(corev1.ObjectReference, string, string, string) {}

// Set implements api.Owners: gangs have the sizes that they really had.
func (n *nature) Set(context.Context, corev1.ObjectReference, []string, int32) error { return nil }

// Suspend implements api.Owners. Pods are there again as soon as they are gone: only
// those of a gang that is resumed are bound.
func (n *nature) Suspend(_ context.Context, object corev1.ObjectReference, _ string, suspended bool) error {
	if suspended {
		for _, j := range slices.Clone(n.byName[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}]) {
			n.stop(j)
		}
	}
	return nil
}

// stop has a gang leave.
func (n *nature) stop(j *job) {
	save := unit.Duration(0)
	if c := n.adviser.engine.View(); j.id >= 0 && j.began != unit.Never && c.Job(j.id).Checkpoint.OnRequest {
		save = c.Job(j.id).Checkpoint.Save
	}
	if save == 0 {
		n.leave(j)
		return
	}
	j.leaves = min(j.leaves, n.adviser.now.Add(save))
	n.due[j] = true
}

// leave takes a gang's pods away. They are made again, and are the same ones then.
func (n *nature) leave(j *job) {
	n.gone(j)
	for i, p := range j.pods {
		j.pods[i] = copyOf(p)
		n.later = append(n.later, api.Change{Object: j.pods[i]})
	}
}

func (n *nature) gone(j *job) {
	j.leaves, j.ready = unit.Never, unit.Never
	for _, p := range j.pods {
		n.pass(api.Change{Object: p, Gone: true})
	}
}

// clear takes the pods of a gang away for good, and with them what made them.
func (n *nature) clear(j *job) {
	n.gone(j)
	for _, p := range j.pods {
		delete(n.byPod, p.UID)
	}
	n.later = slices.DeleteFunc(n.later, func(c api.Change) bool { return indexOfPod(j, c.Object.(*corev1.Pod).UID) >= 0 })
	for _, name := range j.names {
		left := slices.DeleteFunc(n.byName[name], func(x *job) bool { return x == j })
		put(n.byName, name, left, len(left) == 0)
		if len(left) == 0 {
			for _, c := range n.parted[name] {
				n.pass(c)
			}
			delete(n.parted, name)
		}
	}
	j.pods, j.names = nil, nil
	delete(n.due, j)
}

// lose takes away the gangs that have a pod on a node.
func (n *nature) lose(node string) {
	for _, j := range slices.Clone(n.adviser.live) {
		if slices.ContainsFunc(j.pods, func(p *corev1.Pod) bool { return p.Spec.NodeName == node }) {
			n.leave(j)
		}
	}
}

// replaced takes in that an object has taken the name of another: what is left of that
// one's gangs cannot be told from it any more.
func (n *nature) replaced(o *unstructured.Unstructured) {
	for _, j := range slices.Clone(n.byName[nameOf(o)]) {
		if k := j.story.key; k.Name == o.GetName() && k.Kind == o.GetKind() && k.UID != "" && k.UID != o.GetUID() {
			n.adviser.drop(j)
		}
	}
}
