package api_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/deploy"
	"github.com/musterdl/muster/run/kube/kubetest"
)

const ns = "work"

// real is a control plane with a client of each kind.
type real struct {
	*testing.T
	cluster *kubetest.Cluster
	plain   kubernetes.Interface
	client  *api.Client
	ctx     context.Context
}

var jobsets = schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}

func TestRealServer(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("takes about a minute with a real API server: set MUSTER_LONG=1")
	}
	cluster := kubetest.Start(t, kubetest.Options{ControllerManager: true})
	cluster.Namespace(ns)
	client, err := api.New(cluster.Config(), api.Options{QPS: -1, Rediscover: 500 * time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Owners: []schema.GroupVersionResource{{Group: "batch", Version: "v1", Resource: "jobs"}, jobsets}})
	if err != nil {
		t.Fatal(err)
	}
	r := &real{T: t, cluster: cluster, plain: cluster.Client(), client: client, ctx: t.Context()}
	r.node("n1")
	for _, step := range []struct {
		name string
		do   func(*real)
	}{
		{"records", (*real).records}, {"bind", (*real).bind}, {"explain", (*real).explain}, {"evict", (*real).evict},
		{"owners", (*real).owners}, {"voice", (*real).voice}, {"watch", (*real).watch}, {"rights", (*real).rights},
	} {
		if !t.Run(step.name, func(t *testing.T) { s := *r; s.T = t; step.do(&s) }) {
			return
		}
	}
}

// records come first: their kinds are not there yet.
func (r *real) records() {
	if _, found, err := r.client.GetLedger(r.ctx, "muster"); err == nil || found {
		r.Error("a ledger was looked for where its kind is not known, and that was no error")
	}
	for _, crd := range deploy.CRDs() {
		r.cluster.Apply(string(crd))
	}
	l := &api.Ledger{ObjectMeta: metav1.ObjectMeta{Name: "muster"}, Spec: api.LedgerSpec{Scheduler: "muster"}, Status: api.LedgerStatus{Commits: 1, Exact: "x"}}
	r.until("an absent ledger is no error", func() bool {
		_, found, err := r.client.GetLedger(r.ctx, "muster")
		return err == nil && !found
	})
	first, err := r.client.PutLedger(r.ctx, l)
	r.must(err)
	_, err = r.client.PutLedger(r.ctx, l)
	r.conflict(err) // it exists
	l.ResourceVersion, l.Status.Commits = first, 2
	second, err := r.client.PutLedger(r.ctx, l)
	r.must(err)
	_, err = r.client.PutLedger(r.ctx, l)
	r.conflict(err) // an old version
	if got, found, err := r.client.GetLedger(r.ctx, "muster"); err != nil || !found || got.Status != l.Status || got.Spec != l.Spec || got.ResourceVersion != second {
		r.Errorf("%+v %t %v", got, found, err)
	}

	j := fullJob()
	j.OwnerReferences = nil // its owner is not there, and it would go with it
	first, err = r.client.PutJob(r.ctx, j)
	r.must(err)
	if again, err := r.client.PutJob(r.ctx, j); !api.IsConflict(err) {
		r.Errorf("made twice: %q, %v", again, err)
	}
	j.ResourceVersion, j.Status.Phase = first, "running"
	_, err = r.client.PutJob(r.ctx, j)
	r.must(err)
	_, err = r.client.PutJob(r.ctx, j)
	r.conflict(err)
	got, found, err := r.client.GetJob(r.ctx, ns, j.Name)
	r.must(err)
	want := j.DeepCopy()
	if !found || encode(r.T, got.Spec) != encode(r.T, want.Spec) || encode(r.T, got.Status) != encode(r.T, want.Status) {
		r.Errorf("it was\n%s\nis\n%s", encode(r.T, want), encode(r.T, got))
	}
	for i := range 1100 { // more than two pages
		x := j.DeepCopy()
		x.ResourceVersion, x.Name = "", fmt.Sprintf("job-%04d", i)
		_, err := r.client.PutJob(r.ctx, x)
		r.must(err)
	}
	jobs, err := r.client.ListJobs(r.ctx)
	r.must(err)
	names := map[string]bool{}
	for _, j := range jobs {
		names[j.Name] = true
	}
	if len(jobs) != 1101 || len(names) != 1101 {
		r.Errorf("listed %d jobs of %d names, of 1101", len(jobs), len(names))
	}
	r.must(r.client.DeleteJob(r.ctx, ns, j.Name))
	r.must(r.client.DeleteJob(r.ctx, ns, j.Name))
	if _, err := r.client.PutJob(r.ctx, j); !api.IsConflict(err) && !api.IsGone(err) {
		r.Errorf("a record that was deleted was replaced: %v", err)
	}
}

