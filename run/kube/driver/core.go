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
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/api"
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

// Core is the driver without its surroundings. It is for one goroutine.
type Core struct {
	config Config
	ctx    context.Context // for the filter, which asks nobody

	objects
	derived
	stale

	events []engine.Event
	tasks  []Task
	bound  []time.Duration // from creation to binding
	notes  map[string]bool // problems that were told
	ledger ledger
	broken string // why the state has to be put together anew
}

// objects are what the API server says there is.
type objects struct {
	nodes   map[string]*corev1.Node
	slices  map[string]*resourcev1.ResourceSlice
	classes map[string]*resourcev1.DeviceClass
	claims  claims
	owners  owners
	pods    map[types.UID]*member
	on      map[string]map[types.UID]*member // by node: pods that are bound there and have not ended
}

// derived is what follows from the objects.
type derived struct {
	gangs     map[gang.Key]*entry
	byJob     map[plan.JobID]*entry
	byName    map[string]*entry
	ofName    map[types.NamespacedName][]*entry // by the object that makes the gang
	byMachine map[string]int
	machines  []inventory.Machine
	reader    *inventory.Reader
	places    places
	sets      sets
}

// stale is what is to be looked at again.
type stale struct {
	staleNodes bool
	staleSets  bool
	dirty      map[*entry]bool
	toKeep     map[*entry]bool
	later      []*entry // to be looked at again after a while
	dirtyNodes map[string]bool
	orphans    map[types.UID]bool // pods whose owners were not all there
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
	return &Core{config: c, ctx: context.Background(),
		objects: objects{
			nodes: map[string]*corev1.Node{}, slices: map[string]*resourcev1.ResourceSlice{}, classes: map[string]*resourcev1.DeviceClass{},
			claims: claims{claims: map[types.NamespacedName]*resourcev1.ResourceClaim{}, templates: map[types.NamespacedName]*resourcev1.ResourceClaimTemplate{}},
			owners: owners{}, pods: map[types.UID]*member{}, on: map[string]map[types.UID]*member{}},
		derived: derived{gangs: map[gang.Key]*entry{}, byJob: map[plan.JobID]*entry{}, byName: map[string]*entry{},
			ofName: map[types.NamespacedName][]*entry{}, byMachine: map[string]int{},
			places: places{ids: map[string]plan.NodeID{}}, sets: sets{ids: map[string]int32{}}},
		stale: stale{dirty: map[*entry]bool{}, toKeep: map[*entry]bool{}, dirtyNodes: map[string]bool{}, orphans: map[types.UID]bool{}},
		notes: map[string]bool{}, ledger: ledger{names: map[string]bool{}}}
}

// Take takes in what changed at the API server.
func (c *Core) Take(changes []api.Change) {
	for i := range changes {
		switch o := changes[i].Object.(type) {
		case *corev1.Node:
			c.takeNode(o, changes[i].Gone)
		case *corev1.Pod:
			c.takePod(o, changes[i].Gone)
		case *resourcev1.ResourceSlice:
			put(c.slices, o.Name, o, changes[i].Gone)
			c.staleNodes = true
		case *resourcev1.DeviceClass:
			put(c.classes, o.Name, o, changes[i].Gone)
			c.staleNodes = true
		case *resourcev1.ResourceClaim:
			put(c.claims.claims, nameOf(o), o, changes[i].Gone)
			c.stirNamespace(o.Namespace)
		case *resourcev1.ResourceClaimTemplate:
			put(c.claims.templates, nameOf(o), o, changes[i].Gone)
			c.stirNamespace(o.Namespace)
		case *unstructured.Unstructured:
			c.takeOwner(o, changes[i].Gone)
		}
	}
}

func put[K comparable, V any](m map[K]V, k K, v V, gone bool) {
	if gone {
		delete(m, k)
		return
	}
	m[k] = v
}

func nameOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// claims are the objects that pods ask for devices through.
type claims struct {
	claims    map[types.NamespacedName]*resourcev1.ResourceClaim
	templates map[types.NamespacedName]*resourcev1.ResourceClaimTemplate
}

// Claim is the claim of a name, nil where there is none.
func (c claims) Claim(namespace, name string) *resourcev1.ResourceClaim {
	return c.claims[types.NamespacedName{Namespace: namespace, Name: name}]
}

