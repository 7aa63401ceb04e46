package driver

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/musterdl/muster/plan"

	"github.com/musterdl/muster/run/kube/apitest"
)

// TestGangs runs Jobs, a JobSet and a pod to their ends.
func TestGangs(t *testing.T) {
	w := apitest.New(apitest.Options{T: t})
	w.AddNodes(4, 8)
	s := newStage(t, w, composed(t, "fifo"))
	w.AddJob("four", 4, 8, time.Minute)
	w.AddJob("wide", 2, 4, time.Minute)
	w.AddPod("single", 2, 30*time.Second)
	w.AddJobSet("set", []apitest.Part{{Name: "workers", Replicas: 2, Workers: 2, Devices: 4, Work: time.Minute}})
	s.until(10 * time.Minute)
	if got := s.phases(); got != `default/pod/single finished
default/four finished
default/wide finished
default/jobset/set finished
` {
		t.Errorf("the jobs came to\n%s", got)
	}
	if !w.Settled() || len(w.WerePartial()) > 0 {
		t.Errorf("partial: %v, waiting: %v", w.WerePartial(), w.Waiting())
	}
}

// TestPreempts suspends a Job for one that ranks higher, and resumes it later.
func TestPreempts(t *testing.T) {
	w := apitest.New(apitest.Options{T: t})
	w.AddNodes(2, 8)
	s := newStage(t, w, composed(t, "srtf"))
	w.AddJob("long", 2, 8, time.Hour, apitest.Annotated("muster.dev/work", "1h"), apitest.Annotated("muster.dev/checkpoint", "on-request,save=1s"), apitest.Keeping(time.Second))
	s.until(10 * time.Minute)
	w.AddJob("short", 2, 8, 5*time.Minute, apitest.Annotated("muster.dev/work", "5m"))
	s.until(3 * time.Hour)
	if got := s.phases(); got != "default/long finished\ndefault/short finished\n" {
		t.Errorf("the jobs came to\n%s", got)
	}
	j := s.engine.View().Job(0)
	if j.Preemptions != 1 || j.Attempt != 2 {
		t.Errorf("the long job was preempted %d times in %d attempts", j.Preemptions, j.Attempt)
	}
	if more := j.Executed - 3600*1e6; more < -2e6 || more > 60*1e6 {
		t.Errorf("the long job ran for %d us", j.Executed)
	}
}

// TestElastic grows a Job when the cluster empties, and shrinks it when others come.
func TestElastic(t *testing.T) {
	w := apitest.New(apitest.Options{T: t})
	w.AddNodes(4, 8)
	s := newStage(t, w, composed(t, "fifo+equal-share"))
	w.AddJob("elastic", 2, 8, time.Hour, apitest.Annotated("muster.dev/elastic", "1-4"), apitest.Annotated("muster.dev/checkpoint", "on-request,save=1s"), apitest.Keeping(time.Second))
	sizes := []int32{}
	look := func() {
		v := s.engine.View()
		if r := v.Job(0).Run; r != plan.None {
			if n := v.Run(r).Workers; len(sizes) == 0 || sizes[len(sizes)-1] != n {
				sizes = append(sizes, n)
			}
		}
	}
	for m := time.Duration(1); m < 90; m++ {
		if m == 10 {
			w.AddJob("other", 2, 8, 10*time.Minute, apitest.Annotated("muster.dev/elastic", "1-2"))
		}
		s.until(m * time.Minute)
		look()
	}
	if !slices.Equal(sizes, []int32{4, 2, 4}) {
		t.Errorf("the job had %v workers", sizes)
	}
	if got := s.phases(); got != "default/elastic finished\ndefault/other finished\n" {
		t.Errorf("the jobs came to\n%s", got)
	}
}

// TestNodeLoss loses a node of a gang: it starts again elsewhere as a whole.
func TestNodeLoss(t *testing.T) {
	w := apitest.New(apitest.Options{T: t})
	w.AddNodes(3, 8)
	s := newStage(t, w, composed(t, "fifo"))
	w.AddJob("gang", 2, 8, 30*time.Minute)
	s.until(5 * time.Minute)
	w.LoseNode("node-0000")
	s.until(2 * time.Hour)
	if got := s.phases(); got != "default/gang finished\n" {
		t.Errorf("the jobs came to\n%s", got)
	}
	if j := s.engine.View().Job(0); j.Attempt != 2 || j.Failures != 0 {
		t.Errorf("attempt %d, %d failures", j.Attempt, j.Failures)
	}
}

// TestRiders runs a JobSet whose driver asks for no device on nodes that its workers
// fill: devices are not kept for it, and it starts and ends with them.
func TestRiders(t *testing.T) {
	w := apitest.New(apitest.Options{T: t})
	w.AddNodes(2, 8)
	s := newStage(t, w, composed(t, "srtf"))
	w.AddJobSet("set", []apitest.Part{{Name: "driver", Workers: 1, Work: time.Hour}, {Name: "workers", Workers: 2, Devices: 8, Work: time.Hour}},
		func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{"muster.dev/work": "1h", "muster.dev/checkpoint": "on-request,save=1s"})
		})
	s.until(10 * time.Minute)
	bound := 0
	for _, p := range w.Pods() {
		if p.Spec.NodeName != "" {
			bound++
		}
	}
	if bound != 3 || s.engine.View().Shape(0).Gang != 2 {
		t.Errorf("%d pods are bound, the engine has a gang of %d", bound, s.engine.View().Shape(0).Gang)
	}
	s.crash()
	w.AddJob("short", 2, 8, 5*time.Minute, apitest.Annotated("muster.dev/work", "5m"))
	s.until(5 * time.Hour)
	if got := s.phases(); got != "default/jobset/set finished\ndefault/short finished\n" {
		t.Errorf("the jobs came to\n%s", got)
	}
	if j := s.engine.View().Job(0); j.Preemptions != 1 || j.Attempt != 2 {
		t.Errorf("the set was preempted %d times in %d attempts", j.Preemptions, j.Attempt)
	}
}
