package kubetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// Load says which pods a measurement creates, and how fast.
type Load struct {
	// Gangs are the sizes of the gangs, one pod group each; nil for single pods.
	Gangs []int
	// Pods is how many single pods are created where Gangs is nil.
	Pods int
	// PerSecond is the rate of creation. Zero creates as fast as the API server takes them, so that the waiting
	// times are those of a full queue.
	PerSecond float64
	// Backlog stops the scheduler while the pods are created, and its clock starts when it goes on: what is measured
	// is then how fast it empties a full queue, not how fast the harness fills it.
	Backlog bool
	// DevicesPerPod is 1 where it is zero.
	DevicesPerPod int64
	// Limit ends a measurement whose pods are not bound; 10 minutes where it is zero.
	Limit time.Duration
}

// GangSizes draws gang sizes between 1 and largest that hold exactly the given number of pods. Sizes are spread
// evenly over their logarithm, as in the public traces: many small gangs, few large ones.
func GangSizes(pods, largest int, seed uint64) []int {
	random := rand.New(rand.NewPCG(seed, 0))
	var sizes []int
	for left := pods; left > 0; {
		size := min(left, int(math.Pow(float64(largest)+1, random.Float64())))
		sizes = append(sizes, size)
		left -= size
	}
	return sizes
}

// Gang is a pod group of a Load.
type Gang struct {
	Name      string
	Namespace string
	Size      int
}

// loadPod is one pod of a Load and the gang it belongs to, -1 for none.
type loadPod struct {
	name string
	gang int
}

func (l Load) pods() []loadPod {
	var pods []loadPod
	for g, size := range l.Gangs {
		for i := range size {
			pods = append(pods, loadPod{name: fmt.Sprintf("gang-%04d-%02d", g, i), gang: g})
		}
	}
	for i := range l.Pods {
		if l.Gangs == nil {
			pods = append(pods, loadPod{name: fmt.Sprintf("single-%05d", i), gang: -1})
		}
	}
	return pods
}

func (l Load) gang(namespace string, g int) Gang {
	return Gang{Name: fmt.Sprintf("gang-%04d", g), Namespace: namespace, Size: l.Gangs[g]}
}

// pod makes the object of a pod, the same for every scheduler but for its name.
func (l Load) pod(p loadPod, namespace, schedulerName string) *corev1.Pod {
	atOnce := int64(0)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.name, Namespace: namespace},
		Spec: corev1.PodSpec{SchedulerName: schedulerName, TerminationGracePeriodSeconds: &atOnce,
			Containers: []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
				Limits:   corev1.ResourceList{deviceResource: *resource.NewQuantity(l.devices(), resource.DecimalSI)}}}}},
	}
}

func (l Load) devices() int64 { return max(l.DevicesPerPod, 1) }

// create makes the pods in their order and notes when each was asked for.
func (l Load) create(ctx context.Context, client kubernetes.Interface, pods []*corev1.Pod, seen *bindings) error {
	start := time.Now()
	return parallel(len(pods), func(i int) error {
		if l.PerSecond > 0 {
			due := start.Add(time.Duration(float64(i) / l.PerSecond * float64(time.Second)))
			time.Sleep(time.Until(due))
		}
		seen.created(pods[i].Name)
		_, err := client.CoreV1().Pods(pods[i].Namespace).Create(ctx, pods[i], metav1.CreateOptions{})
		return err
	})
}

// bindings notes when pods were created and where and when they were bound.
type bindings struct {
	mu    sync.Mutex
	asked map[string]time.Time
	bound map[string]binding
	want  int
	done  chan struct{}
	moved int // pods whose node changed after they were bound, which must never be
}

type binding struct {
	node string
	at   time.Time
}

func newBindings(want int) *bindings {
	return &bindings{asked: map[string]time.Time{}, bound: map[string]binding{}, want: want, done: make(chan struct{})}
}

func (b *bindings) created(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked[name] = time.Now()
}

// restart makes every pod's wait begin now.
func (b *bindings) restart(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for name := range b.asked {
		b.asked[name] = now
	}
}

// overcommitted counts the nodes that hold more devices than they have.
func (b *bindings) overcommitted(load Load, capacity func(node string) int64) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	used := map[string]int64{}
	for _, one := range b.bound {
		used[one.node] += load.devices()
	}
	count := 0
	for node, devices := range used {
		if devices > capacity(node) {
			count++
		}
	}
	return count
}

func (b *bindings) note(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, ok := b.bound[pod.Name]; ok {
		if old.node != pod.Spec.NodeName {
			b.moved++
		}
		return
	}
	b.bound[pod.Name] = binding{node: pod.Spec.NodeName, at: time.Now()}
	if len(b.bound) == b.want {
		close(b.done)
	}
}

// follow watches the bound pods of a namespace until its context ends. The API server sends a pod when it is bound
// and not before, which keeps the harness light.
func (b *bindings) follow(ctx context.Context, client kubernetes.Interface, namespace string) {
	const bound = "spec.nodeName!="
	for ctx.Err() == nil {
		list, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: bound})
		if err != nil {
			time.Sleep(100 * time.Millisecond) // an API server that is down comes back, or the measurement's limit ends it
			continue
		}
		for i := range list.Items {
			b.note(&list.Items[i])
		}
		events, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: bound, ResourceVersion: list.ResourceVersion})
		if err != nil {
			continue
		}
		for event := range events.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type != watch.Deleted {
				b.note(pod)
			}
		}
	}
}
