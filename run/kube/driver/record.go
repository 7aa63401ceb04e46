package driver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/driver/fleet"
	"github.com/musterdl/muster/run/kube/gang"
	"github.com/musterdl/muster/run/kube/lead"
	"github.com/musterdl/muster/run/kube/stored"
)

// record is what is kept of a job at the API server.
type record struct {
	name    string
	version string
	piece   *stored.Piece // the latest that is to be written
	reason  string        // in words
	written *stored.Piece // the one that was last handed over to be written
	urgent  bool          // a start waits for it
	busy    bool
}

// exact is what a record has for the engine.
type exact struct {
	Piece  stored.Piece  `json:"piece"`
	Spec   *workload.Job `json:"spec"`
	Key    gang.Key      `json:"key"`
	Paused bool          `json:"paused,omitempty"`
	Set    string        `json:"set,omitempty"`
}

// ledger is what is kept beside the jobs.
type ledger struct {
	version string
	// strategy is what decides.
	strategy string
	rest     []byte // the latest that is to be written; nil is none
	commits  int64
	jobs     int64
	busy     bool
}

// exactLedger is what a ledger has for the engine.
type exactLedger struct {
	Rest     stored.Rest `json:"rest"`
	Sets     []string    `json:"sets"` // signatures, by number
	Strategy string      `json:"strategy"`
	// Out are the nodes that were closed because Kubernetes had closed them.
	Out []plan.NodeID `json:"out,omitempty"`
}

// Notice is what a step of the engine changed, as its Told hook gathers it.
type Notice struct {
	jobs []told
	rest *stored.Rest
}

type told struct {
	piece stored.Piece
	words string
}

// Gather reads off the state what a step changed. It is called before the state moves
// on, with the rest where the ledger is to be written.
func Gather(s *plan.State, out *engine.Out, withRest bool) Notice {
	var n Notice
	v, seen := s.View(), make(map[plan.JobID]bool, len(out.Touched))
	for _, id := range out.Touched {
		if seen[id] || int(id) >= len(s.Jobs) || s.Names[id] == "" {
			continue
		}
		seen[id] = true
		n.jobs = append(n.jobs, told{piece: stored.PieceOf(s, id), words: s.Jobs[id].Reason.Words(v)})
	}
	if withRest {
		r := copyRest(stored.RestOf(s))
		n.rest = &r
	}
	return n
}

// copyRest copies what a State goes on to write into.
func copyRest(r stored.Rest) stored.Rest {
	r.FreeRuns = append([]plan.RunID(nil), r.FreeRuns...)
	r.FreeGrants = append([]int32(nil), r.FreeGrants...)
	r.Accounts = append([]plan.Account(nil), r.Accounts...)
	return r
}

// Told takes in what a step of the engine changed.
func (c *Core) Told(n Notice) {
	for i := range n.jobs {
		p := &n.jobs[i].piece
		e := c.roster.byName[p.Name]
		if e == nil {
			continue
		}
		if e.job == plan.None {
			c.roster.know(e, p.ID, p.Name)
			e.asked = false
		}
		e.phase, e.why = p.Job.Phase, p.Job.Reason.Code
		words := n.jobs[i].words
		if e.gaveUp() {
			words = e.last.failed
		}
		if e.phase.Over() && !e.over {
			c.ended(e, words)
		}
		e.over = e.phase.Over()
		e.put.piece, e.put.reason = p, words
		c.keeper.keep(e, false)
		c.again.stir(e)
	}
	if n.rest != nil {
		c.keeper.keepLedger(n.rest, c.keeper.ledger.strategy)
	}
}

// gaveUp reports whether a job is over because its last run failed: it was not to be tried
// again, or the owner of its gang has given up.
func (e *entry) gaveUp() bool {
	return e.last.failed != "" && (e.phase == plan.Failed || e.phase == plan.Cancelled && e.gang.Ending.Phase == gang.Failed)
}

// ended tells people how a job ended where Kubernetes does not.
func (c *Core) ended(e *entry, words string) {
	switch e.phase {
	case plan.Refused:
		c.voice.warn(e.reference(), "Refused", words)
		for _, m := range e.pods {
			c.voice.explainOne(e, m, "Refused", words)
		}
	case plan.Cancelled, plan.Failed:
		if e.gaveUp() && e.last.printed != "" {
			words += "\n" + e.last.printed
		}
		c.voice.warn(e.reference(), "Ended", words)
	}
}

