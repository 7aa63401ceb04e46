package gang

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// reader reads one gang and gathers what is wrong with it.
type reader struct {
	owners    Owners
	namespace string
	object    string // what problems are about where they do not say
	problems  []Problem

	key   Key
	pods  []*corev1.Pod
	top   *unstructured.Unstructured // nil where labels make the gang, or a pod alone
	below *unstructured.Unstructured // the JobSet of a TrainJob
	gang  *Gang

	retries     int64
	limit       unit.Duration
	highest     *int32 // priority
	above       bool   // it is that of a group and counts instead of the pods'
	least, most int64  // of the workers of a kind that is elastic by itself
}

// Read reads the gang of a key. pods are those whose key it is, in any order, none
// where all are gone for the moment; finished and terminating ones belong to them.
// If the problems hold, the gang is not to be scheduled, and what could be read of it
// is returned nevertheless.
func Read(key Key, pods []*corev1.Pod, owners Owners) (Gang, []Problem) {
	g := Gang{Key: key, Name: key.String()}
	r := &reader{owners: owners, namespace: key.Namespace, object: called(key.Kind, key.Namespace, key.Name), key: key, gang: &g, pods: slices.Clone(pods)}
	slices.SortFunc(r.pods, byAge)
	k, has := kindNamed(key.Kind)
	switch {
	case !has || key.Kind == kindPod:
		g.Missing = len(pods) == 0
	case key.Kind == kindStatefulSet:
		g.Missing = len(pods) == 0 && !r.ordinalStays(k)
	default:
		r.top, has = found(owners, k.ref(key), key.Namespace)
		g.Missing = !has || groupSize[key.Kind] != nil && len(pods) == 0
		if has && r.top.GetDeletionTimestamp() != nil || !has && len(pods) > 0 {
			r.problem(Problem{Reason: ReasonOwner, Found: "that it is deleted", Do: "its pods go with it, or delete them: they are not scheduled", Holds: true})
		}
	}
	if !g.Missing {
		r.shape(k)
	}
	r.finish()
	return g, r.problems
}

// shape reads roles, size and control of the gang from what makes it.
func (r *reader) shape(k Kind) {
	switch {
	case r.key.Kind == kindPod || r.key.Kind == kindStatefulSet:
		r.readPod()
	case r.top == nil || groupSize[r.key.Kind] != nil:
		r.readGroup()
	case r.key.Kind == kindJob:
		r.readJob()
	case r.key.Kind == kindJobSet:
		r.suspends("spec", "suspend")
		r.readJobSet(r.top)
	case r.key.Kind == kindTrainJob:
		r.readTrainJob()
	case r.key.Kind == kindLWS:
		r.readLeaderWorkerSet()
	case r.key.Kind == kindRayCluster:
		r.readRayCluster()
	case r.key.Kind == kindRayJob:
		r.readRayJob()
	default:
		r.readKubeflow(k)
	}
}

// readPod reads a pod that is a job by itself.
func (r *reader) readPod() {
	g := r.gang
	g.Size = 1
	g.Roles = []Role{{Name: "pod", Count: 1, completions: 1}}
	switch {
	case r.key.Kind == kindStatefulSet:
		g.Stop, g.remade, r.retries = Evict, true, maxRetries
		g.Roles[0].completions = endless
	case controlled(r.pods[len(r.pods)-1]):
		g.Stop = Evict // what is made instead has a name and a key of its own
	default:
		g.Stop = EvictForGood
	}
}

// ordinalStays reports whether the StatefulSet will make the pod of the key again.
func (r *reader) ordinalStays(k Kind) bool {
	o, ok := found(r.owners, k.ref(r.key), r.namespace)
	if !ok || o.GetDeletionTimestamp() != nil {
		return false
	}
	start, _, _ := wholeAt(o.Object, "spec", "ordinals", "start")
	n, set, ok := wholeAt(o.Object, "spec", "replicas")
	return ok && (!set && r.key.Group == 0 || int64(r.key.Group)-start < n)
}

// finish fills in what follows from the roles and the annotations.
func (r *reader) finish() {
	g := r.gang
	sum := int64(0)
	for i := range g.Roles {
		role := &g.Roles[i]
		sum += int64(role.Count)
		if !role.Late {
			g.First += role.Count
		}
		if role.completions == 0 {
			role.completions = role.Count
		}
	}
	if r.top != nil && groupSize[r.key.Kind] == nil {
		g.Size = int32(min(sum, maxGang))
	}
	if sum > maxGang {
		r.problem(Problem{Reason: ReasonSize, Found: fmt.Sprintf("more than %d pods in all", maxGang), Expected: "no more than that",
			Do: "make it smaller: until then the gang waits", Holds: true})
	}
	if g.Size == 0 && !g.Missing && !Holds(r.problems) {
		r.problem(Problem{Reason: ReasonSize, Found: "a size of 0 pods", Expected: "at least 1", Do: "raise it: until then there is nothing to schedule", Holds: true})
	}
	g.Sort(r.pods)
	r.templates()
	g.Job = r.job()
}