func (r *real) bind() {
	p := r.pod("p")
	other := p.DeepCopy()
	other.UID = "00000000-0000-0000-0000-000000000000"
	if err := r.client.Bind(r.ctx, other, "n1", nil); !api.IsGone(err) || api.IsConflict(err) {
		r.Errorf("a pod of another UID was bound: %v", err)
	}
	notes := map[string]string{"muster.dev/devices": "0,1", "muster.dev/rank": "3"}
	r.must(r.client.Bind(r.ctx, p, "n1", notes))
	got := r.get("p")
	if got.Spec.NodeName != "n1" || got.Annotations["muster.dev/devices"] != "0,1" || got.Annotations["muster.dev/rank"] != "3" || got.Annotations["was"] != "there" {
		r.Errorf("%s %v", got.Spec.NodeName, got.Annotations)
	}
	r.conflict(r.client.Bind(r.ctx, p, "n1", nil))
	r.conflict(r.client.Bind(r.ctx, p, "n2", nil))
	gated := r.podWith("gated", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "a.b/c"}} })
	r.conflict(r.client.Bind(r.ctx, gated, "n1", nil))
	if absent := r.pod("absent"); true {
		r.must(r.plain.CoreV1().Pods(ns).Delete(r.ctx, "absent", metav1.DeleteOptions{}))
		if err := r.client.Bind(r.ctx, absent, "n1", nil); !api.IsGone(err) {
			r.Errorf("a pod that is not there was bound: %v", err)
		}
	}
	dead, err := api.New(r.cluster.Config(), api.Options{Timeout: time.Nanosecond})
	r.must(err)
	if err := dead.Bind(r.ctx, p, "n1", nil); !api.IsTransient(err) {
		r.Errorf("out of time: %v", err)
	}
}

func (r *real) explain() {
	p := r.pod("waits")
	r.must(r.client.Explain(r.ctx, p, corev1.PodReasonUnschedulable, "3 of 8 workers fit"))
	p = r.get("waits")
	first := scheduled(p)
	if first.Status != corev1.ConditionFalse || first.Reason != "Unschedulable" || first.Message != "3 of 8 workers fit" || first.LastTransitionTime.IsZero() {
		r.Errorf("%+v", first)
	}
	r.must(r.client.Explain(r.ctx, p, corev1.PodReasonUnschedulable, "3 of 8 workers fit"))
	if again := r.get("waits"); again.ResourceVersion != p.ResourceVersion {
		r.Error("the same words were written twice")
	}
	time.Sleep(1100 * time.Millisecond) // times are in seconds
	r.must(r.client.Explain(r.ctx, p, corev1.PodReasonUnschedulable, "4 of 8 workers fit"))
	if now := scheduled(r.get("waits")); now.Message != "4 of 8 workers fit" || !now.LastTransitionTime.Equal(&first.LastTransitionTime) || len(r.get("waits").Status.Conditions) != 1 {
		r.Errorf("%+v", now)
	}
	r.conflict(r.client.Explain(r.ctx, p, corev1.PodReasonUnschedulable, "from an old view"))
	fresh := r.get("waits")
	fresh.UID = "00000000-0000-0000-0000-000000000000"
	if err := r.client.Explain(r.ctx, fresh, "Unschedulable", "to another"); !api.IsGone(err) {
		r.Errorf("another pod was explained: %v", err)
	}
	gated := r.get("gated")
	r.must(r.client.Explain(r.ctx, gated, corev1.PodReasonUnschedulable, "no"))
	if now := scheduled(r.get("gated")); now.Reason != corev1.PodReasonSchedulingGated {
		r.Errorf("%+v", now)
	}
}

