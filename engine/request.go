package engine

import (
	"fmt"
	"math"
	"reflect"
	"slices"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Accept checks a request before it is journaled and acknowledged; the error says
// what is wrong and what to do.
func (e *Engine) Accept(ev *Event) error {
	switch ev.Kind {
	case Submit:
		return e.acceptJob(ev.Spec)
	case Cancel, Hold, Release, Requeue:
		if !e.valid(ev.Job) {
			return fmt.Errorf("there is no job %d", ev.Job)
		}
		return e.acceptVerb(ev)
	case Cordon, Uncordon, Drain:
		if ev.Node < 0 || int(ev.Node) >= len(e.state.Nodes) {
			return fmt.Errorf("there is no node %d", ev.Node)
		}
	case Close, Reopen:
		if ev.Node < 0 || int(ev.Node) >= len(e.state.Nodes) {
			return fmt.Errorf("there is no node %d", ev.Node)
		}
		if ev.Kind == Close && (ev.To <= ev.From || ev.To <= e.state.Now) {
			return fmt.Errorf("a maintenance window ends after it begins, and not in the past")
		}
		for _, w := range e.state.Windows {
			if ev.Kind == Close && w.Node == ev.Node && ev.From < w.To && w.From < ev.To {
				return fmt.Errorf("the node has a maintenance window from %d to %d already: cancel that first, or choose another time", w.From, w.To)
			}
		}
	case Arranged:
		return e.acceptMoves(ev)
	case Shares:
		if ev.Queues == nil {
			return fmt.Errorf("the tree of queues is missing")
		}
		return ev.Queues.Check(func(model string) bool {
			_, ok := e.state.Cluster.ModelID(model)
			return ok
		})
	}
	return nil
}

func (e *Engine) acceptVerb(ev *Event) error {
	name, phase := e.state.Names[ev.Job], e.state.Jobs[ev.Job].Phase
	switch {
	case ev.Kind == Cancel && phase.Over():
		return fmt.Errorf("job %s is already %s", name, phase)
	case ev.Kind == Hold && (phase.Over() || phase == plan.Held):
		return fmt.Errorf("job %s is %s and cannot be held", name, phase)
	case ev.Kind == Release && phase != plan.Held && phase != plan.Backoff:
		return fmt.Errorf("job %s is %s, not held", name, e.View().Standing(ev.Job))
	case ev.Kind == Requeue && (phase == plan.Refused || phase.Waits()):
		return fmt.Errorf("job %s is %s and cannot be put back in the queue", name, phase)
	}
	return nil
}

func (e *Engine) acceptJob(j *workload.Job) error {
	if err := acceptNames(e, j); err != nil {
		return err
	}
	for _, m := range j.Models {
		if _, ok := e.state.Cluster.ModelID(m); !ok {
			return fmt.Errorf("job %q asks for device model %q, which the cluster does not have", j.Name, m)
		}
	}
	if j.NodeSet < 0 || j.PerNode < 0 {
		return fmt.Errorf("job %q is confined to set %d of nodes, at most %d workers on each: neither is negative", j.Name, j.NodeSet, j.PerNode)
	}
	if _, ok := control.Find(j.Law); !ok {
		return fmt.Errorf("job %q: there is no law %q: leave it out, or name one of package control", j.Name, j.Law)
	}
	badCounts := j.Gang < 1 || j.Devices < 0 || min(j.Memory, unit.MiB(j.CPU), j.HostMemory) < 0
	badShare := j.Share < 1 || j.Share > unit.Whole || j.Share < unit.Whole && j.Devices != 1
	badSizes := len(j.Sizes) > 8 || len(j.Sizes) > 0 && slices.Min(j.Sizes) < 1
	if badCounts || badShare || badSizes {
		return fmt.Errorf("job %q: workers must be at least 1, devices at least 0, the share 1m to 1 of one device, sizes at most 8 and at least 1, amounts not negative", j.Name)
	}
	return nil
}

// acceptNames refuses names that are taken, and those of jobs that are not there.
func acceptNames(e *Engine, j *workload.Job) error {
	// Names are used once: logs, checkpoints and records go by them.
	unused := func(name string) error {
		if id, taken := e.names[name]; taken {
			return fmt.Errorf("a job named %q is already there (%s): choose another name, or requeue that one", name, e.state.Jobs[id].Phase)
		}
		return nil
	}
	for _, name := range [...]string{j.Name, j.ArrayName()} { // an array's too: it is called by it
		if err := unused(name); err != nil {
			return err
		}
	}
	for name := range j.Names() {
		if err := unused(name); err != nil {
			return err
		}
	}
	for _, text := range j.After {
		if name, _ := workload.ParseAfter(text); called(e, name).Before == plan.None {
			return fmt.Errorf("job %q comes after %q, which does not exist: submit that first", j.Name, name)
		}
	}
	return nil
}

// submit admits a job, or the copies of an array one after the other.
func (e *Engine) submit(ev *Event) {
	w := ev.Spec
	asked := plan.Asked{Declared: w.Estimate, TimeLimit: w.TimeLimit, Deadline: w.Deadline,
		Shape: e.shape(w), Tenant: intern(e.tenants, &e.state.Tenants, w.Tenant), User: intern(e.users, &e.state.Users, w.User), Class: intern(e.classes, &e.state.Classes, w.Class),
		Profile: e.profile(w), Priority: w.Priority, Retries: w.Retries, Traffic: int32(w.Traffic),
		Checkpoint: plan.Checkpointing{Every: w.Checkpoint.Every, Save: w.Checkpoint.Save, Load: w.Checkpoint.Load, OnRequest: w.Checkpoint.OnRequest}}
	if runs := w.Runs(); runs != "" {
		asked.Command = 1 + intern(e.commands, &e.state.Commands, runs)
	}
	if most := e.longest(asked.Tenant); most > 0 && (asked.TimeLimit == 0 || asked.TimeLimit > most) {
		asked.TimeLimit = most
	}
	before, broken := comesAfter(e, w)
	for name := range w.Names() {
		id := e.state.Admit(name, asked, before...)
		e.names[name] = id
		if broken != nil {
			e.state.SetPhase(id, broken.Ends(), plan.Reason{Code: plan.DependencyEnd, A: int64(broken.Before)})
			e.ended(id)
		}
		e.touch(id)
	}
}

// longest is how long a run of a tenant's job may be; 0 is no limit.
func (e *Engine) longest(tenant int32) (most unit.Duration) {
	tree := &e.state.Queues
	if len(tree.Queues) == 0 {
		return 0
	}
	for q := e.state.View().QueueOf(tenant); q >= 0; q = tree.Queues[q].Parent {
		if m := tree.Queues[q].MaxRun; m > 0 && (most == 0 || m < most) {
			most = m
		}
	}
	return most
}

// shares gives the cluster another tree of queues.
func (e *Engine) shares(ev *Event) {
	if e.Accept(ev) == nil {
		e.state.SetQueues(*ev.Queues)
		e.rebuild()
	}
}

// shape returns the id of a job's shape, adding it if it is new.
func (e *Engine) shape(w *workload.Job) int32 {
	s := plan.Shape{Gang: w.Gang, Devices: w.Devices, Share: int32(w.Share), Memory: int32(w.Memory),
		CPU: int32(w.CPU), Host: int32(w.HostMemory), Skew: int32(w.Skew), Models: ^uint64(0) >> (64 - len(e.state.Cluster.Models)),
		NodeSet: w.NodeSet, PerNode: w.PerNode}
	if len(w.Models) > 0 {
		s.Models = 0
		for _, m := range w.Models {
			if id, ok := e.state.Cluster.ModelID(m); ok {
				s.Models |= 1 << id
			}
		}
	}
	n := 0
	for _, size := range w.Sizes {
		if n < len(s.Sizes) && size != w.Gang {
			s.Sizes[n] = size
			n++
		}
	}
	if id, ok := e.shapes[s]; ok {
		return id
	}
	e.state.Shapes = append(e.state.Shapes, s)
	e.shapes[s] = int32(len(e.state.Shapes) - 1)
	return e.shapes[s]
}

// profile keeps what a job's owner says of it beside its shape.
func (e *Engine) profile(w *workload.Job) int32 {
	p := plan.Profile{Stages: w.Pipeline.Stages, Microbatches: w.Pipeline.Microbatches, Tensor: w.Pipeline.Tensor, Menu: plan.MenuOf(e.state.Cluster, w.Menu),
		Compute: w.Phase.Compute, Communicate: w.Phase.Communicate, Servers: w.Servers, Group: w.Group, Base: w.Base, Law: w.Law,
		Opportunistic: w.Opportunistic, Persistent: int32(w.Persistent),
		RatePerSecMilli: int64(math.Round(w.Service.RatePerSec * 1000)), SLO: w.Service.SLO, TargetLoss: w.TargetLoss}
	for _, l := range w.Pipeline.Layers {
		p.Layers = append(p.Layers, plan.ProfileLayer{Forward: l.Forward, Backward: l.Backward,
			ParamKiB: l.ParamKiB, OutputKiB: l.OutputKiB, ActivationKiB: l.ActivationKiB})
	}
	if reflect.ValueOf(p).IsZero() {
		return plan.None
	}
	e.state.Profiles = append(e.state.Profiles, p)
	return int32(len(e.state.Profiles) - 1)
}

func intern(ids map[string]int32, names *[]string, name string) int32 {
	id, ok := ids[name]
	if !ok {
		id = int32(len(*names))
		ids[name] = id
		*names = append(*names, name)
	}
	return id
}

// request applies what a person asked about a job.
func (e *Engine) request(ev *Event) {
	if !e.valid(ev.Job) || e.acceptVerb(ev) != nil {
		return
	}
	id, j := ev.Job, &e.state.Jobs[ev.Job]
	byUser := plan.Reason{Code: plan.ByUser}
	switch ev.Kind {
	case Cancel:
		e.stop(id, byUser)
		e.state.SetPhase(id, plan.Cancelled, byUser)
		e.ended(id)
	case Hold:
		e.stop(id, byUser)
		e.state.SetPhase(id, plan.Held, plan.Reason{Code: plan.UserHeld})
	case Release:
		e.again(id)
	case Requeue:
		if j.Phase == plan.Active {
			e.stop(id, byUser)
		} else {
			e.again(id)
		}
	}
	e.touch(id)
}

// again puts a job that was held or has ended back in the queue, or behind those it
// comes after.
func (e *Engine) again(id plan.JobID) {
	j := &e.state.Jobs[id]
	was := j.Phase
	j.Failures, j.Unstarted, j.Blockers = 0, 0, 0
	for i := range e.state.Links { // nobody counted while it was over
		if l := &e.state.Links[i]; l.After == id && l.Fate() == plan.Open {
			j.Blockers++
		}
	}
	if j.Blockers > 0 && was != plan.Backoff {
		e.state.SetPhase(id, plan.Blocked, plan.Reason{Code: plan.WaitsForJob, A: plan.None})
	} else {
		e.state.SetPhase(id, plan.Waiting, plan.Reason{Code: plan.New})
	}
	livesAgain(e, id, was)
}

// stop ends a job's run because a person or an event says so; the change is part
// of this step's commit.
func (e *Engine) stop(id plan.JobID, reason plan.Reason) {
	run := e.state.Jobs[id].Run
	if run == plan.None {
		return
	}
	d := e.state.Edit()
	d.Stop(run, reason, 0)
	changes, _ := d.Commit()
	e.forced = append(e.forced, changes...)
	for i := range changes {
		e.send(&changes[i])
	}
	e.why.Room = true
	e.touch(id)
}

// node applies what happened to a node, or what a person wants of it.
func (e *Engine) node(ev *Event) {
	if ev.Node < 0 || int(ev.Node) >= len(e.state.Nodes) {
		return
	}
	n := &e.state.Nodes[ev.Node]
	switch ev.Kind {
	case Cordon, Drain:
		if n.Status == plan.Up || n.Status == plan.Quarantined {
			e.state.SetNode(ev.Node, plan.Cordoned)
		}
		if ev.Kind == Drain {
			e.eachRunOn(ev.Node, func(run plan.RunID) { e.stop(e.state.Runs[run].Job, plan.Reason{Code: plan.ByUser}) })
		}
	case NodeDown:
		if n.Status == plan.Down || n.Status == plan.Away {
			return
		}
		e.eachRunOn(ev.Node, func(run plan.RunID) { e.lose(run, ev.Node) })
		for d := n.First; d < n.First+plan.DeviceID(n.Count); d++ {
			e.abandonReshape(d, plan.Steady) // a node comes back cut as it was last told
		}
		e.state.SetNode(ev.Node, plan.Down)
		e.state.Lose(ev.Node)
	case Uncordon, NodeUp:
		came := n.Status == plan.Down || n.Status == plan.Coming
		if ev.Kind == NodeUp && !came || ev.Kind == Uncordon && (came || n.Status == plan.Away) {
			return
		}
		if n.Sick, n.Trial = 0, (plan.Trial{}); n.Status == plan.Down {
			e.state.Mend(ev.Node)
		}
		e.state.SetNode(ev.Node, plan.Up)
	}
	e.why.Room = true
}

func (e *Engine) device(ev *Event) {
	if ev.Device < 0 || int(ev.Device) >= len(e.state.Devices) {
		return
	}
	if ev.Kind == DeviceUp {
		if e.state.Devices[ev.Device].Status == plan.Lost {
			e.state.SetDevice(ev.Device, plan.Steady)
		}
	} else if e.state.Devices[ev.Device].Status != plan.Lost {
		var hit []plan.RunID
		e.View().GrantsOn(ev.Device, func(g plan.Grant) {
			if !slices.Contains(hit, g.Run) {
				hit = append(hit, g.Run)
			}
		})
		slices.Sort(hit)
		for _, run := range hit {
			e.loseDevice(run, ev.Device)
		}
		e.abandonReshape(ev.Device, plan.Lost)
		e.state.SetDevice(ev.Device, plan.Lost)
	}
	e.why.Room = true
}

// eachRunOn calls f for the runs with a grant on a node, in order of slot, each once.
func (e *Engine) eachRunOn(node plan.NodeID, f func(plan.RunID)) {
	for id := range e.state.Runs {
		if e.state.Runs[id].Status == plan.Gone {
			continue
		}
		here := false
		e.View().GrantsOf(plan.RunID(id), func(g plan.Grant) { here = here || g.Node == node })
		if here {
			f(plan.RunID(id))
		}
	}
}

// abandonReshape ends a reshape that will not be confirmed any more, if one is under
// way, and lets go of what waits for it.
func (e *Engine) abandonReshape(id plan.DeviceID, status plan.DeviceStatus) {
	if d := &e.state.Devices[id]; d.Status == plan.Reshaping {
		change := d.Change
		e.state.Drop(change)
		e.state.SetDevice(id, status)
		e.confirm(change)
	}
}

// lose ends a run that lost a node. A promise is simply taken back, and a run that
// was on this node alone is gone. What is left of a gang on other nodes still
// occupies them: it is stopped.
func (e *Engine) lose(run plan.RunID, node plan.NodeID) {
	elsewhere := false
	e.View().GrantsOf(run, func(g plan.Grant) { elsewhere = elsewhere || g.Node != node })
	e.loseSome(run, node, elsewhere)
}

// loseDevice ends a run that lost a device, on a node that may still be told to stop
// it.
func (e *Engine) loseDevice(run plan.RunID, device plan.DeviceID) {
	e.loseSome(run, e.state.Devices[device].Node, true)
}

func (e *Engine) loseSome(run plan.RunID, node plan.NodeID, remains bool) {
	r := e.state.Runs[run]
	lost := plan.Reason{Code: plan.NodeLost, A: int64(node)}
	switch {
	case r.Status == plan.Promised:
		e.state.EndRun(run, 0)
		e.state.SetPhase(r.Job, plan.Waiting, lost)
		e.touch(r.Job)
	case remains:
		if r.Status != plan.Stopping {
			e.broke(run, r.Saved, false)
			e.state.Jobs[r.Job].Restarts++
			e.stop(r.Job, lost)
		}
	default:
		// What it last checkpointed is kept.
		e.endRun(run, &Event{Kind: Stopped, Ending: Ending{Kept: r.Saved}}, plan.NodeFailure)
		if j := &e.state.Jobs[r.Job]; j.Phase == plan.Waiting {
			j.Reason = lost
		}
	}
}
