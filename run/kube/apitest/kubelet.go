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

// podChanged keeps what is derived from pods, and has their kubelets see them.
func (w *World) podChanged(was, is *corev1.Pod) {
	p := is
	if is == nil {
		p = was
	}
	s := w.pods[p.UID]
	if s == nil {
		s = &podState{needs: needsOf(p)}
		w.pods[p.UID] = s
		w.join(p, s)
	}
	if s.job != nil {
		s.job.count(s, p)
	}
	w.watchRoom(s, p, is == nil)
	w.watchGang(s, p, is == nil)
	if ref, ok := controller(p); ok {
		w.mark(ref.UID)
	}
	w.markBudgets(p)
	if is == nil {
		delete(w.pods, p.UID)
		delete(w.on[p.Spec.NodeName], p.UID)
		return
	}
	fresh := was == nil || was.Spec.NodeName == ""
	if is.Spec.NodeName != "" && fresh && !ended(is) {
		w.assigned(is)
	}
}

// assigned has a kubelet begin a pod.
func (w *World) assigned(p *corev1.Pod) {
	node, uid := p.Spec.NodeName, p.UID
	if w.on[node] == nil {
		w.on[node] = map[types.UID]bool{}
	}
	w.on[node][uid] = true
	w.after(w.options.Timing.Start, func() { w.begin(uid) })
	n, there := get[*corev1.Node](w, id{kindNode, "", node})
	switch {
	case !there:
		w.after(w.options.Timing.Orphan, func() { w.orphan(uid) })
	case tainted(n):
		w.after(w.options.Timing.Tolerance, func() { w.desert(node, uid) })
	}
}

// live returns a pod that a working kubelet has.
func (w *World) live(uid types.UID) (*corev1.Pod, *podState, bool) {
	p, ok := w.byUID[uid].(*corev1.Pod)
	if !ok || ended(p) || w.lost[p.Spec.NodeName] {
		return nil, nil, false
	}
	_, there := w.objects[id{kindNode, "", p.Spec.NodeName}]
	return p, w.pods[uid], there
}

// begin has a bound pod run.
func (w *World) begin(uid types.UID) {
	p, s, ok := w.live(uid)
	if !ok || s.running || p.DeletionTimestamp != nil {
		return
	}
	if how := p.Annotations[AnnotationWaits]; how != "" {
		w.contained(p, how)
		return
	}
	s.running, s.since = true, w.now
	if saved := w.saved[progress(p)]; len(saved) > 0 {
		s.done, w.saved[progress(p)] = saved[len(saved)-1], saved[:len(saved)-1]
	}
	w.update(p, func(c *corev1.Pod) {
		now := w.stamp()
		c.Status.Phase, c.Status.StartTime = corev1.PodRunning, &now
		for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
			condition(c, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
	})
	if times, after, ok := failing(p); ok && w.failed[progress(p)] < times {
		w.after(after, func() { w.finish(uid, corev1.PodFailed) })
		return
	}
	if work, ok := span(p, AnnotationWork); ok {
		w.after(work-s.done, func() { w.finish(uid, corev1.PodSucceeded) })
	}
}

// finish ends a running pod by itself.
func (w *World) finish(uid types.UID, phase corev1.PodPhase) {
	p, s, ok := w.live(uid)
	if !ok || !s.running {
		return
	}
	if phase == corev1.PodFailed {
		w.failed[progress(p)]++
	}
	w.end(p, phase, "")
	if how := p.Annotations[AnnotationEnds]; how != "" && phase == corev1.PodFailed {
		w.contained(w.byUID[uid].(*corev1.Pod), how)
	}
	if p.DeletionTimestamp != nil {
		w.gone(uid)
	}
}

// contained has a pod say how its first container is, as kubelets do.
func (w *World) contained(p *corev1.Pod, how string) {
	var state corev1.ContainerState
	if err := json.Unmarshal([]byte(how), &state); err != nil {
		panic(fmt.Sprintf("pod %s: a container's state: %v", p.Name, err))
	}
	if state.Terminated != nil {
		state.Terminated.FinishedAt = w.stamp()
	}
	w.update(p, func(c *corev1.Pod) {
		c.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: c.Spec.Containers[0].Name, State: state}}
	})
}

// end has a pod end with a phase.
func (w *World) end(p *corev1.Pod, phase corev1.PodPhase, reason string) {
	w.pods[p.UID].running = false
	w.update(p, func(c *corev1.Pod) {
		c.Status.Phase, c.Status.Reason = phase, reason
		for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
			condition(c, corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "Pod" + string(phase), LastTransitionTime: w.stamp()})
		}
	})
}

// FailPod has a running pod fail now.
func (w *World) FailPod(namespace, name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := get[*corev1.Pod](w, id{kindPod, namespace, name})
	if !ok || ended(p) || !w.pods[p.UID].running {
		return fmt.Errorf("failing pod %s/%s: it does not run", namespace, name)
	}
	w.end(p, corev1.PodFailed, "Error")
	return nil
}

// terminate deletes a pod in its own time: at once where it is on no node or has
// ended, else after its kubelet has stopped it. disruption is the reason where somebody
// other than its owner wants it.
func (w *World) terminate(p *corev1.Pod, disruption string) {
	if p.Spec.NodeName == "" || ended(p) {
		w.drop(p)
		return
	}
	if p.DeletionTimestamp != nil {
		return
	}
	grace := 30 * time.Second
	if s := p.Spec.TerminationGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	w.update(p, func(c *corev1.Pod) {
		at, seconds := metav1.NewTime(w.now.Add(grace).Truncate(time.Second)), int64(grace/time.Second)
		c.DeletionTimestamp, c.DeletionGracePeriodSeconds = &at, &seconds
		if disruption != "" {
			condition(c, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: disruption, LastTransitionTime: w.stamp()})
		}
	})
	stop := w.options.Timing.Stop
	if d, ok := span(p, AnnotationStop); ok {
		stop = d
	}
	uid, graceful := p.UID, stop <= grace
	w.after(min(stop, grace), func() { w.stopped(uid, graceful) })
}

