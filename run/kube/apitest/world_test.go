package apitest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/musterdl/muster/run/kube/api"
)

var ctx = context.Background()

// first is the simplest scheduler of gangs: it knows what Next told, and binds a gang
// of Jobs when all of its pods fit, by first fit. What it has tried to bind keeps its
// place until it is told more, and is tried again there where that failed.
type first struct {
	*Client
	tried map[types.UID]try
	nodes map[string]*corev1.Node
	pods  map[types.UID]*corev1.Pod
	jobs  map[types.UID]*unstructured.Unstructured
}

type try struct {
	node string
	done bool
}

func newFirst(c *Client) *first {
	return &first{c, map[types.UID]try{}, map[string]*corev1.Node{}, map[types.UID]*corev1.Pod{}, map[types.UID]*unstructured.Unstructured{}}
}

func (f *first) take(changes []api.Change) {
	for _, c := range changes {
		switch o := c.Object.(type) {
		case *corev1.Node:
			if f.nodes[o.Name] = o; c.Gone {
				delete(f.nodes, o.Name)
			}
		case *corev1.Pod:
			if f.pods[o.UID] = o; c.Gone {
				delete(f.pods, o.UID)
			}
		case *unstructured.Unstructured:
			if f.jobs[o.GetUID()] = o; c.Gone {
				delete(f.jobs, o.GetUID())
			}
		}
	}
}

// decide binds what it can.
func (f *first) decide() {
	for _, uid := range slices.Sorted(maps.Keys(f.tried)) {
		if p := f.pods[uid]; p == nil {
			delete(f.tried, uid)
		} else if t := f.tried[uid]; !t.done && p.Spec.NodeName == "" {
			f.bind(p, t.node)
		}
	}
	free := map[string]int64{}
	for name, n := range f.nodes {
		if !tainted(n) {
			q := n.Status.Allocatable[Device]
			free[name] = q.Value()
		}
	}
	devices := func(p *corev1.Pod) int64 { q := p.Spec.Containers[0].Resources.Requests[Device]; return q.Value() }
	gangs := map[string][]*corev1.Pod{}
	for _, p := range f.pods {
		ref, _ := controller(p)
		if node := cmp.Or(p.Spec.NodeName, f.tried[p.UID].node); node != "" && !ended(p) {
			free[node] -= devices(p)
		}
		if p.Spec.NodeName == "" && p.DeletionTimestamp == nil && f.tried[p.UID].node == "" {
			gangs[cmp.Or(ref.Name, p.Name)] = append(gangs[cmp.Or(ref.Name, p.Name)], p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(gangs)) {
		pods := gangs[name]
		slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(string(a.UID), string(b.UID)) })
		trial, where := maps.Clone(free), []string{}
		for _, p := range pods {
			for _, node := range slices.Sorted(maps.Keys(trial)) {
				if trial[node] >= devices(p) {
					trial[node] -= devices(p)
					where = append(where, node)
					break
				}
			}
		}
		if len(where) < len(pods) {
			continue
		}
		free = trial
		for i, p := range pods {
			f.bind(p, where[i])
		}
	}
}

func (f *first) bind(p *corev1.Pod, node string) {
	f.tried[p.UID] = try{node, !api.IsTransient(f.Bind(ctx, p, node, nil))}
}

// run lets first schedule for some time: whenever something happens, and every ten
// seconds for what failed.
func run(w *World, f *first, d time.Duration) {
	for end := w.Now().Add(d); w.Now().Before(end); {
		f.take(w.Next())
		f.decide()
		next := min(end.Sub(w.Now()), 10*time.Second)
		if due, ok := w.Due(); ok {
			next = min(next, max(due.Sub(w.Now()), 0))
		}
		w.Advance(next)
	}
}

func job(w *World, name string) *unstructured.Unstructured {
	o, _ := get[*unstructured.Unstructured](w.store, id{kindJob, Namespace, name})
	return o
}

func ref(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: Namespace, Name: name}
}

