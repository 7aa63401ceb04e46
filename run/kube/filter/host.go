// Package filter hosts the filters of the upstream kube-scheduler (k8s.io/kubernetes/pkg/scheduler, version 1.36),
// so that a pod placed by Muster satisfies every constraint of Kubernetes in the very way upstream reads it: taints,
// selectors, affinity, topology spread, host ports, volumes, dynamic resource claims and the rest.
//
// The division of work: the engine decides order, gangs, size, sharing and placement, and counts processor, memory and
// its own devices itself, because it alone knows about runs that are still stopping. The engine is pure and cannot call
// a plugin, so it is told as data on which nodes a pod may go (Nodes) and everything is checked once more, against all
// constraints and all resources, right before the pods are bound (Check).
//
// A driver tells the Host of nodes and pods as it hears of them, tells the engine of Nodes for each waiting job, and for
// a gang that the engine starts calls Check, then Reserve for each pod (which assumes it), PreBind, and binds.
//
// The profile is upstream's default one without scoring, queue order and preemption. It runs twice over one snapshot:
// the "open" framework ignores what the engine counts, the "strict" one ignores nothing.
package filter

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Options says what a Host is built from.
type Options struct {
	// Client is what reservations write through: volumes to bind, claims to allocate.
	Client kubernetes.Interface
	// Informers feed the plugins with everything but nodes and pods: volumes, claims, classes, namespaces, budgets.
	// New registers with them, so start them afterwards and then call WaitForSync. Share the factory with whoever
	// feeds SetNode and SetPod, or nodes and pods are watched twice.
	Informers informers.SharedInformerFactory
	// Recorder receives the few events upstream's plugins write themselves. None are written where it is nil.
	Recorder events.EventRecorderLogger
	// OwnsResource says of an extended resource that the engine counts it (nvidia.com/gpu). Processor and memory are
	// always the engine's. Nil owns nothing more.
	OwnsResource func(corev1.ResourceName) bool
	// OwnsDriver says of a driver of dynamic resources that the engine counts its devices. Nil owns none.
	OwnsDriver func(string) bool
}

// Host holds upstream's view of the cluster and answers where pods may go. It may be used from several goroutines;
// what it answers follows from the calls that changed it, in their order.
type Host struct {
	logger       klog.Logger
	client       kubernetes.Interface
	ownsResource func(corev1.ResourceName) bool
	namespaces   corelisters.NamespaceLister
	budgets      policylisters.PodDisruptionBudgetLister
	informers    informers.SharedInformerFactory
	synced       []cache.ResourceEventHandlerRegistration
	frameworks

	mu       sync.Mutex
	snapshot *internalcache.Snapshot
	stale    bool // the snapshot lags behind the cache
	nodes    map[string]*corev1.Node
	names    []string       // of nodes, sorted
	pods     map[string]int // by node: how many pods are there
	evicting int            // nodes with a taint that the API server's default tolerations tolerate
	terms    termIndex
	shape    changeLog // nodes whose own properties changed, or that became full or free
	touched  changeLog // these, and nodes whose pods changed
	answers  map[string]*answer

	// others counts changes of objects that are neither nodes nor pods. Plugins make some of them while the lock is
	// held, and upstream's caches report them at once, so it is outside the lock.
	others atomic.Int64
}

// New builds a Host. The context bounds the life of upstream's background work, not that of the call.
func New(ctx context.Context, o Options) (*Host, error) {
	if o.Client == nil || o.Informers == nil {
		return nil, errors.New("filter: options need a client and informers")
	}
	if o.OwnsResource == nil {
		o.OwnsResource = func(corev1.ResourceName) bool { return false }
	}
	if o.OwnsDriver == nil {
		o.OwnsDriver = func(string) bool { return false }
	}
	if o.Recorder == nil {
		o.Recorder = &events.FakeRecorder{} // upstream's own recorder that throws events away
	}
	h := &Host{
		logger:       klog.FromContext(ctx),
		client:       o.Client,
		ownsResource: o.OwnsResource,
		namespaces:   o.Informers.Core().V1().Namespaces().Lister(),
		budgets:      o.Informers.Policy().V1().PodDisruptionBudgets().Lister(),
		informers:    o.Informers,
		snapshot:     internalcache.NewEmptySnapshot(),
		nodes:        map[string]*corev1.Node{},
		pods:         map[string]int{},
		terms:        newTermIndex(),
		answers:      map[string]*answer{},
	}
	built, err := newFrameworks(ctx, o, h.snapshot)
	if err != nil {
		return nil, fmt.Errorf("building upstream's scheduling framework: %w", err)
	}
	h.frameworks = built
	h.synced, err = h.watchOthers(o.Informers)
	if err != nil {
		return nil, fmt.Errorf("registering with informers: %w", err)
	}
	return h, nil
}

