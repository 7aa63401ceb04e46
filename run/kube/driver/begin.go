package driver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/run/kube/api"
	"github.com/musterdl/muster/run/kube/driver/fleet"
	"github.com/musterdl/muster/run/kube/gang"
	"github.com/musterdl/muster/run/kube/stored"
)

// Beginning is what a control plane begins with, put together from objects alone.
type Beginning struct {
	Cluster *cluster.Cluster
	Image   *engine.Image
	// Lost are the jobs whose runs could not be found again.
	Lost []string
}

// Begin puts the state together from the objects taken in so far, the ledger and the
// records of jobs. It is called once, after the first Take.
func (c *Core) Begin(l api.Ledger, found bool, jobs []api.Job) (Beginning, error) {
	var b Beginning
	old := exactLedger{}
	if found {
		if err := json.Unmarshal([]byte(l.Status.Exact), &old); err != nil {
			c.config.Log.Error("the ledger cannot be read; what is in it is lost", "error", err)
			old = exactLedger{}
		}
		c.keeper.found(l)
	}
	c.fleet.Survey()
	c.stirUnasked()
	cl, err := c.fleet.ClusterOf(&old.Rest)
	if err != nil {
		return b, err
	}
	c.fleet.Adopt(cl)
	pieces, kept := c.pieces(jobs)
	if len(old.Rest.Nodes) == 0 {
		relocate(c.fleet, pieces, kept, jobs)
	}
	learnSets(&old, pieces, kept)
	state, err := stored.Assemble(cl, old.Rest, pieces)
	if err != nil {
		c.config.Log.Warn("the records are not of one moment; what they agree on is kept", "what", err)
		var lost []plan.JobID
		if state, lost, err = stored.Salvage(cl, old.Rest, pieces); err != nil {
			return b, fmt.Errorf("putting the state together: %w", err)
		}
		for _, id := range lost {
			b.Lost = append(b.Lost, state.Names[id])
		}
	}
	c.remember(&old, state, kept)
	c.fleet.Doubt() // what was known of them may not be so any more
	c.settleNodes()
	state = c.adopt(state)
	c.rejoin(run.Live(state.View(), c.roster.spec))
	c.fleet.TellUse(c.placed)
	state = c.box.around(state)
	b.Cluster = state.Cluster
	r := stored.RestOf(state)
	c.keeper.keepLedger(&r, old.Strategy)
	if b.Image, err = c.image(state); err == nil {
		b.Image.Strategy = old.Strategy
	}
	return b, err
}

// keptJob is a job that its record tells of.
type keptJob struct {
	exact
	name, version string
}

