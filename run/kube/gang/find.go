package gang

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxOwners bounds how far up owners are followed; the longest real chain, that of a
// worker of a LeaderWorkerSet, has four.
const maxOwners = 8

// Find returns the key of the gang that a pod belongs to. A zero key means that it
// cannot be told yet; the problems say why.
func Find(pod *corev1.Pod, owners Owners) (Key, []Problem) {
	r := &reader{owners: owners, namespace: pod.Namespace, object: called(kindPod, pod.Namespace, pod.Name)}
	key, ok := r.find(pod)
	if !ok {
		return Key{}, r.problems
	}
	return key, r.problems
}

func (r *reader) find(pod *corev1.Pod) (Key, bool) {
	top, kind, ok := r.climb(pod)
	if !ok {
		return Key{}, false
	}
	if top != nil && !(kind.Name == kindJob && single(top)) {
		return r.owned(pod, top, kind)
	}
	if g, ok := groupOf(pod); ok {
		return r.grouped(pod, g, top)
	}
	if top != nil {
		return r.owned(pod, top, kind)
	}
	return r.alone(pod), true
}

// climb follows a pod's owners to the highest that makes gangs; nil where none does.
func (r *reader) climb(pod *corev1.Pod) (top *unstructured.Unstructured, kind Kind, ok bool) {
	refs, seen := pod.OwnerReferences, []string{kindPod + " " + pod.Name}
	under := []string(nil) // any kind may own the pod itself
	for {
		ref, has := controller(refs)
		k, known := kindOf(ref)
		if !has || !known || under != nil && !slices.Contains(under, k.Name) {
			return top, kind, true
		}
		if k.Name == kindStatefulSet && len(seen) == 1 && pod.Labels[labelLWS] == "" {
			return nil, Kind{}, true // nothing above a plain one is asked
		}
		step := ref.Kind + " " + ref.Name
		seen = append(seen, step)
		if slices.Contains(seen[:len(seen)-1], step) || len(seen) > maxOwners {
			r.problem(Problem{Reason: ReasonCycle, Field: "metadata.ownerReferences", Found: "owners in a circle or too deep: " + strings.Join(seen, ", owned by "),
				Expected: fmt.Sprintf("at most %d owners, each once", maxOwners-1), Do: "remove the wrong owner reference: until then the pod waits", Holds: true})
			return nil, Kind{}, false
		}
		o, there := found(r.owners, ref, pod.Namespace)
		if !there {
			r.problem(Problem{Reason: ReasonOwner, Field: "metadata.ownerReferences", Found: step + ", which is not there",
				Expected: "an owner that exists with UID " + string(ref.UID), Do: "delete the pod if its owner is gone, or install what defines " + ref.Kind + ": until then the pod waits", Holds: true})
			return nil, Kind{}, false
		}
		if k.Name != kindPod && k.Name != kindStatefulSet {
			top, kind = o, k
		}
		refs, under = o.GetOwnerReferences(), append([]string{""}, k.under...)
	}
}

// owned returns the key of a gang that has an object of its own.
func (r *reader) owned(pod *corev1.Pod, top *unstructured.Unstructured, kind Kind) (Key, bool) {
	key := Key{Namespace: pod.Namespace, Kind: kind.Name, Name: top.GetName(), UID: top.GetUID()}
	switch kind.Name {
	case kindLWS:
		index, ok := indexIn(pod.Labels, labelLWSGroup)
		if !ok {
			r.problem(Problem{Reason: ReasonSize, Field: "label " + labelLWSGroup, Found: show(pod.Labels[labelLWSGroup]), Expected: "the index of the pod's group",
				Do: "let the LeaderWorkerSet controller make the pod: until then it waits", Holds: true})
			return Key{}, false
		}
		key.Group = index
	case kindJobSet:
		key.Group = stageOf(top, pod.Labels[labelReplicatedJob])
	case kindTrainJob:
		key.Group = stageOf(r.child(kindJobSet, top.GetName()), pod.Labels[labelReplicatedJob])
	}
	return key, true
}

