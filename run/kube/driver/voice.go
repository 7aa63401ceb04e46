package driver

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/gang"
)

// voice tells people, once each, what is wrong and what is waited for.
type voice struct {
	config *Config
	box    *outbox
	again  *again
	told   map[string]bool
}

// warn tells something of an object.
func (v *voice) warn(of corev1.ObjectReference, reason, words string) {
	v.config.Voice.Say(of, corev1.EventTypeWarning, reason, words)
}

// mention tells something of an object that is as it should be.
func (v *voice) mention(of corev1.ObjectReference, reason, words string) {
	v.config.Voice.Say(of, corev1.EventTypeNormal, reason, words)
}

// tellAll tells people what is wrong, once.
func (v *voice) tellAll(problems []gang.Problem, pod *corev1.Pod) {
	for _, p := range problems {
		v.tell(p, pod)
	}
}

func (v *voice) tell(p gang.Problem, pod *corev1.Pod) {
	if pod == nil {
		return
	}
	words := p.String()
	key := string(pod.UID) + words
	if v.told[key] {
		return
	}
	if len(v.told) > 100_000 {
		clear(v.told)
	}
	v.told[key] = true
	v.warn(referenceTo(pod), p.Reason, words)
}

// explainOne tells a pod, in its condition and, as kubectl describe shows no more of
// that than its name, in an event.
func (v *voice) explainOne(e *entry, m *member, reason, words string) {
	p, kind := m.pod, corev1.EventTypeNormal
	if reason != corev1.PodReasonUnschedulable {
		kind = corev1.EventTypeWarning
	}
	v.config.Voice.Say(referenceTo(p), kind, reason, words)
	v.box.do(Task{Lane: Telling, About: p.Name,
		Do: func(ctx context.Context) error {
			return v.config.Pods.Explain(ctx, p, reason, words)
		},
		Then: func(err error) {
			if api.IsConflict(err) { // it changed meanwhile
				m.words = ""
				v.again.delay(e)
			}
		}})
}
