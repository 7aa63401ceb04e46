package apitest

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// informers tell those whom a change of an object concerns.
type informers struct {
	options     *Options
	clock       *clock
	store       *store
	kubelets    *kubelets
	controllers *controllers
	onlooker    *onlooker
	records     *records
}

// changed has those look at a change whom it concerns. old is nil for what is new, now
// for what is gone.
func (in *informers) changed(old, now object) {
	o := now
	if now == nil {
		o = old
	}
	switch o.(type) {
	case *corev1.Pod:
		was, _ := old.(*corev1.Pod)
		is, _ := now.(*corev1.Pod)
		in.podChanged(was, is)
	case *corev1.Node:
		is, _ := now.(*corev1.Node)
		in.onlooker.setRoom(o.GetName(), is)
	case *policyv1.PodDisruptionBudget:
		in.controllers.mark(o.GetUID())
	case *unstructured.Unstructured:
		was, _ := old.(*unstructured.Unstructured)
		is, _ := now.(*unstructured.Unstructured)
		in.ownerChanged(was, is)
	}
	if now == nil {
		in.clock.after(in.options.Timing.Controller, func() { in.collect(old.GetUID()) })
	}
}

// ownerChanged has the controllers of an object and of its owner look at it.
func (in *informers) ownerChanged(was, is *unstructured.Unstructured) {
	o := is
	if is == nil {
		o = was
	}
	switch idOf(o).kind {
	case kindJob:
		in.onlooker.watchJob(in.controllers.jobOf(o), o, is == nil)
		if is == nil {
			in.controllers.forgetJob(o.GetUID())
		}
	case kindJobSet:
		in.controllers.setChanged(o, is == nil)
	}
	in.controllers.mark(o.GetUID())
	for _, ref := range o.GetOwnerReferences() {
		in.controllers.mark(ref.UID)
	}
}

// podChanged keeps what is derived from pods, and has their kubelets see them.
func (in *informers) podChanged(was, is *corev1.Pod) {
	p := is
	if is == nil {
		p = was
	}
	s, fresh := in.kubelets.stateOf(p)
	if fresh {
		in.onlooker.join(p, s)
	}
	if s.job != nil {
		s.job.count(s, p)
	}
	in.onlooker.watchRoom(s, p, is == nil)
	in.onlooker.watchGang(s, p, is == nil)
	if ref, ok := controller(p); ok {
		in.controllers.mark(ref.UID)
	}
	in.controllers.markBudgets(p)
	if is == nil {
		in.kubelets.forget(p)
		return
	}
	placed := is.Spec.NodeName != "" && (was == nil || was.Spec.NodeName == "")
	if placed && !ended(is) {
		in.kubelets.assigned(is)
	}
}

// collect deletes what an object that is gone has owned.
func (in *informers) collect(owner types.UID) {
	for _, uid := range slices.Clone(in.store.below[owner]) {
		in.kubelets.remove(in.store.byUID[uid], "")
	}
	in.store.forget(owner)
	in.records.collectRecords(owner)
}