// Keep hands out writes of records: those that starts wait for, and at most so many
// others.
func (c *Core) Keep(others int) []Task { return c.keeper.due(others) }

// Kept reports whether everything that is known is written.
func (c *Core) Kept() bool { return c.keeper.done() }

// explain tells the pods of a gang why they wait, each when the words are new to it.
func (c *Core) explain(e *entry, pods []*corev1.Pod) {
	if e.put.reason == "" || e.phase == plan.Active {
		return
	}
	words, fresh := e.put.reason, false
	if refusals := c.sets.Refusals(e.set); refusals != "" {
		words += "; " + refusals
	}
	for _, p := range pods {
		if m := e.pods[p.UID]; m != nil && p.Spec.NodeName == "" && m.words != e.put.reason {
			m.words, fresh = e.put.reason, true
			c.voice.explainOne(e, m, corev1.PodReasonUnschedulable, words)
		}
	}
	if fresh && e.gang.Control.Kind != "" {
		c.voice.mention(e.gang.Control, "Waits", words)
	}
}

// keeper has the records of jobs and the ledger written, the latest version of each.
type keeper struct {
	config *Config
	box    *outbox
	again  *again
	fleet  *fleet.Fleet
	sets   *fleet.Sets
	toKeep map[*entry]bool
	ledger ledger
}

// found takes in the ledger that was there.
func (k *keeper) found(l api.Ledger) { k.ledger.version = l.ResourceVersion }

// keep has the record of a job written, the latest version of it. Where a start waits
// for it, it is urgent.
func (k *keeper) keep(e *entry, urgent bool) {
	e.put.urgent = e.put.urgent || urgent
	if e.put.piece != nil || urgent {
		k.toKeep[e] = true
	}
}

// due hands out writes of records: those that starts wait for, and at most so many
// others.
func (k *keeper) due(others int) []Task {
	var tasks []Task
	list := make([]*entry, 0, len(k.toKeep))
	for e := range k.toKeep {
		if !e.put.busy && (e.put.urgent || len(k.toKeep) <= 4*others || len(list) < others) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *entry) int { return cmp.Compare(a.job, b.job) })
	for _, e := range list {
		lane := Binding
		if !e.put.urgent {
			if lane = Keeping; others == 0 {
				continue
			}
			others--
		}
		delete(k.toKeep, e)
		tasks = append(tasks, k.writeOf(e, lane))
	}
	if k.ledger.rest != nil && !k.ledger.busy && others > 0 {
		tasks = append(tasks, k.writeOfLedger())
	}
	return tasks
}

// done reports whether everything that is known is written.
func (k *keeper) done() bool { return len(k.toKeep) == 0 && k.ledger.rest == nil && !k.ledger.busy }

// writeOf writes the record of a job.
func (k *keeper) writeOf(e *entry, lane Lane) Task {
	r := &e.put
	job := k.recordOf(e)
	attempt, records, fence := int32(-1), k.config.Records, k.config.Fence
	if r.piece != nil {
		attempt = r.piece.Job.Attempt
		r.written = r.piece
	}
	r.busy, r.urgent, r.piece = true, false, nil
	version := ""
	return Task{Lane: lane, About: e.name + ": record",
		Do: func(ctx context.Context) (err error) {
			version, err = putJob(ctx, records, job, fence)
			return err
		},
		Then: func(err error) {
			r.busy = false
			switch {
			case err == nil:
				r.version = version
			case errors.Is(err, ErrDeposed):
				k.box.fail(err.Error())
			default:
				k.config.Log.Error("a record cannot be written", "job", e.name, "error", err)
				if r.piece == nil {
					r.piece = r.written
				}
				k.toKeep[e] = true
				return
			}
			if x := e.run; x != nil && !x.recorded && attempt >= x.attempt {
				x.recorded = true
				k.again.stir(e)
			}
			if r.piece != nil {
				k.toKeep[e] = true
			}
		}}
}