// Template is the template of a name, nil where there is none.
func (c claims) Template(namespace, name string) *resourcev1.ResourceClaimTemplate {
	return c.templates[types.NamespacedName{Namespace: namespace, Name: name}]
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
		c.staleSets = true
	}
	c.stand(m, p, gone)
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
		c.stir(m.of)
	}
}

// ended reports whether a pod occupies nothing any more.
func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// stand keeps the list of pods that are on nodes.
func (c *Core) stand(m *member, p *corev1.Pod, gone bool) {
	node := p.Spec.NodeName
	if node == "" && m.pod != nil {
		node = m.pod.Spec.NodeName
	}
	if node == "" {
		return
	}
	there := c.on[node]
	_, was := there[p.UID]
	if is := !gone && !ended(p); is != was {
		if there == nil {
			there = map[types.UID]*member{}
			c.on[node] = there
		}
		put(there, p.UID, m, !is)
		c.dirtyNodes[node] = true
	}
}

// enrol finds the gang of a pod that is new.
func (c *Core) enrol(m *member) {
	key, problems := gang.Find(m.pod, c.owners)
	c.tellAll(problems, m.pod)
	if gang.Holds(problems) {
		c.orphans[m.pod.UID] = true
	} else {
		delete(c.orphans, m.pod.UID)
	}
	if key == (gang.Key{}) {
		return
	}
	e := c.entryOf(key)
	if m.of != nil && m.of != e {
		delete(m.of.pods, m.pod.UID)
		c.stir(m.of)
	}
	m.of = e
	e.pods[m.pod.UID] = m
	c.stir(e)
}

// entryOf is the gang of a key, which may be new.
func (c *Core) entryOf(key gang.Key) *entry {
	e := c.gangs[key]
	if e == nil {
		e = &entry{key: key, pods: map[types.UID]*member{}, job: plan.None}
		c.gangs[key] = e
		object := types.NamespacedName{Namespace: key.Namespace, Name: key.Name}
		c.ofName[object] = append(c.ofName[object], e)
	}
	return e
}

func (c *Core) takeOwner(o *unstructured.Unstructured, gone bool) {
	c.owners.put(o, gone)
	for _, uid := range sortedKeys(c.orphans) {
		c.enrol(c.pods[uid])
	}
	for _, e := range c.owners.below(c, o) {
		c.stir(e)
	}
}

func (c *Core) stirNamespace(namespace string) {
	for key, e := range c.gangs {
		if key.Namespace == namespace && e.job == plan.None {
			c.stir(e)
		}
	}
}

func (c *Core) stir(e *entry) { c.dirty[e] = true }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// places are the nodes of the engine's cluster.
type places struct {
	cluster *cluster.Cluster
	ids     map[string]plan.NodeID // by machine
	told    []standing             // by node: what the engine was told last
	joined  []joined               // by node
}

type standing struct {
	out bool
	use engine.Use
}

type joined struct {
	cpu     unit.Milli
	memory  unit.MiB
	devices int32
	gone    bool
}

// Events hands out what the engine is to be told, after everything that is stale was
// looked at again.
func (c *Core) Events() []engine.Event {
	c.settleNodes()
	for len(c.dirty) > 0 {
		list := make([]*entry, 0, len(c.dirty))
		for e := range c.dirty {
			list = append(list, e)
		}
		clear(c.dirty)
		for _, e := range list {
			e.age()
		}
		slices.SortFunc(list, inOrder)
		for _, e := range list {
			c.refresh(e)
		}
	}
	c.settleSets()
	c.settleUse()
	events := c.events
	c.events = nil
	return events
}

// Tasks hands out what is to be done at the API server.
func (c *Core) Tasks() []Task {
	tasks := c.tasks
	c.tasks = nil
	return tasks
}

// Bound hands out how long the pods that were bound since had been there.
func (c *Core) Bound() []time.Duration {
	bound := c.bound
	c.bound = nil
	return bound
}

// Broken says why the state has to be put together anew, from the objects: a device
// model that was not there before, or a node that has become larger.
func (c *Core) Broken() string { return c.broken }

func (c *Core) report(e engine.Event) { c.events = append(c.events, e) }
