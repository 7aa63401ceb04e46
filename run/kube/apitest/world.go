// Package apitest is an API server in memory, with the small part of Kubernetes around
// it that a scheduler sees: the controllers of Jobs, JobSets and ReplicaSets, kubelets,
// the loss of nodes, garbage collection, disruption budgets. It stands behind the
// interfaces of package api.
//
// A World has no goroutine and no clock of its own. The test moves its time; what
// Kubernetes does in response to something happens at a definite instant, in a queue
// ordered by time and then by when it was put there. So a run is a pure function of
// what the test does, of the calls that are made, and of the seed of its faults.
//
// Who is served is watched: a node that is given more than it has, a pod that is bound
// twice, a record overwritten by a deposed leader fail the test at once. Gangs of
// which only a part is bound are timed.
//
// A run can be recorded on a Tape, which then plays the same changes to another
// scheduler from any point on, with the objects as they were there.
package apitest

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/run/kube/api"
)

// T is what a World needs of a test to fail it.
type T interface {
	Helper()
	Errorf(format string, args ...any)
}

// Options say what a World is like. Zero fields take the values of the comments.
type Options struct {
	T         T         // nil: what is wrong is found in Violations only
	Scheduler string    // "muster": whose pods are watched as gangs
	Start     time.Time // 2026-01-01
	Timing    Timing
	// ElasticJobSets lets the sizes of a JobSet's jobs be changed; JobSets before
	// elastic ones refuse that.
	ElasticJobSets bool
}

// Timing is how long Kubernetes takes to do things.
type Timing struct {
	Controller time.Duration // 50 ms, from a change to what a controller does about it
	Start      time.Duration // 2 s, from binding to running
	Stop       time.Duration // 1 s, from the termination signal to the end, unless a pod says otherwise
	Backoff    time.Duration // 10 s, before a Job's first failed pod is made again; doubles
	Silence    time.Duration // 40 s, from the loss of a node until it is not ready
	Tolerance  time.Duration // 300 s, from there until its pods are deleted
	Orphan     time.Duration // 40 s, from the deletion of a node until its pods go
}

// World is an API server and what surrounds it. The client embedded in it is that of
// the scheduler under test; NewClient makes others. Methods may be called from several
// goroutines, one after the other: the World holds the lock, and its parts do the work.
type World struct {
	*Client

	mu          sync.Mutex
	options     *Options
	clock       *clock
	store       *store
	feed        *feed
	kubelets    *kubelets
	controllers *controllers
	onlooker    *onlooker
	judge       *judge
	records     *records
	troubles    *troubles
	play        *player // where it plays a tape
}

// New returns an empty World.
func New(o Options) *World {
	orElse(&o.Scheduler, "muster")
	orElse(&o.Start, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	t := &o.Timing
	orElse(&t.Controller, 50*time.Millisecond)
	orElse(&t.Start, 2*time.Second)
	orElse(&t.Stop, time.Second)
	orElse(&t.Backoff, 10*time.Second)
	orElse(&t.Silence, 40*time.Second)
	orElse(&t.Tolerance, 300*time.Second)
	orElse(&t.Orphan, 40*time.Second)
	ck := &clock{now: o.Start, start: o.Start}
	jd := &judge{clock: ck, t: o.T}
	fd := &feed{clock: ck}
	st := &store{clock: ck, feed: fd, objects: map[id]object{}, byUID: map[types.UID]object{}, below: map[types.UID][]types.UID{}}
	kl := &kubelets{options: &o, clock: ck, store: st, pods: map[types.UID]*podState{}, saved: map[string][]time.Duration{},
		failed: map[string]int{}, on: map[string]map[types.UID]bool{}, lost: map[string]bool{}}
	co := &controllers{options: &o, clock: ck, store: st, kubelets: kl, judge: jd,
		jobs: map[types.UID]*jobState{}, sets: map[types.UID]*setState{}, marked: map[types.UID]bool{}}
	ol := &onlooker{options: &o, clock: ck, store: st, kubelets: kl, controllers: co, judge: jd,
		rooms: map[string]*room{}, gangs: map[string]*gangState{}, halted: map[types.UID]bool{}}
	rs := &records{options: &o, clock: ck, store: st, feed: fd, judge: jd,
		jobs: map[types.NamespacedName]*record[*api.Job]{}, ledgers: map[string]*record[*api.Ledger]{}}
	in := &informers{options: &o, clock: ck, store: st, kubelets: kl, controllers: co, onlooker: ol, records: rs}
	st.changed = in.changed
	w := &World{options: &o, clock: ck, store: st, feed: fd, kubelets: kl, controllers: co, onlooker: ol, judge: jd, records: rs,
		troubles: &troubles{clock: ck, records: rs, recalls: map[types.UID]string{}}}
	w.Client = &Client{w: w, name: o.Scheduler}
	fd.connect(w.Client)
	return w
}

func orElse[V comparable](v *V, otherwise V) {
	var zero V
	if *v == zero {
		*v = otherwise
	}
}

// object is any object of the API.
type object interface {
	runtime.Object
	metav1.Object
}

// Now is the time of the World.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock.now
}

// Since is the time that has passed since the World began.
func (w *World) Since() time.Duration { return w.Now().Sub(w.clock.start) }

// Advance moves the time, and has happen what is due by then.
func (w *World) Advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock.advance(w.clock.now.Add(d))
}

// Step moves the time to the next instant at which something happens and has it all
// happen. It is false where nothing will ever happen by itself.
func (w *World) Step() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock.step()
}

// Due is when something happens next; false where nothing will.
func (w *World) Due() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock.due()
}

// Violations are what was done that must never be done, in words.
func (w *World) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.judge.violations...)
}
