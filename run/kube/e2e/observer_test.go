package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/musterdl/muster/run/kube/kubetest"
)

// Labels by which the observer knows which pods are of one gang, and how many it has.
const (
	labelGang = "e2e/gang"
	labelSize = "e2e/size"
)

const counted corev1.ResourceName = "nvidia.com/gpu"

// observer watches all pods, beside everything else.
type observer struct {
	mu    sync.Mutex
	pods  map[types.UID]*corev1.Pod
	used  map[string]int64 // devices by node
	gangs map[string]*gangSeen
	wrong []string
	sum   summary
}

// summary is what was seen during a scenario.
type summary struct {
	bound   int
	partial time.Duration // longest that a gang was partly bound on its way up
	which   string
	leaving time.Duration // longest from the first member gone to whole again or none left
	relists int
}

// gangSeen is a gang as its pods show it.
type gangSeen struct {
	size, on int
	since    time.Time // partly bound since
	whole    bool      // it was whole since it last had none
}

func observe(t *testing.T, c *kubetest.Cluster) *observer {
	o := &observer{pods: map[types.UID]*corev1.Pod{}, used: map[string]int64{}, gangs: map[string]*gangSeen{}}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			o.follow(ctx, c.Client())
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	t.Cleanup(func() { cancel(); done.Wait() })
	return o
}

// follow lists and then watches until that breaks.
func (o *observer) follow(ctx context.Context, client kubernetes.Interface) {
	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	o.relist(list.Items)
	w, err := client.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok {
			return
		}
		o.mu.Lock()
		o.take(pod, event.Type == watch.Deleted)
		o.mu.Unlock()
	}
}

func (o *observer) relist(list []corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sum.relists++
	there := map[types.UID]bool{}
	for i := range list {
		there[list[i].UID] = true
	}
	for uid, pod := range o.pods {
		if !there[uid] {
			o.take(pod, true)
		}
	}
	for i := range list {
		o.take(&list[i], false)
	}
}

// take takes in a pod as it is now.
func (o *observer) take(pod *corev1.Pod, gone bool) {
	was := o.pods[pod.UID]
	if was != nil && was.Spec.NodeName != "" && pod.Spec.NodeName != was.Spec.NodeName {
		o.wrong = append(o.wrong, fmt.Sprintf("pod %s/%s moved from %s to %q", pod.Namespace, pod.Name, was.Spec.NodeName, pod.Spec.NodeName))
	}
	o.count(was, -1)
	delete(o.pods, pod.UID)
	if gone {
		o.judge(pod)
		return
	}
	if (was == nil || was.Spec.NodeName == "") && pod.Spec.NodeName != "" {
		o.sum.bound++
	}
	o.pods[pod.UID] = pod
	o.count(pod, 1)
	o.judge(pod)
}

// count adds a pod to its node and to its gang, or takes it away.
func (o *observer) count(pod *corev1.Pod, sign int) {
	if pod == nil || pod.Spec.NodeName == "" {
		return
	}
	if !ended(pod) {
		n := int64(0)
		for i := range pod.Spec.Containers {
			q := pod.Spec.Containers[i].Resources.Limits[counted]
			n += q.Value()
		}
		o.used[pod.Spec.NodeName] += int64(sign) * n
	}
	if g := o.gangOf(pod); g != nil && pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
		g.on += sign
	}
}

func nameOfGang(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Labels[labelGang] }

func (o *observer) gangOf(pod *corev1.Pod) *gangSeen {
	size, err := strconv.Atoi(pod.Labels[labelSize])
	if err != nil {
		return nil
	}
	g := o.gangs[nameOfGang(pod)]
	if g == nil {
		g = &gangSeen{size: size}
		o.gangs[nameOfGang(pod)] = g
	}
	return g
}

// judge looks whether all is still as it must be after a pod has changed.
func (o *observer) judge(pod *corev1.Pod) {
	if n := o.used[pod.Spec.NodeName]; pod.Spec.NodeName != "" && n > devices {
		o.wrong = append(o.wrong, fmt.Sprintf("%d devices of %d are used on %s", n, devices, pod.Spec.NodeName))
	}
	g := o.gangOf(pod)
	if g == nil {
		return
	}
	if g.on > g.size {
		o.wrong = append(o.wrong, fmt.Sprintf("%d pods of %s are bound, which has %d", g.on, nameOfGang(pod), g.size))
	}
	part := g.on > 0 && g.on < g.size
	switch {
	case part && g.since.IsZero():
		g.since = time.Now()
	case !part && !g.since.IsZero():
		o.ended(nameOfGang(pod), g)
	}
	g.whole = g.on >= g.size || g.whole && g.on > 0
}

// ended notes how long a gang was there in part.
func (o *observer) ended(name string, g *gangSeen) {
	took := time.Since(g.since)
	g.since = time.Time{}
	if g.whole {
		o.sum.leaving = max(o.sum.leaving, took)
	} else if took > o.sum.partial {
		o.sum.partial, o.sum.which = took, name
	}
}

// begin forgets what was seen before.
func (o *observer) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sum, o.wrong = summary{}, nil
}

// bound is how many pods were seen to be bound since the scenario began.
func (o *observer) bound() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.sum.bound
}

// parts are the gangs that are partly bound now.
func (o *observer) parts() (names []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, g := range o.gangs {
		if g.on > 0 && g.on < g.size {
			names = append(names, fmt.Sprintf("%s %d of %d", name, g.on, g.size))
		}
	}
	return names
}

// report says what was seen during a scenario, and fails it where something was wrong.
func (o *observer) report(t *testing.T) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, w := range o.wrong {
		if i == 10 {
			t.Errorf("... and %d more", len(o.wrong)-i)
			break
		}
		t.Error(w)
	}
	ms := time.Millisecond
	t.Logf("observed: %d bindings, longest partly bound %v (%s), longest partly gone %v, %d lists", o.sum.bound, o.sum.partial.Round(ms), o.sum.which, o.sum.leaving.Round(ms), o.sum.relists)
}