// drop ends the keeping of a gang's record; where nothing takes that away, it does.
func (k *keeper) drop(e *entry) {
	delete(k.toKeep, e)
	if e.put.name == "" || e.key.UID != "" {
		return
	}
	namespace, name, records := e.key.Namespace, e.put.name, k.config.Records
	k.box.do(Task{Lane: Keeping, About: name, Then: func(error) {},
		Do: func(ctx context.Context) error { return records.DeleteJob(ctx, namespace, name) }})
}

// ErrDeposed says that another leader has written already.
var ErrDeposed = errors.New("another leader has written to the records: this one stops")

// putJob writes a record. Where somebody wrote meanwhile it may have been ourselves,
// whose answer was lost.
func putJob(ctx context.Context, records api.Records, job *api.Job, fence string) (string, error) {
	for try := 0; ; try++ {
		version, err := records.PutJob(ctx, job)
		if err == nil || !api.IsConflict(err) && !(api.IsGone(err) && job.ResourceVersion != "") || try == 3 {
			return version, err
		}
		now, found, err := records.GetJob(ctx, job.Namespace, job.Name)
		if err != nil {
			return "", err
		}
		if found && newer(now.Status.Fence, fence) {
			return "", ErrDeposed
		}
		job.ResourceVersion, job.UID = now.ResourceVersion, now.UID
	}
}

// newer reports whether a fence is of a later term than another.
func newer(a, b string) bool {
	x, err := lead.ParseFence(a)
	if err != nil {
		return false
	}
	y, err := lead.ParseFence(b)
	return err == nil && x.Newer(y)
}

// recordOf is a job as its record tells it.
func (k *keeper) recordOf(e *entry) *api.Job {
	p := e.put.piece
	if p == nil {
		p = e.put.written
	}
	j := &api.Job{}
	j.TypeMeta = metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: api.KindJob}
	if e.put.name == "" {
		e.put.name = api.JobName(e.key.Kind, e.key.Name, e.hash())
	}
	j.Namespace, j.Name, j.ResourceVersion = e.key.Namespace, e.put.name, e.put.version
	j.Spec.Owner = e.owner()
	j.OwnerReferences = api.OwnedBy(j.Spec.Owner)
	s := e.spec
	j.Spec.Gang, j.Spec.Sizes, j.Spec.DevicesPerWorker, j.Spec.Models = s.Gang, s.Sizes, s.Devices, s.Models
	j.Spec.Queue, j.Spec.User, j.Spec.Priority, j.Spec.Profile = s.Tenant, s.User, s.Priority, s.Class
	j.Spec.EstimateSeconds, j.Spec.TimeLimitSeconds, j.Spec.DeadlineSeconds = seconds(s.Estimate), seconds(s.TimeLimit), seconds(s.Deadline)
	if s.Share < unit.Whole {
		j.Spec.ShareMilli = int32(s.Share)
	}
	if cp := s.Checkpoint; cp.Every > 0 || cp.OnRequest {
		j.Spec.Checkpoint = fmt.Sprintf("every %s, on request: %t", time.Duration(cp.Every)*time.Microsecond, cp.OnRequest)
	}
	st := &j.Status
	st.Phase, st.Reason, st.Number, st.Attempt = p.Job.Phase.String(), e.put.reason, int64(p.ID), p.Job.Attempt
	st.Submitted, st.Started, st.Ended = when(p.Job.Submit), when(p.Job.Started), when(p.Job.Ended)
	st.WaitedSeconds, st.ExecutedSeconds, st.ServiceDeviceSeconds = seconds(p.Job.Waited), seconds(p.Job.Executed), p.Job.Service/int64(unit.Second)/1000
	st.Preemptions, st.Restarts, st.Failures, st.Memory = p.Job.Preemptions, p.Job.Restarts, p.Job.Failures, p.Job.Memo
	st.Placement = k.placement(p)
	for _, w := range st.Placement {
		st.Workers += w.Workers
	}
	st.Fence = k.config.Fence
	b, err := json.Marshal(exact{Piece: *p, Spec: e.spec, Key: e.key, Paused: e.paused, Set: e.set})
	if err != nil {
		k.config.Log.Error("a record cannot be encoded", "job", e.name, "error", err)
	}
	st.Exact = string(b)
	return j
}

