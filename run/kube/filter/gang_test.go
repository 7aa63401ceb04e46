package filter

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/musterdl/muster/run/kube/filter/filtertest"
)

// Each pod of these gangs fits alone; together only the first few do. Afterwards nothing may be left behind: the same
// question has the same answer, and the first pods can still be reserved for real.
func TestGangsThatFitOnlyInPart(t *testing.T) {
	for _, g := range filtertest.Gangs() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			h, _ := hostOf(t, g.Objects...)
			var gang []Placed
			for _, p := range g.Pods {
				gang = append(gang, Placed{Pod: p, Node: g.Node})
				if refusal, err := h.Check(t.Context(), gang[len(gang)-1:]); refusal != nil || err != nil {
					t.Fatalf("alone: %v, %v", refusal, err)
				}
			}
			for range 2 {
				refusal, err := h.Check(t.Context(), gang)
				if err != nil {
					t.Fatal(err)
				}
				if refusal == nil || refusal.Pod != gang[g.Fit].Pod {
					t.Fatalf("want pod %d refused, have %v", g.Fit, refusal)
				}
				if refusal, err := h.Check(t.Context(), gang[:g.Fit]); refusal != nil || err != nil {
					t.Fatalf("the first %d: %v, %v", g.Fit, refusal, err)
				}
			}
			var held []*Reservation
			for i, p := range gang {
				r, refusal, err := h.Reserve(t.Context(), p.Pod, p.Node)
				if err != nil {
					t.Fatal(err)
				}
				if i < g.Fit && refusal != nil {
					t.Fatalf("reserving pod %d: %s", i, refusal.Words())
				}
				if r != nil {
					held = append(held, r)
				}
			}
			for _, r := range held {
				r.Undo(t.Context())
			}
			if pods, _ := h.cache.PodCount(); pods != 0 {
				t.Errorf("%d pods are left after Undo", pods)
			}
			if refusal, err := h.Check(t.Context(), gang[:g.Fit]); refusal != nil || err != nil {
				t.Errorf("after Undo: %v, %v", refusal, err)
			}
		})
	}
}

// What upstream's preemption does is what we say may be done: it clears a node that we call crowded, and prefers
// victims whose eviction violates no budget.
func TestEvictionIsUpstreams(t *testing.T) {
	for _, e := range filtertest.Evictions() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			h, _ := hostOf(t, e.Objects...)
			u := upstreamOf(t, append(slices.Clone(e.Objects), runtime.Object(e.Pod))...)
			set, err := h.Nodes(t.Context(), e.Pod)
			if err != nil {
				t.Fatal(err)
			}
			theirs := u.preempt(t, e.Pod)
			if theirs != e.Node {
				t.Fatalf("upstream clears %q, the table says %q", theirs, e.Node)
			}
			// Ours: the node with the fewest violations, then the lowest priority, among those where it helps.
			best, bestViolations, bestPriority := "", 0, int32(0)
			for _, name := range set.Crowded {
				var victims []*corev1.Pod
				for _, object := range e.Objects {
					if p, ok := object.(*corev1.Pod); ok && p.Spec.NodeName == name && *p.Spec.Priority < *e.Pod.Spec.Priority {
						victims = append(victims, p)
					}
				}
				if len(victims) == 0 {
					continue
				}
				violations, words := h.Disruptable(victims)
				if violations != len(words) {
					t.Errorf("%d violations, words %q", violations, words)
				}
				priority := *victims[0].Spec.Priority
				if best == "" || violations < bestViolations || violations == bestViolations && priority < bestPriority {
					best, bestViolations, bestPriority = name, violations, priority
				}
			}
			if best != theirs {
				t.Errorf("we would clear %q, upstream clears %q (crowded: %v)", best, theirs, set.Crowded)
			}
		})
	}
}

// preempt returns the node that upstream clears for a pod, or "".
func (u *upstream) preempt(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	ctx := klog.NewContext(t.Context(), klog.Logger{})
	if err := u.Cache.UpdateSnapshot(klog.Logger{}, u.framework.SnapshotSharedLister().(*internalcache.Snapshot)); err != nil {
		t.Fatal(err)
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		t.Fatal(err)
	}
	state := framework.NewCycleState()
	_, err = u.SchedulePod(ctx, u.framework, state, &framework.QueuedPodInfo{PodInfo: info})
	fit, ok := err.(*framework.FitError)
	if !ok {
		t.Fatalf("upstream has room: %v", err)
	}
	result, _ := u.framework.RunPostFilterPlugins(ctx, state, pod, fit.Diagnosis.NodeToStatus)
	if result == nil || result.NominatingInfo == nil {
		return ""
	}
	return result.NominatedNodeName
}

func TestDisruptionBudgets(t *testing.T) {
	budget := func(name, app string, allowed int32, disrupted ...string) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, DisruptedPods: map[string]metav1.Time{}}}
		if app != "" {
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
		}
		for _, pod := range disrupted {
			b.Status.DisruptedPods[pod] = metav1.Time{}
		}
		return b
	}
	pod := func(name, app string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": app}}}
	}
	h, _ := hostOf(t, budget("web", "web", 1, "w9"), budget("web-too", "web", 2), budget("db", "db", 0), budget("nobody", "", 0))
	for _, c := range []struct {
		pods      []*corev1.Pod
		violating int
		says      string
	}{
		{pods: nil},
		{pods: []*corev1.Pod{pod("x", "free")}},
		{pods: []*corev1.Pod{pod("w1", "web")}},
		{pods: []*corev1.Pod{pod("w1", "web"), pod("w2", "web")}, violating: 1, says: "default/w2 would violate PodDisruptionBudget web (1 disruptions allowed)"},
		{pods: []*corev1.Pod{pod("w9", "web"), pod("w2", "web")}},
		{pods: []*corev1.Pod{pod("w1", "web"), pod("w2", "web"), pod("w3", "web")}, violating: 2, says: "web (1 disruptions allowed), web-too (2 disruptions allowed)"},
		{pods: []*corev1.Pod{pod("d1", "db"), pod("w1", "web")}, violating: 1, says: "default/d1 would violate PodDisruptionBudget db (0 disruptions allowed)"},
	} {
		violating, words := h.Disruptable(c.pods)
		if violating != c.violating || len(words) != violating || !strings.Contains(strings.Join(words, "\n"), c.says) {
			t.Errorf("evicting %d pods: %d violate, %q; want %d, %q", len(c.pods), violating, words, c.violating, c.says)
		}
	}
}
