package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/musterdl/muster/run/kube/kubetest"
	"github.com/musterdl/muster/run/kube/lead"
)

// site is an installation on an API server, seen by the account that it gives.
type site struct {
	*kubetest.Cluster
	ctx     context.Context
	client  kubernetes.Interface
	dynamic dynamic.Interface
}

func install(t *testing.T, c *kubetest.Cluster, file, name string) *site {
	t.Helper()
	c.Apply(string(read(t, file)))
	config := c.ServiceAccount(namespace, name)
	s := &site{Cluster: c, ctx: t.Context(), client: kubernetes.NewForConfigOrDie(config), dynamic: dynamic.NewForConfigOrDie(config)}
	for range 100 { // until the authorizer has seen the bindings
		if _, err := s.client.CoreV1().Nodes().List(s.ctx, metav1.ListOptions{}); err == nil {
			return s
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the account was not given its rights within 10s")
	return nil
}

// TestOnAPIServer: an API server takes the manifests, and lets the accounts do what
// they have to do and nothing else.
func TestOnAPIServer(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{})
	s := install(t, c, manifest, "muster")
	advise := install(t, c, manifestAdvise, "muster-advise")
	c.Apply(fixture)
	t.Run("reads", s.reads)
	t.Run("adviser reads", advise.reads)
	t.Run("refused", func(t *testing.T) { refused(t, s.others()) })
	t.Run("adviser refused", func(t *testing.T) { refused(t, append(advise.others(), advise.writes()...)) })
	t.Run("records", s.records)
	t.Run("writes", func(t *testing.T) {
		for _, w := range s.writes() {
			if err := w.do(); err != nil {
				t.Errorf("%s: %v", w.what, err)
			}
		}
	})
	t.Run("lease", s.lease)
	t.Run("pod security", s.podSecurity)
}

// fixture is what there is to be written to.
const fixture = `
apiVersion: v1
kind: Namespace
metadata: {name: team}
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: team}
spec: {schedulerName: muster, containers: [{name: c, image: i}]}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: v}
spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], storageClassName: s, hostPath: {path: /v}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c, namespace: team}
spec: {accessModes: [ReadWriteOnce], storageClassName: s, resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j, namespace: team}
spec: {suspend: true, parallelism: 1, completions: 1, completionMode: Indexed, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: r, namespace: team}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
`

// reads lists all that the server has of what may be read.
func (s *site) reads(t *testing.T) {
	served := s.served(t)
	n := 0
	for _, r := range readerRights {
		gvr, ok := served[schema.GroupResource{Group: r.group, Resource: r.resource}]
		if !ok {
			continue // of an extension that is not installed
		}
		n++
		if _, err := s.dynamic.Resource(gvr).List(s.ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("listing %s: %v", gvr, err)
		}
		w, err := s.dynamic.Resource(gvr).Watch(s.ctx, metav1.ListOptions{})
		if err != nil {
			t.Errorf("watching %s: %v", gvr, err)
			continue
		}
		w.Stop()
	}
	if n < 20 {
		t.Errorf("only %d resources are served", n)
	}
}

// served are the resources of the API server in the versions that it prefers.
func (s *site) served(t *testing.T) map[schema.GroupResource]schema.GroupVersionResource {
	t.Helper()
	lists, err := s.Client().Discovery().ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[schema.GroupResource]schema.GroupVersionResource{}
	for _, l := range lists {
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range l.APIResources {
			all[schema.GroupResource{Group: gv.Group, Resource: r.Name}] = gv.WithResource(r.Name)
		}
	}
	return all
}

// attempt is something to be tried.
type attempt struct {
	what string
	do   func() error
}

// others are what nobody's business is but an administrator's.
func (s *site) others() []attempt {
	core := s.client.CoreV1()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	patch := []byte(`{"metadata":{"labels":{"a":"b"}}}`)
	return []attempt{
		{"reading secrets", func() error { _, err := core.Secrets(namespace).List(s.ctx, metav1.ListOptions{}); return err }},
		{"making a pod", func() error { _, err := core.Pods("team").Create(s.ctx, pod, metav1.CreateOptions{}); return err }},
		{"deleting a pod", func() error { return core.Pods("team").Delete(s.ctx, "p", metav1.DeleteOptions{}) }},
		{"changing a pod", func() error {
			_, err := core.Pods("team").Patch(s.ctx, "p", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}},
		{"changing a node", func() error {
			_, err := core.Nodes().Patch(s.ctx, "n", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		}},
		{"deleting a job", func() error { return s.client.BatchV1().Jobs("team").Delete(s.ctx, "j", metav1.DeleteOptions{}) }},
		{"reading another's lease", func() error {
			_, err := s.client.CoordinationV1().Leases("kube-system").Get(s.ctx, "kube-scheduler", metav1.GetOptions{})
			return err
		}},
		{"deleting the lease", func() error {
			return s.client.CoordinationV1().Leases(namespace).Delete(s.ctx, "muster", metav1.DeleteOptions{})
		}},
		{"giving rights", func() error {
			_, err := s.client.RbacV1().ClusterRoleBindings().Create(s.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"},
				RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "cluster-admin"}}, metav1.CreateOptions{})
			return err
		}},
	}
}

func refused(t *testing.T, all []attempt) {
	for _, a := range all {
		if err := a.do(); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, expected forbidden", a.what, err)
		}
	}
}

