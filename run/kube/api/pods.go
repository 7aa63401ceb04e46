package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Bind implements Pods. The API server checks the UID and merges the notes into the
// pod's annotations in the write that binds.
func (c *Client) Bind(ctx context.Context, pod *corev1.Pod, node string, notes map[string]string) error {
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Annotations: notes},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	err := send(ctx, c.core.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("binding").Body(binding))
	return failed(err, "binding", pod)
}

// Evict implements Pods. The reason is told in an event of the pod, as an eviction has
// no room for it.
func (c *Client) Evict(ctx context.Context, pod *corev1.Pod, why string) error {
	eviction := &policyv1.Eviction{
		TypeMeta:      metav1.TypeMeta{APIVersion: policyv1.SchemeGroupVersion.String(), Kind: "Eviction"},
		ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: metav1.NewPreconditionDeleteOptions(string(pod.UID)),
	}
	// A budget that refuses may ask to be asked again in 10 s, ten times: that is for
	// the caller to decide.
	r := c.core.Post().MaxRetries(0).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").Body(eviction)
	if err := send(ctx, r); err != nil {
		return failed(err, "evicting", pod)
	}
	if why != "" {
		c.Say(refer(pod), corev1.EventTypeNormal, "Evicted", why)
	}
	return nil
}

// Explain implements Pods. It writes nothing where the pod says so already, is bound,
// or is held by a scheduling gate, and only to the pod as the caller saw it: a pod that
// changed meanwhile may have been bound.
func (c *Client) Explain(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	if pod.Spec.NodeName != "" || len(pod.Spec.SchedulingGates) > 0 {
		return nil
	}
	condition := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		ObservedGeneration: pod.Generation, LastTransitionTime: metav1.Time{Time: time.Now()}}
	for _, now := range pod.Status.Conditions {
		if now.Type != corev1.PodScheduled || now.Status != corev1.ConditionFalse {
			continue
		}
		if now.Reason == reason && now.Message == message {
			return nil
		}
		condition.LastTransitionTime = now.LastTransitionTime
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion},
		"status":   map[string]any{"conditions": []any{condition}},
	})
	if err != nil {
		return failed(err, "explaining", pod)
	}
	r := c.status.Patch(types.StrategicMergePatchType).Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("status").
		SetHeader("Accept", onlyMetadata).Body(patch)
	return failed(send(ctx, r), "explaining", pod)
}

// failed says what was being done to a pod.
func failed(err error, doing string, pod *corev1.Pod) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s pod %s/%s: %w", doing, pod.Namespace, pod.Name, err)
}

// refer points at a pod.
func refer(pod *corev1.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion}
}