func (r *real) evict() {
	p := r.podWith("running", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "a"} })
	r.must(r.client.Bind(r.ctx, p, "n1", nil))
	r.running("running")
	r.cluster.Apply(`
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: a, namespace: work}
spec: {minAvailable: 1, selector: {matchLabels: {app: a}}}`)
	r.until("the budget is known", func() bool {
		b, err := r.plain.PolicyV1().PodDisruptionBudgets(ns).Get(r.ctx, "a", metav1.GetOptions{})
		return err == nil && b.Status.ObservedGeneration > 0 && b.Status.CurrentHealthy == 1
	})
	began := time.Now()
	err := r.client.Evict(r.ctx, p, "room for others")
	if !api.IsRefused(err) || api.IsTransient(err) || !strings.Contains(err.Error(), "disruption budget") {
		r.Errorf("a budget refuses: %v", err)
	}
	if took := time.Since(began); took > 3*time.Second {
		r.Errorf("that took %v", took)
	}
	r.must(r.plain.PolicyV1().PodDisruptionBudgets(ns).Delete(r.ctx, "a", metav1.DeleteOptions{}))
	other := p.DeepCopy()
	other.UID = "00000000-0000-0000-0000-000000000000"
	r.until("the budget is gone", func() bool { err = r.client.Evict(r.ctx, other, ""); return !api.IsRefused(err) })
	if !api.IsGone(err) {
		r.Errorf("another pod was evicted: %v", err)
	}
	r.must(r.client.Evict(r.ctx, p, "room for others"))
	got := r.get("running")
	if got.DeletionTimestamp == nil || *got.DeletionGracePeriodSeconds != 77 {
		r.Errorf("it leaves at %v with %v s", got.DeletionTimestamp, got.DeletionGracePeriodSeconds)
	}
}

func (r *real) owners() {
	r.cluster.Apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: work}