// hash tells apart what has the same kind and name.
func (e *entry) hash() string {
	if e.key.Group > 0 {
		return string(e.key.UID) + "/" + strconv.Itoa(int(e.key.Group))
	}
	return string(e.key.UID)
}

// owner is the object that a record goes with.
func (e *entry) owner() api.JobOwner {
	for _, k := range gang.Kinds() {
		if k.Name == e.key.Kind && e.key.UID != "" {
			return api.JobOwner{APIVersion: k.APIVersion, Kind: k.Kind, Name: e.key.Name, UID: e.key.UID}
		}
	}
	if e.key.Kind == "Pod" {
		return api.JobOwner{APIVersion: "v1", Kind: "Pod", Name: e.key.Name, UID: e.key.UID}
	}
	return api.JobOwner{APIVersion: "v1", Kind: e.key.Kind, Name: e.key.Name}
}

// placement is where a job's run is, in the words of Kubernetes.
func (k *keeper) placement(p *stored.Piece) (list []api.Place) {
	for _, r := range p.Runs {
		if r.Slot != p.Job.Run {
			continue
		}
		per := max(1, p.Shape.Devices)
		for i, g := range r.Grants {
			node := k.fleet.KubeNode(g.Grant.Node)
			if n := len(list); n == 0 || list[n-1].Node != node {
				list = append(list, api.Place{Node: node})
			}
			at := &list[len(list)-1]
			if int32(i)%per == 0 {
				at.Workers++
			}
			if g.Grant.Device != plan.None {
				at.Devices = append(at.Devices, int32(g.Grant.Device)-k.fleet.Cluster().Nodes[g.Grant.Node].First)
			}
		}
	}
	return list
}

func seconds(d unit.Duration) int64 {
	if d == unit.Forever {
		return 0
	}
	return int64(d / unit.Second)
}

func when(t unit.Time) *metav1.Time {
	if t == unit.Never {
		return nil
	}
	m := metav1.NewTime(time.UnixMicro(int64(t)).UTC())
	return &m
}

// keepLedger has the ledger written.
func (k *keeper) keepLedger(r *stored.Rest, strategy string) {
	b, err := json.Marshal(exactLedger{Rest: *r, Sets: k.sets.Signatures(), Strategy: strategy, Out: k.fleet.Closed()})
	if err != nil {
		k.config.Log.Error("the ledger cannot be encoded", "error", err)
		return
	}
	k.ledger.strategy = strategy
	k.ledger.rest, k.ledger.commits, k.ledger.jobs = b, r.Commits, int64(r.Jobs)
}

func (k *keeper) writeOfLedger() Task {
	l := &k.ledger
	o := &api.Ledger{}
	o.TypeMeta = metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: api.KindLedger}
	o.Name, o.ResourceVersion, o.Spec.Scheduler = k.config.Scheduler, l.version, k.config.Scheduler
	o.Status = api.LedgerStatus{Strategy: l.strategy, Commits: l.commits, Nodes: int32(k.fleet.Nodes()), Jobs: l.jobs, Fence: k.config.Fence, Exact: string(l.rest)}
	was := l.rest
	l.rest, l.busy = nil, true
	ledgers, fence, version := k.config.Ledgers, k.config.Fence, ""
	return Task{Lane: Keeping, About: "ledger",
		Do: func(ctx context.Context) (err error) {
			version, err = putLedger(ctx, ledgers, o, fence)
			return err
		},
		Then: func(err error) {
			l.busy = false
			switch {
			case err == nil:
				l.version = version
			case errors.Is(err, ErrDeposed):
				k.box.fail(err.Error())
			default:
				k.config.Log.Error("the ledger cannot be written", "error", err)
				if l.rest == nil {
					l.rest = was
				}
			}
		}}
}

func putLedger(ctx context.Context, ledgers api.Ledgers, l *api.Ledger, fence string) (string, error) {
	for try := 0; ; try++ {
		version, err := ledgers.PutLedger(ctx, l)
		if err == nil || !api.IsConflict(err) || try == 3 {
			return version, err
		}
		now, found, err := ledgers.GetLedger(ctx, l.Spec.Scheduler)
		if err != nil {
			return "", err
		}
		if found && newer(now.Status.Fence, fence) {
			return "", ErrDeposed
		}
		l.ResourceVersion, l.UID = now.ResourceVersion, now.UID
	}
}
