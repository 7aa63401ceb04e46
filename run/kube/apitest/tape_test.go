package apitest

import (
	"context"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/run/kube/api"
)

// busy is a World with jobs enough that some wait, and one of which is suspended on the
// way.
func busy(t T, options Options) *World {
	options.T = t
	w := New(options)
	w.AddNodes(3, 8)
	for i := range 6 {
		w.AddJob(fmt.Sprintf("j%d", i), int32(1+i%3), 4, time.Duration(20+7*i)*time.Second, Keeping(2*time.Second), Failing(i%2, 9*time.Second))
	}
	return w
}

// told is what a client has been told so far: objects by UID.
type told map[types.UID]string

func (o told) take(changes []api.Change) {
	for _, c := range changes {
		x := c.Object.(object)
		if o[x.GetUID()] = x.GetResourceVersion(); c.Gone {
			delete(o, x.GetUID())
		}
	}
}

func calls(all []Call) (lines []string) {
	for _, c := range all {
		lines = append(lines, c.String())
	}
	return lines
}

// TestRunIsAFunction sees that a run depends on nothing but the script and the seed.
func TestRunIsAFunction(t *testing.T) {
	play := func(seed uint64) []string {
		w := busy(t, Options{})
		w.Inject(Chaos(seed, 5*time.Minute, []string{"node-0000"}))
		run(w, newFirst(w.Client), time.Hour)
		for i := range 6 {
			if j := job(w, fmt.Sprint("j", i)); !hasCondition(j, "Complete") {
				t.Errorf("seed %d: job %s never completes: %v", seed, j.GetName(), j.Object["status"])
			}
		}
		return append(calls(w.Calls()), phases(w))
	}
	for seed := range uint64(20) {
		if a, b := play(seed), play(seed); !slices.Equal(a, b) {
			t.Errorf("seed %d: two runs differ:\n%s\n\n%s", seed, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
	if slices.Equal(play(1), play(2)) {
		t.Error("two seeds give the same faults")
	}
}

// TestTapeEqualsWorld sees that a World of the tape has the objects and records that
// there were, plays the rest of it, and leads a scheduler that begins there to the same
// calls.
func TestTapeEqualsWorld(t *testing.T) {
	w := busy(t, Options{})
	tape := w.Record()
	f := newFirst(w.Client)
	var before [][]api.Change // each event
	var versions []string
	j := &api.Job{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "r"}}
	for range 60 {
		before = append(before, w.List())
		f.take(w.Next())
		f.decide()
		version, err := w.PutJob(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		j.ResourceVersion = version
		versions = append(versions, version)
		w.Advance(3 * time.Second)
	}
	events := tape.Events()
	want(t, "events", len(events), 60)
	for at := 0; at < 59; at += 7 {
		p := tape.World(at)
		if !reflect.DeepEqual(p.List(), before[at+1]) {
			t.Errorf("event %d: the objects differ from those there were", at)
		}
		g := newFirst(p.Client)
		g.take(p.Next())
		g.take(p.Next())
		want(t, "time", p.Now(), events[at+1].At)
		jobs, err := p.ListJobs(ctx)
		if err != nil || len(jobs) != 1 || jobs[0].ResourceVersion != versions[at] {
			t.Errorf("event %d: records %v %v, want version %s", at, jobs, err, versions[at])
		}
		for p.Left() > 0 {
			g.decide()
			g.take(p.Next())
		}
		g.decide()
		want(t, "violations", p.Violations(), []string(nil))
		var binds, wanted []string
		for _, e := range events[at+1:] {
			for _, c := range e.Calls {
				if c.Verb == "bind" {
					wanted = append(wanted, c.String())
				}
			}
		}
		for _, c := range p.Calls() {
			binds = append(binds, c.String())
		}
		if !slices.Equal(binds, wanted) {
			t.Errorf("begun after event %d:\n%s\nwant\n%s", at, strings.Join(binds, "\n"), strings.Join(wanted, "\n"))
		}
	}
}

// TestTold sees that what is told adds up to what there is, under any faults.
func TestTold(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		w := busy(t, Options{})
		f := Chaos(rapid.Uint64().Draw(t, "seed"), 4*time.Minute, []string{"node-0001", "node-0002"})
		w.Inject(f)
		s, other := newFirst(w.Client), w.NewClient("other")
		seen, late := told{}, told{}
		for w.Since() < 4*time.Minute {
			changes := w.Next()
			seen.take(changes)
			s.take(changes)
			s.decide()
			if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
				late.take(other.Next())
			}
			if rapid.IntRange(0, 30).Draw(t, "restart") == 0 {
				w.Restart()
				clear(seen)
				s = newFirst(w.Client)
			}
			w.Advance(time.Duration(rapid.IntRange(1, 9000).Draw(t, "ms")) * time.Millisecond)
		}
		seen.take(w.Next())
		late.take(other.Next())
		all := told{}
		all.take(w.List())
		if !reflect.DeepEqual(seen, all) || !reflect.DeepEqual(late, all) {
			t.Errorf("told %v and %v, there is %v", seen, late, all)
		}
	})
}

