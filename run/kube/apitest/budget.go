package apitest

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// budgets are the disruption budgets of a namespace, by name.
func (st *store) budgets(namespace string) (all []*policyv1.PodDisruptionBudget) {
	if st.budgeted == 0 {
		return nil // most worlds have none, and this is asked for every change of a pod
	}
	for key, o := range st.objects {
		if b, ok := o.(*policyv1.PodDisruptionBudget); ok && key.namespace == namespace {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b *policyv1.PodDisruptionBudget) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func protects(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	s, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && s.Matches(labels.Set(p.Labels))
}

func (co *controllers) markBudgets(p *corev1.Pod) {
	for _, b := range co.store.budgets(p.Namespace) {
		if protects(b, p) {
			co.mark(b.UID)
		}
	}
}

// syncBudget counts how many disruptions a budget allows.
func (co *controllers) syncBudget(b *policyv1.PodDisruptionBudget) {
	var all, healthy int32
	disrupted := maps.Clone(b.Status.DisruptedPods)
	for key, o := range co.store.objects {
		p, ok := o.(*corev1.Pod)
		if !ok || key.namespace != b.Namespace || !protects(b, p) || ended(p) {
			continue
		}
		all++
		if _, leaves := disrupted[p.Name]; p.DeletionTimestamp == nil && !leaves && isReady(p) {
			healthy++
		}
	}
	maps.DeleteFunc(disrupted, func(name string, _ metav1.Time) bool {
		p, ok := get[*corev1.Pod](co.store, id{kindPod, b.Namespace, name})
		return !ok || p.DeletionTimestamp != nil
	})
	need := neededBy(b, all)
	c := *b
	c.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, DisruptedPods: disrupted, ExpectedPods: all,
		CurrentHealthy: healthy, DesiredHealthy: need, DisruptionsAllowed: max(healthy-need, 0)}
	if c.Status.DisruptionsAllowed != b.Status.DisruptionsAllowed || healthy != b.Status.CurrentHealthy || need != b.Status.DesiredHealthy || all != b.Status.ExpectedPods || len(disrupted) != len(b.Status.DisruptedPods) {
		co.store.put(&c)
	}
}

// neededBy is how many of so many pods a budget wants healthy.
func neededBy(b *policyv1.PodDisruptionBudget, all int32) int32 {
	switch {
	case b.Spec.MinAvailable != nil:
		return portion(*b.Spec.MinAvailable, all)
	case b.Spec.MaxUnavailable != nil:
		return max(all-portion(*b.Spec.MaxUnavailable, all), 0)
	}
	return all
}

func portion(v intstr.IntOrString, of int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(&v, int(of), true)
	if err != nil {
		return of
	}
	return int32(n)
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
