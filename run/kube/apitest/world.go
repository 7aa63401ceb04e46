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
	"container/heap"
	"fmt"
	"math/rand/v2"
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
// goroutines, one after the other.
type World struct {
	*Client

	mu      sync.Mutex
	options Options
	now     time.Time
	start   time.Time
	queue   reactions
	queued  int64

	objectStore
	feed
	controllers
	witness

	faults  Faults
	chance  *rand.Rand
	recalls map[types.UID]string // pods whose binding was done but not answered: their node
}

// objectStore is the objects, as the API server has them.
type objectStore struct {
	version  int64 // resourceVersion of the latest write
	made     int64 // objects so far
	budgeted int   // disruption budgets
	objects  map[id]object
	byUID    map[types.UID]object
	below    map[types.UID][]types.UID // what an object owns, in the order it was made
}

// feed is what clients asked for and are told.
type feed struct {
	log     []logged
	trimmed int // entries of the log that all have been told
	clients []*Client
	calls   []Call
	tape    *Tape
	play    *player // a World that plays a tape
}

// controllers is what the controllers of Jobs and pods, and the nodes, know.
type controllers struct {
	jobs   map[types.UID]*jobState
	sets   map[types.UID]*setState
	pods   map[types.UID]*podState
	saved  map[string][]time.Duration // work done that outlives pods
	failed map[string]int             // failures on purpose so far
	on     map[string]map[types.UID]bool
	lost   map[string]bool
	halted map[types.UID]bool // suspended by a client
	marked map[types.UID]bool
}

// witness is what is seen of the records and the gangs, to be checked.
type witness struct {
	records map[types.NamespacedName]*record[*api.Job]
	ledgers map[string]*record[*api.Ledger]
	words   []Word

	rooms      map[string]*room
	gangs      map[string]*gangState
	history    []PartialGang
	violations []string
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
	w := &World{options: o, now: o.Start, start: o.Start,
		objectStore: objectStore{objects: map[id]object{}, byUID: map[types.UID]object{}, below: map[types.UID][]types.UID{}},
		controllers: controllers{
			jobs: map[types.UID]*jobState{}, sets: map[types.UID]*setState{}, pods: map[types.UID]*podState{},
			saved: map[string][]time.Duration{}, failed: map[string]int{}, on: map[string]map[types.UID]bool{},
			lost: map[string]bool{}, halted: map[types.UID]bool{}, marked: map[types.UID]bool{},
		},
		witness: witness{
			records: map[types.NamespacedName]*record[*api.Job]{}, ledgers: map[string]*record[*api.Ledger]{},
			rooms: map[string]*room{}, gangs: map[string]*gangState{},
		},
		recalls: map[types.UID]string{}}
	w.Client = &Client{w: w, name: o.Scheduler}
	w.clients = []*Client{w.Client}
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

// reaction is something that Kubernetes does at an instant.
type reaction struct {
	at  time.Time
	seq int64
	do  func()
}

type reactions []reaction

// Len is how many there are.
func (r reactions) Len() int { return len(r) }

// Less orders reactions by their time, and then as they were asked for.
func (r reactions) Less(i, j int) bool {
	if c := r[i].at.Compare(r[j].at); c != 0 {
		return c < 0
	}
	return r[i].seq < r[j].seq
}

// Swap is for package heap.
func (r reactions) Swap(i, j int) { r[i], r[j] = r[j], r[i] }

// Push is for package heap.
func (r *reactions) Push(x any) { *r = append(*r, x.(reaction)) }

// Pop is for package heap.
func (r *reactions) Pop() any {
	last := (*r)[len(*r)-1]
	(*r)[len(*r)-1] = reaction{}
	*r = (*r)[:len(*r)-1]
	return last
}

// after has something happen later. Nothing happens by itself where a tape plays.
func (w *World) after(d time.Duration, do func()) {
	if w.play != nil {
		return
	}
	w.queued++
	heap.Push(&w.queue, reaction{at: w.now.Add(max(d, 0)), seq: w.queued, do: do})
}

// Now is the time of the World.
func (w *World) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

// Since is the time that has passed since the World began.
func (w *World) Since() time.Duration { return w.Now().Sub(w.start) }

// Advance moves the time, and has happen what is due by then.
func (w *World) Advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advance(w.now.Add(d))
}

func (w *World) advance(to time.Time) {
	for len(w.queue) > 0 && !w.queue[0].at.After(to) {
		w.react()
	}
	if to.After(w.now) {
		w.now = to
	}
}

// Step moves the time to the next instant at which something happens and has it all
// happen. It is false where nothing will ever happen by itself.
func (w *World) Step() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return false
	}
	at := w.queue[0].at
	for len(w.queue) > 0 && w.queue[0].at.Equal(at) {
		w.react()
	}
	return true
}

// Due is when something happens next; false where nothing will.
func (w *World) Due() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return time.Time{}, false
	}
	return w.queue[0].at, true
}

// react has the next thing happen. While the API server is out nobody can write, so it
// waits until the end of that, in the order in which it was due.
func (w *World) react() {
	r := heap.Pop(&w.queue).(reaction)
	if r.at.After(w.now) {
		w.now = r.at
	}
	if end, out := within(w.faults.Outages, w.now.Sub(w.start)); out {
		w.queued++
		heap.Push(&w.queue, reaction{at: w.start.Add(end), seq: w.queued, do: r.do})
		return
	}
	r.do()
}

// violate notes that somebody did what must never be done, and fails the test.
func (w *World) violate(format string, args ...any) {
	words := fmt.Sprintf("at %v: ", w.now.Sub(w.start)) + fmt.Sprintf(format, args...)
	w.violations = append(w.violations, words)
	if t := w.options.T; t != nil {
		t.Helper()
		t.Errorf("%s", words)
	}
}

// Violations are what was done that must never be done, in words.
func (w *World) Violations() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.violations...)
}
