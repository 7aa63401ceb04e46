// Package stored has a State in pieces, one per job and one for the rest, for a store that
// keeps many small values and has no transactions over them, as an API server does. Put
// together again, whole pieces give the State that they were taken of, its free slots
// included, so that it decides the same. Pieces of different moments give a State that is
// legal and holds the runs that can be.
package stored

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/plan"
)

// Piece is all that a State knows of one job.
type Piece struct {
	ID                  plan.JobID
	Name                string
	Tenant, User, Class string
	Command             string `json:",omitempty"`
	Job                 plan.Job
	Shape               plan.Shape
	Profile             *plan.Profile `json:",omitempty"`
	After               []plan.JobID  `json:",omitempty"` // the jobs it comes after
	// Links are what it comes after besides: arrays, and jobs of another end than a good one.
	Links []plan.Dependency `json:",omitempty"`
	Runs  []Run             `json:",omitempty"`
}

// Run is a run with the slots that it and its grants are in.
type Run struct {
	Slot   plan.RunID
	Run    plan.Run
	Plan   *plan.Pipeline `json:",omitempty"`
	Grants []Grant
}

// Grant is a grant with its slot.
type Grant struct {
	Slot  int32
	Grant plan.Grant
}

// Rest is what a State knows beside its jobs. Its cluster is known to who puts the
// pieces together; nodes and models are told by name.
type Rest struct {
	Now                  unit.Time
	Jobs                 int // that there ever were
	RunSlots, GrantSlots int
	plan.Vacant
	plan.Decisions
	plan.Books
	plan.Calendar
	NodeSets              [][]uint64
	Tenants, Users, Class []string
	Commands              []string `json:",omitempty"`
	Machines
}

// Machines are the nodes and models by name, and which of them are not as new.
type Machines struct {
	Models, Nodes []string
	Counts        []int32 // devices, by node
	OddNodes      []OddNode
	OddDevices    []OddDevice
}

// OddNode is what a node's row says beside its grants.
type OddNode struct {
	Node                      plan.NodeID
	Status                    plan.NodeStatus
	Sick, OtherCPU, OtherHost int32
	Trial                     plan.Trial `json:",omitzero"`
}

// OddDevice is what a device's row says beside its grants.
type OddDevice struct {
	Device     plan.DeviceID
	Status     plan.DeviceStatus
	Geometry   int16
	Generation int32
	Change     int64
}

// PieceOf returns what a State knows of a job.
func PieceOf(s *plan.State, id plan.JobID) Piece {
	j := s.Jobs[id]
	p := Piece{ID: id, Name: s.Names[id], Tenant: s.Tenants[j.Tenant], User: s.Users[j.User], Class: s.Classes[j.Class], Command: s.View().Command(id),
		Job: j, Shape: s.Shapes[j.Shape]}
	if j.Profile != plan.None {
		p.Profile = &s.Profiles[j.Profile]
	}
	for _, l := range s.Links {
		switch {
		case l.After != id:
		case l.Copies > 0 || l.When != workload.Well:
			p.Links = append(p.Links, l)
		default:
			p.After = append(p.After, l.Before)
		}
	}
	for _, run := range [...]plan.RunID{j.Run, j.Leaving} {
		if run == plan.None {
			continue
		}
		r := Run{Slot: run, Run: s.Runs[run]}
		if pl := r.Run.Terms.Plan.ID; pl != plan.None {
			r.Plan = &s.Plans[pl]
		}
		for i := r.Run.First; i != plan.None; i = s.Grants[i].OfRun {
			r.Grants = append(r.Grants, Grant{i, s.Grants[i]})
		}
		p.Runs = append(p.Runs, r)
	}
	return p
}

