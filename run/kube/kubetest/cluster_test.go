package kubetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// eventually waits for what the control plane does in its own time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("after a minute still not: %s", what)
}

// TestComponents builds the programs where they are absent, so that a test run can begin with it.
func TestComponents(t *testing.T) {
	components := programs(t)
	for _, name := range []string{Etcd, APIServer, ControllerManager, Scheduler, Kubectl, Kwok, JobSet, kwokStages, jobsetDefinitions} {
		if _, err := os.Stat(components.Path(name)); err != nil {
			t.Error(err)
		}
	}
}

func TestReadyProgramsFromAFolder(t *testing.T) {
	t.Setenv("MUSTER_KUBETEST_BIN", t.TempDir())
	_, err := Build(context.Background())
	if err == nil || !strings.Contains(err.Error(), "etcd is not in") {
		t.Fatalf("an empty folder gives %v, want an error that names the first missing program", err)
	}
}

func TestBuildSaysWhatItCannotGet(t *testing.T) {
	dir := t.TempDir()
	absent := recipe{program: "absent", module: "muster.invalid/none", version: "v0.0.0", pkg: "."}
	err := absent.build(context.Background(), dir)
	if err == nil || !strings.Contains(err.Error(), "muster.invalid/none") {
		t.Fatalf("got %v, want an error that names the module", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 0 {
		t.Fatalf("left behind: %v (%v)", left, err)
	}
}

func TestBuildLockIsWaitedForAndGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := lock(ctx, path); err == nil {
		t.Fatal("the lock was taken twice")
	}
	unlock()
	again, err := lock(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestPodIsScheduledAndRuns(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Scheduler: &SchedulerOptions{}, ControllerManager: true, Kwok: true, JobSet: true})
	c.AddNodes(4, NodeTemplate{Devices: 8, Labels: map[string]string{"zone": "a"}})
	c.Apply(`
apiVersion: v1
kind: Pod
metadata: {name: one}
spec:
  nodeSelector: {zone: a}
  containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 3}}}]
---
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set}
spec:
  replicatedJobs:
  - name: workers
    replicas: 2
    template:
      spec:
        parallelism: 2
        completions: 2
        template:
          metadata: {annotations: {pod-complete.stage.kwok.x-k8s.io/delay: 1h}}
          spec:
            containers: [{name: main, image: none}]
`)
	bound := func(selector string) int {
		list, err := c.Client().CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, pod := range list.Items {
			if pod.Spec.NodeName != "" && pod.Status.StartTime != nil {
				n++
			}
		}
		return n
	}
	eventually(t, "the pod runs", func() bool { return bound("!job-name") == 1 })
	eventually(t, "the four pods of the JobSet are placed", func() bool { return bound("jobset.sigs.k8s.io/jobset-name=set") == 4 })
	if err := c.TryApply("apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: bad}\nspec: {replicatedJobs: [{name: UPPER, template: {spec: {}}}]}\n"); err == nil {
		t.Error("a JobSet with a bad name was let in; its webhooks are not asked")
	}
	for _, name := range []string{Etcd, APIServer, Scheduler, Kwok, JobSet} {
		if c.CPU(name) <= 0 || c.RSSBytes(name) < 1<<20 || c.PeakRSSBytes(name) < c.RSSBytes(name) {
			t.Errorf("%s: cpu %v, memory %d of at most %d bytes", name, c.CPU(name), c.RSSBytes(name), c.PeakRSSBytes(name))
		}
	}
}

func TestOutageAndRights(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{})
	ctx := context.Background()
	reader := c.ServiceAccount("team", "reader")
	client, err := kubernetes.NewForConfig(reader)
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods("team")
	if _, err := pods.List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("without a binding: %v, want forbidden", err)
	}
	c.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: pod-reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: pod-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: team}, {kind: User, name: ada, apiGroup: rbac.authorization.k8s.io}]
`)
	eventually(t, "the account may list", func() bool { _, err := pods.List(ctx, metav1.ListOptions{}); return err == nil })
	user, err := kubernetes.NewForConfig(c.User("ada"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := user.CoreV1().Pods("team").List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("the named user: %v", err)
	}
	if _, err := user.CoreV1().Pods("team").Create(ctx, &corev1.Pod{}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the named user creates: %v, want forbidden", err)
	}
	c.KillAPIServer()
	if _, err := c.Client().CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		t.Fatal("the API server answers after its end")
	}
	c.StartAPIServer()
	if _, err := pods.List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("after the outage the token is refused: %v", err)
	}
}

func TestAddNodes(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Kwok: true})
	start := time.Now()
	c.AddNodes(300, NodeTemplate{Devices: 8, Resources: map[corev1.ResourceName]string{"nvidia.com/mig-1g.10gb": "7"},
		Change: func(i int, node *corev1.Node) { node.Labels["zone"] = fmt.Sprint("z", i%3) }})
	t.Logf("300 nodes in %v", time.Since(start))
	list, err := c.Client().CoreV1().Nodes().List(context.Background(), metav1.ListOptions{LabelSelector: "zone=z1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 100 {
		t.Fatalf("%d nodes in a zone, want 100", len(list.Items))
	}
	for resource, want := range map[corev1.ResourceName]string{"nvidia.com/gpu": "8", "nvidia.com/mig-1g.10gb": "7", "cpu": "96"} {
		if got := list.Items[0].Status.Allocatable[resource]; got.String() != want {
			t.Errorf("%s: %s, want %s", resource, got.String(), want)
		}
	}
}
