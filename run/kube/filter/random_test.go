package filter

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// chaos is a random cluster as a test sees it: what a Host and upstream were told.
type chaos struct {
	*rand.Rand
	nodes map[string]*corev1.Node
	pods  map[types.UID]*corev1.Pod
	made  int
	where string // for messages
}

func (c *chaos) one(values ...string) string { return values[c.IntN(len(values))] }

func (c *chaos) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
		corev1.LabelHostname: name, "zone": c.one("east", "west", "north"), "disk": c.one("ssd", "hdd")}}}
	n.Status.Allocatable = corev1.ResourceList{
		"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "nvidia.com/gpu": resource.MustParse("8"),
		"pods": resource.MustParse(c.one("2", "4", "10")), "ephemeral-storage": resource.MustParse("10Gi"),
	}
	if c.IntN(4) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: c.one("team", corev1.TaintNodeNotReady), Effect: corev1.TaintEffect(c.one("NoSchedule", "NoExecute"))}}
	}
	n.Spec.Unschedulable = c.IntN(10) == 0
	return n
}

// pod makes a pod with some constraints; owned says how much it asks of what the engine counts.
func (c *chaos) pod(owned int) *corev1.Pod {
	c.made++
	name := fmt.Sprintf("p%d", c.made)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: c.one("default", "default", "other"), UID: types.UID(name),
		Labels: map[string]string{"app": c.one("web", "db"), "index": fmt.Sprint(c.made)}}}
	p.Spec.Containers = []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{}}}}
	asks := p.Spec.Containers[0].Resources.Requests
	if owned > 0 {
		asks["cpu"], asks["nvidia.com/gpu"] = *resource.NewQuantity(int64(c.IntN(owned)+1), ""), *resource.NewQuantity(int64(c.IntN(owned)), "")
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": c.one("web", "db")}}
	affinity := &corev1.Affinity{}
	for range c.IntN(3) {
		switch c.IntN(9) {
		case 0:
			p.Spec.NodeSelector = map[string]string{"disk": c.one("ssd", "hdd")}
		case 1:
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: c.one("team", corev1.TaintNodeNotReady), Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffect(c.one("", "NoExecute", "NoSchedule", "PreferNoSchedule"))})
		case 2:
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: int32(80 + c.IntN(2)), Protocol: corev1.ProtocolTCP}}
		case 3:
			asks["ephemeral-storage"] = resource.MustParse(c.one("1Gi", "4Gi"))
		case 4:
			affinity.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: c.one("zone", corev1.LabelHostname), LabelSelector: selector, Namespaces: slices.Repeat([]string{"other"}, c.IntN(2))}}}
		case 5:
			affinity.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: "zone", LabelSelector: selector}}}
		case 6:
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: int32(1 + c.IntN(2)), TopologyKey: c.one("zone", corev1.LabelHostname),
				WhenUnsatisfiable: corev1.UnsatisfiableConstraintAction(c.one("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")), LabelSelector: selector}}
		case 7:
			affinity.NodeAffinity = &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpNotIn, Values: []string{c.one("east", "west")}}}}}}}
		case 8:
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: "NoExecute"},
				corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: "NoExecute"})
		}
	}
	if affinity.NodeAffinity != nil || affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil {
		p.Spec.Affinity = affinity
	}
	return p
}

