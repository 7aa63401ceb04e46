package advise

import (
	"math"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/kube/apitest"
	"github.com/musterdl/muster/run/kube/gang"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// TestSaves: two nodes with four devices. a has four of the eight for 102 s; b wants six
// and gets four at once and the others when a ends; c wants four. The rival gives c
// nothing until a ends, and half of its pods until the first pods of b end. We start c
// beside a, since b cannot run yet, and b exactly when the rival does.
func TestSaves(t *testing.T) {
	s := newStage(t, "fifo", Options{Lag: UsualLag})
	s.w.AddNodes(2, 4)
	s.look()
	s.w.AddJob("a", 4, 1, 100*time.Second)
	s.until(10 * time.Second)
	s.w.AddJob("b", 6, 1, 100*time.Second)
	s.until(20 * time.Second)
	s.w.AddJob("c", 4, 1, 50*time.Second)
	s.until(60 * time.Second)
	r := s.adviser.Advice()
	if r.Jobs.Ahead != 1 || r.BehindFor != "default/c" {
		t.Errorf("at 60 s we are ahead with %d jobs, and behind for %q", r.Jobs.Ahead, r.BehindFor)
	}
	near(t, "how far it lies behind", r.BehindSec, 39.95)
	s.until(300 * time.Second)
	r = s.adviser.Advice()
	t.Log("\n" + r.Table())
	if r.Jobs.Compared != 3 || r.Saved.Jobs != 3 || r.BehindSec != 0 || r.Preemptions != 0 {
		t.Errorf("%+v", r)
	}
	near(t, "the rival's mean wait", r.Real.AvgWaitSec, (0+92+92)/3.)
	near(t, "our mean wait", r.Ours.AvgWaitSec, 92/3.)
	near(t, "the rival's median", r.Real.P50WaitSec, 92)
	near(t, "our median", r.Ours.P50WaitSec, 0)
	near(t, "our 99 %", r.Ours.P99WaitSec, 92)
	near(t, "the rival's mean completion", r.Real.AvgJCTSec, (102+194+144)/3.)
	near(t, "our mean completion", r.Ours.AvgJCTSec, (102+194+52)/3.)
	near(t, "what is saved", r.Saved.WaitSec, 92)
	near(t, "the makespan saved", r.Saved.MakespanSec, 0)
	near(t, "the rival's makespan", r.Real.MakespanSec, 204)
	if r.PartialGangs != 2 {
		t.Errorf("%d partial gangs, want 2", r.PartialGangs)
	}
	near(t, "what they held", 3600*r.PartialDeviceHours, 4*92+2*10)
	near(t, "the rival's idle devices", 3600*r.Real.IdleDeviceHours, 0)
	near(t, "our idle devices", 3600*r.Ours.IdleDeviceHours, 4*10+4*30)
	near(t, "held on", r.HeldOnDeviceHours, 0)
	granted := 4*102 + 6*102 + 4*52.
	near(t, "our utilisation", r.Ours.Utilization, granted/(8*300))
}

// TestSavesNothing: where gangs come one after the other, and each finds room, both do
// the same in the same instants.
func TestSavesNothing(t *testing.T) {
	s := newStage(t, "fifo", Options{Lag: UsualLag})
	s.w.AddNodes(2, 4)
	s.look()
	for i, name := range []string{"a", "b", "c"} {
		s.w.AddJob(name, 4, 1, time.Duration(30+i)*time.Second)
		s.until(time.Duration(20*i+20) * time.Second)
		if r := s.adviser.Advice(); r.BehindSec != 0 {
			t.Errorf("it lies %v s behind", r.BehindSec)
		}
	}
	s.until(200 * time.Second)
	r := s.adviser.Advice()
	if r.Jobs.Compared != 3 || r.Saved != (Saved{Jobs: 3}) || r.Real != r.Ours || r.PartialGangs != 0 {
		t.Errorf("%+v", r)
	}
}

// declares puts annotations on a Job and its pods.
func declares(pairs ...string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.Annotations = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			j.Annotations[pairs[i]] = pairs[i+1]
		}
		grace := int64(60)
		j.Spec.Template.Spec.TerminationGracePeriodSeconds = &grace
	}
}

