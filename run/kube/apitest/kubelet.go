package apitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations of pods, by which a test says how they behave. A pod without
// AnnotationWork runs until it is stopped.
const (
	AnnotationWork  = "apitest.muster.dev/work"  // a duration: how long the pod has to run
	AnnotationStop  = "apitest.muster.dev/stop"  // a duration: from the termination signal to the end
	AnnotationKeeps = "apitest.muster.dev/keeps" // "on-stop": work done outlives a stop within the grace period
	AnnotationFails = "apitest.muster.dev/fails" // "2@30s": the first two times, after running for 30 s
	AnnotationEnds  = "apitest.muster.dev/ends"  // a ContainerState in JSON: how the first container ends then
	AnnotationWaits = "apitest.muster.dev/waits" // likewise: the first container never starts
)

// podState is what surrounds a pod and is not in its object.
type podState struct {
	needs   needs
	gang    *gangState
	job     *jobState // nil where no Job made it
	node    string    // where it was bound to first
	held    bool      // it counts in the node's room
	bound   bool      // it counts as bound in its gang
	counted bool      // as a failure of its Job, or excused from that
	running bool
	since   time.Time     // running since
	done    time.Duration // work that was done before
}

// kubelets run the pods that are bound to their nodes, and end them; nodes go dark and come
// back with them.
type kubelets struct {
	options *Options
	clock   *clock
	store   *store
	pods    map[types.UID]*podState
	saved   map[string][]time.Duration // work done that outlives pods
	failed  map[string]int             // failures on purpose so far
	on      map[string]map[types.UID]bool
	lost    map[string]bool
}

// stateOf is what surrounds a pod; fresh says that nothing was known of it.
func (kl *kubelets) stateOf(p *corev1.Pod) (s *podState, fresh bool) {
	if s = kl.pods[p.UID]; s != nil {
		return s, false
	}
	s = &podState{needs: needsOf(p)}
	kl.pods[p.UID] = s
	return s, true
}

// forget lets go of a pod that is gone.
func (kl *kubelets) forget(p *corev1.Pod) {
	delete(kl.pods, p.UID)
	delete(kl.on[p.Spec.NodeName], p.UID)
}

// dismiss deletes a pod that its owner no longer wants, which is no failure.
func (kl *kubelets) dismiss(p *corev1.Pod) {
	kl.pods[p.UID].counted = true
	kl.terminate(p, "")
}

// assigned has a kubelet begin a pod.
func (kl *kubelets) assigned(p *corev1.Pod) {
	node, uid := p.Spec.NodeName, p.UID
	if kl.on[node] == nil {
		kl.on[node] = map[types.UID]bool{}
	}
	kl.on[node][uid] = true
	kl.clock.after(kl.options.Timing.Start, func() { kl.begin(uid) })
	n, there := get[*corev1.Node](kl.store, id{kindNode, "", node})
	switch {
	case !there:
		kl.clock.after(kl.options.Timing.Orphan, func() { kl.orphan(uid) })
	case tainted(n):
		kl.clock.after(kl.options.Timing.Tolerance, func() { kl.desert(node, uid) })
	}
}

// live returns a pod that a working kubelet has.
func (kl *kubelets) live(uid types.UID) (*corev1.Pod, *podState, bool) {
	p, ok := kl.store.byUID[uid].(*corev1.Pod)
	if !ok || ended(p) || kl.lost[p.Spec.NodeName] {
		return nil, nil, false
	}
	_, there := kl.store.objects[id{kindNode, "", p.Spec.NodeName}]
	return p, kl.pods[uid], there
}

// begin has a bound pod run.
func (kl *kubelets) begin(uid types.UID) {
	p, s, ok := kl.live(uid)
	if !ok || s.running || p.DeletionTimestamp != nil {
		return
	}
	if how := p.Annotations[AnnotationWaits]; how != "" {
		kl.contained(p, how)
		return
	}
	s.running, s.since = true, kl.clock.now
	if saved := kl.saved[progress(p)]; len(saved) > 0 {
		s.done, kl.saved[progress(p)] = saved[len(saved)-1], saved[:len(saved)-1]
	}
	kl.store.update(p, func(c *corev1.Pod) {
		now := kl.clock.stamp()
		c.Status.Phase, c.Status.StartTime = corev1.PodRunning, &now
		for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
			condition(c, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
	})
	if times, after, ok := failing(p); ok && kl.failed[progress(p)] < times {
		kl.clock.after(after, func() { kl.finish(uid, corev1.PodFailed) })
		return
	}
	if work, ok := span(p, AnnotationWork); ok {
		kl.clock.after(work-s.done, func() { kl.finish(uid, corev1.PodSucceeded) })
	}
}

// finish ends a running pod by itself.
func (kl *kubelets) finish(uid types.UID, phase corev1.PodPhase) {
	p, s, ok := kl.live(uid)
	if !ok || !s.running {
		return
	}
	if phase == corev1.PodFailed {
		kl.failed[progress(p)]++
	}
	kl.end(p, phase, "")
	if how := p.Annotations[AnnotationEnds]; how != "" && phase == corev1.PodFailed {
		kl.contained(kl.store.byUID[uid].(*corev1.Pod), how)
	}
	if p.DeletionTimestamp != nil {
		kl.gone(uid)
	}
}

// contained has a pod say how its first container is, as kubelets do.
func (kl *kubelets) contained(p *corev1.Pod, how string) {
	var state corev1.ContainerState
	if err := json.Unmarshal([]byte(how), &state); err != nil {
		panic(fmt.Sprintf("pod %s: a container's state: %v", p.Name, err))
	}
	if state.Terminated != nil {
		state.Terminated.FinishedAt = kl.clock.stamp()
	}
	kl.store.update(p, func(c *corev1.Pod) {
		c.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: c.Spec.Containers[0].Name, State: state}}
	})
}

