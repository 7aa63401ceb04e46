package filtertest

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Gang is a cluster with pods that together ask for more than there is: the first Fit of them go to Node, in order.
type Gang struct {
	Name    string
	Objects []runtime.Object
	Pods    []*corev1.Pod
	Node    string
	Fit     int
}

// Gangs returns gangs whose pods fit alone and not together, one for each thing that only shows in turn.
func Gangs() []Gang {
	members := func(n int, change func(i int) func(*corev1.Pod)) []*corev1.Pod {
		var out []*corev1.Pod
		for i := range n {
			out = append(out, pod("p"+string(rune('0'+i)), change(i)))
		}
		return out
	}
	same := func(f func(*corev1.Pod)) func(int) func(*corev1.Pod) { return func(int) func(*corev1.Pod) { return f } }
	both := func(f, g func(*corev1.Pod)) func(*corev1.Pod) { return func(p *corev1.Pod) { f(p); g(p) } }
	web := label("app", "web")
	third := func(i int) string { return []string{"x", "y", "z"}[i] }
	local := storageClass("local", storagev1.VolumeBindingWaitForFirstConsumer)
	once := corev1.ReadWriteOnce
	gpus := deviceClass()
	gpus.Spec.ExtendedResourceName = new("nvidia.com/gpu")
	return []Gang{
		{Name: "processor", Objects: three(), Node: "a", Fit: 2, Pods: members(3, same(asking("cpu", "4")))},
		{Name: "gpus", Objects: three(), Node: "a", Fit: 2, Pods: members(3, same(asking("nvidia.com/gpu", "4")))},
		{Name: "pods per node", Objects: three(offering("pods", "2")), Node: "a", Fit: 2, Pods: members(3, same(web))},
		{Name: "host port", Objects: three(), Node: "a", Fit: 1, Pods: members(2, same(hostPort(8080, "")))},
		{Name: "anti-affinity to each other", Objects: three(), Node: "a", Fit: 1, Pods: members(2, same(both(web, apart(corev1.LabelHostname, "app", "web"))))},
		{Name: "anti-affinity of the first", Objects: three(), Node: "a", Fit: 1, Pods: members(2, func(i int) func(*corev1.Pod) {
			if i == 0 {
				return apart(zoneKey, "app", "web")
			}
			return web
		})},
		{Name: "topology spread", Objects: three(), Node: "a", Fit: 1, Pods: members(2, same(both(web, spreading(1, zoneKey, "app", "web"))))},
		{Name: "claims of devices", Objects: with(three(), deviceClass(), slice("a", "d0", "d1"), claim("x", 1), claim("y", 1), claim("z", 1)),
			Node: "a", Fit: 2, Pods: members(3, func(i int) func(*corev1.Pod) { return claiming(third(i)) })},
		{Name: "gpus that a claim serves", Objects: with(three(offering("nvidia.com/gpu", "0")), gpus, slice("a", "d0", "d1")),
			Node: "a", Fit: 2, Pods: members(3, same(asking("nvidia.com/gpu", "1")))},
		{Name: "claims of volumes", Objects: with(three(), local, volume("v", "local", "a", ""), volumeClaim("x", "local", "", once), volumeClaim("y", "local", "", once)),
			Node: "a", Fit: 1, Pods: members(2, func(i int) func(*corev1.Pod) { return mounting(third(i)) })},
		{Name: "claim for one pod", Objects: with(three(), local, volume("v", "local", "a", "x"), volumeClaim("x", "local", "v", corev1.ReadWriteOncePod)),
			Node: "a", Fit: 1, Pods: members(2, same(mounting("x")))},
	}
}

// Eviction is a cluster that a pod of higher priority finds full, with the node that upstream clears for it.
type Eviction struct {
	Name    string
	Objects []runtime.Object
	Pod     *corev1.Pod
	Node    string // "" where upstream evicts nobody
}

// Evictions returns full clusters: what may be evicted follows from priorities and disruption budgets.
func Evictions() []Eviction {
	full := func(name string, more ...func(*corev1.Pod)) *corev1.Pod {
		return pod(name, append([]func(*corev1.Pod){asking("ephemeral-storage", "90Gi"), label("app", name)}, more...)...)
	}
	two := func() []runtime.Object { return []runtime.Object{node("a", "east"), node("b", "east")} }
	asks := pod("p", asking("ephemeral-storage", "50Gi"), priority(100))
	budget := func(app string, allowed int32) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "keep-" + app, Namespace: namespace},
			Spec:   policyv1.PodDisruptionBudgetSpec{Selector: selector("app", app)},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed}}
	}
	return []Eviction{
		{Name: "lower priority gives way", Objects: with(two(), full("q", on("a"), priority(200)), full("r", on("b"), priority(1))), Pod: asks, Node: "b"},
		{Name: "nobody of lower priority", Objects: with(two(), full("q", on("a"), priority(200)), full("r", on("b"), priority(100))), Pod: asks},
		{Name: "a budget forbids one", Objects: with(two(), full("q", on("a"), priority(1)), full("r", on("b"), priority(2)), budget("q", 0)), Pod: asks, Node: "b"},
		{Name: "a budget allows both", Objects: with(two(), full("q", on("a"), priority(1)), full("r", on("b"), priority(2)), budget("q", 1)), Pod: asks, Node: "a"},
		{Name: "eviction does not help against a taint", Objects: []runtime.Object{node("a", "east", tainted("team", corev1.TaintEffectNoSchedule)), full("q", on("a"), priority(1))}, Pod: asks},
	}
}

// Gated is a pod that waits for a scheduling gate.
func Gated() *corev1.Pod {
	return pod("p", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "quota"}} })
}

// Plain is a pod without constraints.
func Plain() *corev1.Pod { return pod("p") }