// TestPreempts: what a preemption costs is what the job declares and what the options
// say. a runs for 1002 s, from 0.05 s; b comes at 100.05 s, would go first, and runs for
// 12 s. a is told to stop, and has saved 20 s later; b runs until 132.05 s; a takes
// 40 s + 60 s to start again, and has 902 s left.
func TestPreempts(t *testing.T) {
	s := newStage(t, "srtf", Options{Lag: UsualLag, Restart: UsualRestart})
	s.w.AddNodes(2, 4)
	s.look()
	s.w.AddJob("a", 8, 1, 1000*time.Second, declares(gang.AnnotationWork, "1000s", gang.AnnotationCheckpoint, "on-request,save=20s,load=40s"))
	s.until(100 * time.Second)
	s.w.AddJob("b", 8, 1, 10*time.Second, declares(gang.AnnotationWork, "10s"))
	s.until(1500 * time.Second)
	r := s.adviser.Advice()
	if r.Jobs.Compared != 2 || r.Preemptions != 1 {
		t.Fatalf("%+v", r)
	}
	near(t, "the rival's mean completion", r.Real.AvgJCTSec, (1002+1002.05-100.05+12)/2)
	near(t, "our mean completion", r.Ours.AvgJCTSec, (132.05+100+902-.05+20+12)/2)
	near(t, "what stopping and starting again takes", 3600*r.LostDeviceHours, 8*(20+100))
}

// TestStarves: two gangs hold parts of what each needs, for ever. We run one of them,
// and, as nobody knows for how long, keep the other waiting.
func TestStarves(t *testing.T) {
	s := newStage(t, "fifo", Options{Lag: unit.Hour})
	s.w.AddNodes(2, 4)
	s.rival.order = func(p *corev1.Pod) string { return p.Name[2:3] + p.Name[:1] } // a-0, b-0, a-1, ...
	s.look()
	once := func(j *batchv1.Job) { none := int32(0); j.Spec.BackoffLimit = &none }
	s.w.AddJob("a", 6, 1, 0, once)
	s.w.AddJob("b", 6, 1, 0, once)
	s.until(30 * time.Minute)
	r := s.adviser.Advice()
	if r.Jobs.Ahead != 1 || r.Jobs.RealWaiting != 2 || r.Jobs.OursRunning != 1 || r.Jobs.Compared != 0 || r.BehindFor != "default/a" {
		t.Errorf("after half an hour: %+v, behind for %q", r.Jobs, r.BehindFor)
	}
	near(t, "how far it lies behind", r.BehindSec, 1800-.05)
	s.until(2 * time.Hour)
	r = s.adviser.Advice()
	near(t, "how far it lies behind at most", r.BehindSec, 3600)
	near(t, "what partial gangs held", 3600*r.PartialDeviceHours, 8*(3600-.05))
	if r.PartialGangs != 2 {
		t.Errorf("%d gangs were partial, want 2", r.PartialGangs)
	}
	// Somebody withdraws b: a runs as a whole from 7201 s, when the pods of b have gone,
	// and fails at 7301 s. Here it has run from 0.05 s on, for 100 s more than an hour
	// longer than it should have: until 7301 s were known, less the hour.
	if err := s.w.Delete(corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: apitest.Namespace, Name: "b"}); err != nil {
		t.Fatal(err)
	}
	s.until(7301 * time.Second)
	if err := s.w.FailPod(apitest.Namespace, s.podOf("a-0")); err != nil {
		t.Fatal(err)
	}
	s.until(4 * time.Hour)
	r = s.adviser.Advice()
	if r.Jobs.Compared != 1 || r.Jobs.Withdrawn != 1 || r.BehindSec != 0 || r.Jobs.OursRunning+r.Jobs.OursWaiting != 0 {
		t.Errorf("at the end: %+v, %v s behind", r.Jobs, r.BehindSec)
	}
	t.Log("\n" + r.Table())
	if wait := r.Saved.WaitSec; wait < 7200 || wait > 7202 {
		t.Errorf("a has saved %v s of waiting, want those until b had gone", wait)
	}
	if held := r.HeldOnDeviceHours; held < 6*.97 || held > 6*1.01 {
		t.Errorf("a ran on for %v device-hours, want those of an hour less 100 s", held)
	}
}

// TestBefore: what runs when the Adviser begins runs in both worlds, and is not compared.
func TestBefore(t *testing.T) {
	s := newStage(t, "fifo", Options{Lag: UsualLag})
	s.w.AddNodes(2, 4)
	s.w.AddJob("a", 4, 1, 100*time.Second)
	for s.w.Since() < 10*time.Second {
		s.rival.run(s.w.Now())
		s.w.Advance(time.Second / 20)
	}
	s.look()
	s.w.AddJob("b", 8, 1, 100*time.Second)
	s.until(300 * time.Second)
	r := s.adviser.Advice()
	if r.Jobs.Arrived != 1 || r.Jobs.Compared != 1 || r.Saved != (Saved{Jobs: 1}) {
		t.Errorf("%+v", r)
	}
	near(t, "what partial gangs held", 3600*r.PartialDeviceHours, 4*92)
	near(t, "our idle devices", 3600*r.Ours.IdleDeviceHours, 4*92)
}

