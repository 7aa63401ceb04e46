package e2e

import (
	"fmt"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// job is an indexed Job whose pods ask for devices; %[4]s are its annotations.
const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, namespace: NS, annotations: {%[4]s}}
spec:
  completionMode: Indexed
  parallelism: %[2]d
  completions: %[2]d
  template:
    metadata: {labels: {%[5]s}}
    spec:
      schedulerName: SCHEDULER
      restartPolicy: Never
      terminationGracePeriodSeconds: 5
      tolerations:
      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
      - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 2}
      containers: [{name: main, image: none, resources: {limits: {nvidia.com/gpu: %[3]d}}}]
`

// submit makes a Job of so many pods with so many devices each.
func (s *site) submit(name string, pods, devices int, annotations string) {
	s.t.Helper()
	labels := "e2e/gang: " + name
	if !strings.Contains(annotations, "muster.dev/elastic") {
		labels += fmt.Sprintf(`, e2e/size: "%d"`, pods)
	}
	s.apply(job, name, pods, devices, annotations, labels)
}

// why: a gang that never fits, and one that waits for another, say so where people
// look, and to muster why.
func (s *site) why() {
	s.start("why")
	s.submit("runs", 2, 4, "")
	s.bound(20*time.Second, "job-name=runs", 2)
	s.submit("vast", 3, devices, "")
	s.submit("waits", 2, devices, "")
	for name, words := range map[string][]string{"vast": {"Unschedulable"}, "waits": {"Unschedulable"}} {
		var pod string
		s.until(10*time.Second, name+" has pods", func() (bool, string) {
			list := s.pods("job-name=" + name)
			if len(list) > 0 {
				pod = list[0].Name
			}
			return len(list) > 0, ""
		})
		condition := s.condition(pod)
		s.t.Logf("%s: %s: %s", name, condition.Reason, condition.Message)
		if condition.Reason != corev1.PodReasonUnschedulable || len(condition.Message) < 20 {
			s.t.Errorf("the condition of %s: %+v", pod, condition)
		}
		s.described("pod", pod, words...)
		s.described("job", name, "Waits", condition.Message)
		if j := s.recorded("Job", name, "waiting"); j.Status.Reason == "" {
			s.t.Errorf("the record of %s has no reason", name)
		}
		answer := s.ask("why", "why", s.name+"/"+name)
		s.t.Logf("muster why: %s", answer)
		if !strings.Contains(answer, "devices") {
			s.t.Errorf("muster why says of %s: %s", name, answer)
		}
	}
	// When the one that runs goes, the one that waited is bound, and its words go.
	if err := s.client.BatchV1().Jobs(s.name).Delete(s.ctx, "runs", deleteNow()); err != nil {
		s.t.Fatal(err)
	}
	s.bound(20*time.Second, "job-name=waits", 2)
}

func deleteNow() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &background}
}

// condition waits for what a pod says about its being scheduled.
func (s *site) condition(pod string) (found corev1.PodCondition) {
	s.t.Helper()
	s.until(10*time.Second, pod+" says why it is not scheduled", func() (bool, string) {
		p, err := s.client.CoreV1().Pods(s.name).Get(s.ctx, pod, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Message != "" {
				found = c
				return true, ""
			}
		}
		return false, ""
	})
	return found
}

// ask runs a command of muster against a process of muster-kube.
func (s *site) ask(process string, args ...string) string {
	s.t.Helper()
	_, plain := programs(s.t)
	out, err := exec.Command(plain, append(args, "--server=http://"+s.address(process))...).CombinedOutput()
	if err != nil {
		s.t.Errorf("muster %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// deadline: jobs that cannot be done in time, one by itself and one behind another, are
// refused and say why.
func (s *site) deadline() {
	s.start("deadline")
	s.submit("timely", 2, 8, `muster.dev/work: 1h, muster.dev/deadline: 3h`)
	s.bound(20*time.Second, "job-name=timely", 2)
	s.submit("late", 2, 4, `muster.dev/work: 2h, muster.dev/deadline: 1h`)
	s.submit("behind", 2, 4, `muster.dev/work: 1h, muster.dev/deadline: 90m`)
	s.submit("patient", 2, 4, `muster.dev/work: 1h, muster.dev/deadline: 150m`)
	for _, name := range []string{"late", "behind"} {
		j := s.recorded("Job", name, "refused")
		s.t.Logf("%s: %s", name, j.Status.Reason)
		const words = "its deadline cannot be promised; the earliest that could be is "
		s.described("job", name, "Refused", words)
		list := s.pods("job-name=" + name)
		if len(list) == 0 {
			s.t.Fatalf("%s has no pods", name)
		}
		s.described("pod", list[0].Name, "Refused", words)
		if c := s.condition(list[0].Name); c.Reason != "Refused" || !strings.Contains(c.Message, words) {
			s.t.Errorf("the condition of a pod of %s: %+v", name, c)
		}
		for i := range list {
			if list[i].Spec.NodeName != "" {
				s.t.Errorf("%s of the refused job is bound", list[i].Name)
			}
		}
	}
	s.recorded("Job", "patient", "waiting")
}
