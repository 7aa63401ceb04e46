package filter

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	fwk "k8s.io/kube-scheduler/framework"
)

// termIndex holds the required anti-affinity of the pods that are placed, each different term once. It tells quickly
// whether any of them meets a pod that has no constraint of its own: a term that asks for a label value is found by it.
type termIndex struct {
	byKey   map[string]*heldTerm
	byLabel map[string][]*heldTerm // label=value
	other   []*heldTerm            // terms that ask for no particular value
}

type heldTerm struct {
	key    string
	term   fwk.AffinityTerm
	labels []string // where it is filed
	pods   int
}

func newTermIndex() termIndex {
	return termIndex{byKey: map[string]*heldTerm{}, byLabel: map[string][]*heldTerm{}}
}

func (x *termIndex) add(pod *corev1.Pod) {
	for _, required := range fwk.GetPodAntiAffinityTerms(pod.Spec.Affinity) {
		key := termKey(pod, required)
		if held := x.byKey[key]; held != nil {
			held.pods++
			continue
		}
		parsed, err := fwk.GetAffinityTerms(pod, []corev1.PodAffinityTerm{required})
		if err != nil {
			continue // upstream ignores a term that it cannot parse
		}
		held := &heldTerm{key: key, term: parsed[0], labels: labelsAsked(parsed[0].Selector), pods: 1}
		x.byKey[key] = held
		if len(held.labels) == 0 {
			x.other = append(x.other, held)
		}
		for _, label := range held.labels {
			x.byLabel[label] = append(x.byLabel[label], held)
		}
	}
}

func (x *termIndex) remove(pod *corev1.Pod) {
	for _, required := range fwk.GetPodAntiAffinityTerms(pod.Spec.Affinity) {
		held := x.byKey[termKey(pod, required)]
		if held == nil {
			continue
		}
		held.pods--
		if held.pods > 0 {
			continue
		}
		this := func(h *heldTerm) bool { return h == held }
		delete(x.byKey, held.key)
		x.other = slices.DeleteFunc(x.other, this)
		for _, label := range held.labels {
			x.byLabel[label] = slices.DeleteFunc(x.byLabel[label], this)
			if len(x.byLabel[label]) == 0 {
				delete(x.byLabel, label)
			}
		}
	}
}

// matching returns the keys of the terms that meet a pod, sorted.
func (x *termIndex) matching(pod *corev1.Pod, namespace labels.Set) []string {
	if len(x.byKey) == 0 {
		return nil
	}
	var out []string
	look := func(held []*heldTerm) {
		for _, h := range held {
			if h.term.Matches(pod, namespace) {
				out = append(out, h.key)
			}
		}
	}
	look(x.other)
	if len(x.byLabel) > 0 {
		for key, value := range pod.Labels {
			look(x.byLabel[key+"="+value])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func termKey(pod *corev1.Pod, required corev1.PodAffinityTerm) string {
	return digest([]any{pod.Namespace, required})
}

// labelsAsked returns the label values of which a pod must have one to match, from the first requirement that says so.
func labelsAsked(selector labels.Selector) []string {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil
	}
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			var out []string
			for value := range r.Values() {
				out = append(out, r.Key()+"="+value)
			}
			slices.Sort(out)
			return out
		}
	}
	return nil
}