func phases(w *World) string {
	var all []string
	for _, p := range w.Pods() {
		s := string(p.Status.Phase)
		if p.DeletionTimestamp != nil {
			s += "!"
		}
		if p.Spec.NodeName != "" {
			s += "@" + strings.TrimPrefix(p.Spec.NodeName, "node-")
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

func want(t *testing.T, what string, got, wanted any) {
	t.Helper()
	if !reflect.DeepEqual(got, wanted) {
		t.Errorf("%s: got %v, want %v", what, got, wanted)
	}
}

func TestJobLife(t *testing.T) {
	w := New(Options{T: t})
	w.AddNodes(2, 8)
	w.AddJob("a", 2, 8, time.Minute)
	f := newFirst(w.Client)
	run(w, f, time.Second)
	want(t, "bound", phases(w), "Pending@0000 Pending@0001")
	run(w, f, 30*time.Second)
	want(t, "begun", phases(w), "Running@0000 Running@0001")
	want(t, "active", number(job(w, "a").Object, "status.active", 0), int64(2))
	want(t, "labels", w.Pods()[1].Labels[labelIndex], "1")
	run(w, f, time.Minute)
	want(t, "ended", phases(w), "Succeeded@0000 Succeeded@0001")
	want(t, "complete", hasCondition(job(w, "a"), "Complete"), true)
	want(t, "succeeded", number(job(w, "a").Object, "status.succeeded", 0), int64(2))
	want(t, "settled", w.Settled(), true)
	if err := w.Delete(ref("a")); err != nil {
		t.Fatal(err)
	}
	w.Advance(time.Second)
	want(t, "collected", phases(w), "")
}

func TestSuspendAndResume(t *testing.T) {
	for _, keeps := range []bool{true, false} {
		w := New(Options{T: t})
		w.AddNodes(1, 8)
		edits := []func(*batchv1.Job){PodAnnotated(AnnotationStop, "3s")}
		if keeps {
			edits = append(edits, Keeping(3*time.Second))
		}
		w.AddJob("a", 2, 4, time.Minute, edits...)
		f := newFirst(w.Client)
		run(w, f, 42*time.Second) // about 40 s of work
		if err := w.Suspend(ctx, ref("a"), "spec.suspend", true); err != nil {
			t.Fatal(err)
		}
		run(w, f, time.Second)
		want(t, "stopping", phases(w), "Running!@0000 Running!@0000")
		want(t, "waits", w.Waiting(), []string{"Job default/a"})
		want(t, "could go on", w.Starved(), []string(nil)) // what stops still has its room
		run(w, f, 5*time.Second)
		want(t, "stopped", phases(w), "")
		want(t, "could go on", w.Starved(), []string{"Job default/a"})
		want(t, "suspended", hasCondition(job(w, "a"), "Suspended"), true)
		if err := w.Suspend(ctx, ref("a"), "spec.suspend", false); err != nil {
			t.Fatal(err)
		}
		run(w, f, 30*time.Second)
		want(t, fmt.Sprintf("over after 30 s, work kept: %v", keeps), hasCondition(job(w, "a"), "Complete"), keeps)
		run(w, f, 40*time.Second)
		want(t, "over", hasCondition(job(w, "a"), "Complete"), true)
		want(t, "failures", number(job(w, "a").Object, "status.failed", -1), int64(0))
		want(t, "partial", w.WerePartial(), []PartialGang(nil))
	}
}

func TestFailuresAndBackoff(t *testing.T) {
	w := New(Options{T: t})
	w.AddNodes(1, 8)
	w.AddJob("twice", 1, 4, 10*time.Second, Failing(2, 5*time.Second))
	w.AddJob("always", 1, 4, 10*time.Second, Failing(99, time.Second), func(j *batchv1.Job) { n := int32(1); j.Spec.BackoffLimit = &n })
	f := newFirst(w.Client)
	run(w, f, 12*time.Second)
	want(t, "waits after a failure", number(job(w, "twice").Object, "status.active", -1), int64(0))
	run(w, f, 10*time.Second)
	want(t, "made again", number(job(w, "twice").Object, "status.failed", 0), int64(1))
	run(w, f, 2*time.Minute)
	want(t, "succeeds", hasCondition(job(w, "twice"), "Complete"), true)
	want(t, "gives up", hasCondition(job(w, "always"), "Failed"), true)
	want(t, "failures", number(job(w, "always").Object, "status.failed", 0), int64(2))
}

func TestResize(t *testing.T) {
	w := New(Options{T: t})
	w.AddNodes(1, 8)
	w.AddJob("a", 4, 1, 0)
	f := newFirst(w.Client)
	run(w, f, 10*time.Second)
	fields := []string{"spec.parallelism", "spec.completions"}
	for _, n := range []int32{2, 6} {
		if err := w.Set(ctx, ref("a"), fields, n); err != nil {
			t.Fatal(err)
		}
		run(w, f, 10*time.Second)
		want(t, "pods", len(w.Pods()), int(n))
	}
	want(t, "growth is not partial", len(w.WerePartial()), 0)
	if err := w.Set(ctx, ref("a"), []string{"spec.completions"}, 8); !api.IsRefused(err) {
		t.Error("completions must not differ from the parallelism:", err)
	}
}

func TestJobSet(t *testing.T) {
	w := New(Options{T: t})
	w.AddNodes(2, 8)
	w.AddJobSet("s", []Part{{Name: "prepare", Workers: 1, Work: 10 * time.Second}, {Name: "train", Replicas: 2, Workers: 2, Devices: 4, Work: time.Minute, DependsOn: "prepare"}},
		func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["failurePolicy"] = map[string]any{"maxRestarts": int64(1)}
		})
	f := newFirst(w.Client)
	run(w, f, 5*time.Second)
	want(t, "the first part", phases(w), "Running@0000")
	run(w, f, 20*time.Second)
	want(t, "the second", phases(w), "Succeeded@0000 Running@0000 Running@0000 Running@0001 Running@0001")
	p := w.Pods()[4]
	want(t, "labels", p.Labels[labelPart]+" "+p.Labels[labelNumber], "train 1")
	set := corev1.ObjectReference{APIVersion: "jobset.x-k8s.io/v1alpha2", Kind: "JobSet", Namespace: Namespace, Name: "s"}
	if err := w.Set(ctx, set, []string{"spec.replicatedJobs[1].template.spec.parallelism"}, 3); !api.IsRefused(err) {
		t.Error("a JobSet that is not elastic must refuse:", err)
	}
	if err := w.Suspend(ctx, set, "spec.suspend", true); err != nil {
		t.Fatal(err)
	}
	run(w, f, 10*time.Second)
	want(t, "suspended", phases(w), "Succeeded@0000")
	if err := w.Suspend(ctx, set, "spec.suspend", false); err != nil {
		t.Fatal(err)
	}
	run(w, f, 2*time.Minute)
	o, _ := get[*unstructured.Unstructured](w.store, id{kindJobSet, Namespace, "s"})
	want(t, "completed", hasCondition(o, "Completed"), true)
}

func TestReplicaSetAndBudget(t *testing.T) {
	w := New(Options{T: t})
	w.AddNodes(1, 8)
	one := intstr.FromInt32(1)
	w.AddReplicaSet("web", 2, 1)
	f := newFirst(w.Client)
	run(w, f, 10*time.Second)
	w.AddBudget(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "b"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{}}})
	w.Advance(time.Second)
	pods := w.Pods()
	if err := w.Evict(ctx, pods[0], ""); err != nil {
		t.Error(err)
	}
	if err := w.Evict(ctx, pods[1], ""); !api.IsRefused(err) {
		t.Error("the budget must refuse:", err)
	}
	run(w, f, 10*time.Second)
	want(t, "made again", phases(w), "Running@0000 Running@0000")
	want(t, "another", w.Pods()[1].UID != pods[1].UID, true)
}

