package filter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

// Placed is a pod with the node it is to go to.
type Placed struct {
	Pod  *corev1.Pod
	Node string
}

// Refusal is why a pod of a gang cannot go where it was placed.
type Refusal struct {
	Pod     *corev1.Pod
	Node    string
	Reasons []string // upstream's, sorted
}

// Words says it in one sentence.
func (r *Refusal) Words() string {
	return fmt.Sprintf("pod %s/%s does not fit on node %s: %s", r.Pod.Namespace, r.Pod.Name, r.Node, strings.Join(r.Reasons, ", "))
}

// Check is the last look before a gang is bound: in order, each pod against all constraints and all resources, with
// the earlier ones on their nodes, their volumes and claims taken. It returns nil, or the first pod that does not fit.
// Nothing stays assumed either way.
func (h *Host) Check(ctx context.Context, gang []Placed) (*Refusal, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	signatures := make([]string, len(gang))
	for i, p := range gang {
		signature, reach := h.sign(p.Pod)
		if reach != ofNode {
			return h.checkInTurn(ctx, gang)
		}
		signatures[i] = signature
	}
	return h.checkApart(ctx, gang, signatures)
}

// checkApart serves gangs whose pods do not constrain each other: what the node itself allows is known by signature,
// and what remains is to add up resources.
func (h *Host) checkApart(ctx context.Context, gang []Placed, signatures []string) (*Refusal, error) {
	filled := map[string]*framework.NodeInfo{}
	asks := noderesources.ResourceRequestsOptions{
		EnablePodLevelResources:   utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResources),
		EnableDRAExtendedResource: utilfeature.DefaultFeatureGate.Enabled(features.DRAExtendedResource),
	}
	for i, p := range gang {
		a, err := h.answer(ctx, p.Pod, signatures[i], ofNode)
		if err != nil {
			return nil, err
		}
		verdict, known := a.verdicts[p.Node]
		if !known {
			return missing(p), nil
		}
		if len(verdict.reasons) > 0 {
			return &Refusal{Pod: p.Pod, Node: p.Node, Reasons: verdict.reasons}, nil
		}
		node := filled[p.Node]
		if node == nil {
			if err := h.refresh(); err != nil {
				return nil, err
			}
			info, err := h.snapshot.Get(p.Node)
			if err != nil {
				return missing(p), nil
			}
			node = info.Snapshot().(*framework.NodeInfo)
			filled[p.Node] = node
		}
		var reasons []string
		for _, lacking := range noderesources.Fits(p.Pod, node, h.devices, asks) {
			reasons = append(reasons, lacking.Reason)
		}
		if len(reasons) > 0 {
			slices.Sort(reasons)
			return &Refusal{Pod: p.Pod, Node: p.Node, Reasons: reasons}, nil
		}
		node.AddPod(p.Pod)
	}
	return nil, nil
}

func missing(p Placed) *Refusal {
	return &Refusal{Pod: p.Pod, Node: p.Node, Reasons: []string{"the node does not exist"}}
}

// checkInTurn assumes each pod in the cache before it looks at the next, as if they were bound one by one.
func (h *Host) checkInTurn(ctx context.Context, gang []Placed) (*Refusal, error) {
	var undo []func()
	defer func() {
		for _, f := range slices.Backward(undo) {
			f()
		}
	}()
	for _, p := range gang {
		state := framework.NewCycleState()
		refusal, err := h.fits(ctx, state, p)
		if refusal != nil || err != nil {
			return refusal, err
		}
		placed := onNode(p.Pod, p.Node)
		if err := h.cache.AssumePod(h.logger, placed); err != nil {
			return nil, fmt.Errorf("checking pod %s/%s on node %s: %w", p.Pod.Namespace, p.Pod.Name, p.Node, err)
		}
		h.stale = true
		undo = append(undo, func() {
			h.warn(h.cache.ForgetPod(h.logger, placed), placed)
			h.stale = true
		})
		if !h.reserves(p.Pod) || h.holdsClaims(p.Pod) {
			continue
		}
		undo = append(undo, func() { h.strict.RunReservePluginsUnreserve(ctx, state, placed, p.Node) })
		status := h.strict.RunReservePluginsReserve(ctx, state, placed, p.Node)
		if refusal, err := refused(p, status); refusal != nil || err != nil {
			return refusal, err
		}
	}
	return nil, nil
}

// fits runs the strict filters for one pod on its node.
func (h *Host) fits(ctx context.Context, state fwk.CycleState, p Placed) (*Refusal, error) {
	if err := h.refresh(); err != nil {
		return nil, err
	}
	info, err := h.snapshot.Get(p.Node)
	if err != nil {
		return missing(p), nil
	}
	_, verdicts, err := h.filter(ctx, h.strict, state, p.Pod, []fwk.NodeInfo{info})
	if err != nil {
		return nil, err
	}
	if reasons := verdicts[0].reasons; len(reasons) > 0 {
		return &Refusal{Pod: p.Pod, Node: p.Node, Reasons: reasons}, nil
	}
	return nil, nil
}

// refused reads a status of upstream for one pod: nothing, a refusal, or an error.
func refused(p Placed, status *fwk.Status) (*Refusal, error) {
	switch {
	case status.IsSuccess() || status.IsSkip():
		return nil, nil
	case status.IsRejected():
		return &Refusal{Pod: p.Pod, Node: p.Node, Reasons: verdictOf(status).reasons}, nil
	default:
		return nil, fmt.Errorf("reserving for pod %s/%s on node %s: %w", p.Pod.Namespace, p.Pod.Name, p.Node, status.AsError())
	}
}
