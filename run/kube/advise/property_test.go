package advise

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/apitest"
	"github.com/musterdl/muster/run/kube/gang"
)

// fits fails the test where the copies of pods take more of a node than it has.
func (s *stage) fits() {
	left := map[string][3]int64{}
	for key, c := range s.adviser.nature.objects {
		if n, ok := c.Object.(*corev1.Node); ok {
			q := n.Status.Allocatable[apitest.Device]
			left[key.name] = [3]int64{q.Value(), n.Status.Allocatable.Cpu().MilliValue(), n.Status.Allocatable.Memory().Value()}
		}
	}
	for _, c := range s.adviser.nature.objects {
		p, ok := c.Object.(*corev1.Pod)
		if !ok || p.Spec.NodeName == "" {
			continue
		}
		r := p.Spec.Containers[0].Resources.Requests
		l := left[p.Spec.NodeName]
		l[0], l[1], l[2] = l[0]-devicesOf(p), l[1]-r.Cpu().MilliValue(), l[2]-r.Memory().Value()
		left[p.Spec.NodeName] = l
		if min(l[0], l[1], l[2]) < 0 {
			s.t.Fatalf("%s, with %s, is given more than it has: %v", p.Spec.NodeName, p.Name, l)
		}
	}
	for _, j := range s.adviser.jobs {
		bound := 0
		for _, p := range j.pods {
			bound += min(len(p.Spec.NodeName), 1)
		}
		if bound > 0 && bound < len(j.pods) {
			s.t.Fatalf("%s is partial in our world: %d of %d pods", j.story.name, bound, len(j.pods))
		}
	}
}

// TestProperties: whatever a scheduler without gangs does, and whatever fails meanwhile,
// nothing is over-committed or partial in our world, every job that ended in reality
// ends in ours, in as much time as it took, and nobody but the rival writes anything.
func TestProperties(t *testing.T) {
	compared, ahead, preempted := 0, 0, int64(0)
	draws.Check(t, func(t *rapid.T) {
		r := play(t)
		compared, preempted = compared+r.Jobs.Compared, preempted+r.Preemptions
		if r.Saved.WaitSec > 0 {
			ahead++
		}
	})
	if compared == 0 || ahead == 0 || preempted == 0 {
		t.Errorf("of all, %d jobs were compared, we were better %d times, and preempted %d times: this tests too little", compared, ahead, preempted)
	}
}

func play(t *rapid.T) Advice {
	n := func(least, most int, what string) int { return rapid.IntRange(least, most).Draw(t, what) }
	strategy := []string{"fifo", "srtf", "tiresias", "las", "fifo+easy"}[n(0, 4, "strategy")]
	lag := []unit.Duration{0, unit.Minute, UsualLag}[n(0, 2, "lag")]
	s := newStage(t, strategy, Options{Lag: lag, Restart: unit.Duration(n(0, 20, "restart")) * unit.Second})
	s.check = s.fits
	nodes, devices := n(1, 4, "nodes"), n(2, 8, "devices")
	s.w.AddNodes(nodes, int64(devices))
	salt := fmt.Sprint(n(0, 1000, "salt"))
	s.rival.order = func(p *corev1.Pod) string {
		h := fnv.New64a()
		_, _ = h.Write([]byte(salt + p.Name))
		return fmt.Sprint(h.Sum64())
	}
	s.rival.patient = time.Duration(n(20, 120, "patience")) * time.Second
	s.look()
	var names []string
	for i := range n(2, 12, "jobs") {
		per := n(1, min(2, devices), "devices of a pod")
		size := n(1, nodes*(devices/per), "gang")
		name := fmt.Sprintf("j%02d", i)
		names = append(names, name)
		s.w.AddJob(name, int32(size), int64(per), time.Duration(n(1, 200, "work"))*time.Second, drawn(n))
		s.until(s.w.Since() + time.Duration(n(0, 60, "gap"))*time.Second)
		s.trouble(n, nodes, names)
	}
	for i := range nodes {
		s.w.ReturnNode(fmt.Sprintf("node-%04d", i))
	}
	s.until(s.w.Since() + 6*time.Hour)
	s.rival.patient = 0
	s.until(s.w.Since() + 24*time.Hour)
	a := s.adviser
	for _, j := range a.jobs {
		switch {
		case !j.real.over:
			if slices.ContainsFunc(s.w.Pods(), func(p *corev1.Pod) bool {
				return strings.HasPrefix(p.Name, strings.TrimPrefix(j.story.name, "default/")) && !ended(p)
			}) {
				continue
			}
			t.Fatalf("%s has no pods, and nobody noticed", j.story.name)
		case j.over == unit.Never:
			t.Fatalf("%s ended in reality, and not in our world", j.story.name)
		case j.first != unit.Never && !j.dropped:
			if length, _ := j.story.length(a.now); j.ran < length {
				t.Fatalf("%s ran for %v in our world, and for %v in reality", j.story.name, j.ran, length)
			}
		}
		if j.dropped && !j.story.never() && j.id != plan.None && !s.reused[j.story.key.Name] {
			t.Fatalf("%s was dropped though it ran", j.story.name)
		}
	}
	for _, c := range s.w.Calls() {
		if c.Client != rivalName {
			t.Fatalf("somebody wrote: %v", c)
		}
	}
	r := a.Advice()
	if a.account.ours.held != 0 || r.BehindSec != 0 {
		t.Fatalf("at the end, our jobs hold %d, and it lies %v s behind", a.account.ours.held, r.BehindSec)
	}
	return r
}

// drawn makes a Job say what it runs and how it saves.
func drawn(n func(int, int, string) int) func(*batchv1.Job) {
	var pairs []string
	if n(0, 1, "declares its work") == 1 {
		pairs = append(pairs, gang.AnnotationWork, fmt.Sprintf("%ds", n(1, 200, "declared")))
	}
	switch n(0, 3, "checkpoint") {
	case 0:
		pairs = append(pairs, gang.AnnotationCheckpoint, "every=10s,load=5s")
	case 1:
		pairs = append(pairs, gang.AnnotationCheckpoint, "on-request,save=3s,load=5s")
	}
	return declares(pairs...)
}

// trouble has something happen that nobody wanted.
func (s *stage) trouble(n func(int, int, string) int, nodes int, names []string) {
	name := names[n(0, len(names)-1, "which job")]
	node := fmt.Sprintf("node-%04d", n(0, nodes-1, "which node"))
	switch n(0, 9, "trouble") {
	case 0:
		s.w.LoseNode(node)
	case 1:
		s.w.ReturnNode(node)
	case 2:
		_ = s.w.Delete(corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: apitest.Namespace, Name: name}) // it may have gone
	case 3:
		for _, p := range s.w.Pods() {
			if strings.HasPrefix(p.Name, name) && p.Status.Phase == corev1.PodRunning {
				_ = s.w.FailPod(p.Namespace, p.Name) // it may have ended
				break
			}
		}
	case 4:
		_ = s.w.Delete(corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: apitest.Namespace, Name: name})
		s.until(s.w.Since() + 40*time.Second)
		there := func(c api.Change) bool { o, ok := c.Object.(metav1.Object); return ok && o.GetName() == name }
		if !slices.ContainsFunc(s.w.List(), there) {
			s.reused[name] = true
			s.w.AddJob(name, 1, 1, 10*time.Second) // of the same name, while ours may still run
		}
	}
}
