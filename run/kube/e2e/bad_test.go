package e2e

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// bad: objects that make no sense get an event that says so, and what is in order is
// bound as if they were not there.
func (s *site) bad() {
	s.start("bad")
	s.garbage()
	s.absurd()
	s.circle()
	s.orphans()
	s.contradictions()
	s.labels()
	s.submit("good", 2, 1, "")
	s.t.Logf("a Job in order is bound %v after the last of the bad ones", s.until(20*time.Second, "the good Job is bound", func() (bool, string) {
		n := 0
		for _, p := range s.pods("job-name=good") {
			if p.Spec.NodeName != "" {
				n++
			}
		}
		return n == 2, s.state("job-name=good")
	}).Round(time.Millisecond))
	for _, expect := range s.afterwards {
		expect()
	}
	if n := strings.Count(s.Log("bad"), "msg=listening"); n != 1 || !s.healthy("bad") {
		s.t.Errorf("the process was started %d times", n)
	}
	if log := s.Log("bad"); strings.Contains(log, "beginning anew") {
		s.t.Errorf("it began anew:\n%s", grep(log, "beginning anew"))
	}
}

// told waits for an event about an object that has all of the words, and returns it.
func (s *site) told(kind, name string, words ...string) {
	s.t.Helper()
	var all []string
	found := false
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end) && !found; time.Sleep(100 * time.Millisecond) {
		list, err := s.client.CoreV1().Events(s.name).List(s.ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
		if err != nil {
			s.t.Fatal(err)
		}
		all = all[:0]
		for _, e := range list.Items {
			if e.InvolvedObject.Kind != kind || e.ReportingController != s.name {
				continue
			}
			text := e.Type + " " + e.Reason + ": " + e.Message
			all = append(all, text)
			ok := true
			for _, w := range words {
				ok = ok && strings.Contains(text, w)
			}
			if ok && !found {
				found = true
				s.t.Logf("%s %s: %s", kind, name, text)
			}
		}
	}
	if !found {
		s.t.Errorf("no event of %s %s has %q; there are %q", kind, name, words, all)
	}
}

// later expects words about a pod at the end of the scenario: a gang is given some time
// to gather.
func (s *site) later(pod string, words ...string) {
	s.t.Helper()
	s.afterwards = append(s.afterwards, func() { s.told("Pod", pod, words...) })
}

// garbage is in every annotation; the Job runs without them.
func (s *site) garbage() {
	s.submit("garbage", 2, 1, `muster.dev/work: soon, muster.dev/deadline: "-5", muster.dev/elastic: "many", muster.dev/checkpoint: "now and then",
    muster.dev/skew: "12", muster.dev/queue: "../../etc", muster.dev/traffic: "1e99", muster.dev/law: "none at all", muster.dev/devices: ","`)
	s.bound(20*time.Second, "job-name=garbage", 2)
	for _, field := range []string{"work", "deadline", "elastic", "checkpoint", "skew", "queue", "traffic", "law", "devices"} {
		s.until(10*time.Second, field+" is told about", func() (bool, string) {
			all := s.events("Pod", "garbage") + s.events("Job", "garbage")
			return strings.Contains(all, "muster.dev/"+field), all
		})
	}
	s.t.Logf("of garbage:\n%s", s.events("Pod", "garbage"))
}

// events are the words of all events about a kind of object.
func (s *site) events(kind, name string) string {
	s.t.Helper()
	list, err := s.client.CoreV1().Events(s.name).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && strings.HasPrefix(e.InvolvedObject.Name, name) {
			fmt.Fprintf(&b, "%s %s: %s\n", e.Type, e.Reason, e.Message)
		}
	}
	return b.String()
}

// absurd asks for more than there can be.
func (s *site) absurd() {
	if err := s.TryApply(s.text(strings.Replace(onePod, "nvidia.com/gpu: 1", "nvidia.com/gpu: -1", 1), "negative")); err == nil {
		s.t.Error("the API server takes pods with negative amounts")
	}
	s.apply(strings.Replace(onePod, "nvidia.com/gpu: 1", "nvidia.com/gpu: 9223372036854775807", 1), "endless")
	s.told("Pod", "endless", "Warning")
	s.apply(strings.Replace(onePod, "nvidia.com/gpu: 1", "cpu: 9223372036854775807, memory: 9223372036854775807", 1), "heavy")
	s.told("Pod", "heavy")
	// A Job that another controller is to carry out, so that its pods are ours to make.
	s.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: most, namespace: NS}
