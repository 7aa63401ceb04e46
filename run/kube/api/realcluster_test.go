package api_test

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/run/kube/api"
)

// seen is what a watch told, by kind and name.
type seen struct {
	mu      sync.Mutex
	objects map[string]types.UID
	wrong   []string
	batches int
}

func (s *seen) tell(changes []api.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches++
	for i, c := range changes {
		o := c.Object.(metav1.Object)
		key := fmt.Sprintf("%T %s/%s", c.Object, o.GetNamespace(), o.GetName())
		if u, ok := c.Object.(*unstructured.Unstructured); ok {
			key = u.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
		}
		if _, node := c.Object.(*corev1.Node); s.batches == 1 && i == 0 && !node {
			s.wrong = append(s.wrong, "the first batch begins with "+key)
		}
		if len(o.GetManagedFields()) > 0 {
			s.wrong = append(s.wrong, key+" has managed fields")
		}
		if c.Gone {
			if s.objects[key] != o.GetUID() {
				s.wrong = append(s.wrong, key+" is gone and was not there")
			}
			delete(s.objects, key)
		} else {
			s.objects[key] = o.GetUID()
		}
	}
}

func (s *seen) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.objects[key]
	return ok
}

func (r *real) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *real) conflict(err error) {
	r.Helper()
	if !api.IsConflict(err) || api.IsGone(err) || api.IsTransient(err) || api.IsRefused(err) {
		r.Errorf("expected a conflict and nothing else: %v", err)
	}
}

func (r *real) until(what string, is func() bool) {
	r.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			r.Fatalf("it never came that %s", what)
		}
	}
}

func (r *real) node(name string) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := r.plain.CoreV1().Nodes().Create(r.ctx, n, metav1.CreateOptions{})
	r.must(err)
}

func (r *real) pod(name string) *corev1.Pod { return r.podWith(name, func(*corev1.Pod) {}) }

func (r *real) podWith(name string, change func(*corev1.Pod)) *corev1.Pod {
	r.Helper()
	grace := int64(77)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns, Annotations: map[string]string{"was": "there"}},
		Spec: corev1.PodSpec{SchedulerName: "muster", TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	change(p)
	p, err := r.plain.CoreV1().Pods(ns).Create(r.ctx, p, metav1.CreateOptions{})
	r.must(err)
	return p
}

func (r *real) get(name string) *corev1.Pod {
	r.Helper()
	p, err := r.plain.CoreV1().Pods(ns).Get(r.ctx, name, metav1.GetOptions{})
	r.must(err)
	return p
}

// running makes a pod run, as a kubelet does.
func (r *real) running(name string) {
	r.Helper()
	now := r.get(name)
	now.Status.Phase = corev1.PodRunning
	now.Status.Conditions = append(now.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	_, err := r.plain.CoreV1().Pods(ns).UpdateStatus(r.ctx, now, metav1.UpdateOptions{})
	r.must(err)
}

func scheduled(p *corev1.Pod) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c
		}
	}
	return corev1.PodCondition{}
}

const jobsetCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jobsets.jobset.x-k8s.io, annotations: {api-approved.kubernetes.io: "test"}}
spec:
  group: jobset.x-k8s.io
  scope: Namespaced
  names: {plural: jobsets, singular: jobset, kind: JobSet, listKind: JobSetList}
  versions:
    - {name: v1alpha2, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`
