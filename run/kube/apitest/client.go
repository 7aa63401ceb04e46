package apitest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/musterdl/muster/run/kube/api"
)

// Client is one scheduler's door to a World: an api.Watcher, Pods, Owners, Records,
// Ledgers and Voice.
type Client struct {
	w      *World
	name   string
	listed bool
	told   int // changes of the log, trimmed ones included
	gaps   int // gaps that are over
	watch  func([]api.Change)
	synced chan struct{}
}

var _ interface {
	api.Watcher
	api.Pods
	api.Owners
	api.Records
	api.Ledgers
	api.Voice
} = (*Client)(nil)

// NewClient returns the door of another scheduler: a rival, or the same after a change
// of leaders.
func (w *World) NewClient(name string) *Client {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &Client{w: w, name: name}
	w.feed.connect(c)
	return c
}

// Call is a call that was made.
type Call struct {
	At     time.Duration // since the World began
	Client string
	Verb   string // bind, evict, explain, suspend, set, list, put, delete, get
	Object string // kind namespace/name
	What   string // the node, the value, the reason
	Err    error  // what the caller was told
}

// String is the call on a line.
func (c Call) String() string {
	s := fmt.Sprintf("%v %s: %s %s %s", c.At, c.Client, c.Verb, c.Object, c.What)
	if c.Err != nil {
		s += ": " + c.Err.Error()
	}
	return s
}

// Calls are the calls so far. Lists and gets are left out.
func (w *World) Calls() []Call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.feed.calls)
}

// call makes a call under the faults that hold. do is what it does; lost is told when
// it was done and the caller will not know.
func (c *Client) call(ctx context.Context, made Call, do func() error, lost func()) error {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	made.Client, made.At = c.name, w.clock.since()
	err := w.troubles.faulty(made, do, lost)
	made.Err = err
	if made.Verb == "list" || made.Verb == "get" {
		return err
	}
	w.feed.called(made)
	return err
}

func nothing() {}

// Bind implements api.Pods.
func (c *Client) Bind(ctx context.Context, pod *corev1.Pod, node string, notes map[string]string) error {
	return c.call(ctx, Call{Verb: "bind", Object: name(pod), What: node}, func() error { return c.bind(pod, node, notes) },
		func() { c.w.troubles.recalls[pod.UID] = node })
}

func name(p *corev1.Pod) string { return kindPod + " " + p.Namespace + "/" + p.Name }

// find returns the pod that a caller means.
func (st *store) find(pod *corev1.Pod) (*corev1.Pod, error) {
	p, ok := get[*corev1.Pod](st, id{kindPod, pod.Namespace, pod.Name})
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), pod.Name)
	}
	if p.UID != pod.UID {
		return nil, apierrors.NewConflict(corev1.Resource("pods"), pod.Name, fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", pod.UID, p.UID))
	}
	return p, nil
}

func (c *Client) bind(pod *corev1.Pod, node string, notes map[string]string) error {
	w := c.w
	p, err := w.store.find(pod)
	if err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(corev1.Resource("pods/binding"), p.Name, fmt.Errorf(format, args...))
	}
	switch {
	case p.DeletionTimestamp != nil:
		return refuse("pod %s is being deleted, cannot be assigned to a host", p.Name)
	case p.Spec.NodeName != "":
		if _, unsure := w.troubles.recalls[p.UID]; !unsure && c == w.Client {
			w.judge.violate("%s binds pod %s/%s to node %s; it is on %s already", c.name, p.Namespace, p.Name, node, p.Spec.NodeName)
		}
		return refuse("pod %v is already assigned to node %q", p.Name, p.Spec.NodeName)
	case len(p.Spec.SchedulingGates) > 0:
		w.judge.violate("%s binds pod %s/%s, which has scheduling gates", c.name, p.Namespace, p.Name)
		return refuse("pod %v has non-empty .spec.schedulingGates", p.Name)
	case ended(p):
		w.judge.violate("%s binds pod %s/%s, which has ended", c.name, p.Namespace, p.Name)
	}
	if w.onlooker.rooms[node] == nil {
		w.judge.violate("%s binds pod %s/%s to node %s, which never was", c.name, p.Namespace, p.Name, node)
	}
	w.store.update(p, func(b *corev1.Pod) {
		b.Spec.NodeName = node
		if len(notes) > 0 {
			b.Annotations = merged(p.Annotations, notes)
		}
		condition(b, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: w.clock.stamp()})
	})
	return nil
}

// Evict implements api.Pods.
func (c *Client) Evict(ctx context.Context, pod *corev1.Pod, why string) error {
	return c.call(ctx, Call{Verb: "evict", Object: name(pod), What: why}, func() error { return c.evict(pod) }, nothing)
}