// pieces reads the records. One that cannot be read is as if it had not been written.
func (c *Core) pieces(jobs []api.Job) (pieces []stored.Piece, kept []keptJob) {
	seen := map[plan.JobID]bool{}
	for i := range jobs {
		j := &jobs[i]
		k := keptJob{name: j.Name, version: j.ResourceVersion}
		if err := json.Unmarshal([]byte(j.Status.Exact), &k.exact); err != nil || k.Spec == nil || k.Piece.ID < 0 || seen[k.Piece.ID] {
			c.config.Log.Warn("a record cannot be read", "record", j.Namespace+"/"+j.Name, "error", err)
			continue
		}
		seen[k.Piece.ID] = true
		pieces, kept = append(pieces, k.Piece), append(kept, k)
	}
	slices.SortFunc(pieces, func(a, b stored.Piece) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(kept, func(a, b keptJob) int { return cmp.Compare(a.Piece.ID, b.Piece.ID) })
	return pieces, kept
}

// relocate mends what records say in numbers that the ledger would explain, which is
// lost: nodes and devices by the placement that they tell in words, device models by
// name. Runs that are not told so are left out, and their pods count as others'.
func relocate(fl *fleet.Fleet, pieces []stored.Piece, kept []keptJob, jobs []api.Job) {
	placed := map[plan.JobID][]api.Place{}
	for i := range jobs {
		placed[plan.JobID(jobs[i].Status.Number)] = jobs[i].Status.Placement
	}
	for i := range kept {
		p, spec := &pieces[i], kept[i].Spec
		p.Shape.Models = 0
		for _, name := range spec.Models {
			if id, ok := fl.Cluster().ModelID(name); ok {
				p.Shape.Models |= 1 << id
			}
		}
		if len(spec.Models) == 0 {
			p.Shape.Models = 1<<len(fl.Cluster().Models) - 1
		}
		for k := range p.Runs {
			if r := &p.Runs[k]; len(p.Runs) > 1 || !fl.Replace(r, placed[p.ID], max(1, p.Shape.Devices)) {
				r.Run.Status = plan.Gone
			}
		}
	}
}

// learnSets adds the sets of nodes that records tell of to those of a ledger that is
// older than they are. They are of no node until they have been looked at.
func learnSets(old *exactLedger, pieces []stored.Piece, kept []keptJob) {
	ids := map[string]int32{}
	for i, name := range old.Sets {
		ids[name] = int32(i) + 1
	}
	for i := range kept {
		name, spec := kept[i].Set, kept[i].Spec
		if spec.NodeSet == 0 {
			continue
		}
		if ids[name] == 0 {
			old.Sets = append(old.Sets, name)
			ids[name] = int32(len(old.Sets))
		}
		spec.NodeSet, pieces[i].Shape.NodeSet = ids[name], ids[name]
	}
	for len(old.Rest.NodeSets) < len(old.Sets) {
		old.Rest.NodeSets = append(old.Rest.NodeSets, nil)
	}
}

// remember gives gangs what their records tell.
func (c *Core) remember(old *exactLedger, s *plan.State, kept []keptJob) {
	for i, signature := range old.Sets {
		if i < len(s.NodeSets) {
			c.sets.Add(signature, nil)
		}
	}
	c.fleet.Remember(old.Out, s)
	for i := range kept {
		k := &kept[i]
		j := &s.Jobs[k.Piece.ID]
		e := c.roster.gangs[k.Key]
		if e == nil {
			if j.Phase.Over() {
				c.roster.retire(k.Piece.Name)
				continue
			}
			e = c.roster.entryOf(k.Key)
		}
		c.roster.know(e, k.Piece.ID, k.Piece.Name)
		e.spec, e.set, e.paused = k.Spec, k.Set, k.Paused
		e.phase, e.why, e.over = j.Phase, j.Reason.Code, j.Phase.Over()
		e.saw = map[int32]plan.Run{}
		for _, r := range k.Piece.Runs {
			e.saw[r.Run.Attempt] = r.Run
		}
		e.put = record{name: k.name, version: k.version}
		c.again.stir(e)
		c.sets.Sample(e.spec.NodeSet, e.list())
	}
}

// adopt takes in the runs of single pods that were bound and not recorded yet: their
// annotations say all there is to say of them.
func (c *Core) adopt(s *plan.State) *plan.State {
	var list []*entry
	for _, e := range c.roster.gangs {
		if e.job == plan.None && len(e.pods) == 1 {
			for _, m := range e.pods {
				if m.pod.Spec.NodeName != "" && !ended(m.pod) && m.pod.Annotations[noteAttempt] != "" {
					e.age()
					list = append(list, e)
				}
			}
		}
	}
	if len(list) == 0 {
		return s
	}
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(numberOf(a), numberOf(b)), byAge(a, b))
	})
	x := engine.Restore(s, idle{}, engine.DefaultPolicy())
	for _, e := range list {
		c.adoptOne(x, e)
	}
	return x.State()
}

// numberOf is the number of the job that a pod was bound for.
func numberOf(e *entry) int {
	for _, m := range e.pods {
		n, _ := strconv.Atoi(m.pod.Annotations[noteJob])
		return n
	}
	return 0
}

