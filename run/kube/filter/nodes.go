package filter

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Set is where pods of one signature may go now, by every constraint but what the engine counts. It is shared and
// never written to again: the same pointer means that nothing changed.
type Set struct {
	Allowed []string // names of nodes, sorted
	// Crowded are the refused nodes that would be allowed if pods there gave way, sorted: eviction may help.
	Crowded []string
	// Refused counts the refused nodes by upstream's reasons, a node once for each of its reasons.
	Refused map[string]int
	// PerNode is how many pods of the signature one node takes at most because they exclude each other; 0 is no limit.
	PerNode int

	nodes    int    // there are
	everyone string // upstream's reason where the pod was refused before any node was looked at
}

// Words says in upstream's words how many nodes are available and what keeps the others from it.
func (s *Set) Words() string {
	head := fmt.Sprintf("%d/%d nodes are available:", len(s.Allowed), s.nodes)
	if s.everyone != "" {
		return fmt.Sprintf("%s %s.", head, s.everyone)
	}
	var reasons []string
	for reason, count := range s.Refused {
		reasons = append(reasons, fmt.Sprintf("%d %s", count, reason))
	}
	if len(reasons) == 0 {
		return head
	}
	sort.Strings(reasons)
	return fmt.Sprintf("%s %s.", head, strings.Join(reasons, ", "))
}

// verdict is what the filters said of one node.
type verdict struct {
	reasons []string // sorted; none means allowed
	crowded bool
}

// answer is a node set with what it takes to bring it up to date by looking only at nodes that changed.
type answer struct {
	set      *Set
	verdicts map[string]verdict
	position int   // in the change log of its reach
	others   int64 // as of then
}

// answersKept bounds the memory of node sets; beyond it all are dropped and found anew.
const answersKept = 4096

// Nodes returns where a pod may go now. With pods placed before it, it returns where the pod may go once these are on
// their nodes: that is how a gang whose pods constrain each other finds out where its next pod fits. Without, the set
// is remembered by signature, and only nodes are looked at that changed in a way that concerns the pod.
func (h *Host) Nodes(ctx context.Context, pod *corev1.Pod, placed ...Placed) (*Set, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(placed) == 0 {
		signature, reach := h.sign(pod)
		a, err := h.answer(ctx, pod, signature, reach)
		if err != nil {
			return nil, err
		}
		return a.set, nil
	}
	for i, p := range placed {
		if err := h.cache.AssumePod(h.logger, onNode(p.Pod, p.Node)); err != nil {
			h.withdraw(placed[:i])
			return nil, fmt.Errorf("assuming pod %s/%s on node %s: %w", p.Pod.Namespace, p.Pod.Name, p.Node, err)
		}
	}
	h.stale = true
	defer h.withdraw(placed)
	a := &answer{}
	if err := h.ask(ctx, pod, a, nil); err != nil {
		return nil, err
	}
	return a.set, nil
}

// withdraw forgets pods that were assumed in the cache for one question only.
func (h *Host) withdraw(placed []Placed) {
	for _, p := range slices.Backward(placed) {
		h.warn(h.cache.ForgetPod(h.logger, onNode(p.Pod, p.Node)), p.Pod)
	}
	h.stale = true
}

// answer returns the node set of a signature, after a look at what changed since it was last asked for.
func (h *Host) answer(ctx context.Context, pod *corev1.Pod, signature string, reach reach) (*answer, error) {
	log, others := &h.shape, int64(0)
	if reach != ofNode {
		log = &h.touched
	}
	if reach == ofCluster {
		others = h.others.Load()
	}
	a := h.answers[signature]
	if a == nil {
		if len(h.answers) >= answersKept {
			clear(h.answers)
		}
		a = &answer{position: -1}
	}
	changed, complete := log.since(a.position)
	if complete && len(changed) == 0 && a.others == others {
		return a, nil
	}
	if !complete || reach == ofCluster {
		changed = nil // any node may be concerned
	}
	if err := h.ask(ctx, pod, a, changed); err != nil {
		delete(h.answers, signature)
		return nil, err
	}
	a.position, a.others = log.end(), others
	h.answers[signature] = a
	return a, nil
}

// ask runs the filters on the given nodes, or on all where none are given, and brings the answer up to date.
func (h *Host) ask(ctx context.Context, pod *corev1.Pod, a *answer, changed []string) error {
	if err := h.refresh(); err != nil {
		return err
	}
	names := h.names
	if changed == nil {
		a.verdicts = make(map[string]verdict, len(names))
	} else {
		names = slices.Compact(slices.Sorted(slices.Values(changed)))
	}
	infos := make([]fwk.NodeInfo, 0, len(names))
	for _, name := range names {
		info, err := h.snapshot.Get(name)
		if err != nil {
			delete(a.verdicts, name) // the node is gone
			continue
		}
		infos = append(infos, info)
	}
	everyone, verdicts, err := h.filter(ctx, h.open, framework.NewCycleState(), pod, infos)
	if err != nil {
		return err
	}
	for i, info := range infos {
		a.verdicts[info.Node().Name] = verdicts[i]
	}
	set := h.collect(a.verdicts, everyone)
	set.PerNode = h.perNode(pod)
	if a.set == nil || !set.equal(a.set) {
		a.set = set
	}
	return nil
}