spec:
  managedBy: example.org/nobody
  parallelism: 2147483647
  completions: 2147483647
  template:
    spec: {schedulerName: SCHEDULER, restartPolicy: Never, containers: [{name: main, image: none}]}
`)
	s.owned("most-0", "batch/v1", "Job", "most", s.jobOf("most").UID)
	s.told("Pod", "most-0", "Warning", "parallelism")
}

const onePod = `
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: NS}
spec: {schedulerName: SCHEDULER, containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: 1}}}]}
`

// owned makes a pod with a controller.
func (s *site) owned(name, version, kind, owner string, uid types.UID) {
	s.t.Helper()
	yes := true
	s.make(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
		{APIVersion: version, Kind: kind, Name: owner, UID: uid, Controller: &yes}}}})
}

// make makes a pod for the scenario's scheduler.
func (s *site) make(p *corev1.Pod) {
	s.t.Helper()
	p.Spec.SchedulerName = s.name
	p.Spec.Containers = []corev1.Container{{Name: "main", Image: "none"}}
	if _, err := s.client.CoreV1().Pods(s.name).Create(s.ctx, p, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// circle makes a Job that a JobSet owns that the Job owns.
func (s *site) circle() {
	j := s.create(jobs, `
apiVersion: batch/v1
kind: Job
metadata: {name: a}
spec:
  managedBy: example.org/nobody
  template: {spec: {schedulerName: SCHEDULER, restartPolicy: Never, containers: [{name: main, image: none}]}}
`)
	js := s.create(jobsets, `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: b
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: a, uid: %s, controller: true}]
spec:
  managedBy: example.org/nobody
  replicatedJobs: [{name: x, template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: none}]}}}}}]
`, j.GetUID())
	patch := fmt.Appendf(nil, `{"metadata":{"ownerReferences":[{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","name":"b","uid":%q,"controller":true}]}}`, js.GetUID())
	var made *unstructured.Unstructured
	made, err := s.dynamic.Resource(jobs).Namespace(s.name).Patch(s.ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.owned("a-0", "batch/v1", "Job", "a", made.GetUID())
	// The JobSet above it is one that the Job cannot be above: it is the gang.
	s.later("a-0", "JobSet b", "0 of 1 pods are there")
}

// orphans have owners that are not there, or of which nobody knows anything. Those of
// a kind that the API server has are collected soon; until then they wait.
func (s *site) orphans() {
	s.owned("ghost-0", "batch/v1", "Job", "ghost", "11111111-2222-3333-4444-555555555555")
	s.told("Pod", "ghost-0", "Warning", "not there")
	s.owned("widget-0", "example.org/v1", "Widget", "w", "11111111-2222-3333-4444-555555555556")
	s.told("Pod", "widget-0", "Warning", "Widget")
}

// contradictions are gangs whose pods do not agree, or say nothing of their size.
func (s *site) contradictions() {
	for name, size := range map[string]string{"torn-0": "2", "torn-1": "3"} {
		s.make(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"muster.dev/gang": "torn", "muster.dev/gang-size": size}}})
	}
	s.until(10*time.Second, "the torn gang is told about", func() (bool, string) {
		all := s.events("Pod", "torn")
		return strings.Contains(all, "same size"), all
	})
	s.make(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "sizeless", Labels: map[string]string{"muster.dev/gang": "sizeless"}}})
	s.told("Pod", "sizeless", "Warning", "muster.dev/gang-size")
	s.make(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "lonely", Labels: map[string]string{"muster.dev/gang": "lonely", "muster.dev/gang-size": "3"}}})
	s.later("lonely", "1 of 3 pods are there")
}

// labels has more labels than anybody needs; it is bound.
func (s *site) labels() {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "labels", Labels: map[string]string{"app": "labels"}}}
	for i := range 10_000 {
		p.Labels[fmt.Sprintf("example.org/label-%05d", i)] = fmt.Sprint("value-", i)
	}
	s.make(p)
	s.bound(20*time.Second, "app=labels", 1)
}
