package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// slow are limits under which binding takes so long that faults come in the middle.
var slow = []string{"--kube-api-qps=60", "--kube-api-burst=20"}

// gangs makes gangs of one to three pods by labels, each pod with one device, and
// returns how many pods those are. Nobody makes these pods again.
func (s *site) gangs(prefix string, n int, chance *rand.Rand) (pods int) {
	s.t.Helper()
	var all []*corev1.Pod
	for g := range n {
		name, size := fmt.Sprintf("%s-%03d", prefix, g), 1+chance.IntN(3)
		for i := range size {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i), Namespace: s.name, Labels: map[string]string{
				"app": prefix, labelGang: name, labelSize: fmt.Sprint(size), "muster.dev/gang": name, "muster.dev/gang-size": fmt.Sprint(size)}}}
			p.Spec.SchedulerName = s.name
			p.Spec.Containers = []corev1.Container{{Name: "main", Image: "none", Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{counted: resource.MustParse("1")}}}}
			all = append(all, p)
		}
	}
	var makers sync.WaitGroup
	for part := range slices.Chunk(all, (len(all)+7)/8) {
		makers.Go(func() {
			for _, p := range part {
				if _, err := s.client.CoreV1().Pods(s.name).Create(s.ctx, p, metav1.CreateOptions{}); err != nil {
					s.t.Error(err)
				}
			}
		})
	}
	makers.Wait()
	return len(all)
}

// partly waits until at least so many pods were seen to be bound in the scenario.
func (s *site) partly(n int) {
	s.t.Helper()
	s.until(60*time.Second, fmt.Sprintf("%d pods are bound", n), func() (bool, string) {
		return s.seen.bound() >= n, fmt.Sprint(s.seen.bound())
	})
}

// whole waits until all pods of a prefix are bound, and looks that no gang is left in
// part and that each pod was bound once: as many were seen bound as there are.
func (s *site) whole(limit time.Duration, prefix string, n, ever int) time.Duration {
	s.t.Helper()
	began := time.Now()
	s.bound(limit, "app="+prefix, n)
	took := time.Since(began).Round(time.Millisecond)
	s.until(5*time.Second, "no gang is left in part", func() (bool, string) {
		parts := s.seen.parts()
		return len(parts) == 0 && s.seen.bound() == ever, fmt.Sprintf("%q; %d bindings of %d", parts, s.seen.bound(), ever)
	})
	return took
}

// killed: the process dies several times in the middle of binding two hundred gangs.
func (s *site) killed() {
	const seed, kills = 1, 4
	chance := rand.New(rand.NewPCG(seed, 0))
	n := s.gangs("load", 200, chance)
	s.start("killed", slow...)
	at := 0
	for range kills {
		at += 20 + chance.IntN(60)
		s.partly(at)
		s.Kill("killed")
		s.t.Logf("killed after %d of %d bindings, with %d gangs in part", s.seen.bound(), n, len(s.seen.parts()))
		s.Restart("killed")
	}
	s.t.Logf("all %d pods are bound %v after the last kill; seed %d", n, s.whole(120*time.Second, "load", n, n), seed)
	if lost := strings.Count(s.Log("killed"), "could not be found again"); lost > 0 {
		s.t.Logf("%d runs could not be found again", lost)
	}
}

// leaders: of two processes the one that leads hangs for longer than its lease.
func (s *site) leaders() {
	chance := rand.New(rand.NewPCG(2, 0))
	elect := append([]string{"--leader-elect"}, slow...)
	s.start("one", elect...)
	s.start("two", elect...)
	leads := func(name string) bool { return strings.Contains(s.Log(name), "msg=leading ") }
	s.until(30*time.Second, "one of them leads", func() (bool, string) { return leads("one") || leads("two"), s.Log("one") })
	old, other := "one", "two"
	if leads("two") {
		old, other = other, old
	}
	first := s.gangs("first", 20, chance)
	s.whole(60*time.Second, "first", first, first)
	second := s.gangs("second", 50, chance)
	s.partly(first + second/4)
	s.Pause(old)
	s.t.Logf("the leader hangs after %d of %d bindings, with %d gangs in part", s.seen.bound()-first, second, len(s.seen.parts()))
	took := s.until(40*time.Second, "the other leads", func() (bool, string) { return leads(other), s.Log(other) })
	s.t.Logf("the other leads %v later, of which the lease takes 15s", took.Round(time.Millisecond))
	if took > 20*time.Second {
		s.t.Errorf("the other took over after %v, want at most 5s above the lease of 15s", took)
	}
	s.partly(first + second/2)
	s.Resume(old)
	gone := s.until(15*time.Second, "the old leader has ended", func() (bool, string) { return !s.healthy(old), last(s.Log(old), 5) })
	s.t.Logf("the old one ended %v after it went on: %s", gone.Round(time.Millisecond), last(s.Log(old), 1))
	s.whole(60*time.Second, "second", second, first+second)
	if !s.healthy(other) {
		s.t.Error("the new leader is gone")
	}
}

