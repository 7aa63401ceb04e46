package kubetest

import (
	"context"
	"fmt"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

var (
	podResource  = corev1.SchemeGroupVersion.WithResource("pods")
	nodeResource = corev1.SchemeGroupVersion.WithResource("nodes")
)

// FakeAPI is client-go's fake client filled with nodes: an API server without a network, encoding or storage, so
// that what remains is the scheduler's own work.
type FakeAPI struct {
	Client *fake.Clientset
	seen   *bindings
}

// Decided is what a scheduler did with a load on a FakeAPI.
type Decided struct {
	Scheduler   string
	Pods, Bound int
	// For is the time from the first pod's appearance to the last binding.
	For time.Duration
	// PerSecond is the pods bound over For.
	PerSecond float64
	// CPU is the time of this process, which holds the scheduler and the fake client.
	CPU time.Duration
	// OvercommittedNodes hold more devices than they have; MovedPods were bound twice. Both must be none.
	OvercommittedNodes, MovedPods int
}

// String is one line of a comparison.
func (d Decided) String() string {
	return fmt.Sprintf("%s on a fake client: %d of %d pods bound in %v, %.0f/s, CPU %v; %d nodes over-committed, %d pods moved", d.Scheduler,
		d.Bound, d.Pods, d.For.Round(time.Millisecond), d.PerSecond, d.CPU.Round(time.Millisecond), d.OvercommittedNodes, d.MovedPods)
}

// newFakeAPI makes a fake API with the nodes of a setting.
func newFakeAPI(s Setting, pods int) (*FakeAPI, error) {
	// The fake client panics when a watcher lags by more events than this, which a full queue of pods does.
	watch.DefaultChanSize = max(watch.DefaultChanSize, int32(4*pods+s.Nodes))
	api := &FakeAPI{Client: fake.NewSimpleClientset(), seen: newBindings(pods)}
	for i := range s.Nodes {
		if err := api.Client.Tracker().Create(nodeResource, s.Node.Node(i), ""); err != nil {
			return nil, fmt.Errorf("making the fake nodes: %w", err)
		}
	}
	api.Client.PrependReactor("create", "pods", api.bind)
	return api, nil
}

// bind does what the API server does with a binding: the pod gets its node and a condition.
func (f *FakeAPI) bind(action clienttesting.Action) (bool, runtime.Object, error) {
	create, ok := action.(clienttesting.CreateAction)
	if !ok || action.GetSubresource() != "binding" {
		return false, nil, nil
	}
	binding, ok := create.GetObject().(*corev1.Binding)
	if !ok {
		return true, nil, fmt.Errorf("binding a pod: want a Binding, got %T", create.GetObject())
	}
	object, err := f.Client.Tracker().Get(podResource, action.GetNamespace(), binding.Name)
	if err != nil {
		return true, nil, err
	}
	pod := object.(*corev1.Pod).DeepCopy()
	if pod.Spec.NodeName != "" {
		f.seen.mu.Lock()
		f.seen.moved++
		f.seen.mu.Unlock()
		return true, nil, fmt.Errorf("pod %s is already assigned to node %s", pod.Name, pod.Spec.NodeName)
	}
	pod.Spec.NodeName = binding.Target.Name
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	if err := f.Client.Tracker().Update(podResource, pod, pod.Namespace); err != nil {
		return true, nil, err
	}
	f.seen.note(pod)
	return true, binding, nil
}

// MeasureFake puts a load of single pods on a scheduler in this process. start must return once the scheduler knows
// the nodes, and keep it running until its context ends.
func MeasureFake(s Setting, load Load, name, schedulerName string, start func(ctx context.Context, client kubernetes.Interface) error) (Decided, error) {
	if load.Limit == 0 {
		load.Limit = 5 * time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), load.Limit)
	defer cancel()
	list := load.pods()
	api, err := newFakeAPI(s, len(list))
	if err != nil {
		return Decided{}, err
	}
	if err := start(ctx, api.Client); err != nil {
		return Decided{}, fmt.Errorf("starting %s: %w", name, err)
	}
	cpu, begin := ownCPU(), time.Now()
	for _, p := range list {
		api.seen.created(p.name)
		pod := load.pod(p, metav1.NamespaceDefault, schedulerName)
		pod.UID = types.UID(p.name) // schedulers tell pods apart by it
		pod.CreationTimestamp = metav1.NewTime(begin)
		pod.Status.Phase = corev1.PodPending
		if err := api.Client.Tracker().Create(podResource, pod, pod.Namespace); err != nil {
			return Decided{}, fmt.Errorf("making the fake pods: %w", err)
		}
	}
	select {
	case <-api.seen.done:
	case <-ctx.Done():
	}
	d := Decided{Scheduler: name, Pods: len(list), CPU: ownCPU() - cpu}
	var m Measured
	m.times(begin, api.seen)
	d.Bound, d.For, d.PerSecond, d.MovedPods = m.Bound, m.Last, m.BoundPerSecond, m.MovedPods
	d.OvercommittedNodes = api.seen.overcommitted(load, func(string) int64 { return s.Node.Devices })
	return d, nil
}

// UpstreamOnFake starts kube-scheduler's own package on a client, with its default profile and without events, which
// spares it work that it does against a real API server.
func UpstreamOnFake(ctx context.Context, client kubernetes.Interface) error {
	informers := scheduler.NewInformerFactory(client, 0)
	recorders := profile.RecorderFactory(func(string) events.EventRecorderLogger { return &events.FakeRecorder{} })
	s, err := scheduler.New(ctx, client, informers, nil, recorders)
	if err != nil {
		return err
	}
	informers.Start(ctx.Done())
	informers.WaitForCacheSync(ctx.Done())
	if err := s.WaitForHandlersSync(ctx); err != nil {
		return err
	}
	go s.Run(ctx)
	return nil
}

// ownCPU is the processor time of this process.
func ownCPU() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // it fails only for a bad argument
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
