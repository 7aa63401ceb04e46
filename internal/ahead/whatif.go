package ahead

import (
	"fmt"
	"slices"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/run/simulated"
	"github.com/musterdl/muster/schedule"
)

// Change is what a what-if does differently from the fork's first instant on. Its
// parts can be combined.
type Change struct {
	// Scheduler is another strategy's; nil is the same. TellTruth goes with it.
	Scheduler func() (schedule.Scheduler, error)
	TellTruth bool
	// Add are whole nodes that come in addition. Devices cannot be added to a node that
	// there is: ids of devices run through the nodes in order.
	Add []NewNode
	// Remove are nodes that go: what runs there is stopped as a drain would, with time
	// to save, and then they are gone.
	Remove []plan.NodeID
	// Submit are jobs that are submitted now. One whose running time is not given takes
	// what its owner declares, or what is believed of one of which nothing is known.
	Submit []Arrival
	// First are events: another tree of queues (engine.Shares), a person's request, a
	// loss.
	First []engine.Event
}

// NewNode is a node to be added: in a rack that there is, with devices of a model that
// there is (by its name) or that is new.
type NewNode struct {
	cluster.Node
	Devices cluster.Model
	Count   int
}

// mostModels is how many device models the set of those a job may use can tell apart.
const mostModels = 64

// With returns the configuration of the future in which something is different. The
// future itself is looked at by Run.
func (c Config) With(change Change) (Config, error) {
	if change.Scheduler != nil {
		c.Scheduler, c.TellTruth, c.Switched = change.Scheduler, change.TellTruth, true
	}
	if len(change.Add) > 0 {
		grown, err := Grow(c.State, change.Add)
		if err != nil {
			return c, err
		}
		c.State = grown
	}
	now := max(c.Now, c.State.Now)
	c.First = slices.Concat(c.First, change.First)
	if err := c.remove(now, change.Remove); err != nil {
		return c, err
	}
	if len(change.Submit) > 0 {
		c.submit(now, change.Submit)
	}
	return c, nil
}

// remove lets nodes go.
func (c *Config) remove(now unit.Time, nodes []plan.NodeID) error {
	v, saved := c.State.View(), unit.Duration(0)
	for id := range plan.RunID(v.RunSlots()) {
		if r := v.Run(id); r.Status != plan.Gone {
			saved = max(saved, v.Job(r.Job).Checkpoint.Save)
		}
	}
	c.Later = slices.Clone(c.Later)
	for _, id := range nodes {
		if id < 0 || int(id) >= v.Nodes() {
			return fmt.Errorf("there is no node %d to be removed: the cluster has %d", id, v.Nodes())
		}
		c.First = append(c.First, engine.Event{Kind: engine.Drain, Node: id})
		c.Later = append(c.Later, simulated.Later{At: now.Add(saved + 1), Event: engine.Event{Kind: engine.NodeDown, Node: id}})
	}
	slices.SortStableFunc(c.Later, func(a, b simulated.Later) int { return int(min(1, max(-1, a.At-b.At))) })
	return nil
}

// submit lets jobs come before all others.
func (c *Config) submit(now unit.Time, jobs []Arrival) {
	jobs = slices.Clone(jobs)
	for i := range jobs {
		j := &jobs[i]
		j.Job.Submit = now
		if j.Truth.Duration == 0 {
			j.Truth.Duration = j.Job.Estimate
		}
		if j.Truth.Duration == 0 {
			j.Truth.Duration = Unheard
		}
	}
	then := c.Arrivals
	c.Arrivals = func() simulated.Source {
		if then == nil {
			return &arriving{jobs, nil}
		}
		return &arriving{jobs, then()}
	}
}

// Grow returns a State as if its cluster had more nodes, idle and healthy. Everything
// that is keeps its id. What may use any model may use the new ones too.
func Grow(s *plan.State, nodes []NewNode) (*plan.State, error) {
	was := s.Cluster
	now := &cluster.Cluster{Name: was.Name, Models: slices.Clone(was.Models), Racks: slices.Clone(was.Racks),
		Nodes: slices.Clone(was.Nodes), Devices: slices.Clone(was.Devices)}
	for i := range nodes {
		n := nodes[i].Node
		if int(n.Rack) >= max(1, len(now.Racks)) || n.Rack < 0 || nodes[i].Count < 0 || nodes[i].Devices.Name == "" {
			return nil, fmt.Errorf("adding node %q: expected a rack below %d, a number of devices and the name of their model", n.Name, len(now.Racks))
		}
		if n.Model = now.AddModel(nodes[i].Devices); n.Model >= mostModels {
			return nil, fmt.Errorf("adding node %q: %d device models are the most", n.Name, mostModels)
		}
		now.AddNode(n, nodes[i].Count)
	}
	g := *s.Copy()
	fresh := plan.NewState(now)
	g.Cluster = now
	g.Nodes = append(g.Nodes, fresh.Nodes[len(g.Nodes):]...)
	g.Devices = append(g.Devices, fresh.Devices[len(g.Devices):]...)
	if len(now.Models) > len(was.Models) {
		moreModels(&g, len(was.Models), len(now.Models))
	}
	// What follows from the tables is made anew on the way through a snapshot, which
	// also proves that they agree.
	grown, err := g.Clone()
	if err != nil {
		return nil, fmt.Errorf("adding nodes: %w", err)
	}
	return grown, nil
}

// moreModels makes room for new device models in what is kept per model.
func moreModels(s *plan.State, was, now int) {
	accounts := s.Accounts
	s.Accounts = nil
	for i := 0; i < len(accounts); i += was {
		s.Accounts = append(s.Accounts, accounts[i:i+was]...)
		for m := was; m < now; m++ {
			s.Accounts = append(s.Accounts, plan.Account{Tenant: accounts[i].Tenant, User: accounts[i].User, Model: int32(m), Since: s.Now})
		}
	}
	for i := range s.Jobs {
		s.Jobs[i].Account = s.Jobs[i].Account / int32(was) * int32(now)
	}
	s.Shapes = slices.Clone(s.Shapes)
	for i := range s.Shapes {
		if s.Shapes[i].Models == ^uint64(0)>>(64-was) {
			s.Shapes[i].Models = ^uint64(0) >> (64 - now)
		}
	}
}