// templates gives every role the pod that stands for it: the first by rank that lives,
// else the first that is left, else the owner's template.
func (r *reader) templates() {
	g := r.gang
	for _, pods := range [][]*corev1.Pod{r.living(), r.pods} {
		for _, p := range pods {
			if role, _, ok := g.Place(p); ok && g.Roles[role].Template == nil {
				g.Roles[role].Template = templateOf(p)
			}
		}
	}
	for i := range g.Roles {
		role := &g.Roles[i]
		raw, ok := role.raw.(map[string]any)
		if role.Template != nil || role.Count == 0 {
			continue
		}
		var t corev1.PodTemplateSpec
		if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(raw, &t) != nil {
			r.problem(Problem{Reason: ReasonTemplate, Field: "the template of " + role.Name, Found: show(role.raw), Expected: "the template of a pod",
				Do: "correct it: until then the gang waits", Holds: true})
			continue
		}
		role.Template = &t
	}
}

// templateOf is a pod as a template: the node it happens to be on is not asked for.
func templateOf(p *corev1.Pod) *corev1.PodTemplateSpec {
	t := &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec}
	t.Spec.NodeName = ""
	return t
}

// child looks up an object that goes by name and belongs to the one read.
func (r *reader) child(kind, name string) *unstructured.Unstructured {
	k, _ := kindNamed(kind)
	o, _ := found(r.owners, metav1.OwnerReference{APIVersion: k.APIVersion, Kind: k.Kind, Name: name}, r.namespace)
	return o
}

// suspends notes the field that stops the gang and whether it is set.
func (r *reader) suspends(path ...string) {
	g := r.gang
	g.Stop, g.remade, g.Control = Suspend, true, reference(r.top)
	g.SuspendField = path[0]
	for _, name := range path[1:] {
		g.SuspendField += "." + name
	}
	g.Suspended = boolAt(r.top.Object, path...)
}

// seconds reads a limit in seconds and keeps the shortest.
func (r *reader) seconds(v any, field string, path ...string) {
	n, set, ok := wholeAt(v, path...)
	if !set {
		return
	}
	const most = 1000 * 365 * 86400 // as for all durations: more is a mistake
	if !ok || n < 1 || n > most {
		r.problem(Problem{Reason: ReasonAnnotation, Field: field, Found: show(at(v, path...)), Expected: fmt.Sprintf("seconds from 1 to %d", most),
			Do: "correct it: it is not counted as a time limit"})
		return
	}
	if d := unit.Duration(n) * unit.Second; r.limit == 0 || d < r.limit {
		r.limit = d
	}
}

// retried reads how often failures are forgiven.
func (r *reader) retried(v any, otherwise int64, path ...string) {
	if n, set, ok := wholeAt(v, path...); set && ok && n >= 0 {
		otherwise = n
	}
	r.retries = otherwise
}

// priority reads that of a pod group, which is above that of its pods.
func (r *reader) priority(v any) {
	if n, set, ok := wholeAt(v, "spec", "priority"); set && ok && n == int64(int32(n)) {
		p := int32(n)
		r.highest, r.above = &p, true
	}
}

// ends reads from the conditions of an object whether it is over.
func (r *reader) ends(o *unstructured.Unstructured, success, failure string) {
	for _, c := range listAt(content(o), "status", "conditions") {
		if textAt(c, "status") != string(corev1.ConditionTrue) {
			continue
		}
		switch textAt(c, "type") {
		case success:
			r.gang.Ending = Ending{Succeeded, textAt(c, "reason"), textAt(c, "message")}
			return
		case failure:
			r.gang.Ending = Ending{Failed, textAt(c, "reason"), textAt(c, "message")}
			return
		}
	}
}

func (r *reader) problem(p Problem) {
	if p.Object == "" {
		p.Object = r.object
	}
	if !slices.Contains(r.problems, p) {
		r.problems = append(r.problems, p)
	}
}

// maxRetries is the most of a job, as in the files that Muster reads.
const maxRetries = 1000

// job puts together what is asked.
func (r *reader) job() workload.Job {
	g := r.gang
	j := workload.Job{Name: g.Name, Resources: workload.Resources{Gang: g.Size}, Retries: int32(min(r.retries, maxRetries))}
	if r.top != nil {
		j.Submit = instant(r.top.GetCreationTimestamp())
	} else if len(r.pods) > 0 {
		j.Submit = instant(slices.MinFunc(r.pods, byAge).CreationTimestamp)
	}
	for _, p := range r.pods {
		if own := p.Spec.Priority; own != nil && !r.above && (r.highest == nil || *own > *r.highest) {
			r.highest = own
		}
	}
	if r.highest != nil {
		j.Priority = *r.highest
	}
	for i := range g.Roles {
		if t := g.Roles[i].Template; t != nil && t.Spec.ActiveDeadlineSeconds != nil {
			r.seconds(map[string]any{"n": *t.Spec.ActiveDeadlineSeconds}, "spec.activeDeadlineSeconds of the pods", "n")
		}
	}
	j.TimeLimit = r.limit
	r.declared(&j)
	return j
}

// instant is a time of Kubernetes, 0 where it has none.
func instant(t metav1.Time) unit.Time {
	if t.IsZero() {
		return 0
	}
	return unit.Time(t.UnixMicro())
}
