package filter

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Disruptable says how many of these pods, evicted one after the other, would violate a PodDisruptionBudget as it is
// now, and which budget each of them meets. It counts as upstream's preemption does: a pod that the API server has
// already counted as disrupted does not count again.
func (h *Host) Disruptable(pods []*corev1.Pod) (violating int, words []string) {
	left := map[*policyv1.PodDisruptionBudget]int32{}
	byNamespace := map[string][]*policyv1.PodDisruptionBudget{}
	for _, pod := range pods {
		budgets, seen := byNamespace[pod.Namespace]
		if !seen {
			budgets, _ = h.budgets.PodDisruptionBudgets(pod.Namespace).List(labels.Everything())
			slices.SortFunc(budgets, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
			byNamespace[pod.Namespace] = budgets
			for _, b := range budgets {
				left[b] = b.Status.DisruptionsAllowed
			}
		}
		var violated []string
		for _, b := range budgets {
			if !protects(b, pod) {
				continue
			}
			left[b]--
			if left[b] < 0 {
				violated = append(violated, fmt.Sprintf("%s (%d disruptions allowed)", b.Name, b.Status.DisruptionsAllowed))
			}
		}
		if len(violated) > 0 {
			violating++
			words = append(words, fmt.Sprintf("evicting pod %s/%s would violate PodDisruptionBudget %s",
				pod.Namespace, pod.Name, strings.Join(violated, ", ")))
		}
	}
	return violating, words
}

// protects says that evicting the pod would count against the budget. One without a selector protects nothing.
func protects(b *policyv1.PodDisruptionBudget, pod *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil || selector.Empty() || len(pod.Labels) == 0 || !selector.Matches(labels.Set(pod.Labels)) {
		return false
	}
	_, counted := b.Status.DisruptedPods[pod.Name]
	return !counted
}