func (s *Set) equal(o *Set) bool {
	return s.nodes == o.nodes && s.everyone == o.everyone && s.PerNode == o.PerNode && slices.Equal(s.Allowed, o.Allowed) &&
		slices.Equal(s.Crowded, o.Crowded) && maps.Equal(s.Refused, o.Refused)
}

func (h *Host) collect(verdicts map[string]verdict, everyone string) *Set {
	s := &Set{Refused: map[string]int{}, nodes: len(h.names), everyone: everyone}
	for _, name := range h.names {
		v := verdicts[name]
		if len(v.reasons) == 0 {
			s.Allowed = append(s.Allowed, name)
		}
		if v.crowded {
			s.Crowded = append(s.Crowded, name)
		}
		for _, reason := range v.reasons {
			s.Refused[reason]++
		}
	}
	return s
}

// filter runs PreFilter and Filter of a framework as upstream's scheduling cycle does, but on every node given. The
// state keeps what the plugins found out, for a reservation.
func (h *Host) filter(ctx context.Context, f framework.Framework, state fwk.CycleState, pod *corev1.Pod, infos []fwk.NodeInfo) (string, []verdict, error) {
	verdicts := make([]verdict, len(infos))
	only, status, by := f.RunPreFilterPlugins(ctx, state, pod)
	if !status.IsSuccess() {
		if !status.IsRejected() {
			return "", nil, fmt.Errorf("filtering nodes for pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
		}
		for i := range verdicts {
			verdicts[i] = verdictOf(status)
		}
		return status.Message(), verdicts, nil
	}
	elsewhere := verdict{reasons: []string{fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(by))}}
	statuses := make([]*fwk.Status, len(infos))
	f.Parallelizer().Until(ctx, len(infos), func(i int) {
		if only.AllNodes() || only.NodeNames.Has(infos[i].Node().Name) {
			statuses[i] = f.RunFilterPlugins(ctx, state, pod, infos[i])
		}
	}, "Filter")
	if err := ctx.Err(); err != nil {
		return "", nil, fmt.Errorf("filtering nodes for pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	for i, info := range infos {
		switch status := statuses[i]; {
		case !only.AllNodes() && !only.NodeNames.Has(info.Node().Name):
			verdicts[i] = elsewhere
		case status.IsSuccess():
		case status.IsRejected():
			verdicts[i] = verdictOf(status)
		default:
			return "", nil, fmt.Errorf("filtering node %s for pod %s/%s: %w", info.Node().Name, pod.Namespace, pod.Name, status.AsError())
		}
	}
	return "", verdicts, nil
}

// verdictOf sorts the reasons, because upstream finds lacking resources in the order of a map.
func verdictOf(status *fwk.Status) verdict {
	reasons := slices.Sorted(slices.Values(status.Reasons()))
	if len(reasons) == 0 {
		reasons = []string{status.Code().String()}
	}
	return verdict{reasons: reasons, crowded: status.Code() == fwk.Unschedulable}
}

// perNode is 1 where two pods of one signature exclude each other from a node.
func (h *Host) perNode(pod *corev1.Pod) int {
	if len(hostPorts(pod)) > 0 {
		return 1
	}
	for _, t := range h.ownTerms(pod, fwk.GetPodAntiAffinityTerms(pod.Spec.Affinity)) {
		if t.Self && t.TopologyKey == corev1.LabelHostname {
			return 1
		}
	}
	return 0
}

// Room returns how many pods like this one a node still takes by its number of pods and by the resources that the
// engine does not count (local storage, huge pages, other devices). It looks at no other constraint.
func (h *Host) Room(pod *corev1.Pod, node string) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.refresh(); err != nil {
		return 0, err
	}
	info, err := h.snapshot.Get(node)
	if err != nil {
		return 0, nil // no node, no room
	}
	has, used := info.GetAllocatable(), info.GetRequested()
	room := int64(has.GetAllowedPodNumber() - len(info.GetPods()))
	asks := framework.NewResource(resource.PodRequests(withoutOwned(pod, h.ownsResource), resource.PodResourcesOptions{}))
	if asks.EphemeralStorage > 0 {
		room = min(room, (has.GetEphemeralStorage()-used.GetEphemeralStorage())/asks.EphemeralStorage)
	}
	for name, amount := range asks.ScalarResources {
		if amount > 0 && !h.claimed(name) {
			room = min(room, (has.GetScalarResources()[name]-used.GetScalarResources()[name])/amount)
		}
	}
	return int(min(max(room, 0), math.MaxInt32)), nil
}
