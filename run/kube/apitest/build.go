package apitest

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Device is the resource that the builders count devices in.
const Device corev1.ResourceName = "nvidia.com/gpu"

// Namespace is where the builders put what says no other.
const Namespace = "default"

// AddNodes adds ready nodes node-0000, node-0001 and so on, each with so many devices,
// 96 cores, 1 TiB and 110 pods. edits finish each of them.
func (w *World) AddNodes(n int, devices int64, edits ...func(*corev1.Node)) []*corev1.Node {
	w.mu.Lock()
	defer w.mu.Unlock()
	nodes := make([]*corev1.Node, 0, n)
	for i := 0; len(nodes) < n; i++ {
		name := fmt.Sprintf("node-%04d", i)
		if _, there := w.store.objects[id{kindNode, "", name}]; there {
			continue
		}
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
			Status: corev1.NodeStatus{
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: w.clock.stamp()}},
				Capacity: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("96"), corev1.ResourceMemory: resource.MustParse("1Ti"),
					corev1.ResourcePods: resource.MustParse("110"), Device: *resource.NewQuantity(devices, resource.DecimalSI)}}}
		if devices > 0 {
			node.Labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-80GB"
		}
		for _, edit := range edits {
			edit(node)
		}
		if node.Status.Allocatable == nil {
			node.Status.Allocatable = node.Status.Capacity
		}
		w.judge.must(w.store.add(node))
		nodes = append(nodes, node)
	}
	return nodes
}

// Template is the template of a pod for the scheduler of the World with one container
// that takes devices, and 8 GiB and 4 cores for each of these (1 core and 1 GiB with
// none). It runs for as long as work; 0 is until it is stopped.
func (w *World) Template(devices int64, work time.Duration) corev1.PodTemplateSpec {
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(max(4*devices, 1), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(max(8*devices, 1)<<30, resource.BinarySI)}
	t := corev1.PodTemplateSpec{Spec: corev1.PodSpec{SchedulerName: w.options.Scheduler, RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "main", Image: "example.org/train", Resources: corev1.ResourceRequirements{Requests: requests}}}}}
	if devices > 0 {
		count := *resource.NewQuantity(devices, resource.DecimalSI)
		requests[Device] = count
		t.Spec.Containers[0].Resources.Limits = corev1.ResourceList{Device: count}
	}
	if work > 0 {
		t.Annotations = map[string]string{AnnotationWork: work.String()}
	}
	return t
}

// AddPod adds a pod that nothing owns.
func (w *World) AddPod(name string, devices int64, work time.Duration, edits ...func(*corev1.Pod)) *corev1.Pod {
	t := w.Template(devices, work)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, Annotations: t.Annotations}, Spec: t.Spec}
	for _, edit := range edits {
		edit(p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.must(w.store.add(admitted(p)))
	return p
}

// AddJob adds an indexed Job of as many completions as workers.
func (w *World) AddJob(name string, workers int32, devices int64, work time.Duration, edits ...func(*batchv1.Job)) *unstructured.Unstructured {
	j := newJob(name, workers, w.Template(devices, work), edits)
	return w.AddOwner(Unstructured(j))
}

func newJob(name string, workers int32, t corev1.PodTemplateSpec, edits []func(*batchv1.Job)) *batchv1.Job {
	mode, backoff := batchv1.IndexedCompletion, int32(6)
	completions := workers // of its own: edits may change one of the two
	j := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace},
		Spec: batchv1.JobSpec{Parallelism: &workers, Completions: &completions, CompletionMode: &mode, BackoffLimit: &backoff, Template: t}}
	for _, edit := range edits {
		edit(j)
	}
	return j
}

// Part is a replicated job of a JobSet.
type Part struct {
	Name      string
	Replicas  int64 // 1
	Workers   int32
	Devices   int64
	Work      time.Duration
	DependsOn string // another part that must have completed
	Edits     []func(*batchv1.Job)
}