// TestFollows: whose pods are followed.
func TestFollows(t *testing.T) {
	for _, all := range []bool{false, true} {
		s := newStage(t, "fifo", Options{Lag: UsualLag, All: all})
		s.w.AddNodes(2, 4)
		s.look()
		s.w.AddJob("gang", 2, 0, time.Second)
		s.w.AddJob("device", 1, 1, time.Second)
		s.w.AddJob("plain", 1, 0, time.Second)
		s.w.AddPod("other", 1, time.Second, func(p *corev1.Pod) { p.Spec.SchedulerName = "another" })
		s.w.AddPod("daemon", 1, time.Second, func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d"}}
		})
		s.w.AddPod("single", 1, time.Second)
		s.until(time.Minute)
		want := 3
		if all {
			want = 4
		}
		if r := s.adviser.Advice(); r.Jobs.Arrived != want || r.Jobs.Compared != want {
			t.Errorf("with all pods %v: %+v, want %d", all, r.Jobs, want)
		}
	}
}

// TestKueue: a Job that Kueue keeps suspended waits from when it is made, and is started
// in our world though it has no pods in reality.
func TestKueue(t *testing.T) {
	s := newStage(t, "fifo", Options{Lag: UsualLag})
	s.w.AddNodes(2, 4)
	s.look()
	object := s.w.AddJob("a", 8, 1, 10*time.Second, func(j *batchv1.Job) {
		yes := true
		j.Spec.Suspend = &yes
		j.Labels = map[string]string{labelKueue: "research"}
	})
	s.until(100 * time.Second)
	if r := s.adviser.Advice(); r.Jobs.Ahead != 1 || r.Jobs.OursRunning != 1 || r.Jobs.RealWaiting != 1 {
		t.Errorf("while it is suspended: %+v", r.Jobs)
	}
	ref := corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: apitest.Namespace, Name: "a", UID: object.GetUID()}
	if err := s.w.Client.Suspend(t.Context(), ref, "spec.suspend", false); err != nil {
		t.Fatal(err)
	}
	s.until(200 * time.Second)
	r := s.adviser.Advice()
	if r.Jobs.Compared != 1 || r.Jobs.Arrived != 1 {
		t.Fatalf("%+v", r.Jobs)
	}
	near(t, "what is saved", r.Saved.WaitSec, 100.05)
}

// TestNewModel: devices of a model that was not there when it began make it begin anew
// with what it knows.
func TestNewModel(t *testing.T) {
	s := newStage(t, "fifo", Options{Lag: UsualLag})
	s.w.AddNodes(1, 4)
	s.look()
	s.w.AddJob("a", 4, 1, 100*time.Second)
	s.until(10 * time.Second)
	s.w.AddNodes(1, 4, func(n *corev1.Node) { n.Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3" })
	s.until(20 * time.Second)
	s.w.AddJob("b", 4, 1, 20*time.Second)
	s.until(300 * time.Second)
	r := s.adviser.Advice()
	if r.Jobs.Compared != 2 || r.Real != r.Ours || r.Saved != (Saved{Jobs: 2}) {
		t.Errorf("%+v", r)
	}
}

// TestApart: pods that do not wait for one another are not a partial gang, and the job
// is as long as its pods' time makes it on as many as it has: two of four pods run for
// 102 s, and then the others.
func TestApart(t *testing.T) {
	s := newStage(t, "fifo", Options{Lag: UsualLag})
	s.w.AddNodes(1, 4)
	s.look()
	s.w.AddJob("a", 2, 1, 300*time.Second)
	s.until(10 * time.Second)
	s.w.AddJob("b", 4, 1, 100*time.Second)
	s.until(1000 * time.Second)
	r := s.adviser.Advice()
	if r.PartialGangs != 0 || r.PartialDeviceHours != 0 {
		t.Errorf("%d partial gangs held %v device-hours", r.PartialGangs, r.PartialDeviceHours)
	}
	// We give b nothing until a ends at 302.05 s: it waits for 292 s then.
	near(t, "the rival's mean wait", r.Real.AvgWaitSec, 102/2.)
	near(t, "our mean wait", r.Ours.AvgWaitSec, 292/2.)
}
