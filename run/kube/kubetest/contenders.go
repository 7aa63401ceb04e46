package kubetest

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// UpstreamScheduler is kube-scheduler as it comes.
func UpstreamScheduler() Contender {
	return Contender{Name: "kube-scheduler", SchedulerName: corev1.DefaultSchedulerName, Program: Scheduler,
		Options: Options{Scheduler: &SchedulerOptions{}}}
}

// PodGroupGates switch on the pod groups of Kubernetes 1.36, which are alpha there, and PodGroupAPI is the argument
// with which the API server serves them.
var PodGroupGates = map[string]bool{"GenericWorkload": true, "GangScheduling": true}

// PodGroupAPI makes the API server serve the pod groups of Kubernetes 1.36.
const PodGroupAPI = "--runtime-config=scheduling.k8s.io/v1alpha2=true"

// UpstreamGangs is kube-scheduler with the gang scheduling of Kubernetes 1.36.
func UpstreamGangs() Contender {
	return Contender{Name: "kube-scheduler with GangScheduling", SchedulerName: corev1.DefaultSchedulerName, Program: Scheduler,
		Options: Options{Scheduler: &SchedulerOptions{}, FeatureGates: PodGroupGates, APIServerArgs: []string{PodGroupAPI}},
		Group:   PodGroup, Join: JoinPodGroup}
}

// PodGroup makes a pod group of Kubernetes 1.36 for a gang.
func PodGroup(ctx context.Context, c *Cluster, gang Gang) error {
	group := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: gang.Name, Namespace: gang.Namespace}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: int32(gang.Size)}
	_, err := c.Client().SchedulingV1alpha2().PodGroups(gang.Namespace).Create(ctx, group, metav1.CreateOptions{})
	return err
}

// JoinPodGroup makes a pod a member of its gang's pod group.
func JoinPodGroup(pod *corev1.Pod, gang Gang) {
	pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &gang.Name}
}

var volcanoGroups = schema.GroupVersionResource{Group: "scheduling.volcano.sh", Version: "v1beta1", Resource: "podgroups"}

// VolcanoGangs is the scheduler of Volcano with its built-in configuration. components are those of BuildVolcano.
// Its controllers and webhooks are not run: the harness writes the pod groups and the queue they would make.
func VolcanoGangs(components *Components) Contender {
	return Contender{Name: "Volcano " + volcanoVersion, SchedulerName: "volcano", Program: Volcano,
		Start: func(c *Cluster, limits ClientLimits) error { return startVolcano(c, components, limits) },
		Group: volcanoGroup,
		Join: func(pod *corev1.Pod, gang Gang) {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, "scheduling.k8s.io/group-name", gang.Name)
		}}
}

func startVolcano(c *Cluster, components *Components, limits ClientLimits) error {
	definitions, err := components.manifest(volcanoDefinitions)
	if err != nil {
		return err
	}
	if err := c.TryApply(definitions); err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	health := fmt.Sprintf("127.0.0.1:%d", ports[0])
	err = c.processes.run(Program{Name: Volcano, Path: components.Path(Volcano), Env: []string{"DEBUG_SOCKET_DIR=" + c.t.TempDir()},
		Args: []string{"--kubeconfig=" + c.Kubeconfig(), "--leader-elect=false", "--logtostderr", "--cache-dumper=false",
			"--enable-healthz=true", "--healthz-address=" + health, fmt.Sprintf("--listen-address=127.0.0.1:%d", ports[1]),
			"--kube-api-qps=" + strconv.Itoa(limits.QPS), "--kube-api-burst=" + strconv.Itoa(limits.Burst)}})
	if err != nil {
		return err
	}
	return c.waitServing(localClient, Volcano, "http://"+health+"/healthz")
}

func volcanoGroup(ctx context.Context, c *Cluster, gang Gang) error {
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": volcanoGroups.GroupVersion().String(), "kind": "PodGroup",
		"metadata": map[string]any{"name": gang.Name, "namespace": gang.Namespace},
		"spec":     map[string]any{"minMember": int64(gang.Size), "queue": "default"}}}
	_, err := c.apply.client.Resource(volcanoGroups).Namespace(gang.Namespace).Create(ctx, group, metav1.CreateOptions{})
	return err
}