// RestOf returns what a State knows beside its jobs. It shares what it can: it is to
// be encoded before the State moves on.
func RestOf(s *plan.State) Rest {
	r := Rest{Now: s.Now, Jobs: len(s.Jobs), RunSlots: len(s.Runs), GrantSlots: len(s.Grants), Vacant: s.Vacant, Decisions: s.Decisions,
		Books: s.Books, Calendar: s.Calendar, NodeSets: s.NodeSets, Tenants: s.Tenants, Users: s.Users, Class: s.Classes, Commands: s.Commands}
	r.Pending = s.StillPending()
	for i := range s.Cluster.Models {
		r.Models = append(r.Models, s.Cluster.Models[i].Name)
	}
	for i := range s.Nodes {
		r.Nodes, r.Counts = append(r.Nodes, s.Cluster.Nodes[i].Name), append(r.Counts, s.Nodes[i].Count)
		if n := (OddNode{plan.NodeID(i), s.Nodes[i].Status, s.Nodes[i].Sick, s.Nodes[i].OtherCPU, s.Nodes[i].OtherHost, s.Nodes[i].Trial}); n != (OddNode{Node: plan.NodeID(i)}) {
			r.OddNodes = append(r.OddNodes, n)
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		if odd := (OddDevice{plan.DeviceID(i), d.Status, d.Geometry, d.Generation, d.Change}); odd != (OddDevice{Device: plan.DeviceID(i)}) {
			r.OddDevices = append(r.OddDevices, odd)
		}
	}
	return r
}

// Assemble puts pieces together that are all of one moment; an error says what is
// not. The cluster must begin with the nodes and models that the rest names, in that
// order; jobs of which there is no piece are over.
func Assemble(c *cluster.Cluster, r Rest, pieces []Piece) (*plan.State, error) {
	pieces = renumber(c, &r, pieces)
	s, err := begin(c, &r, pieces)
	if err != nil {
		return nil, err
	}
	s.Runs, s.Grants = make([]plan.Run, r.RunSlots), make([]plan.Grant, r.GrantSlots)
	for i := range s.Runs {
		s.Runs[i] = plan.Run{Job: plan.None, Status: plan.Gone, First: plan.None, Began: unit.Never, Until: unit.Never}
	}
	for i := range s.Grants {
		s.Grants[i] = plan.Grant{Run: plan.None, Device: plan.None, OfRun: plan.None, OnDevice: plan.None}
	}
	s.FreeRuns, s.FreeGrants, s.Pending, s.Claims = slices.Clone(r.FreeRuns), slices.Clone(r.FreeGrants), slices.Clone(r.Pending), r.Claims
	for i := range pieces {
		if err := fill(s, &pieces[i]); err != nil {
			return nil, fmt.Errorf("job %s: %w", pieces[i].Name, err)
		}
	}
	if used := r.RunSlots - len(s.FreeRuns); used != countIf(s.Runs, func(r plan.Run) bool { return r.Status != plan.Gone }) {
		return nil, fmt.Errorf("%d runs should be alive", used)
	}
	if used := r.GrantSlots - len(s.FreeGrants); used != countIf(s.Grants, func(g plan.Grant) bool { return g.Run != plan.None }) {
		return nil, fmt.Errorf("%d grants should be held", used)
	}
	s.Derive()
	settleBooks(s)
	if err := s.Check(); err != nil {
		return nil, err
	}
	return s, nil
}

func countIf[T any](list []T, is func(T) bool) (n int) {
	for i := range list {
		if is(list[i]) {
			n++
		}
	}
	return n
}

// begin makes a State of all but runs.
func begin(c *cluster.Cluster, r *Rest, pieces []Piece) (*plan.State, error) {
	if len(c.Nodes) < len(r.Nodes) || len(c.Models) < len(r.Models) {
		return nil, fmt.Errorf("the cluster has %d nodes of %d models, there were %d of %d", len(c.Nodes), len(c.Models), len(r.Nodes), len(r.Models))
	}
	for i, name := range r.Nodes {
		if c.Nodes[i].Name != name {
			return nil, fmt.Errorf("node %d is %s, it was %s", i, c.Nodes[i].Name, name)
		}
	}
	for i, name := range r.Models {
		if c.Models[i].Name != name {
			return nil, fmt.Errorf("device model %d is %s, it was %s", i, c.Models[i].Name, name)
		}
	}
	s := plan.NewState(c)
	s.Now, s.NextChange, s.Commits, s.Paused, s.Memory, s.Reactions, s.Repairs = r.Now, max(1, r.NextChange), r.Commits, r.Paused, r.Memory, r.Reactions, r.Repairs
	s.Queues, s.AgedAt, s.Ages, s.Windows, s.NodeSets = r.Queues, r.AgedAt, r.Ages, r.Windows, r.NodeSets
	s.Tenants, s.Users, s.Classes = slices.Clone(r.Tenants), slices.Clone(r.Users), slices.Clone(r.Class)
	s.Commands = slices.Clone(r.Commands)
	layAccounts(s, r)
	for _, n := range r.OddNodes {
		row := &s.Nodes[n.Node]
		row.Status, row.Sick, row.Trial, row.OtherCPU, row.OtherHost = n.Status, n.Sick, n.Trial, n.OtherCPU, n.OtherHost
		row.FreeCPU -= n.OtherCPU
		row.FreeHost -= n.OtherHost
	}
	for _, d := range r.OddDevices {
		row := &s.Devices[d.Device]
		row.Status, row.Geometry, row.Generation, row.Change = d.Status, d.Geometry, d.Generation, d.Change
	}
	file(s, r, pieces)
	return s, plan.CountLinks(s)
}

// renumber gives devices the numbers that they have in a cluster whose nodes may have
// more or fewer of them than before.
func renumber(c *cluster.Cluster, r *Rest, pieces []Piece) []Piece {
	first, same := make([]int32, len(r.Nodes)), true
	for i, at := 0, int32(0); i < len(r.Counts) && i < len(first) && i < len(c.Nodes); i++ {
		first[i] = at
		same = same && c.Nodes[i].First == at && c.Nodes[i].Count == r.Counts[i]
		at += r.Counts[i]
	}
	if same || len(c.Nodes) < len(r.Nodes) {
		return pieces
	}
	now := func(d plan.DeviceID) plan.DeviceID {
		i, _ := slices.BinarySearch(first, int32(d)+1)
		for i--; i >= 0 && (i >= len(r.Counts) || int32(d) >= first[i]+r.Counts[i]); i-- {
		}
		if i < 0 || int32(d)-first[i] >= c.Nodes[i].Count {
			return plan.None
		}
		return plan.DeviceID(c.Nodes[i].First + int32(d) - first[i])
	}
	odd := r.OddDevices
	r.OddDevices = nil
	for _, d := range odd {
		if d.Device = now(d.Device); d.Device != plan.None {
			r.OddDevices = append(r.OddDevices, d)
		}
	}
	pieces = slices.Clone(pieces)
	for i := range pieces {
		pieces[i].Runs = slices.Clone(pieces[i].Runs)
		for k := range pieces[i].Runs {
			grants := slices.Clone(pieces[i].Runs[k].Grants)
			for g := range grants {
				if at := &grants[g].Grant.Device; *at != plan.None {
					if *at = now(*at); *at == plan.None {
						*at = lostDevice
					}
				}
			}
			pieces[i].Runs[k].Grants = grants
		}
	}
	return pieces
}

// lostDevice stands for one that is not there any more.
const lostDevice = math.MaxInt32

// layAccounts takes the accounts over, to which there may be more device models now.
func layAccounts(s *plan.State, r *Rest) {
	per := len(r.Models)
	for i := 0; per > 0 && i+per <= len(r.Accounts); i += per {
		first := s.AccountsOf(r.Accounts[i].Tenant, r.Accounts[i].User)
		copy(s.Accounts[first:], r.Accounts[i:i+per])
	}
}

// file makes the rows of the jobs, without runs.
func file(s *plan.State, r *Rest, pieces []Piece) {
	shapes := map[plan.Shape]int32{}
	names := func(list *[]string, name string) int32 {
		if i := slices.Index(*list, name); i >= 0 {
			return int32(i)
		}
		*list = append(*list, name)
		return int32(len(*list) - 1)
	}
	jobs := r.Jobs
	for i := range pieces {
		jobs = max(jobs, int(pieces[i].ID)+1)
	}
	s.Jobs, s.Names = make([]plan.Job, jobs), make([]string, jobs)
	for i := range s.Jobs {
		s.Jobs[i] = plan.Job{Asked: plan.Asked{Profile: plan.None}, Standing: plan.Standing{Phase: plan.Cancelled,
			Started: unit.Never, Ended: s.Now, Run: plan.None, Leaving: plan.None, Admitted: true}}
	}
	for i := range pieces {
		p := &pieces[i]
		j := p.Job
		id, known := shapes[p.Shape]
		if !known {
			id = int32(len(s.Shapes))
			shapes[p.Shape] = id
			s.Shapes = append(s.Shapes, p.Shape)
		}
		j.Shape, j.Tenant, j.User, j.Class = id, names(&s.Tenants, p.Tenant), names(&s.Users, p.User), names(&s.Classes, p.Class)
		j.Account, j.Run, j.Leaving = s.AccountsOf(j.Tenant, j.User), plan.None, plan.None
		if j.Command = 0; p.Command != "" {
			j.Command = 1 + names(&s.Commands, p.Command)
		}
		if p.Profile != nil {
			j.Profile = int32(len(s.Profiles))
			s.Profiles = append(s.Profiles, *p.Profile)
		}
		s.Jobs[p.ID], s.Names[p.ID] = j, p.Name
		for _, before := range p.After {
			s.Links = append(s.Links, plan.Dependency{Before: before, After: p.ID})
		}
		s.Links = append(s.Links, p.Links...)
	}
	if jobs > 0 && len(s.Shapes) == 0 {
		s.Shapes = append(s.Shapes, plan.Shape{Gang: 1, Share: 1000}) // of jobs of which nothing is known
	}
	if jobs > 0 && len(s.Accounts) == 0 {
		s.AccountsOf(names(&s.Tenants, ""), names(&s.Users, ""))
	}
	if jobs > 0 && len(s.Classes) == 0 {
		names(&s.Classes, "")
	}
	slices.SortStableFunc(s.Links, func(a, b plan.Dependency) int { return cmp.Compare(a.After, b.After) })
}

// fill puts the runs of a piece in their slots.
func fill(s *plan.State, p *Piece) error {
	j := &s.Jobs[p.ID]
	j.Run, j.Leaving = p.Job.Run, p.Job.Leaving
	for i := range p.Runs {
		r := &p.Runs[i]
		if int(r.Slot) >= len(s.Runs) || r.Slot < 0 || s.Runs[r.Slot].Status != plan.Gone {
			return fmt.Errorf("its run is in slot %d, which is another's or none", r.Slot)
		}
		run := r.Run
		if r.Plan != nil {
			run.Terms.Plan.ID = int32(len(s.Plans))
			s.Plans = append(s.Plans, *r.Plan)
		}
		s.Runs[r.Slot] = run
		for _, g := range r.Grants {
			if int(g.Slot) >= len(s.Grants) || g.Slot < 0 || s.Grants[g.Slot].Run != plan.None {
				return fmt.Errorf("a grant of its run is in slot %d, which is another's or none", g.Slot)
			}
			if int(g.Grant.Node) >= len(s.Nodes) || int(g.Grant.Device) >= len(s.Devices) {
				return fmt.Errorf("it runs on node %d, which there is not", g.Grant.Node)
			}
			s.Grants[g.Slot] = g.Grant
		}
	}
	for _, run := range [...]plan.RunID{j.Run, j.Leaving} {
		if run != plan.None && (int(run) >= len(s.Runs) || s.Runs[run].Job != p.ID) {
			return fmt.Errorf("run %d is missing", run)
		}
	}
	return nil
}

// settleBooks makes the accounts agree with the jobs that are known: what those used
// of which nothing is known any more is kept apart.
func settleBooks(s *plan.State) {
	type owner struct{ tenant, user int32 }
	known, books := map[owner]unit.DeviceTime{}, map[owner]unit.DeviceTime{}
	v := s.View()
	for id := range s.Jobs {
		o := owner{s.Jobs[id].Tenant, s.Jobs[id].User}
		known[o] = known[o].Plus(v.JobUsed(plan.JobID(id)))
	}
	for i := range s.Accounts {
		a := &s.Accounts[i]
		o := owner{a.Tenant, a.User}
		books[o] = books[o].Plus(v.Account(i).Used)
	}
	for i := range s.Accounts {
		a := &s.Accounts[i]
		o := owner{a.Tenant, a.User}
		if a.Model != 0 {
			continue
		}
		if known[o].Less(books[o]) {
			a.Before = books[o].Minus(known[o])
			continue
		}
		a.Before = unit.DeviceTime{}
		a.Used = a.Used.Plus(known[o].Minus(books[o])) // the accounts are older than the jobs
	}
}
