package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterdl/muster/plan"
)

// failure is why one pod failed.
type failure struct {
	class plan.FailureClass
	words string
	at    metav1.Time
	pod   *corev1.Pod
}

// Cause tells whose failure it was that pods failed, and in words which: the first
// that is not of the user's making, since workers that lose one of theirs fail by
// themselves soon after; otherwise the first of all. Pods that did not fail do not
// count; to ask about one attempt, give the pods of that attempt.
func Cause(pods []*corev1.Pod) (plan.FailureClass, string) {
	var all []failure
	for _, p := range pods {
		if p.Status.Phase == corev1.PodFailed {
			all = append(all, failed(p))
		}
	}
	if len(all) == 0 {
		return plan.NoFailure, ""
	}
	first := slices.MinFunc(all, func(a, b failure) int {
		return cmp.Or(own(a.class)-own(b.class), a.at.Compare(b.at.Time), byAge(a.pod, b.pod))
	})
	return first.class, "pod " + first.pod.Name + ": " + first.words
}

// own puts failures of the user's making behind all others.
func own(c plan.FailureClass) int {
	if c == plan.UserFailure {
		return 1
	}
	return 0
}

// nodeReasons are reasons of a pod's status that say that its node failed it, or gave
// its place to another.
var nodeReasons = []string{"NodeLost", "Evicted", "Shutdown", "NodeShutdown", "Terminated", "Preempting", "Preempted", "NodeNotReady"}

// failed tells why a pod failed.
func failed(p *corev1.Pod) failure {
	f := failure{class: plan.UserFailure, words: "failed", pod: p}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			if f.at.IsZero() || t.FinishedAt.Before(&f.at) {
				f.at = t.FinishedAt
				f.words = fmt.Sprintf("container %s ended with exit code %d", c.Name, t.ExitCode)
				if t.Reason != "" && t.Reason != "Error" {
					f.words += " (" + t.Reason + ")"
				}
			}
			switch t.Reason {
			case "OOMKilled":
				f.class = plan.MemoryFailure
			case "StartError", "ContainerCannotRun":
				if f.class == plan.UserFailure {
					f.class = plan.StartFailure
				}
			}
		}
	}
	reason, message := p.Status.Reason, p.Status.Message
	if reason == "" {
		reason, message = disrupted(p, message)
	}
	switch {
	case reason == "DeadlineExceeded":
		f.class = plan.TimeFailure
	case reason == "Evicted" && strings.Contains(message, "exceed") && strings.Contains(message, "limit"):
		f.class = plan.UserFailure // it used more of its node's disk than it asked for
	case slices.Contains(nodeReasons, reason):
		f.class = plan.NodeFailure
	case reason == "UnexpectedAdmissionError" || reason == "NodeAffinity" || strings.HasPrefix(reason, "OutOf"):
		f.class = plan.StartFailure
	}
	if reason != "" {
		f.words = reason
		if message != "" {
			f.words += ": " + strings.TrimSpace(message)
		}
	}
	if f.at.IsZero() {
		f.at = endOf(p)
	}
	return f
}

// disrupted is why a pod was taken from its node, where its status does not say.
func disrupted(p *corev1.Pod, message string) (string, string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return "Preempted", strings.TrimSpace(c.Reason + " " + c.Message)
		}
	}
	return "", message
}

// endOf is when a pod that has no container to ask came to its end, as far as known.
func endOf(p *corev1.Pod) metav1.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.DisruptionTarget {
			return c.LastTransitionTime
		}
	}
	return p.CreationTimestamp
}