func TestNodeLoss(t *testing.T) {
	for _, c := range []struct {
		name   string
		faults NodeLoss
		at     time.Duration
		pods   string
	}{
		{"dark", NodeLoss{At: 10 * time.Second}, 2 * time.Minute, "Running@0000"},
		{"deleted and made again", NodeLoss{At: 10 * time.Second}, 7 * time.Minute, "Running!@0000 Running@0001"},
		{"back in time", NodeLoss{At: 10 * time.Second, Back: 30 * time.Second}, time.Minute, "Failed@0000 Running@0000"},
		{"back late", NodeLoss{At: 10 * time.Second, Back: 8 * time.Minute}, 10 * time.Minute, "Running@0001"},
		{"taken out", NodeLoss{At: 10 * time.Second, Delete: time.Minute}, 3 * time.Minute, "Running@0001"},
	} {
		w := New(Options{T: t})
		w.AddNodes(2, 8)
		w.AddJob("a", 1, 8, 0)
		c.faults.Node = "node-0000"
		w.Inject(Faults{NodeLoss: []NodeLoss{c.faults}})
		run(w, newFirst(w.Client), c.at)
		want(t, c.name, phases(w), c.pods)
	}
}

// TestViolations sees that what must never be done is noticed.
func TestViolations(t *testing.T) {
	for _, c := range []struct {
		words string
		do    func(w *World)
	}{
		{"over-committed: pod default/b takes 8 of nvidia.com/gpu, 8 of 8", func(w *World) {
			w.Bind(ctx, w.Pods()[0], "node-0000", nil)
			w.Bind(ctx, w.Pods()[1], "node-0000", nil)
		}},
		{"on node-0000 already", func(w *World) {
			w.Bind(ctx, w.Pods()[0], "node-0000", nil)
			w.Bind(ctx, w.Pods()[0], "node-0001", nil)
		}},
		{"never was", func(w *World) { w.Bind(ctx, w.Pods()[0], "nowhere", nil) }},
		{"scheduling gates", func(w *World) {
			p := w.AddPod("gated", 0, 0, func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })
			w.Bind(ctx, p, "node-0000", nil)
		}},
		{"its own latest is", func(w *World) {
			j := &api.Job{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "j"}}
			v, _ := w.PutJob(ctx, j)
			j.ResourceVersion = v
			w.PutJob(ctx, j)
			if _, err := w.PutJob(ctx, j); !api.IsConflict(err) {
				t.Error("a stale version must be a conflict:", err)
			}
		}},
		{"older than", func(w *World) {
			l := &api.Ledger{ObjectMeta: metav1.ObjectMeta{Name: "muster"}, Status: api.LedgerStatus{Fence: "3/a"}}
			w.PutLedger(ctx, l)
			w.Depose()
			now, _, _ := w.GetLedger(ctx, "muster")
			now.Status.Fence = "3/a"
			w.PutLedger(ctx, &now)
		}},
	} {
		w := New(Options{})
		w.AddNodes(2, 8)
		w.AddPod("a", 8, 0)
		w.AddPod("b", 8, 0)
		c.do(w)
		if v := w.Violations(); len(v) != 1 || !strings.Contains(v[0], c.words) {
			t.Errorf("want one violation with %q, got %q", c.words, v)
		}
	}
}

