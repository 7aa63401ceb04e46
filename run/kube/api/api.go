// Package api is the door to the API server: what Muster watches there, and the few
// things it does. The rest of the driver knows no client; package apitest has a
// server in memory behind the same door.
package api

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Change is one object as it is now, or was when it went. Objects are shared: they
// are only read.
type Change struct {
	Object runtime.Object
	Gone   bool
}

// Watcher lists and watches everything that the driver looks at: nodes, pods,
// resource slices, device classes, resource claims and their templates, and the owners
// of pods as unstructured objects.
type Watcher interface {
	// Watch calls tell with all there is and then with what changes, one batch at a
	// time, until the context ends. The first batch has all there is, nodes first. After
	// a gap it tells what is different, what is gone included. synced is closed once the
	// first batch was told.
	Watch(ctx context.Context, tell func([]Change)) (synced <-chan struct{}, err error)
}

// Pods are what is done to pods. All calls name the pod by UID, so that they never
// touch another one of the same name.
type Pods interface {
	// Bind puts a pod on a node and leaves notes in its annotations, in one write. A pod
	// that is bound already is an error that IsConflict knows.
	Bind(ctx context.Context, pod *corev1.Pod, node string, notes map[string]string) error
	// Evict asks a pod to leave, with its own grace period; a disruption budget may
	// refuse, which IsRefused knows.
	Evict(ctx context.Context, pod *corev1.Pod, why string) error
	// Explain says in the pod's condition PodScheduled why it waits.
	Explain(ctx context.Context, pod *corev1.Pod, reason, message string) error
}

// Stopped is the annotation of an object that we have suspended, not its owner.
const Stopped = "muster.dev/stopped"

// Owners are what is done to the objects that make pods.
type Owners interface {
	// Suspend sets or clears a field such as spec.suspend of an object, and with it the
	// annotation Stopped, which tells that it was us.
	Suspend(ctx context.Context, object corev1.ObjectReference, field string, suspended bool) error
	// Set sets several integer fields of an object (spec.parallelism,
	// spec.replicatedJobs[1].template.spec.parallelism) to one value in one write.
	Set(ctx context.Context, object corev1.ObjectReference, fields []string, value int32) error
}

// Records keep what the API server cannot know of jobs: a MusterJob per job. Every
// write carries the version of the object that it replaces ("" makes it), and returns
// the new one; IsConflict knows that somebody else wrote meanwhile.
type Records interface {
	ListJobs(ctx context.Context) ([]Job, error)
	GetJob(ctx context.Context, namespace, name string) (j Job, found bool, err error)
	PutJob(ctx context.Context, j *Job) (version string, err error)
	DeleteJob(ctx context.Context, namespace, name string) error
}

// Ledgers keep what a scheduler knows beside its jobs, one MusterLedger per scheduler,
// under the same rules.
type Ledgers interface {
	GetLedger(ctx context.Context, scheduler string) (l Ledger, found bool, err error)
	PutLedger(ctx context.Context, l *Ledger) (version string, err error)
}

// Voice says things to people: events of objects, which kubectl describe shows. It
// never blocks and may drop what it cannot write; equal words about one object are
// told at most once in a while.
type Voice interface {
	Say(object corev1.ObjectReference, kind, reason, message string)
}
