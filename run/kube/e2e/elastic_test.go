package e2e

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// job reads a Job.
func (s *site) jobOf(name string) *batchv1.Job {
	s.t.Helper()
	j, err := s.client.BatchV1().Jobs(s.name).Get(s.ctx, name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

// elastic: a Job that can grow has the empty cluster, gives way to others, and has it
// again.
func (s *site) elastic() {
	s.start("elastic")
	s.submit("first", 4, 2, `muster.dev/elastic: 2-8, muster.dev/checkpoint: "save=1s,on-request"`)
	s.t.Logf("grown to the whole cluster after %v", s.grown("first", 8))
	s.submit("second", 4, 2, `muster.dev/elastic: 2-8, muster.dev/checkpoint: "save=1s,on-request"`)
	s.t.Logf("shrunk by a second one after %v", s.grown("first", 4))
	s.t.Logf("which is bound %v later", s.grown("second", 4))
	if err := s.client.BatchV1().Jobs(s.name).Delete(s.ctx, "second", deleteNow()); err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("grown again after %v", s.grown("first", 8))
	if j := s.recorded("Job", "first", "active"); j.Status.Workers != 8 || j.Status.Attempt != 3 {
		s.t.Errorf("its record: %+v", j.Status)
	}
}

// grown waits until a Job asks for so many pods and has them, bound.
func (s *site) grown(name string, n int) time.Duration {
	s.t.Helper()
	began := time.Now()
	s.until(150*time.Second, fmt.Sprintf("%s has %d workers", name, n), func() (bool, string) {
		j := s.jobOf(name)
		par, total, suspended := *j.Spec.Parallelism, *j.Spec.Completions, j.Spec.Suspend != nil && *j.Spec.Suspend
		return int(par) == n && int(total) == n && !suspended, fmt.Sprintf("parallelism %d, completions %d, suspended %t; %s", par, total, suspended, s.state("job-name="+name))
	})
	s.bound(20*time.Second, "job-name="+name, n)
	return time.Since(began).Round(time.Millisecond)
}

// preempted: under shortest remaining time first a long Job makes way for a short one.
// Its Job is suspended, and resumed when the short one has ended.
func (s *site) preempted() {
	s.start("preempted")
	s.submit("long", 4, 2, `muster.dev/work: 2h, muster.dev/checkpoint: "save=1s,on-request"`)
	before := s.bound(20*time.Second, "job-name=long", 4)
	time.Sleep(time.Second) // it has done something
	s.submit("short", 4, 2, `muster.dev/work: 1m`)
	suspended := func(want bool) time.Duration {
		return s.until(30*time.Second, fmt.Sprintf("spec.suspend of long is %t", want), func() (bool, string) {
			is := s.jobOf("long").Spec.Suspend
			return (is != nil && *is) == want, s.state("job-name in (long,short)")
		})
	}
	s.t.Logf("suspended after %v", suspended(true))
	s.bound(20*time.Second, "job-name=short", 4)
	if j := s.recorded("Job", "long", "waiting"); j.Status.Preemptions != 1 || j.Status.Workers != 0 {
		s.t.Errorf("the record of what made way: %+v", j.Status)
	}
	s.complete("job-name=short")
	s.recorded("Job", "short", "finished")
	s.t.Logf("resumed after %v", suspended(false))
	after := s.bound(20*time.Second, "job-name=long", 4)
	for i := range after {
		for k := range before {
			if after[i].UID == before[k].UID {
				s.t.Errorf("%s was there before and after", after[i].Name)
			}
		}
		if after[i].Annotations["muster.dev/attempt"] != "2" {
			s.t.Errorf("%s is of attempt %s, want 2", after[i].Name, after[i].Annotations["muster.dev/attempt"])
		}
	}
	s.recorded("Job", "long", "active")
}

// complete has the pods of a selector end well.
func (s *site) complete(selector string) {
	s.t.Helper()
	for _, p := range s.pods(selector) {
		patch := []byte(`{"metadata":{"annotations":{"e2e/completes":"true"}}}`)
		if _, err := s.client.CoreV1().Pods(s.name).Patch(s.ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			s.t.Fatal(err)
		}
	}
}
