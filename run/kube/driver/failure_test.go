package driver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/plan"

	"github.com/musterdl/muster/run/kube/apitest"
)

// TestFailures: how a pod failed is told to the engine with its rank and node, and to
// people in the job's record and in an event, with what the container printed last.
func TestFailures(t *testing.T) {
	w := apitest.New(apitest.Options{T: t})
	w.AddNodes(4, 8)
	s := newStage(t, w, composed(t, "fifo"))
	fails := func(how corev1.ContainerStateTerminated) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			apitest.Failing(9, 5*time.Second)(j)
			apitest.PodAnnotated(apitest.AnnotationEnds, written(t, corev1.ContainerState{Terminated: &how}))(j)
			never := int32(0)
			j.Spec.BackoffLimit = &never
		}
	}
	printed := strings.Repeat("step\n", 500) + "Traceback\nValueError: no"
	for _, c := range []struct {
		name  string
		how   corev1.ContainerStateTerminated
		class plan.FailureClass
		code  int
		sign  string
		words string
	}{
		{"exits", corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: printed}, plan.UserFailure, 3, "", "ended with exit code 3"},
		{"grows", corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}, plan.MemoryFailure, 137, "", "ended with exit code 137 (OOMKilled)"},
		{"signalled", corev1.ContainerStateTerminated{ExitCode: 139, Signal: 11, Reason: "Error"}, plan.UserFailure, 0, "SIGSEGV", "was ended by SIGSEGV"},
		{"absent", corev1.ContainerStateTerminated{ExitCode: 128, Reason: "StartError", Message: `exec: "nosuch": executable file not found in $PATH`}, plan.UserFailure, 128, "",
			`ended with exit code 128 (StartError): exec: "nosuch": executable file not found in $PATH`},
		{"unmounted", corev1.ContainerStateTerminated{ExitCode: 128, Reason: "ContainerCannotRun", Message: "no such device"}, plan.StartFailure, 128, "", "(ContainerCannotRun): no such device"},
	} {
		w.AddJob(c.name, 2, 4, time.Hour, fails(c.how))
		s.until(w.Since() + 2*time.Minute)
		job := "default/" + c.name
		f, told := s.failed[job]
		if !told || f.Class != c.class || f.Code != c.code || f.Signal != c.sign || f.Rank < 0 || f.Node == plan.None || !strings.Contains(f.Why, c.words) {
			t.Errorf("%s: the engine is told %+v", c.name, f)
			continue
		}
		if e := s.core.roster.byName[job]; e == nil || !strings.Contains(e.put.reason, c.words) {
			t.Errorf("%s: its record says %+v", c.name, e)
		}
		said := ""
		for _, word := range w.Words() {
			if word.Reason == "Ended" && strings.Contains(word.Object, c.name) {
				said = word.Message
			}
		}
		if !strings.Contains(said, c.words) || len(said) > 1000 || c.how.Message == printed && !strings.HasSuffix(said, "step\nTraceback\nValueError: no") {
			t.Errorf("%s: people are told %q", c.name, said)
		}
	}
}

func written(t *testing.T, state corev1.ContainerState) string {
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestStuck: who watches a job is told once that a container of it cannot start, and why.
func TestStuck(t *testing.T) {
	w := apitest.New(apitest.Options{T: t})
	w.AddNodes(1, 8)
	s := newStage(t, w, composed(t, "fifo"))
	state := written(t, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: `Back-off pulling image "nosuch"`}})
	w.AddJob("pulls", 2, 4, time.Hour, apitest.PodAnnotated(apitest.AnnotationWaits, state))
	s.until(5 * time.Minute)
	var said []string
	for _, word := range w.Words() {
		if word.Reason == "CannotStart" {
			said = append(said, word.Message)
		}
	}
	if len(said) != 1 || !strings.HasSuffix(said[0], `: container main does not start: ImagePullBackOff: Back-off pulling image "nosuch"`) {
		t.Errorf("it is said %q", said)
	}
}
