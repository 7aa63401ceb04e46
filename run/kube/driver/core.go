// Package driver is step 6 on Kubernetes. It turns what the API server tells into
// events for the engine, and the engine's changes into bindings, evictions,
// suspensions and resizings. The API server is the source of truth: everything that
// is known is in its objects, and a driver that begins reads it from there.
//
// Core does all that without a client, a clock or a goroutine, so that it can be
// driven step by step; Driver runs it against a server.
package driver

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/driver/fleet"
	"github.com/musterdl/muster/run/kube/filter"
	"github.com/musterdl/muster/run/kube/gang"
	"github.com/musterdl/muster/run/kube/inventory"
)

// Config is what a Core works with.
type Config struct {
	// Scheduler is the schedulerName of the pods that are ours.
	Scheduler string
	Rules     inventory.Rules
	// Filter checks the constraints of Kubernetes; nil checks none.
	Filter  *filter.Host
	Pods    api.Pods
	Owners  api.Owners
	Records api.Records
	Ledgers api.Ledgers
	Voice   api.Voice
	// Supposed says that bindings only might have been (package advise): no volume or
	// claim is chosen and written before one.
	Supposed bool
	// Fence is told in all that is written.
	Fence string
	Now   func() unit.Time
	Log   *slog.Logger
}

// Core is the driver without its surroundings. It is for one goroutine. It knows the pods
// and their gangs, and brings each gang that something happened to up to date; its parts
// know the rest, and do what follows.
type Core struct {
	config  *Config
	owners  owners
	pods    map[types.UID]*member
	orphans map[types.UID]bool // pods whose owners were not all there

	roster *roster
	fleet  *fleet.Fleet
	sets   *fleet.Sets
	runs   *runs
	keeper *keeper
	again  *again
	voice  *voice
	box    *outbox
}

// member is a pod with what was made of it.
type member struct {
	pod     *corev1.Pod
	ours    bool
	of      *entry // nil where it is not ours, or nobody knows yet
	seat    int    // in the run of its gang, where that agrees
	leaving bool   // it was asked to leave
	words   string // that it was told last of why it waits
}

// Task is a call to the API server. Do may take long and is made beside the Core;
// Then goes back into it with what came out.
type Task struct {
	Lane Lane
	Do   func(context.Context) error
	Then func(error)
	// About says what it is about, for the log.
	About string
}

// Lane says what has to wait for what: bindings for nothing, records of no consequence
// for bindings, words for all.
type Lane uint8

// The lanes.
const (
	Binding Lane = iota
	Keeping
	Telling
	Lanes
)

// New returns a Core that knows nothing yet.
func New(c Config) *Core {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	config, box, pods := &c, &outbox{}, map[types.UID]*member{}
	a := &again{dirty: map[*entry]bool{}}
	ro := &roster{gangs: map[gang.Key]*entry{}, byJob: map[plan.JobID]*entry{}, byName: map[string]*entry{},
		ofName: map[types.NamespacedName][]*entry{}, used: map[string]bool{}}
	v := &voice{config: config, box: box, again: a, told: map[string]bool{}}
	of := &fleet.Config{Rules: c.Rules, Filter: c.Filter, Now: c.Now, Log: c.Log, Report: box.report, Fail: box.fail}
	fl := fleet.New(of)
	ns := fleet.NewSets(of, fl)
	k := &keeper{config: config, box: box, again: a, fleet: fl, sets: ns, toKeep: map[*entry]bool{}}
	return &Core{config: config, owners: owners{}, pods: pods, orphans: map[types.UID]bool{},
		roster: ro, fleet: fl, sets: ns, keeper: k, again: a, voice: v, box: box,
		runs: &runs{config: config, box: box, again: a, voice: v, fleet: fl, sets: ns, keeper: k, pods: pods}}
}