// end has a pod end with a phase.
func (kl *kubelets) end(p *corev1.Pod, phase corev1.PodPhase, reason string) {
	kl.pods[p.UID].running = false
	kl.store.update(p, func(c *corev1.Pod) {
		c.Status.Phase, c.Status.Reason = phase, reason
		for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
			condition(c, corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "Pod" + string(phase), LastTransitionTime: kl.clock.stamp()})
		}
	})
}

// FailPod has a running pod fail now.
func (w *World) FailPod(namespace, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := get[*corev1.Pod](w.store, id{kindPod, namespace, name})
	if !ok || ended(p) || !w.kubelets.pods[p.UID].running {
		return fmt.Errorf("failing pod %s/%s: it does not run", namespace, name)
	}
	w.kubelets.end(p, corev1.PodFailed, "Error")
	return nil
}

// terminate deletes a pod in its own time: at once where it is on no node or has
// ended, else after its kubelet has stopped it. disruption is the reason where somebody
// other than its owner wants it.
func (kl *kubelets) terminate(p *corev1.Pod, disruption string) {
	if p.Spec.NodeName == "" || ended(p) {
		kl.store.drop(p)
		return
	}
	if p.DeletionTimestamp != nil {
		return
	}
	grace := 30 * time.Second
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	kl.store.update(p, func(c *corev1.Pod) {
		at, seconds := metav1.NewTime(kl.clock.now.Add(grace).Truncate(time.Second)), int64(grace/time.Second)
		c.DeletionTimestamp, c.DeletionGracePeriodSeconds = &at, &seconds
		if disruption != "" {
			condition(c, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: disruption, LastTransitionTime: kl.clock.stamp()})
		}
	})
	stop := kl.options.Timing.Stop
	if d, ok := span(p, AnnotationStop); ok {
		stop = d
	}
	uid, graceful := p.UID, stop <= grace
	kl.clock.after(min(stop, grace), func() { kl.stopped(uid, graceful) })
}

// stopped is the end of a pod that was told to stop.
func (kl *kubelets) stopped(uid types.UID, graceful bool) {
	p, s, ok := kl.live(uid)
	if !ok {
		return
	}
	if s.running && graceful && p.Annotations[AnnotationKeeps] == "on-stop" {
		kl.saved[progress(p)] = append(kl.saved[progress(p)], s.done+kl.clock.now.Sub(s.since))
	}
	kl.end(p, corev1.PodFailed, "")
	kl.gone(uid)
}

// gone takes a pod that has ended off the API server.
func (kl *kubelets) gone(uid types.UID) {
	if p, ok := kl.store.byUID[uid].(*corev1.Pod); ok {
		kl.store.drop(p)
	}
}

// progress is what saved work is kept by: the owner with the index, as pods that are
// made again have other names.
func progress(p *corev1.Pod) string {
	ref, ok := controller(p)
	if !ok {
		return p.Namespace + "/" + string(p.UID)
	}
	return p.Namespace + "/" + ref.Kind + "/" + ref.Name + "/" + p.Annotations[labelIndex]
}

func span(p *corev1.Pod, annotation string) (time.Duration, bool) {
	s, ok := p.Annotations[annotation]
	if !ok {
		return 0, false
	}
	d, err := time.ParseDuration(s)
	return d, err == nil && d >= 0
}

// failing reads AnnotationFails.
func failing(p *corev1.Pod) (times int, after time.Duration, ok bool) {
	n, d, ok := strings.Cut(p.Annotations[AnnotationFails], "@")
	if !ok {
		return 0, 0, false
	}
	times, err := strconv.Atoi(n)
	after, wrong := time.ParseDuration(d)
	return times, after, err == nil && wrong == nil
}

// taintLost is on a node that nobody hears of.
const taintLost = "node.kubernetes.io/unreachable"

func tainted(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taintLost })
}

