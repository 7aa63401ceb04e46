package gang

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Failure is how one pod failed.
type Failure struct {
	Class plan.FailureClass
	Pod   *corev1.Pod
	Words string
	// Code is the exit code of the container that ended first, Signal what ended it, as far
	// as Kubernetes says, Limit its limit of memory where it was at that.
	Code   int
	Signal string
	Limit  unit.MiB
	// LastLines are what it left to be read (terminationMessagePath), or printed last where
	// its pod asks for that (terminationMessagePolicy).
	LastLines string

	at metav1.Time
}

// String names the pod and how it ended.
func (f *Failure) String() string { return "pod " + f.Pod.Name + ": " + f.Words }

// Cause is the failure for which a gang failed: the first that is not of the user's
// making, since workers that lose one of theirs fail by themselves soon after; otherwise
// the first of all. Pods that did not fail do not count, and without any there is none;
// to ask about one attempt, give the pods of that attempt.
func Cause(pods []*corev1.Pod) *Failure {
	var all []Failure
	for _, p := range pods {
		if p.Status.Phase == corev1.PodFailed {
			all = append(all, failed(p))
		}
	}
	if len(all) == 0 {
		return nil
	}
	first := slices.MinFunc(all, func(a, b Failure) int {
		return cmp.Or(own(a.Class)-own(b.Class), a.at.Compare(b.at.Time), byAge(a.Pod, b.Pod))
	})
	return &first
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
func failed(p *corev1.Pod) Failure {
	f := Failure{Class: plan.UserFailure, Words: "failed", Pod: p}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			f.container(c.Name, t)
		}
	}
	reason, message := p.Status.Reason, p.Status.Message
	if reason == "" {
		reason, message = disrupted(p, message)
	}
	switch {
	case reason == "DeadlineExceeded":
		f.Class = plan.TimeFailure
	case reason == "Evicted" && strings.Contains(message, "exceed") && strings.Contains(message, "limit"):
		f.Class = plan.UserFailure // it used more of its node's disk than it asked for
	case slices.Contains(nodeReasons, reason):
		f.Class = plan.NodeFailure
	case reason == "UnexpectedAdmissionError" || reason == "NodeAffinity" || strings.HasPrefix(reason, "OutOf"):
		f.Class = plan.StartFailure
	}
	if reason != "" {
		f.Words = reason
		if message != "" {
			f.Words += ": " + strings.TrimSpace(message)
		}
	}
	if f.at.IsZero() {
		f.at = endOf(p)
	}
	return f
}

// container takes in how a container ended. The first to end says most; what was over its
// memory tells whose failure it was, whenever it ended.
func (f *Failure) container(name string, t *corev1.ContainerStateTerminated) {
	class := plan.UserFailure
	switch t.Reason {
	case "OOMKilled":
		class = plan.MemoryFailure
	case "StartError", "ContainerCannotRun":
		class = plan.StartFailure
		if strings.Contains(t.Message, "executable file not found") || strings.Contains(t.Message, "permission denied") {
			class = plan.UserFailure // no other node would run it either
		}
	}
	memory, first := class == plan.MemoryFailure, f.at.IsZero() || t.FinishedAt.Before(&f.at)
	if memory && f.Class != class || first && (memory || f.Class != plan.MemoryFailure) {
		f.ended(name, t)
	}
	if class != plan.UserFailure && f.Class != plan.MemoryFailure {
		f.Class = class
	}
}

// ended says how a container ended.
func (f *Failure) ended(name string, t *corev1.ContainerStateTerminated) {
	f.at, f.Code, f.Signal, f.Limit, f.LastLines = t.FinishedAt, int(t.ExitCode), "", 0, ""
	f.Words = fmt.Sprintf("container %s ended with exit code %d", name, t.ExitCode)
	if t.Signal != 0 {
		f.Code, f.Signal = 0, unix.SignalName(syscall.Signal(t.Signal))
		f.Words = fmt.Sprintf("container %s was ended by %s", name, f.Signal)
	}
	if t.Reason != "" && t.Reason != "Error" {
		f.Words += " (" + t.Reason + ")"
	}
	message := strings.TrimSpace(t.Message)
	switch t.Reason {
	case "OOMKilled":
		if f.Limit = memoryLimit(f.Pod, name); f.Limit > 0 {
			f.Words += fmt.Sprintf(" at its limit of %s", f.Limit)
		}
		f.LastLines = message
	case "StartError", "ContainerCannotRun": // then the message is the runtime's, and says why
		if message != "" {
			f.Words += ": " + message
		}
	default:
		f.LastLines = message
	}
}

// stuckReasons are why a kubelet cannot start a container, and goes on trying.
var stuckReasons = []string{"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError", "RunContainerError"}

// Stuck says why a pod that has a node does not start, as far as that is for people to mend;
// it is empty otherwise.
func Stuck(p *corev1.Pod) string {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && slices.Contains(stuckReasons, w.Reason) {
			return strings.TrimSuffix(fmt.Sprintf("pod %s: container %s does not start: %s: %s", p.Name, c.Name, w.Reason, w.Message), ": ")
		}
	}
	return ""
}

// memoryLimit is that of a container; 0 is none.
func memoryLimit(p *corev1.Pod, name string) unit.MiB {
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if c.Name == name {
			return unit.MiB(c.Resources.Limits.Memory().Value() >> 20)
		}
	}
	return 0
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