// Take takes in what changed at the API server.
func (c *Core) Take(changes []api.Change) {
	for i := range changes {
		switch o := changes[i].Object.(type) {
		case *corev1.Node:
			if c.fleet.TakeNode(o, changes[i].Gone) {
				c.sets.Doubt()
			}
		case *corev1.Pod:
			c.takePod(o, changes[i].Gone)
		case *resourcev1.ResourceSlice:
			c.fleet.TakeSlice(o, changes[i].Gone)
		case *resourcev1.DeviceClass:
			c.fleet.TakeClass(o, changes[i].Gone)
		case *resourcev1.ResourceClaim:
			c.fleet.TakeClaim(o, changes[i].Gone)
			c.stirNamespace(o.Namespace)
		case *resourcev1.ResourceClaimTemplate:
			c.fleet.TakeTemplate(o, changes[i].Gone)
			c.stirNamespace(o.Namespace)
		case *unstructured.Unstructured:
			c.takeOwner(o, changes[i].Gone)
		}
	}
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

func (c *Core) takePod(p *corev1.Pod, gone bool) {
	m := c.pods[p.UID]
	if m == nil {
		if gone {
			return
		}
		m = &member{ours: p.Spec.SchedulerName == c.config.Scheduler}
		c.pods[p.UID] = m
	}
	if f := c.config.Filter; f != nil && (p.Spec.NodeName != "" || m.pod != nil && m.pod.Spec.NodeName != "") {
		if gone || ended(p) {
			f.DeletePod(p)
		} else {
			f.SetPod(p)
		}
		c.sets.Doubt()
	}
	c.fleet.TakePod(p, m.pod, gone || ended(p))
	was := m.pod
	m.pod = p
	if gone {
		delete(c.pods, p.UID)
		delete(c.orphans, p.UID)
	}
	if !m.ours {
		return
	}
	if was == nil {
		c.enrol(m)
	}
	if m.of != nil {
		if gone {
			delete(m.of.pods, p.UID)
		}
		c.again.stir(m.of)
	}
}

// ended reports whether a pod occupies nothing any more.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// enrol finds the gang of a pod that is new.
func (c *Core) enrol(m *member) {
	key, problems := gang.Find(m.pod, c.owners)
	c.voice.tellAll(problems, m.pod)
	if gang.Holds(problems) {
		c.orphans[m.pod.UID] = true
	} else {
		delete(c.orphans, m.pod.UID)
	}
	if key == (gang.Key{}) {
		return
	}
	e := c.roster.entryOf(key)
	if m.of != nil && m.of != e {
		delete(m.of.pods, m.pod.UID)
		c.again.stir(m.of)
	}
	m.of = e
	e.pods[m.pod.UID] = m
	c.again.stir(e)
}

func (c *Core) takeOwner(o *unstructured.Unstructured, gone bool) {
	c.owners.put(o, gone)
	for _, uid := range sortedKeys(c.orphans) {
		c.enrol(c.pods[uid])
	}
	for _, e := range c.owners.below(c.roster, o) {
		c.again.stir(e)
	}
}

func (c *Core) stirNamespace(namespace string) {
	for key, e := range c.roster.gangs {
		if key.Namespace == namespace && e.job == plan.None {
			c.again.stir(e)
		}
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Events hands out what the engine is to be told, after everything that is stale was
// looked at again.
func (c *Core) Events() []engine.Event {
	c.settleNodes()
	for len(c.again.dirty) > 0 {
		for _, e := range c.again.next() {
			c.refresh(e)
		}
	}
	c.sets.TellChanged(c.roster.waitedFor)
	c.fleet.TellUse(c.placed)
	return c.box.takeEvents()
}

// placed reports whether the engine knows that a pod is where it is.
func (c *Core) placed(p *corev1.Pod) bool {
	m := c.pods[p.UID]
	return m.of != nil && m.of.run != nil && m.of.run.seatOf(m) >= 0
}

// settleNodes has the nodes read again where they have changed. There may then be what
// gangs ask for that were not submitted.
func (c *Core) settleNodes() {
	if !c.fleet.Stale() {
		return
	}
	if c.fleet.TellNodes() {
		c.sets.Grow()
	}
	c.stirUnasked()
}

func (c *Core) stirUnasked() {
	for _, e := range c.roster.gangs {
		if e.job == plan.None && !e.asked {
			c.again.stir(e)
		}
	}
}

// Tick lets a while pass.
func (c *Core) Tick() {
	c.again.pass()
	c.sets.Pass()
}

// Tasks hands out what is to be done at the API server.
func (c *Core) Tasks() []Task {
	return c.box.takeTasks()
}

// Bound hands out how long the pods that were bound since had been there.
func (c *Core) Bound() []time.Duration {
	return c.box.takeBound()
}

// Broken says why the state has to be put together anew, from the objects: a device
// model that was not there before, or a node that has become larger.
func (c *Core) Broken() string { return c.box.broken }