func TestPartial(t *testing.T) {
	w := New(Options{T: t})
	w.AddNodes(2, 8)
	w.AddJob("a", 3, 4, 0)
	w.Advance(time.Second)
	pods := w.Pods()
	w.Bind(ctx, pods[0], "node-0000", nil)
	w.Advance(2 * time.Second)
	want(t, "partial", w.Partial(), []PartialGang{{Gang: "Job default/a", Bound: 1, Need: 3, From: time.Second, For: 2 * time.Second}})
	want(t, "fits", w.Starved(), []string{"Job default/a"})
	w.Bind(ctx, pods[1], "node-0000", nil)
	w.Bind(ctx, pods[2], "node-0001", nil)
	want(t, "whole", w.Partial(), []PartialGang(nil))
	want(t, "was", w.WerePartial(), []PartialGang{{Gang: "Job default/a", Bound: 1, Need: 3, From: time.Second, For: 2 * time.Second}})
	w.Advance(5 * time.Second)
	if err := w.FailPod(Namespace, pods[1].Name); err != nil {
		t.Fatal(err)
	}
	w.Advance(time.Second)
	want(t, "broken", w.Partial(), []PartialGang{{Gang: "Job default/a", Bound: 2, Need: 3, From: 8 * time.Second, For: time.Second, Broken: true}})
	for i := range 2 {
		w.AddPod(fmt.Sprint("g", i), 1, 0, func(p *corev1.Pod) { p.Labels = map[string]string{labelGang: "g", labelGangSize: "2"} })
	}
	w.Bind(ctx, w.Pods()[3], "node-0001", nil)
	want(t, "a gang of labels", w.Partial()[1].Gang, "gang default/g")
}