// stopped is the end of a pod that was told to stop.
func (w *World) stopped(uid types.UID, graceful bool) {
	p, s, ok := w.live(uid)
	if !ok {
		return
	}
	if s.running && graceful && p.Annotations[AnnotationKeeps] == "on-stop" {
		w.saved[progress(p)] = append(w.saved[progress(p)], s.done+w.now.Sub(s.since))
	}
	w.end(p, corev1.PodFailed, "")
	w.gone(uid)
}

// gone takes a pod that has ended off the API server.
func (w *World) gone(uid types.UID) {
	if p, ok := w.byUID[uid].(*corev1.Pod); ok {
		w.drop(p)
	}
}

// update puts a changed copy of a pod. What change replaces must be new, too.
func (w *World) update(p *corev1.Pod, change func(*corev1.Pod)) {
	c := *p
	change(&c)
	w.put(&c)
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
	w.lose(name)
}

func (w *World) lose(name string) {
	if w.lost[name] {
		return
	}
	w.lost[name] = true
	for uid := range w.on[name] {
		w.pods[uid].running = false
	}
	w.after(w.options.Timing.Silence, func() {
		if n, ok := get[*corev1.Node](w, id{kindNode, "", name}); ok && w.lost[name] {
			w.darken(n)
		}
	})
}

// darken marks a node that was not heard of, and its pods.
func (w *World) darken(n *corev1.Node) {
	w.ready(n, corev1.ConditionUnknown)
	for _, uid := range w.onNode(n.Name) {
		p := w.byUID[uid].(*corev1.Pod)
		if ended(p) {
			continue
		}
		w.update(p, func(c *corev1.Pod) {
			condition(c, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "NodeNotReady", LastTransitionTime: w.stamp()})
		})
		w.after(w.options.Timing.Tolerance, func() { w.desert(n.Name, uid) })
	}
}

// desert deletes a pod whose node stays lost.
func (w *World) desert(node string, uid types.UID) {
	p, ok := w.byUID[uid].(*corev1.Pod)
	n, there := get[*corev1.Node](w, id{kindNode, "", node})
	if ok && there && tainted(n) && active(p) {
		w.terminate(p, "DeletionByTaintManager")
	}
}

// orphan deletes a pod whose node is no longer there.
func (w *World) orphan(uid types.UID) {
	p, ok := w.byUID[uid].(*corev1.Pod)
	if !ok {
		return
	}
	if _, back := w.objects[id{kindNode, "", p.Spec.NodeName}]; back {
		return
	}
	if !ended(p) {
		w.end(p, corev1.PodFailed, "NodeLost")
	}
	w.gone(uid)
}

// onNode are the pods bound to a node, in the order in which they were made.
func (w *World) onNode(name string) []types.UID {
	return slices.Sorted(maps.Keys(w.on[name]))
}

// ready sets whether a node is ready, and its taint.
func (w *World) ready(n *corev1.Node, status corev1.ConditionStatus) {
	c := *n
	c.Status.Conditions = slices.Clone(n.Status.Conditions)
	for i := range c.Status.Conditions {
		if x := &c.Status.Conditions[i]; x.Type == corev1.NodeReady {
			x.Status, x.LastTransitionTime = status, w.stamp()
		}
	}
	c.Spec.Taints = slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(t corev1.Taint) bool { return t.Key == taintLost })
	if status != corev1.ConditionTrue {
		for _, e := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
			c.Spec.Taints = append(c.Spec.Taints, corev1.Taint{Key: taintLost, Effect: e})
		}
	}
	w.put(&c)
}

// ReturnNode has a lost node start again: what ran on it has failed, what was to be
// deleted is gone.
func (w *World) ReturnNode(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.comeBack(name)
}

func (w *World) comeBack(name string) {
	if !w.lost[name] {
		return
	}
	delete(w.lost, name)
	w.after(w.options.Timing.Start, func() {
		n, ok := get[*corev1.Node](w, id{kindNode, "", name})
		if !ok || w.lost[name] {
			return
		}
		for _, uid := range w.onNode(name) {
			w.rebooted(uid)
		}
		w.ready(n, corev1.ConditionTrue)
	})
}

// rebooted settles a pod that was on a node which has started again.
func (w *World) rebooted(uid types.UID) {
	p := w.byUID[uid].(*corev1.Pod)
	switch {
	case ended(p):
	case p.DeletionTimestamp != nil:
		w.end(p, corev1.PodFailed, "")
		w.gone(uid)
	case p.Status.Phase == corev1.PodRunning:
		if !w.pods[uid].running {
			w.end(p, corev1.PodFailed, "Error")
		}
	default:
		w.begin(uid)
	}
}

// DeleteNode takes a node out of the cluster; what is on it goes later.
func (w *World) DeleteNode(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleteNode(name)
}

func (w *World) deleteNode(name string) {
	n, ok := get[*corev1.Node](w, id{kindNode, "", name})
	if !ok {
		return
	}
	w.drop(n)
	for _, uid := range w.onNode(name) {
		w.pods[uid].running = false
		w.after(w.options.Timing.Orphan, func() { w.orphan(uid) })
	}
}
