package driver

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/gang"
	"github.com/musterdl/muster/run/kube/inventory"
)

// entry is a gang with what became of it.
type entry struct {
	key   gang.Key
	gang  gang.Gang
	pods  map[types.UID]*member
	since metav1.Time // of its oldest pod: gangs are submitted by age
	name  string      // of the job

	job    plan.JobID // None until the engine has it
	asked  bool       // it was submitted
	over   bool       // by the engine's account
	phase  plan.Phase
	why    plan.ReasonCode
	spec   *workload.Job
	run    *execution
	put    record
	last   lastRun
	paused bool // suspended by us: it has no pods until it is started
	// resuming says that we cleared that, and have not seen it cleared.
	resuming bool
	saw      map[int32]plan.Run // by attempt: runs as the record tells them
	set      string             // the signature of its pods
	riders   []int              // the roles that ride along
	riding   int32              // how many pods that are
}

// lastRun is how the last run of a gang ended, or is known to.
type lastRun struct {
	failed, printed string            // in words, and what it printed last
	leave           plan.FailureClass // how it is known to end, once its pods are gone
}

// execution is a run of the engine as its pods carry it out.
type execution struct {
	attempt  int32
	workers  []seat
	stopping bool
	started  bool // all its pods run, which the engine knows
	began    unit.Time
	until    unit.Time // when it was told to stop
	recorded bool      // its record is written, or needs not be
	resumed  bool      // its owner was told to make its pods
	failed   bool      // it is being given up before it began
	requeued bool      // the engine was asked to stop it, as it lost a node
	evicts   bool      // its owner does not let itself be suspended
	stuck    string    // why a pod of it could not start, as people were told
	// boarded are the riders that were put on nodes.
	boarded map[types.UID]string
}

// seat is the place of one worker.
type seat struct {
	node    string // of Kubernetes
	machine plan.NodeID
	devices []int32 // on the machine
	share   unit.Milli
	pod     *member
	state   seatState
}

type seatState uint8

const (
	empty seatState = iota
	binding
	bound
)

func byAge(a, b *entry) int {
	return cmp.Or(a.since.Compare(b.since.Time), a.key.Compare(b.key))
}

// inOrder puts gangs whose jobs the engine knows first, by job, and then the others by age:
// how old a gang is that got new pods is no longer seen after a restart.
func inOrder(a, b *entry) int {
	switch {
	case a.job != plan.None && b.job != plan.None:
		return cmp.Compare(a.job, b.job)
	case a.job != b.job:
		return cmp.Compare(b.job, a.job)
	}
	return byAge(a, b)
}

// age finds out how old the gang is.
func (e *entry) age() {
	if !e.since.IsZero() {
		return
	}
	for _, m := range e.pods {
		if t := m.pod.CreationTimestamp; e.since.IsZero() || t.Before(&e.since) {
			e.since = t
		}
	}
}

// list are the pods of the gang by name.
func (e *entry) list() []*corev1.Pod {
	list := make([]*corev1.Pod, 0, len(e.pods))
	for _, m := range e.pods {
		list = append(list, m.pod)
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.UID), string(b.UID)))
	})
	return list
}

// refresh brings a gang up to date with its pods and its owner.
func (c *Core) refresh(e *entry) {
	pods := e.list()
	g, problems := gang.Read(e.key, pods, c.owners)
	e.gang = g
	e.resuming = e.resuming && g.Suspended
	e.paused = e.paused || !e.resuming && g.Suspended && c.stoppedByUs(&g)
	if len(pods) > 0 {
		c.voice.tellAll(problems, pods[0])
	}
	c.sortRiders(e)
	s := g.State(pods)
	switch {
	case e.run != nil:
		c.runs.follow(e, &s)
	case e.job != plan.None && !e.over:
		c.waits(e, &s)
	case e.job == plan.None && !e.asked && !gang.Holds(problems):
		c.submit(e, &s)
	}
	if g.Missing && len(pods) == 0 && e.run == nil && (e.over || e.job == plan.None && !e.asked) {
		c.forget(e)
	}
}

// stoppedByUs reports whether an object that is suspended was so by this driver, or one
// before it.
func (c *Core) stoppedByUs(g *gang.Gang) bool {
	o, ok := c.owners.Find(metav1.OwnerReference{APIVersion: g.Control.APIVersion, Kind: g.Control.Kind, Name: g.Control.Name}, g.Control.Namespace)
	return ok && o.GetAnnotations()[api.Stopped] != ""
}

func (c *Core) forget(e *entry) {
	c.roster.drop(e)
	c.keeper.drop(e)
}

// waits looks at a gang that the engine keeps waiting.
func (c *Core) waits(e *entry, s *gang.State) {
	g := &e.gang
	switch {
	case g.Missing && len(e.pods) == 0, g.Ending.Phase == gang.Succeeded || g.Ending.Phase == gang.Failed,
		s.Phase == gang.Succeeded || s.Phase == gang.Failed:
		c.box.report(engine.Event{Kind: engine.Cancel, Job: e.job})
		return
	case g.Suspended && !e.paused && !e.resuming && e.phase == plan.Waiting:
		c.box.report(engine.Event{Kind: engine.Hold, Job: e.job, By: "kubernetes"})
		return
	case !g.Suspended && e.phase == plan.Held && e.why == plan.UserHeld:
		c.box.report(engine.Event{Kind: engine.Release, Job: e.job, By: "kubernetes"})
	}
	c.runs.evictStrays(e, s.Members)
	c.runs.evictStrays(e, s.Extra)
	if e.spec != nil {
		c.sets.Sample(e.spec.NodeSet, s.Members)
	}
	c.explain(e, s.Members)
}