func TestFaults(t *testing.T) {
	begin := func(f Faults) *World {
		w := New(Options{T: t})
		w.AddNodes(1, 8)
		w.AddPod("a", 1, 0)
		w.AddJob("j", 1, 1, 0)
		w.Inject(f)
		return w
	}
	pod := func(w *World) *corev1.Pod { p, _ := w.Pod(Namespace, "a"); return p }

	w := begin(Faults{TransientRate: 1})
	if err := w.Bind(ctx, pod(w), "node-0000", nil); !api.IsTransient(err) || pod(w).Spec.NodeName != "" {
		t.Error("a transient failure must do nothing:", err)
	}
	w = begin(Faults{LostReplyRate: 1})
	if err := w.Bind(ctx, pod(w), "node-0000", nil); !api.IsTransient(err) || pod(w).Spec.NodeName == "" {
		t.Error("a call whose reply is lost must be done:", err)
	}
	if err := w.Bind(ctx, pod(w), "node-0000", nil); !api.IsConflict(err) {
		t.Error("and made again it must be a conflict, but no violation:", err)
	}
	w = begin(Faults{})
	r := &api.Job{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "r"}}
	r.ResourceVersion, _ = w.PutJob(ctx, r)
	w.Inject(Faults{ConflictRate: 1})
	if _, err := w.PutJob(ctx, r); !api.IsConflict(err) {
		t.Error("want a conflict of the record:", err)
	}
	if err := w.Suspend(ctx, ref("j"), "spec.suspend", true); !api.IsConflict(err) {
		t.Error("want a conflict of the Job:", err)
	}
	w = begin(Faults{SlowCall: time.Second})
	w.Explain(ctx, pod(w), "Waits", "for room")
	want(t, "a slow call", w.Since(), time.Second)
	want(t, "the world went on meanwhile", len(w.Pods()), 2)
	w = begin(Faults{Outages: []Window{{time.Second, time.Minute}}, StaleLeader: []time.Duration{70 * time.Second}})
	w.PutLedger(ctx, &api.Ledger{ObjectMeta: metav1.ObjectMeta{Name: "muster"}, Status: api.LedgerStatus{Fence: "1/a"}})
	w.Bind(ctx, pod(w), "node-0000", nil)
	w.Next()
	w.Advance(10 * time.Second)
	var refused *net.OpError
	if err := w.Explain(ctx, pod(w), "", ""); !api.IsTransient(err) {
		t.Errorf("want %T in an outage, got %v", refused, err)
	}
	want(t, "told in an outage", len(w.Next()), 0)
	want(t, "nobody writes in an outage", pod(w).Status.Phase, corev1.PodPending)
	w.Advance(time.Minute)
	want(t, "but afterwards", pod(w).Status.Phase, corev1.PodRunning)
	l, _, err := w.GetLedger(ctx, "muster")
	want(t, "another leader", fmt.Sprint(l.Status.Fence, err), "2/another<nil>")
}

func TestGapTellsTheDifference(t *testing.T) {
	w := New(Options{T: t})
	w.AddNodes(1, 8)
	old := w.AddPod("a", 1, 0)
	w.Inject(Faults{WatchGaps: []Window{{time.Second, time.Minute}}})
	w.Next()
	w.Advance(2 * time.Second)
	pod := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: Namespace, Name: "a"}
	for range 3 {
		if err := w.Delete(pod); err != nil {
			t.Fatal(err)
		}
		w.AddPod("a", 1, 0)
	}
	want(t, "told in a gap", len(w.Next()), 0)
	w.Advance(time.Minute)
	now, _ := w.Pod(Namespace, "a")
	want(t, "told afterwards", w.Next(), []api.Change{{Object: old, Gone: true}, {Object: now}})
}

func TestWatchAndLive(t *testing.T) {
	w := New(Options{T: t, Timing: Timing{Start: 20 * time.Millisecond}})
	w.AddNodes(1, 8)
	p := w.AddPod("a", 1, 0)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running atomic.Bool
	synced, err := w.Watch(ctx, func(changes []api.Change) {
		for _, c := range changes {
			if p, ok := c.Object.(*corev1.Pod); ok && p.Status.Phase == corev1.PodRunning {
				running.Store(true)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	go w.Live(ctx, time.Millisecond)
	<-synced
	if err := w.Bind(ctx, p, "node-0000", nil); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); !running.Load(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the pod never runs")
		}
	}
}

// TestSpeed sees that the World itself costs little: what it takes to make, bind and
// run 5,000 pods on 1,000 nodes.
func TestSpeed(t *testing.T) {
	began := processor()
	w := New(Options{T: t})
	w.AddNodes(1000, 8)
	size := 0
	for i := 0; size < 5000; i++ {
		n := min([]int{1, 2, 4, 8, 16, 32, 64}[i%7], 5000-size)
		w.AddJob(fmt.Sprintf("j%d", i), int32(n), 1, 0)
		size += n
	}
	w.Next()
	w.Advance(time.Second)
	bound := 0
	for _, c := range w.Next() {
		if p, ok := c.Object.(*corev1.Pod); ok {
			if err := w.Bind(ctx, p, fmt.Sprintf("node-%04d", bound/8), nil); err != nil {
				t.Fatal(err)
			}
			bound++
		}
	}
	w.Next()
	w.Advance(time.Minute)
	w.Next()
	took := processor() - began
	want(t, "bound", bound, 5000)
	want(t, "settled", w.Settled(), true)
	t.Logf("%d pods took %v of the processor", bound, took)
	if took > 3*time.Second { // a fifth of a second on an idle machine; race detectors are slow
		t.Errorf("took %v of the processor", took)
	}
}

// processor is the processor time that this process has used: other than time, it does
// not depend on what else the machine does.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestAddAndEdit(t *testing.T) {
	w := New(Options{T: t})
	node := w.AddNodes(1, 8)[0]
	w.Add(&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	w.Add(&resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "s"}})
	w.Next()
	if err := Edit(w, node, func(n *corev1.Node) { n.Spec.Unschedulable = true }); err != nil {
		t.Fatal(err)
	}
	changes := w.Next()
	want(t, "told", len(changes), 1)
	want(t, "edited", changes[0].Object.(*corev1.Node).Spec.Unschedulable, true)
	want(t, "what was told stays as it was", node.Spec.Unschedulable, false)
	want(t, "objects", len(w.List()), 3)
}