// AddJobSet adds a JobSet.
func (w *World) AddJobSet(name string, parts []Part, edits ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	var jobs []any
	for _, p := range parts {
		orElse(&p.Replicas, 1)
		j := Unstructured(newJob(p.Name, p.Workers, w.Template(p.Devices, p.Work), p.Edits))
		template := map[string]any{"spec": j.Object["spec"], "metadata": map[string]any{}}
		if a := j.GetAnnotations(); a != nil {
			template["metadata"] = map[string]any{"annotations": fieldAt(j.Object, "metadata.annotations")}
		}
		job := map[string]any{"name": p.Name, "replicas": p.Replicas, "template": template}
		if p.DependsOn != "" {
			job["dependsOn"] = []any{map[string]any{"name": p.DependsOn, "status": "Complete"}}
		}
		jobs = append(jobs, job)
	}
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
		"metadata": map[string]any{"name": name, "namespace": Namespace}, "spec": map[string]any{"suspend": false, "replicatedJobs": jobs}}}
	for _, edit := range edits {
		edit(set)
	}
	return w.AddOwner(set)
}

// AddReplicaSet adds a ReplicaSet.
func (w *World) AddReplicaSet(name string, replicas int64, devices int64) *unstructured.Unstructured {
	t := w.Template(devices, 0)
	t.Spec.RestartPolicy = corev1.RestartPolicyAlways
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&t)
	w.judge.must(err)
	return w.AddOwner(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet",
		"metadata": map[string]any{"name": name, "namespace": Namespace}, "spec": map[string]any{"replicas": replicas, "template": raw}}})
}

// AddNamespace adds a namespace.
func (w *World) AddNamespace(name string, annotations map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	u.SetAnnotations(maps.Clone(annotations))
	return w.AddOwner(u)
}

// AddOwner adds any object that may own pods. It belongs to the World from then on.
func (w *World) AddOwner(u *unstructured.Unstructured) *unstructured.Unstructured {
	w.mu.Lock()
	defer w.mu.Unlock()
	if idOf(u).kind == kindJob {
		defaulted(u)
	}
	w.judge.must(w.store.add(u))
	return u
}

// Object is any object of the API.
type Object = object

// Add adds an object of any other kind, such as a resource slice. It belongs to the
// World from then on.
func (w *World) Add(o Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge.must(w.store.add(o))
}

// Edit changes an object of the World, as a person would; change gets a copy.
func Edit[O Object](w *World, o O, change func(O)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, ok := w.store.byUID[o.GetUID()].(O)
	if !ok {
		return fmt.Errorf("editing %s: it is not there", nameOf(reference(o)))
	}
	next := now.DeepCopyObject().(O)
	change(next)
	w.store.put(next)
	return nil
}

// AddBudget adds a disruption budget.
func (w *World) AddBudget(b *policyv1.PodDisruptionBudget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store.budgeted++
	w.judge.must(w.store.add(b))
}

// Unstructured is an object as a dynamic client has it.
func Unstructured(o runtime.Object) *unstructured.Unstructured {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(err) // of a typed object of Kubernetes this cannot be
	}
	delete(m, "status")
	return &unstructured.Unstructured{Object: m}
}

// Delete deletes an object; what it owns goes with it.
func (w *World) Delete(ref corev1.ObjectReference) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := refer(ref)
	o, ok := w.store.objects[key]
	if !ok {
		return fmt.Errorf("deleting %s: it is not there", nameOf(ref))
	}
	w.kubelets.remove(o, "")
	return nil
}

// Annotated puts an annotation on a Job, for AddJob.
func Annotated(name, value string) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Annotations = merged(j.Annotations, map[string]string{name: value}) }
}

// PodAnnotated puts an annotation on a Job's pods, for AddJob.
func PodAnnotated(name, value string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		t := &j.Spec.Template
		t.Annotations = merged(t.Annotations, map[string]string{name: value})
	}
}

// Priority sets the priority of a Job's pods, for AddJob.
func Priority(p int32) func(*batchv1.Job) {
	return func(j *batchv1.Job) { j.Spec.Template.Spec.Priority = &p }
}

// Failing has each worker fail so many times, each time after running for so long, for
// AddJob.
func Failing(times int, after time.Duration) func(*batchv1.Job) {
	return PodAnnotated(AnnotationFails, strconv.Itoa(times)+"@"+after.String())
}

// Keeping has the work of a Job's pods outlive a stop that takes so long and fits into
// their grace period, for AddJob.
func Keeping(stop time.Duration) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		PodAnnotated(AnnotationKeeps, "on-stop")(j)
		PodAnnotated(AnnotationStop, stop.String())(j)
	}
}