// submit asks the engine to take a gang that is complete.
func (c *Core) submit(e *entry, s *gang.State) {
	g := &e.gang
	if s.Phase != gang.Ready || g.Suspended {
		c.lacks(e, s)
		return
	}
	need, pod, problem := c.needs(e, s)
	if !problem.None() {
		c.voice.tell(problemOf(g, problem), pod)
		return
	}
	spec := c.specOf(e, need, pod)
	c.roster.call(e, spec.Name)
	e.asked, e.spec = true, spec
	c.box.report(engine.Event{Kind: engine.Submit, Spec: spec, By: spec.User})
}

// gatherFor is how long a gang may gather before its pods say that it is not complete.
const gatherFor = 10 * unit.Second

// lacks tells the pods of a gang that is not complete what it waits for.
func (c *Core) lacks(e *entry, s *gang.State) {
	if s.Phase != gang.Incomplete && s.Phase != gang.PartlyBound || e.gang.Suspended || len(e.pods) == 0 {
		return
	}
	if c.config.Now().Sub(unit.Time(e.since.UnixMicro())) < gatherFor {
		c.again.delay(e)
		return
	}
	for _, p := range append(s.Members, s.Extra...) {
		if m := e.pods[p.UID]; m != nil && p.Spec.NodeName == "" && m.words != s.Reason {
			m.words = s.Reason
			c.voice.explainOne(e, m, corev1.PodReasonUnschedulable, e.key.Kind+" "+e.key.Name+" waits: "+s.Reason)
		}
	}
}

// specOf is the job of a gang as the engine is asked for it.
func (c *Core) specOf(e *entry, need inventory.Need, pod *corev1.Pod) *workload.Job {
	spec := e.gang.Job
	spec.Name = c.roster.free(e)
	spec.Devices, spec.Share, spec.Memory = need.Devices, need.Share, need.Memory
	spec.CPU, spec.HostMemory, spec.Models = need.CPU, need.HostMemory, need.Models
	spec.Retries = 0 // its owner tries again
	spec.Gang -= e.riding
	spec.Sizes = slices.Clone(spec.Sizes)
	for i := range spec.Sizes {
		spec.Sizes[i] -= e.riding
	}
	if spec.Share == 0 {
		spec.Share = unit.Whole
	}
	signature, set, perNode := c.sets.Confine(pod)
	e.set, spec.NodeSet, spec.PerNode = cmp.Or(signature, e.set), set, perNode
	return &spec
}

// Refused takes in that the engine did not accept a submission.
func (c *Core) Refused(name string, err error) {
	e := c.roster.byName[name]
	if e == nil || e.job != plan.None {
		return
	}
	c.roster.uncall(name)
	e.asked = false
	for _, p := range e.list() {
		c.voice.tell(gang.Problem{Reason: "NotAccepted", Object: e.gang.Name, Found: err.Error()}, p)
		return
	}
}

// needs is what a worker asks for: of roles that differ, the most of each.
func (c *Core) needs(e *entry, s *gang.State) (need inventory.Need, pod *corev1.Pod, problem inventory.Problem) {
	seen := map[int]bool{}
	for _, p := range s.Members {
		role, _, ok := e.gang.Place(p)
		if ok && seen[role] || e.rides(p) {
			continue
		}
		seen[role] = true
		n, problem := c.fleet.Ask(p)
		if !problem.None() {
			return need, p, problem
		}
		if pod == nil || n.Devices > need.Devices {
			pod = p
		}
		need = most(need, n)
	}
	if named := e.gang.Job.Models; len(named) > 0 && need.Devices > 0 {
		if need.Models = only(need.Models, named); len(need.Models) == 0 {
			return need, pod, inventory.Problem{Text: "no node has devices named " + strings.Join(named, " or "), Later: true}
		}
	}
	return need, pod, inventory.Problem{}
}

// only are the models of which a job names a part, in any case: A100 is every A100.
func only(models, named []string) []string {
	return slices.DeleteFunc(slices.Clone(models), func(m string) bool {
		return !slices.ContainsFunc(named, func(part string) bool { return strings.Contains(strings.ToLower(m), strings.ToLower(part)) })
	})
}

func most(a, b inventory.Need) inventory.Need {
	m := a
	if b.Devices > a.Devices || a.Devices == b.Devices && b.Share > a.Share {
		m = b
	}
	m.CPU, m.HostMemory, m.Memory = max(a.CPU, b.CPU), max(a.HostMemory, b.HostMemory), max(a.Memory, b.Memory)
	return m
}

func problemOf(g *gang.Gang, p inventory.Problem) gang.Problem {
	reason := "CannotBePlaced"
	if p.Later {
		reason = "NothingOffersIt"
	}
	return gang.Problem{Reason: reason, Object: g.Name, Found: p.Text}
}

func referenceTo(p *corev1.Pod) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: p.Namespace, Name: p.Name, UID: p.UID}
}

// members are the pods for the seats of a run: of those that live, in order of rank.
func (e *entry) members(s *gang.State) []*member {
	list := make([]*member, 0, len(s.Members))
	for _, p := range s.Members {
		if !e.rides(p) {
			list = append(list, e.pods[p.UID])
		}
	}
	return list
}

// pods are those that are on nodes and have not ended.
func (x *execution) pods() (list []*corev1.Pod) {
	for i := range x.workers {
		if w := &x.workers[i]; w.pod != nil && w.state == bound && !ended(w.pod.pod) {
			list = append(list, w.pod.pod)
		}
	}
	return list
}

// seatOf finds the seat that a pod has.
func (x *execution) seatOf(m *member) int {
	if m.seat < len(x.workers) && x.workers[m.seat].pod == m {
		return m.seat
	}
	return -1
}