func (c *Client) evict(pod *corev1.Pod) error {
	w := c.w
	p, err := w.store.find(pod)
	if err != nil {
		return err
	}
	budgets := slices.DeleteFunc(w.store.budgets(p.Namespace), func(b *policyv1.PodDisruptionBudget) bool { return !protects(b, p) })
	if ended(p) || p.Status.Phase == corev1.PodPending || p.DeletionTimestamp != nil {
		budgets = nil
	}
	if len(budgets) > 1 {
		return apierrors.NewInternalError(fmt.Errorf("this pod has more than one PodDisruptionBudget, which the eviction subresource does not support"))
	}
	for _, b := range budgets {
		if b.Status.DisruptionsAllowed <= 0 {
			err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
			err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause,
				Message: fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, b.Status.DesiredHealthy, b.Status.CurrentHealthy)})
			return err
		}
		changed := *b
		changed.Status.DisruptionsAllowed--
		changed.Status.DisruptedPods = map[string]metav1.Time{p.Name: w.clock.stamp()}
		for name, at := range b.Status.DisruptedPods {
			changed.Status.DisruptedPods[name] = at
		}
		w.store.put(&changed)
	}
	w.kubelets.terminate(p, "EvictionByEvictionAPI")
	return nil
}

// Explain implements api.Pods.
func (c *Client) Explain(ctx context.Context, pod *corev1.Pod, reason, message string) error {
	return c.call(ctx, Call{Verb: "explain", Object: name(pod), What: reason + ": " + message}, func() error {
		w := c.w
		p, err := w.store.find(pod)
		if err != nil {
			return err
		}
		if p.Spec.NodeName != "" {
			return apierrors.NewConflict(corev1.Resource("pods"), p.Name, fmt.Errorf("it is bound to node %s", p.Spec.NodeName))
		}
		changed := *p
		if condition(&changed, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: w.clock.stamp()}) {
			w.store.put(&changed)
		}
		return nil
	}, nothing)
}

// owner returns the object that makes pods which a caller means.
func (st *store) owner(ref corev1.ObjectReference) (*unstructured.Unstructured, schema.GroupResource, error) {
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	resource := schema.GroupResource{Group: group, Resource: strings.ToLower(ref.Kind) + "s"}
	o, ok := get[*unstructured.Unstructured](st, refer(ref))
	switch {
	case !ok:
		return nil, resource, apierrors.NewNotFound(resource, ref.Name)
	case ref.UID != "" && ref.UID != o.GetUID():
		return nil, resource, apierrors.NewConflict(resource, ref.Name, fmt.Errorf("precondition failed: UID in precondition: %s, UID in object meta: %s", ref.UID, o.GetUID()))
	}
	return o, resource, nil
}

// Suspend implements api.Owners.
func (c *Client) Suspend(ctx context.Context, object corev1.ObjectReference, field string, suspended bool) error {
	return c.call(ctx, Call{Verb: "suspend", Object: nameOf(object), What: fmt.Sprintf("%s=%v", field, suspended)}, func() error {
		o, resource, err := c.w.store.owner(object)
		if err != nil {
			return err
		}
		if idOf(o).kind == kindJob && finished(o) {
			return invalid(o, resource, field, "a Job that is over cannot be suspended")
		}
		if truth(o.Object, field) == suspended {
			return nil
		}
		c.w.onlooker.halt(o, suspended)
		o = o.DeepCopy()
		notes := o.GetAnnotations()
		if suspended {
			notes = merged(notes, map[string]string{api.Stopped: "true"})
		} else {
			delete(notes, api.Stopped)
		}
		o.SetAnnotations(notes)
		return c.w.store.write(o, []string{field}, suspended)
	}, nothing)
}

// Set implements api.Owners.
func (c *Client) Set(ctx context.Context, object corev1.ObjectReference, fields []string, value int32) error {
	return c.call(ctx, Call{Verb: "set", Object: nameOf(object), What: fmt.Sprintf("%s=%d", strings.Join(fields, ","), value)}, func() error {
		w := c.w
		o, resource, err := w.store.owner(object)
		if err != nil {
			return err
		}
		switch idOf(o).kind {
		case kindJobSet:
			if !w.options.ElasticJobSets {
				return invalid(o, resource, fields[0], "field is immutable")
			}
		case kindJob:
			together := slices.Contains(fields, "spec.parallelism") || number(o.Object, "spec.parallelism", 1) == int64(value)
			if slices.Contains(fields, "spec.completions") && !(together && text(o.Object, "spec.completionMode") == "Indexed") {
				return invalid(o, resource, "spec.completions", "field is immutable")
			}
		}
		return w.store.write(o, fields, int64(value))
	}, nothing)
}

func nameOf(ref corev1.ObjectReference) string {
	return ref.Kind + " " + ref.Namespace + "/" + ref.Name
}

// write sets fields of an object in one write.
func (st *store) write(o *unstructured.Unstructured, fields []string, value any) error {
	c := o
	for _, f := range fields {
		var err error
		if c, err = edited(c, f, value); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	c.SetGeneration(o.GetGeneration() + 1)
	st.put(c)
	return nil
}

func invalid(o *unstructured.Unstructured, resource schema.GroupResource, field, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: fmt.Sprintf("%s %q is invalid: %s: %s", resource, o.GetName(), field, message)}}
}
