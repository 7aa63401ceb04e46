package filter

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Reservation is a pod assumed on its node with its volumes and claims chosen. It ends with Undo, or with the Bind
// call and the SetPod that confirms it.
type Reservation struct {
	host  *Host
	pod   *corev1.Pod    // with its node
	state fwk.CycleState // nil where the pod needs neither volumes nor claims
}

// Reserve assumes a pod on its node and has upstream's plugins choose its volumes and devices, in memory only. The
// refusal says why that cannot be. A pod without volumes or claims is only assumed.
func (h *Host) Reserve(ctx context.Context, pod *corev1.Pod, node string) (*Reservation, *Refusal, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := &Reservation{host: h, pod: onNode(pod, node)}
	if !h.reserves(pod) {
		return r, nil, h.assume(pod, node)
	}
	r.state = framework.NewCycleState()
	p := Placed{Pod: pod, Node: node}
	if refusal, err := h.fits(ctx, r.state, p); refusal != nil || err != nil {
		return nil, refusal, err
	}
	if err := h.assume(pod, node); err != nil {
		return nil, nil, err
	}
	status := h.strict.RunReservePluginsReserve(ctx, r.state, r.pod, node)
	if refusal, err := refused(p, status); refusal != nil || err != nil {
		h.strict.RunReservePluginsUnreserve(ctx, r.state, r.pod, node)
		h.forget(pod)
		return nil, refusal, err
	}
	return r, nil, nil
}

// PreBind writes what was chosen to the API server and waits until volumes are bound, up to upstream's limits. It may
// take minutes: call it outside the loop that decides. On an error or a refusal call Undo.
func (r *Reservation) PreBind(ctx context.Context) (*Refusal, error) {
	if r.state == nil {
		return nil, nil
	}
	f, node := r.host.strict, r.pod.Spec.NodeName
	p := Placed{Pod: r.pod, Node: node}
	status := f.RunPreBindPreFlights(ctx, r.state, r.pod, node)
	if status.IsSkip() {
		return nil, nil
	}
	if refusal, err := refused(p, status); refusal != nil || err != nil {
		return refusal, err
	}
	return refused(p, f.RunPreBindPlugins(ctx, r.state, r.pod, node))
}

// Undo gives back what was reserved, in the API server too where PreBind wrote it, and forgets the pod, unless it was
// confirmed meanwhile.
func (r *Reservation) Undo(ctx context.Context) {
	if r.state != nil {
		r.host.strict.RunReservePluginsUnreserve(ctx, r.state, r.pod, r.pod.Spec.NodeName)
	}
	r.host.Forget(r.pod)
}

// Release frees a claim that an earlier attempt left allocated where the pod cannot run any more, as upstream does
// when a pod with claims fits nowhere. It returns upstream's words for what it did. Call it for a waiting pod with
// claims whose node set is empty.
func (h *Host) Release(ctx context.Context, pod *corev1.Pod) (string, error) {
	state := framework.NewCycleState()
	stuck, words, err := h.stuck(ctx, state, pod)
	if !stuck || err != nil {
		return words, err
	}
	_, status := h.strict.RunPostFilterPlugins(ctx, state, pod, framework.NewDefaultNodeToStatus())
	if !status.IsSuccess() && !status.IsRejected() {
		return "", fmt.Errorf("releasing claims of pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
	}
	return status.Message(), nil
}

// stuck says that no node takes the pod, and leaves in the state which of its claims are in the way. Where upstream
// refuses the pod before it looks at nodes, releasing cannot help and its words are returned.
func (h *Host) stuck(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (bool, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.refresh(); err != nil {
		return false, "", err
	}
	infos, err := h.snapshot.List()
	if err != nil {
		return false, "", fmt.Errorf("listing nodes: %w", err)
	}
	everyone, verdicts, err := h.filter(ctx, h.strict, state, pod, infos)
	if err != nil || everyone != "" {
		return false, everyone, err
	}
	for _, v := range verdicts {
		if len(v.reasons) == 0 {
			return false, "", nil
		}
	}
	return true, "", nil
}

// reserves says that a pod needs more than to be assumed.
func (h *Host) reserves(pod *corev1.Pod) bool {
	if len(pod.Spec.ResourceClaims) > 0 {
		return true
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			return true
		}
	}
	for name := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		if h.claimed(name) {
			return true
		}
	}
	return false
}

// holdsClaims says that a claim of the pod is already allocated. Undoing a reservation would then take it off the
// claim in the API server, which a question must not do.
func (h *Host) holdsClaims(pod *corev1.Pod) bool {
	for _, reference := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &reference)
		if err != nil || name == nil {
			continue
		}
		claim, err := h.devices.ResourceClaims().Get(pod.Namespace, *name)
		if err == nil && claim.Status.Allocation != nil {
			return true
		}
	}
	return false
}