spec:
  suspend: true
  completionMode: Indexed
  completions: 4
  parallelism: 4
  template: {spec: {restartPolicy: Never, schedulerName: muster, containers: [{name: c, image: i, ports: [{containerPort: 90}]}]}}`)
	job := func() (corev1.ObjectReference, int32, int32, bool) {
		j, err := r.plain.BatchV1().Jobs(ns).Get(r.ctx, "train", metav1.GetOptions{})
		r.must(err)
		return corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: ns, Name: "train", UID: j.UID}, *j.Spec.Parallelism, *j.Spec.Completions, *j.Spec.Suspend
	}
	ref, _, _, _ := job()
	r.must(r.client.Set(r.ctx, ref, []string{"spec.parallelism", "spec.completions"}, 2))
	r.must(r.client.Suspend(r.ctx, ref, "spec.suspend", false))
	if _, parallelism, completions, suspended := job(); parallelism != 2 || completions != 2 || suspended {
		r.Error(parallelism, completions, suspended)
	}
	if err := r.client.Set(r.ctx, ref, []string{"spec.completionMode"}, 1); err == nil {
		r.Error("a number was taken for a mode")
	}
	other := ref
	other.UID = "00000000-0000-0000-0000-000000000000"
	if err := r.client.Suspend(r.ctx, other, "spec.suspend", true); !api.IsGone(err) || api.IsRefused(err) {
		r.Errorf("another Job was suspended: %v", err)
	}
	if err := r.client.Set(r.ctx, other, []string{"spec.template.spec.containers[0].ports[0].containerPort"}, 1); !api.IsGone(err) || api.IsRefused(err) {
		r.Errorf("another Job was set: %v", err)
	}
	other.Name = "none"
	if err := r.client.Suspend(r.ctx, other, "spec.suspend", true); !api.IsGone(err) {
		r.Errorf("a Job that is not there was suspended: %v", err)
	}
	other.Kind = "Sandwich"
	if err := r.client.Suspend(r.ctx, other, "spec.suspend", true); !api.IsGone(err) {
		r.Errorf("a kind that is not there: %v", err)
	}
	if err := r.client.Set(r.ctx, ref, []string{"spec.template.spec.containers[0].ports[0].containerPort"}, 80); !api.IsRefused(err) {
		r.Errorf("what is immutable was set: %v", err)
	}
}

func (r *real) voice() {
	p := r.get("waits")
	ref := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: ns, Name: p.Name, UID: p.UID}
	for range 3 {
		r.client.Say(ref, corev1.EventTypeWarning, "FailedScheduling", "too big")
		r.client.Say(ref, corev1.EventTypeWarning, "FailedScheduling", "queue full")
	}
	r.client.Say(corev1.ObjectReference{APIVersion: "muster.dev/v1alpha1", Kind: "MusterLedger", Name: "muster"}, corev1.EventTypeNormal, "Started", "hello")
	r.until("the words are there", func() bool {
		mine, err := r.plain.EventsV1().Events(ns).List(r.ctx, metav1.ListOptions{})
		r.must(err)
		general, err := r.plain.EventsV1().Events("default").List(r.ctx, metav1.ListOptions{})
		r.must(err)
		var said []string
		for _, e := range append(mine.Items, general.Items...) {
			if e.ReportingController == "muster" {
				said = append(said, e.Regarding.Kind+" "+e.Regarding.Name+": "+e.Type+" "+e.Reason+" "+e.Note)
			}
		}
		slices.Sort(said)
		want := []string{"MusterLedger muster: Normal Started hello", "Pod running: Normal Evicted room for others",
			"Pod waits: Warning FailedScheduling queue full", "Pod waits: Warning FailedScheduling too big"}
		return slices.Equal(said, want)
	})
}

func (r *real) watch() {
	s := &seen{objects: map[string]types.UID{}}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	began := time.Now()
	synced, err := r.client.Watch(ctx, s.tell)
	r.must(err)
	<-synced
	r.Logf("synced after %v", time.Since(began))
	for _, key := range []string{"*v1.Node /n1", "*v1.Pod work/p", "*v1.Pod work/gated", "Job work/train", "Namespace /work"} {
		if !s.has(key) {
			r.Errorf("the first batch is without %s", key)
		}
	}
	r.pod("new")
	r.until("a new pod is told", func() bool { return s.has("*v1.Pod work/new") })

	r.cluster.KillAPIServer()
	time.Sleep(2 * time.Second)
	if err := r.client.Bind(r.ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "new", Namespace: ns}}, "n1", nil); !api.IsTransient(err) {
		r.Errorf("without a server: %v", err)
	}
	r.cluster.StartAPIServer()
	restarted := time.Now()
	r.pod("later")
	r.must(r.plain.CoreV1().Pods(ns).Delete(r.ctx, "new", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	r.until("the watch goes on", func() bool { return s.has("*v1.Pod work/later") && !s.has("*v1.Pod work/new") })
	r.Logf("the watch goes on %v after the server", time.Since(restarted))

	r.cluster.Apply(jobsetCRD)
	d, err := dynamic.NewForConfig(r.cluster.Config())
	r.must(err)
	made, err := d.Resource(jobsets).Namespace(ns).Create(r.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": map[string]any{"name": "set"},
		"spec": map[string]any{"replicatedJobs": []any{map[string]any{"replicas": int64(1)}, map[string]any{"replicas": int64(1)}}}}}, metav1.CreateOptions{})
	r.must(err)
	r.until("a kind that is served since is told", func() bool { return s.has("JobSet work/set") })
	ref := corev1.ObjectReference{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Namespace: ns, Name: "set", UID: made.GetUID()}
	r.must(r.client.Set(r.ctx, ref, []string{"spec.replicatedJobs[1].replicas"}, 7))
	r.must(r.client.Suspend(r.ctx, ref, "spec.runPolicy.suspend", true)) // what is above the field is not there
	now, err := d.Resource(jobsets).Namespace(ns).Get(r.ctx, "set", metav1.GetOptions{})
	r.must(err)
	if got := encode(r.T, now.Object["spec"]); got != `{"replicatedJobs":[{"replicas":1},{"replicas":7}],"runPolicy":{"suspend":true}}` {
		r.Error(got)
	}
	ref.UID = "00000000-0000-0000-0000-000000000000"
	for _, field := range []string{"spec.replicatedJobs[1].replicas", "spec.other"} {
		if err := r.client.Set(r.ctx, ref, []string{field}, 7); !api.IsGone(err) {
			r.Errorf("%s of another JobSet was set: %v", field, err)
		}
	}
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	r.must(d.Resource(crds).Delete(r.ctx, "jobsets.jobset.x-k8s.io", metav1.DeleteOptions{}))
	r.until("objects of a kind that is not served any more are gone", func() bool { return !s.has("JobSet work/set") })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, wrong := range s.wrong {
		r.Error(wrong)
	}
}

// rights: who may see nodes and pods only is told those.
func (r *real) rights() {
	r.cluster.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: few}
rules: [{apiGroups: [""], resources: [nodes, pods], verbs: [list, watch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: few}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: few}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: few}]`)
	client, err := api.New(r.cluster.User("few"), api.Options{Owners: []schema.GroupVersionResource{{Group: "batch", Version: "v1", Resource: "jobs"}}})
	r.must(err)
	s := &seen{objects: map[string]types.UID{}}
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	synced, err := client.Watch(ctx, s.tell)
	r.must(err)
	select {
	case <-synced:
	case <-time.After(10 * time.Second):
		r.Fatal("it waits for what may not be listed")
	}
	if !s.has("*v1.Node /n1") || s.has("Job work/train") {
		r.Error(s.objects)
	}
	if _, err := client.PutJob(r.ctx, fullJob()); !api.IsRefused(err) {
		r.Errorf("without rights: %v", err)
	}
}