// writes are what a scheduler does, in an order in which it can be done.
func (s *site) writes() []attempt {
	core, claims := s.client.CoreV1(), s.client.ResourceV1().ResourceClaims("team")
	return []attempt{
		{"saying why a pod waits", func() error {
			_, err := core.Pods("team").Patch(s.ctx, "p", types.StrategicMergePatchType,
				[]byte(`{"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Waiting","message":"m"}]}}`), metav1.PatchOptions{}, "status")
			return err
		}},
		{"an event", func() error {
			_, err := core.Events("team").Create(s.ctx, &corev1.Event{ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "team"}, Type: "Normal", Reason: "Waiting",
				InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "team", Name: "p"}}, metav1.CreateOptions{})
			return err
		}},
		{"beginning to provision a volume", func() error {
			return change(s.ctx, core.PersistentVolumeClaims("team").Get, core.PersistentVolumeClaims("team").Update, "c", func(c *corev1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n"}
			})
		}},
		{"binding a volume", func() error {
			return change(s.ctx, core.PersistentVolumes().Get, core.PersistentVolumes().Update, "v", func(v *corev1.PersistentVolume) {
				v.Spec.ClaimRef = &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "team", Name: "c"}
			})
		}},
		{"a finalizer of a claim", func() error {
			return change(s.ctx, claims.Get, claims.Update, "r", func(c *resourcev1.ResourceClaim) { c.Finalizers = []string{resourcev1.Finalizer} })
		}},
		{"giving a claim its device", func() error {
			return change(s.ctx, claims.Get, claims.UpdateStatus, "r", func(c *resourcev1.ResourceClaim) {
				c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
					Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.example.com", Pool: "n", Device: "gpu-0"}}}}
				c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "u"}}
			})
		}},
		{"a claim that a pod owns", func() error {
			pod, err := core.Pods("team").Get(s.ctx, "p", metav1.GetOptions{})
			if err != nil {
				return err
			}
			claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}},
				Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
					{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"}}}}}}
			if _, err := claims.Create(s.ctx, claim, metav1.CreateOptions{}); err != nil {
				return err
			}
			return claims.Delete(s.ctx, "owned", metav1.DeleteOptions{})
		}},
		{"binding a pod", func() error {
			return core.Pods("team").Bind(s.ctx, &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team",
				Annotations: map[string]string{lead.Annotation: "1/a"}}, Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}, metav1.CreateOptions{})
		}},
		{"evicting a pod", func() error {
			return core.Pods("team").EvictV1(s.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team"}})
		}},
		{"resuming a job", func() error {
			_, err := s.client.BatchV1().Jobs("team").Patch(s.ctx, "j", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
			return err
		}},
		{"a ledger", func() error {
			_, err := s.dynamic.Resource(ledgers).Create(s.ctx, object("MusterLedger", "muster", map[string]any{"scheduler": "muster"},
				map[string]any{"strategy": "tiresias", "commits": int64(1) << 40, "nodes": int64(8), "jobs": int64(9), "fence": "1/a", "exact": "x"}), metav1.CreateOptions{})
			return err
		}},
	}
}

// change reads an object and writes it changed.
func change[T any](ctx context.Context, get func(context.Context, string, metav1.GetOptions) (T, error),
	put func(context.Context, T, metav1.UpdateOptions) (T, error), name string, how func(T)) error {
	o, err := get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	how(o)
	_, err = put(ctx, o, metav1.UpdateOptions{})
	return err
}

var (
	jobs    = schema.GroupVersionResource{Group: "muster.dev", Version: "v1alpha1", Resource: "musterjobs"}
	ledgers = schema.GroupVersionResource{Group: "muster.dev", Version: "v1alpha1", Resource: "musterledgers"}
)