// LoseNode has a node go dark with all that runs on it. The API server learns of it
// after some silence, and later its pods are deleted.
func (w *World) LoseNode(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kubelets.lose(name)
}

func (kl *kubelets) lose(name string) {
	if kl.lost[name] {
		return
	}
	kl.lost[name] = true
	for uid := range kl.on[name] {
		kl.pods[uid].running = false
	}
	kl.clock.after(kl.options.Timing.Silence, func() {
		if n, ok := get[*corev1.Node](kl.store, id{kindNode, "", name}); ok && kl.lost[name] {
			kl.darken(n)
		}
	})
}

// darken marks a node that was not heard of, and its pods.
func (kl *kubelets) darken(n *corev1.Node) {
	kl.ready(n, corev1.ConditionUnknown)
	for _, uid := range kl.onNode(n.Name) {
		p := kl.store.byUID[uid].(*corev1.Pod)
		if ended(p) {
			continue
		}
		kl.store.update(p, func(c *corev1.Pod) {
			condition(c, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeNotReady", LastTransitionTime: kl.clock.stamp()})
		})
		kl.clock.after(kl.options.Timing.Tolerance, func() { kl.desert(n.Name, uid) })
	}
}

// desert deletes a pod whose node stays lost.
func (kl *kubelets) desert(node string, uid types.UID) {
	p, ok := kl.store.byUID[uid].(*corev1.Pod)
	n, there := get[*corev1.Node](kl.store, id{kindNode, "", node})
	if ok && there && tainted(n) && active(p) {
		kl.terminate(p, "DeletionByTaintManager")
	}
}

// orphan deletes a pod whose node is no longer there.
func (kl *kubelets) orphan(uid types.UID) {
	p, ok := kl.store.byUID[uid].(*corev1.Pod)
	if !ok {
		return
	}
	if _, back := kl.store.objects[id{kindNode, "", p.Spec.NodeName}]; back {
		return
	}
	if !ended(p) {
		kl.end(p, corev1.PodFailed, "NodeLost")
	}
	kl.gone(uid)
}

// onNode are the pods bound to a node, in the order in which they were made.
func (kl *kubelets) onNode(name string) []types.UID {
	return slices.Sorted(maps.Keys(kl.on[name]))
}

// ready sets whether a node is ready, and its taint.
func (kl *kubelets) ready(n *corev1.Node, status corev1.ConditionStatus) {
	c := *n
	c.Status.Conditions = slices.Clone(n.Status.Conditions)
	for i := range c.Status.Conditions {
		if x := &c.Status.Conditions[i]; x.Type == corev1.NodeReady {
			x.Status, x.LastTransitionTime = status, kl.clock.stamp()
		}
	}
	c.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == taintLost })
	if status != corev1.ConditionTrue {
		for _, e := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: taintLost, Effect: e})
		}
	}
	kl.store.put(&c)
}

// ReturnNode has a lost node start again: what ran on it has failed, what was to be
// deleted is gone.
func (w *World) ReturnNode(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kubelets.comeBack(name)
}

func (kl *kubelets) comeBack(name string) {
	if !kl.lost[name] {
		return
	}
	delete(kl.lost, name)
	kl.clock.after(kl.options.Timing.Start, func() {
		n, ok := get[*corev1.Node](kl.store, id{kindNode, "", name})
		if !ok || kl.lost[name] {
			return
		}
		for _, uid := range kl.onNode(name) {
			kl.rebooted(uid)
		}
		kl.ready(n, corev1.ConditionTrue)
	})
}

// rebooted settles a pod that was on a node which has started again.
func (kl *kubelets) rebooted(uid types.UID) {
	p := kl.store.byUID[uid].(*corev1.Pod)
	switch {
	case ended(p):
	case p.DeletionTimestamp != nil:
		kl.end(p, corev1.PodFailed, "")
		kl.gone(uid)
	case p.Status.Phase == corev1.PodRunning:
		if !kl.pods[uid].running {
			kl.end(p, corev1.PodFailed, "Error")
		}
	default:
		kl.begin(uid)
	}
}

// DeleteNode takes a node out of the cluster; what is on it goes later.
func (w *World) DeleteNode(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kubelets.deleteNode(name)
}

func (kl *kubelets) deleteNode(name string) {
	n, ok := get[*corev1.Node](kl.store, id{kindNode, "", name})
	if !ok {
		return
	}
	kl.store.drop(n)
	for _, uid := range kl.onNode(name) {
		kl.pods[uid].running = false
		kl.clock.after(kl.options.Timing.Orphan, func() { kl.orphan(uid) })
	}
}

// remove deletes an object, a pod in its own time.
func (kl *kubelets) remove(o object, disruption string) {
	switch o := o.(type) {
	case nil:
	case *corev1.Pod:
		kl.terminate(o, disruption)
	default:
		kl.store.drop(o)
	}
}