// WaitForSync waits until everything the informers listed has reached the plugins.
func (h *Host) WaitForSync(ctx context.Context) error {
	h.informers.WaitForCacheSync(ctx.Done())
	err := wait.PollUntilContextCancel(ctx, time.Millisecond, true, func(context.Context) (bool, error) {
		for _, registration := range h.synced {
			if !registration.HasSynced() {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for informers: %w", err)
	}
	return nil
}

// SetNode adds a node or replaces what is known of it. What no filter reads (heartbeats, images) costs nothing.
func (h *Host) SetNode(node *corev1.Node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.nodes[node.Name]
	if old != nil && sameToFilters(old, node) {
		return
	}
	h.nodes[node.Name] = node
	if old == nil {
		h.cache.AddNode(h.logger, node)
		at, _ := slices.BinarySearch(h.names, node.Name)
		h.names = slices.Insert(h.names, at, node.Name)
	} else {
		h.cache.UpdateNode(h.logger, old, node)
		h.evicting -= evictingTaint(old)
	}
	h.evicting += evictingTaint(node)
	h.changed(node.Name, &h.shape, &h.touched)
}

// DeleteNode removes a node. Its pods stay known until they are deleted themselves.
func (h *Host) DeleteNode(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old := h.nodes[name]
	if old == nil {
		return
	}
	delete(h.nodes, name)
	at, _ := slices.BinarySearch(h.names, name)
	h.names = slices.Delete(h.names, at, at+1)
	if err := h.cache.RemoveNode(h.logger, old); err != nil {
		h.logger.Error(err, "Removing a node from the cache", "node", name)
	}
	h.evicting -= evictingTaint(old)
	h.changed(name, &h.shape, &h.touched)
}

// SetPod tells what is known of a pod of any scheduler. Pods without a node and finished ones take no room and are
// dropped. It confirms a pod that was assumed, also on another node than assumed.
func (h *Host) SetPod(pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.known(pod)
	if pod.Spec.NodeName == "" && known != nil {
		if assumed, _ := h.cache.IsAssumedPod(known); assumed {
			return // an older view of a pod that is on its way to its node
		}
	}
	finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if pod.Spec.NodeName == "" || finished {
		h.remove(known)
		return
	}
	if known == nil {
		h.add(pod, h.cache.AddPod)
		return
	}
	if known.Spec.NodeName != pod.Spec.NodeName {
		h.remove(known)
		h.add(pod, h.cache.AddPod)
		return
	}
	assumed, _ := h.cache.IsAssumedPod(known)
	same := samePodToFilters(known, pod)
	switch {
	case assumed:
		h.warn(h.cache.AddPod(h.logger, pod), pod)
	case !same:
		h.warn(h.cache.UpdatePod(h.logger, known, pod), pod)
	default:
		return
	}
	h.stale = true
	if !same {
		h.terms.remove(known)
		h.terms.add(pod)
		h.changed(pod.Spec.NodeName, &h.touched)
	}
}

// DeletePod removes a pod, whether it was bound or only assumed.
func (h *Host) DeletePod(pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(h.known(pod))
}

// Forget takes back that a pod was assumed on a node. One that was confirmed meanwhile stays.
func (h *Host) Forget(pod *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(pod)
}

func (h *Host) assume(pod *corev1.Pod, node string) error {
	if known := h.known(pod); known != nil {
		if known.Spec.NodeName == node {
			return nil
		}
		return fmt.Errorf("assuming pod %s/%s on node %s: it is on node %s", pod.Namespace, pod.Name, node, known.Spec.NodeName)
	}
	if pod.UID == "" {
		return fmt.Errorf("assuming pod %s/%s: it has no uid", pod.Namespace, pod.Name)
	}
	h.add(onNode(pod, node), h.cache.AssumePod)
	return nil
}

func (h *Host) forget(pod *corev1.Pod) {
	known := h.known(pod)
	if known == nil {
		return
	}
	if assumed, _ := h.cache.IsAssumedPod(known); assumed {
		h.remove(known)
	}
}

// known returns the pod as the cache has it, or nil. Upstream ends the process when it is told to move a pod between
// nodes, so every change goes through what is known.
func (h *Host) known(pod *corev1.Pod) *corev1.Pod {
	if pod.UID == "" {
		return nil
	}
	known, err := h.cache.GetPod(pod)
	if err != nil {
		return nil
	}
	return known
}

func (h *Host) add(pod *corev1.Pod, how func(klog.Logger, *corev1.Pod) error) {
	if err := how(h.logger, pod); err != nil {
		h.warn(err, pod)
		return
	}
	h.terms.add(pod)
	h.count(pod.Spec.NodeName, 1)
}

func (h *Host) remove(known *corev1.Pod) {
	if known == nil {
		return
	}
	h.warn(h.cache.RemovePod(h.logger, known), known)
	h.terms.remove(known)
	h.count(known.Spec.NodeName, -1)
}

// count keeps the number of pods of a node. Only a node that becomes full or free concerns pods without constraints.
func (h *Host) count(name string, by int) {
	before := h.pods[name]
	h.pods[name] = before + by
	if h.pods[name] == 0 {
		delete(h.pods, name)
	}
	h.changed(name, &h.touched)
	if node := h.nodes[name]; node != nil {
		room := int(node.Status.Allocatable.Pods().Value())
		if (before >= room) != (before+by >= room) {
			h.changed(name, &h.shape)
		}
	}
}

func (h *Host) changed(node string, logs ...*changeLog) {
	h.stale = true
	for _, l := range logs {
		l.add(node, len(h.nodes))
	}
}

func (h *Host) warn(err error, pod *corev1.Pod) {
	if err != nil {
		h.logger.Error(err, "Updating the cache of pods", "pod", klog.KObj(pod))
	}
}

// refresh brings the snapshot up to the cache; it costs what changed since the last time.
func (h *Host) refresh() error {
	if !h.stale {
		return nil
	}
	if err := h.cache.UpdateSnapshot(h.logger, h.snapshot); err != nil {
		return fmt.Errorf("updating the snapshot of nodes: %w", err)
	}
	h.stale = false
	return nil
}

// onNode returns the pod as if it were bound; the rest is shared, nobody writes to it.
func onNode(pod *corev1.Pod, node string) *corev1.Pod {
	placed := *pod
	placed.Spec.NodeName = node
	return &placed
}

func sameToFilters(a, b *corev1.Node) bool {
	return a.UID == b.UID && a.Spec.Unschedulable == b.Spec.Unschedulable &&
		reflect.DeepEqual(a.Labels, b.Labels) &&
		reflect.DeepEqual(a.Spec.Taints, b.Spec.Taints) &&
		reflect.DeepEqual(a.Status.Allocatable, b.Status.Allocatable) &&
		reflect.DeepEqual(a.Status.DeclaredFeatures, b.Status.DeclaredFeatures)
}

// samePodToFilters leaves out the status but for what a resize in place has reached.
func samePodToFilters(a, b *corev1.Pod) bool {
	if (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) || !reflect.DeepEqual(a.Labels, b.Labels) ||
		!reflect.DeepEqual(a.Spec, b.Spec) {
		return false
	}
	inUse := resource.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
	return reflect.DeepEqual(framework.NewResource(resource.PodRequests(a, inUse)), framework.NewResource(resource.PodRequests(b, inUse)))
}

var evictingTaints = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable}

// evictingTaint counts 1 for a node with a taint that the API server's default tolerations tolerate.
func evictingTaint(node *corev1.Node) int {
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoExecute && slices.Contains(evictingTaints, taint.Key) {
			return 1
		}
	}
	return 0
}

// changeLog lists the nodes that changed, in order, so that an answer looks only at those since its own time.
type changeLog struct {
	names []string
	start int // position of names[0] in the whole log
}

func (l *changeLog) end() int { return l.start + len(l.names) }

func (l *changeLog) add(name string, nodes int) {
	if len(l.names) > 4*nodes+64 { // older answers look at all nodes, which is cheaper by now
		l.start, l.names = l.end(), nil
	}
	l.names = append(l.names, name)
}

// since returns the nodes that changed from a position on; false where that part of the log is gone.
func (l *changeLog) since(position int) ([]string, bool) {
	if position < l.start {
		return nil, false
	}
	return l.names[position-l.start:], true
}
