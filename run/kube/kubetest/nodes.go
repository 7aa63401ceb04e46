package kubetest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// kwokAnnotation marks the nodes kwok plays.
const kwokAnnotation = "kwok.x-k8s.io/node"

// writers is how many requests the harness keeps under way when it makes many objects.
const writers = 16

// NodeTemplate says what the nodes of AddNodes are like. Zero fields take the values of the comments.
type NodeTemplate struct {
	Prefix  string // "node-"; names are the prefix and four digits, counted from First
	First   int
	Devices int64  // nvidia.com/gpu, 0
	CPU     string // "96"
	Memory  string // "1Ti"
	Pods    string // "110"
	// Resources are further capacities, such as MIG slices.
	Resources map[corev1.ResourceName]string
	Labels    map[string]string
	Taints    []corev1.Taint
	// Change, where given, finishes each node, for what differs between them.
	Change func(i int, node *corev1.Node)
}

// Node returns the i-th node of the template.
func (n NodeTemplate) Node(i int) *corev1.Node {
	name := fmt.Sprintf("%s%04d", orElse(n.Prefix, "node-"), n.First+i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(orElse(n.CPU, "96")), corev1.ResourceMemory: resource.MustParse(orElse(n.Memory, "1Ti")),
		corev1.ResourcePods: resource.MustParse(orElse(n.Pods, "110"))}
	if n.Devices > 0 {
		capacity[deviceResource] = *resource.NewQuantity(n.Devices, resource.DecimalSI)
	}
	for key, amount := range n.Resources {
		capacity[key] = resource.MustParse(amount)
	}
	labels := map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64"}
	maps.Copy(labels, n.Labels)
	now := metav1.Now()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{kwokAnnotation: "fake"}},
		Spec:       corev1.NodeSpec{Taints: n.Taints},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Phase: corev1.NodeRunning,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
				LastHeartbeatTime: now, LastTransitionTime: now}}},
	}
	if n.Change != nil {
		n.Change(i, node)
	}
	return node
}

// deviceResource is the resource the harness's nodes and pods count their devices in.
const deviceResource corev1.ResourceName = "nvidia.com/gpu"

func orElse(value, otherwise string) string {
	if value == "" {
		return otherwise
	}
	return value
}

// AddNodes makes n nodes of a template and waits until pods can be bound to them.
func (c *Cluster) AddNodes(n int, nodes NodeTemplate) {
	c.t.Helper()
	client := c.fastClient()
	ctx := context.Background()
	err := parallel(n, func(i int) error {
		_, err := client.CoreV1().Nodes().Create(ctx, nodes.Node(i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		c.t.Fatalf("making %d nodes: %v", n, err)
	}
	names := map[string]bool{}
	for i := range n {
		names[nodes.Node(i).Name] = true
	}
	var waiting int
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			c.t.Fatalf("listing nodes: %v", err)
		}
		waiting = n
		for i := range list.Items {
			if names[list.Items[i].Name] && usable(&list.Items[i]) {
				waiting--
			}
		}
		if waiting == 0 {
			return
		}
	}
	c.t.Fatalf("%d of %d nodes are not ready after %v", waiting, n, startLimit)
}

// usable tells whether a node is ready and the taint that new nodes carry is gone.
func usable(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// fastClient returns a client that spends little of the machine on encoding, so that the harness weighs little
// beside what it measures.
func (c *Cluster) fastClient() kubernetes.Interface {
	c.t.Helper()
	client, err := kubernetes.NewForConfig(protobuf(c.Config()))
	if err != nil {
		c.t.Fatal(err)
	}
	return client
}

func protobuf(config *rest.Config) *rest.Config {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

// parallel calls do for 0..n-1 from several goroutines and returns the first error.
func parallel(n int, do func(i int) error) error {
	next := make(chan int)
	var failed error
	var once sync.Once
	var workers sync.WaitGroup
	stop := make(chan struct{})
	for range writers {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					once.Do(func() { failed = err; close(stop) })
					return
				}
			}
		})
	}
feed:
	for i := range n {
		select {
		case next <- i:
		case <-stop:
			break feed
		}
	}
	close(next)
	workers.Wait()
	return failed
}