func object(kind, name string, spec, status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "muster.dev/v1alpha1", "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": spec, "status": status}}
}

// records: a record with every field comes back as it was written, in one request, an
// old version of it is refused, and kubectl gets its columns.
func (s *site) records(t *testing.T) {
	when := "2026-01-02T03:04:05Z"
	spec := map[string]any{
		"owner": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u"}, "gang": int64(4),
		"sizes": []any{int64(2), int64(4)}, "devicesPerWorker": int64(8), "shareMilli": int64(1000), "models": []any{"A100"}, "queue": "research",
		"user": "ada", "priority": int64(-1), "estimateSeconds": int64(60), "timeLimitSeconds": int64(70), "deadlineSeconds": int64(80),
		"checkpoint": "signal", "profile": "resnet50",
	}
	status := map[string]any{
		"phase": "running", "reason": "4 of 4 workers run", "number": int64(7), "attempt": int64(2), "workers": int64(4), "submittedAt": when,
		"startedAt": when, "endedAt": when, "waitedSeconds": int64(5), "executedSeconds": int64(6), "serviceDeviceSeconds": int64(192),
		"preemptions": int64(1), "restarts": int64(1), "failures": int64(0), "memory": []any{int64(-1), int64(1) << 62},
		"placement": []any{map[string]any{"node": "n", "workers": int64(4), "devices": []any{int64(0), int64(1)}}}, "fence": "1/a", "exact": "e",
	}
	records := s.dynamic.Resource(jobs).Namespace("team")
	made, err := records.Create(s.ctx, object("MusterJob", "job-j", spec, status), metav1.CreateOptions{FieldValidation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := records.Get(s.ctx, "job-j", metav1.GetOptions{})
	if err != nil || !reflect.DeepEqual(got.Object["spec"], any(spec)) || !reflect.DeepEqual(got.Object["status"], any(status)) {
		t.Errorf("came back as %v, %v", got, err)
	}
	got.Object["status"].(map[string]any)["phase"] = "done"
	if got, err = records.Update(s.ctx, got, metav1.UpdateOptions{}); err != nil || got.Object["status"].(map[string]any)["phase"] != "done" {
		t.Errorf("a write of spec and status at once: %v, %v", got, err)
	}
	if _, err := records.Update(s.ctx, made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a write of an old version: %v", err)
	}
	var table metav1.Table
	if err := s.client.CoreV1().RESTClient().Get().AbsPath("/apis/muster.dev/v1alpha1/namespaces/team/musterjobs").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(s.ctx).Into(&table); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(table.Rows[0].Cells[:7]); text != "[job-j done 4 8 research 2 5]" {
		t.Errorf("kubectl get shows %s", text)
	}
}

// lease: the account can lead.
func (s *site) lease(t *testing.T) {
	ctx, cancel := context.WithTimeout(s.ctx, 30*time.Second)
	defer cancel()
	led := errors.New("led")
	for n := range int64(2) {
		err := lead.Run(ctx, lead.Options{Leases: s.client.CoordinationV1(), Namespace: namespace, Name: "muster", Holder: "a",
			Newest: func(context.Context) (lead.Fence, error) { return lead.Fence{}, nil },
			Timing: lead.DefaultTiming(), Log: slog.New(slog.DiscardHandler)},
			func(_ context.Context, term lead.Term) error {
				if term.Fence.Number != n+1 || !term.Valid(time.Now()) {
					t.Errorf("term %v", term.Fence)
				}
				return led
			})
		if !errors.Is(err, led) {
			t.Errorf("round %d: %v", n, err)
		}
	}
}

// podSecurity: the namespace refuses pods with rights of their own, and takes ours.
func (s *site) podSecurity(t *testing.T) {
	for _, file := range []string{manifest, manifestAdvise} {
		spec := one[*appsv1.Deployment](t, objects(t, read(t, file))).Spec.Template.Spec
		dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "muster-"}, Spec: spec}
		if _, err := s.Client().CoreV1().Pods(namespace).Create(s.ctx, pod, dry); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		worse := pod.DeepCopy()
		worse.Spec.Containers[0].SecurityContext.Capabilities = nil
		if _, err := s.Client().CoreV1().Pods(namespace).Create(s.ctx, worse, dry); !apierrors.IsForbidden(err) {
			t.Errorf("a pod with capabilities: %v", err)
		}
	}
}