func (c *chaos) anyPod() *corev1.Pod {
	ids := make([]types.UID, 0, len(c.pods))
	for id := range c.pods {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	return c.pods[ids[c.IntN(len(ids))]]
}

// place puts a pod on a node, without its host port where another pod there has it: no kubelet would run both, and
// upstream's own count of ports errs when one of the two ends.
func (c *chaos) place(p *corev1.Pod, node string) *corev1.Pod {
	for _, other := range c.pods {
		if other.UID != p.UID && other.Spec.NodeName == node && slices.ContainsFunc(hostPorts(p), func(port string) bool {
			return slices.Contains(hostPorts(other), port)
		}) {
			p.Spec.Containers[0].Ports = nil
		}
	}
	return onNode(p, node)
}

// step makes one random event, tells the Host and keeps the books.
func (c *chaos) step(t *testing.T, h *Host) {
	name := fmt.Sprintf("n%d", c.IntN(8))
	some := c.anyPod()
	switch kind := c.IntN(12); {
	case kind < 2:
		c.nodes[name] = c.node(name)
		h.SetNode(c.nodes[name])
	case kind == 2 && len(c.nodes) > 3:
		delete(c.nodes, name)
		h.DeleteNode(name)
	case kind < 7 && len(c.pods) < 24:
		p := c.place(c.pod(0), name) // also on nodes that are not there
		c.pods[p.UID] = p
		if c.IntN(2) == 0 {
			if err := h.assume(onNode(p, ""), name); err != nil {
				t.Fatal(err)
			}
			h.SetPod(onNode(p, "")) // an older view from the watch
		}
		if c.IntN(2) == 0 || h.known(p) == nil {
			h.SetPod(p)
		}
	case kind < 9 && some != nil:
		delete(c.pods, some.UID)
		if assumed, _ := h.cache.IsAssumedPod(some); assumed && c.IntN(2) == 0 {
			h.Forget(some)
		} else {
			h.DeletePod(some)
		}
	case kind == 9 && some != nil: // confirmed elsewhere
		moved := c.place(some.DeepCopy(), name)
		c.pods[some.UID] = moved
		h.SetPod(moved)
	case kind == 10 && some != nil: // relabelled, or on its way out
		changed := some.DeepCopy()
		changed.Labels["app"] = c.one("web", "db")
		if c.IntN(2) == 0 {
			changed.DeletionTimestamp = &metav1.Time{}
		}
		c.pods[some.UID] = changed
		h.SetPod(changed)
	case kind == 11 && some != nil:
		done := some.DeepCopy()
		done.Status.Phase = corev1.PodSucceeded
		delete(c.pods, some.UID)
		h.SetPod(done)
	}
}

// tell makes upstream's cache what the books say, from nothing.
func (c *chaos) tell(t *testing.T, u *upstream) {
	for _, item := range u.Cache.Dump().Nodes {
		for _, p := range item.GetPods() {
			if err := u.Cache.RemovePod(klog.Logger{}, p.GetPod()); err != nil {
				t.Fatal(err)
			}
		}
		if item.Node() != nil {
			if err := u.Cache.RemoveNode(klog.Logger{}, item.Node()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, n := range c.nodes {
		u.Cache.AddNode(klog.Logger{}, n)
	}
	for _, p := range c.pods {
		if err := u.Cache.AddPod(klog.Logger{}, p); err != nil {
			t.Fatal(err)
		}
	}
}

// Through random events, a Host that was told of each in turn must answer as upstream does that is told of the result,
// for single pods, for pods after others of their gang, and for the last check of gangs.
func TestRandomEventsAgainstUpstream(t *testing.T) {
	seeds, steps := uint64(8), 250
	if os.Getenv("MUSTER_LONG") != "" {
		seeds, steps = 40, 1000
	}
	u := upstreamOf(t)
	var seen happened
	for seed := range seeds {
		h, _ := hostOf(t)
		c := &chaos{Rand: rand.New(rand.NewPCG(seed, 4)), nodes: map[string]*corev1.Node{}, pods: map[types.UID]*corev1.Pod{}}
		for len(c.nodes) < 4 {
			c.step(t, h)
		}
		for step := range steps {
			c.where = fmt.Sprintf("seed %d, step %d", seed, step)
			c.step(t, h)
			c.tell(t, u)
			c.singles(t, h, u, &seen)
			c.gangs(t, h, u, &seen)
		}
	}
	if seen.refused < 20 || seen.taken < 20 || seen.nowhere < 20 {
		t.Errorf("too little happened: %+v", seen)
	}
}

// happened counts outcomes, so that the test cannot pass by comparing nothing.
type happened struct{ refused, taken, nowhere int }

func (c *chaos) singles(t *testing.T, h *Host, u *upstream, seen *happened) {
	bySignature := map[string]*Set{}
	for range 4 {
		pod := c.pod(0)
		theirs, fit := u.schedule(t, pod)
		set, err := h.Nodes(t.Context(), pod)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(set.Allowed, theirs) {
			t.Fatalf("%s: we allow %v, upstream %v\n%s\n%+v", c.where, set.Allowed, theirs, set.Words(), pod.Spec)
		}
		if fit != nil {
			seen.nowhere++
			if fit.Error() != set.Words() {
				t.Fatalf("%s: we say %s\nupstream says %s", c.where, set.Words(), fit.Error())
			}
		}
		signature := h.Signature(pod)
		if other := bySignature[signature]; other != nil && other != set {
			t.Fatalf("%s: signature %s has two sets", c.where, signature)
		}
		bySignature[signature] = set
	}
}

func (c *chaos) gangs(t *testing.T, h *Host, u *upstream, seen *happened) {
	var gang []Placed
	for range 1 + c.IntN(5) {
		gang = append(gang, Placed{Pod: c.pod(4), Node: fmt.Sprintf("n%d", c.IntN(8))})
	}
	fits := 0
	for _, p := range gang {
		theirs, _ := u.schedule(t, p.Pod)
		if !slices.Contains(theirs, p.Node) {
			break
		}
		if err := u.Cache.AssumePod(klog.Logger{}, onNode(p.Pod, p.Node)); err != nil {
			t.Fatal(err)
		}
		fits++
	}
	next := c.pod(0)
	theirs, _ := u.schedule(t, next)
	set, err := h.Nodes(t.Context(), next, gang[:fits]...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(set.Allowed, theirs) {
		t.Fatalf("%s: after %d of a gang we allow %v, upstream %v", c.where, fits, set.Allowed, theirs)
	}
	refusal, err := h.Check(t.Context(), gang)
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case fits == len(gang) && refusal != nil:
		t.Fatalf("%s: upstream takes the gang, we say %s", c.where, refusal.Words())
	case fits == len(gang):
		seen.taken++
	case refusal == nil || refusal.Pod != gang[fits].Pod:
		t.Fatalf("%s: upstream refuses pod %d of the gang, we refuse %v", c.where, fits, refusal)
	default:
		seen.refused++
	}
	for _, p := range gang[:fits] {
		if err := u.Cache.ForgetPod(klog.Logger{}, onNode(p.Pod, p.Node)); err != nil {
			t.Fatal(err)
		}
	}
}