// grouped returns the key of a pod that labels put into a group. job is the Job of
// one pod that it comes from, nil for none.
func (r *reader) grouped(pod *corev1.Pod, g grouping, job *unstructured.Unstructured) (Key, bool) {
	key := Key{Namespace: pod.Namespace, Kind: g.kind, Name: g.name}
	if k, has := kindNamed(g.kind); has {
		o, ok := found(r.owners, k.ref(key), pod.Namespace)
		if !ok {
			r.problem(Problem{Reason: ReasonOwner, Field: g.field, Found: quote(g.name) + ", a PodGroup of " + apiGroup(k.APIVersion) + " that is not there",
				Expected: "the name of one that exists", Do: "create it: until then the pod waits", Holds: true})
			return Key{}, false
		}
		key.UID = o.GetUID()
		if g.kind == kindPodGroup && at(o.Object, "spec", "schedulingPolicy", "basic") != nil {
			return r.ungrouped(pod, job), true // basic: each pod by itself
		}
		if n, set, ok := wholeAt(o.Object, groupSize[g.kind]...); job != nil && set && ok && n <= 1 {
			return r.ungrouped(pod, job), true
		}
	} else if job != nil && valueOf(pod.Labels, pod.Annotations, g.size) == "1" {
		return r.ungrouped(pod, job), true
	}
	return key, true
}

// ungrouped is the key of a pod whose group means nothing.
func (r *reader) ungrouped(pod *corev1.Pod, job *unstructured.Unstructured) Key {
	if job != nil {
		return Key{Namespace: pod.Namespace, Kind: kindJob, Name: job.GetName(), UID: job.GetUID()}
	}
	return r.alone(pod)
}

// services are kinds whose pods are known to be jobs of their own.
var services = []string{"ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController"}

// alone is the key of a pod that is a job by itself.
func (r *reader) alone(pod *corev1.Pod) Key {
	ref, has := controller(pod.OwnerReferences)
	if k, _ := kindOf(ref); has && k.Name == kindStatefulSet {
		if ordinal, ok := ordinalOf(pod, ref); ok {
			return Key{Namespace: pod.Namespace, Kind: kindStatefulSet, Name: ref.Name, UID: ref.UID, Group: ordinal}
		}
	}
	if has && !slices.Contains(services, ref.Kind) {
		r.problem(Problem{Reason: ReasonUnknownOwner, Field: "metadata.ownerReferences", Found: "an owner of kind " + ref.Kind + " (" + ref.APIVersion + "), of which nothing is known",
			Do: "each of its pods is scheduled by itself; label them " + AnnotationGang + " and " + AnnotationGangSize + " to have them start together"})
	}
	return Key{Namespace: pod.Namespace, Kind: kindPod, Name: pod.Name, UID: pod.UID}
}

// ordinalOf is the number of a StatefulSet's pod.
func ordinalOf(pod *corev1.Pod, set metav1.OwnerReference) (int32, bool) {
	if n, ok := indexIn(pod.Labels, labelPodIndex); ok {
		return n, true
	}
	return parseIndex(strings.TrimPrefix(pod.Name, set.Name+"-"))
}

// indexIn reads an index from a label or annotation.
func indexIn(values map[string]string, name string) (int32, bool) { return parseIndex(values[name]) }

func parseIndex(s string) (int32, bool) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int32(n), err == nil && n >= 0 && s[0] != '+'
}

// single reports whether a Job is of one pod and stays so.
func single(job *unstructured.Unstructured) bool {
	n, set, ok := wholeAt(job.Object, "spec", "parallelism")
	return (!set || ok && n <= 1) && job.GetAnnotations()[AnnotationElastic] == "" &&
		textAt(job.Object, "spec", "template", "metadata", "annotations", AnnotationElastic) == ""
}