func (c *Core) adoptOne(x *engine.Engine, e *entry) {
	pods := e.list()
	pod := pods[0]
	g, problems := gang.Read(e.key, pods, c.owners)
	e.gang = g
	need, problem := c.fleet.Ask(pod)
	if gang.Holds(problems) || !problem.None() || g.Size != 1 {
		return
	}
	spec := c.specOf(e, need, pod)
	x.Step(x.State().Now, append(c.box.takeEvents(), engine.Event{Kind: engine.Submit, Spec: spec, By: spec.User}))
	id, ok := x.Find(spec.Name)
	if !ok {
		return
	}
	c.roster.know(e, id, spec.Name)
	e.spec = spec
	place, ok := c.fleet.PlaceOf(x.State(), pod.Spec.NodeName, parseList(pod.Annotations[noteDevices]), need.Devices)
	if !ok {
		return
	}
	x.Step(x.State().Now, []engine.Event{{Kind: engine.Arranged, Job: id,
		Moves: []engine.Move{{Job: id, Attempt: x.View().Job(id).Attempt + 1, Places: []engine.Place{place}}}}})
	if pod.Status.Phase == corev1.PodRunning {
		x.Step(x.State().Now, []engine.Event{{Kind: engine.Started, Job: id, Attempt: x.View().Job(id).Attempt}})
	}
	j := x.View().Job(id)
	e.phase, e.why, e.over = j.Phase, j.Reason.Code, j.Phase.Over()
	piece := stored.PieceOf(x.State(), id)
	e.put.piece = &piece
	c.keeper.keep(e, false)
}

func parseList(s string) (list []int32) {
	for _, f := range splitComma(s) {
		n, err := strconv.ParseInt(f, 10, 32)
		if err != nil {
			return nil
		}
		list = append(list, int32(n))
	}
	return list
}

// image writes the state as a control plane takes it over.
func (c *Core) image(s *plan.State) (*engine.Image, error) {
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		return nil, err
	}
	img := &engine.Image{State: b.Bytes(), Specs: make([]*workload.Job, len(s.Jobs))}
	for id := range img.Specs {
		img.Specs[id] = &workload.Job{Name: s.Names[id], Resources: workload.Resources{Gang: 1, Share: unit.Whole}}
		if e := c.roster.byJob[plan.JobID(id)]; e != nil {
			img.Specs[id] = e.spec
		}
	}
	return img, nil
}

// rejoin takes in the runs that the state says are alive, and finds their pods.
func (c *Core) rejoin(live []run.Order) {
	for i := range live {
		o := &live[i]
		e := c.roster.byJob[o.Job]
		if e == nil {
			kind := engine.Exited
			if o.Status == plan.Stopping {
				kind = engine.Stopped
			}
			c.box.report(engine.Event{Kind: kind, Job: o.Job, Attempt: o.Attempt, Ending: engine.Ending{Class: plan.NodeFailure}})
			continue
		}
		x := c.runs.execution(o)
		x.recorded, x.stopping = true, o.Status == plan.Stopping
		x.started = o.Status == plan.Running || x.stopping
		x.resumed = o.Status != plan.Starting
		x.began, x.until = c.config.Now(), c.config.Now()
		if was, ok := e.saw[o.Attempt]; ok && was.Began != unit.Never {
			x.began, x.until = was.Began, was.Since
		}
		e.run = x
		c.sit(e)
		if x.stopping {
			c.runs.stop(e)
		}
		c.again.stir(e)
	}
}

// sit gives pods that are bound already the seats they were bound for, those included
// that are told to go: they are there until they are gone.
func (c *Core) sit(e *entry) {
	pods := e.list()
	e.gang, _ = gang.Read(e.key, pods, c.owners)
	c.sortRiders(e)
	e.gang.Sort(pods)
	attempt := strconv.Itoa(int(e.run.attempt))
	for _, p := range pods {
		if p.Spec.NodeName == "" || ended(p) || p.Annotations[noteAttempt] != attempt || e.rides(p) {
			continue
		}
		rank, _ := e.gang.Rank(p)
		if at := e.run.seatFor(p, int(rank)); at >= 0 {
			m := e.pods[p.UID]
			w := &e.run.workers[at]
			w.pod, w.state, m.seat = m, bound, at
		}
	}
}