// outage: the API server is away for a minute in the middle.
func (s *site) outage() {
	chance := rand.New(rand.NewPCG(3, 0))
	n := s.gangs("load", 70, chance)
	s.start("outage", slow...)
	s.partly(n / 4)
	s.KillAPIServer()
	s.t.Logf("the API server goes after %d of %d bindings, with %d gangs in part", s.seen.bound(), n, len(s.seen.parts()))
	time.Sleep(time.Minute)
	if !s.healthy("outage") {
		s.t.Error("the process did not outlive the outage")
	}
	s.StartAPIServer()
	s.t.Logf("all %d pods are bound %v after its return", n, s.whole(90*time.Second, "load", n, n))
	after := s.gangs("after", 5, chance) // watches may take half a minute to find back
	s.t.Logf("%d more are bound after %v", after, s.whole(60*time.Second, "after", after, n+after))
}

// nodeLoss: of two gangs each a node goes, one as an object, one because it does not
// answer; both start again elsewhere as a whole, and a third is left alone.
func (s *site) nodeLoss() {
	s.start("nodeloss")
	// Seven are more than a Job's backoffLimit: as failures they would end it.
	on, size := map[string][]corev1.Pod{}, map[string]int{"deleted": 4, "silent": 7, "other": 4}
	for _, name := range []string{"deleted", "silent", "other"} {
		s.submit(name, size[name], 16/size[name], "")
		on[name] = s.bound(20*time.Second, "job-name="+name, size[name])
	}
	gone, silent := on["deleted"][0].Spec.NodeName, fewest(on["silent"])
	if err := s.client.CoreV1().Nodes().Delete(s.ctx, gone, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
	// kwok lets go of the node first, or it would answer for it again.
	patch := []byte(`{"metadata":{"annotations":{"kwok.x-k8s.io/node":null}}}`)
	if _, err := s.client.CoreV1().Nodes().Patch(s.ctx, silent, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
	patch = []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Test"}]}}`)
	if _, err := s.client.CoreV1().Nodes().Patch(s.ctx, silent, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		s.t.Fatal(err)
	}
	began := time.Now()
	told := s.until(100*time.Second, "Kubernetes closes the node that does not answer", func() (bool, string) {
		n, err := s.client.CoreV1().Nodes().Get(s.ctx, silent, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute }), fmt.Sprint(n.Spec.Taints, n.Status.Conditions)
	})
	s.t.Logf("Kubernetes says so after %v", told.Round(time.Millisecond))
	for _, name := range []string{"deleted", "silent"} {
		s.until(100*time.Second, "the gang with a "+name+" node is elsewhere", func() (bool, string) {
			list := s.pods("job-name=" + name)
			for i := range list {
				p := &list[i]
				if p.Spec.NodeName == "" || p.Spec.NodeName == gone || p.Spec.NodeName == silent || p.Status.Phase != corev1.PodRunning || same(p, on[name]) {
					return false, s.state("job-name=" + name)
				}
			}
			return len(list) == size[name], s.state("job-name=" + name)
		})
		s.t.Logf("%s: all of it is elsewhere %v after the loss", name, time.Since(began).Round(time.Millisecond))
	}
	for _, p := range s.bound(5*time.Second, "job-name=other", 4) {
		if !same(&p, on["other"]) {
			s.t.Errorf("%s of the gang that lost nothing is new", p.Name)
		}
	}
}

// fewest is the node with the fewest of some pods: Kubernetes evicts those, and the Job
// controller waits the longer the more there were (10 s, doubled for each).
func fewest(list []corev1.Pod) string {
	count := map[string]int{}
	for i := range list {
		count[list[i].Spec.NodeName]++
	}
	return slices.MinFunc(slices.Sorted(maps.Keys(count)), func(a, b string) int { return count[a] - count[b] })
}

// same reports whether a pod is one of a list.
func same(p *corev1.Pod, list []corev1.Pod) bool {
	return slices.ContainsFunc(list, func(o corev1.Pod) bool { return o.UID == p.UID })
}
