// Package queue says who has which claim on a shared cluster: a tree of queues with
// guaranteed shares, limits, weights and priorities, per device model, and how past
// use counts. Values only, no I/O; the YAML an operator writes is read by package
// spec.
package queue

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/musterdl/muster/model/unit"
)

// Tree is the queues of a cluster. The zero Tree is one queue, the root, that all
// jobs are in.
type Tree struct {
	// Queues has the root first and every parent before its children.
	Queues []Queue `json:"queues,omitempty"`
	// HalfLife is how long it takes until half of what was used is forgotten; 0 counts
	// what is held at the moment and nothing else.
	HalfLife unit.Duration `json:"half_life_us,omitempty"`
	// Protect is how long a run is left alone before it may be displaced for a queue's
	// guarantee or a job's priority.
	Protect unit.Duration `json:"protect_us,omitempty"`
	// ProtectRank is the same for a better rank, besides what its start has to earn back.
	ProtectRank unit.Duration `json:"protect_rank_us,omitempty"`
	// Disruptions bounds how often one job is displaced for priority within a day; 0
	// is no bound. A guarantee is not held up by it.
	Disruptions int32 `json:"disruptions,omitempty"`
}

// DefaultHalfLife is the half-life where an operator says nothing.
const DefaultHalfLife = 7 * unit.Day

// DefaultProtect is how long a run is left alone where an operator says nothing.
const DefaultProtect = 10 * unit.Minute

// Queue is one queue, with what it may claim together with the queues below it.
type Queue struct {
	// Name is the path from the root, "research/vision"; the root's is empty.
	Name   string `json:"name"`
	Parent int32  `json:"parent"` // index in Tree.Queues; -1 for the root
	// Weight is the queue's part among its siblings in thousandths; 1000 is one part.
	Weight int32 `json:"weight"`
	// Priority orders siblings before their shares do; higher first.
	Priority int32 `json:"priority,omitempty"`
	// Guarantee is what the queue gets whenever it asks, Limit what it never exceeds.
	Guarantee []Amount `json:"guarantee,omitempty"`
	Limit     []Amount `json:"limit,omitempty"`
	// Keep is the part of the guarantee that is not lent to others while it lies idle.
	Keep []Amount `json:"keep,omitempty"`
	// Borrow bounds what it may hold above its guarantee.
	Borrow []Amount `json:"borrow,omitempty"`
	// UserLimit bounds what one user holds in this queue and below.
	UserLimit []Amount `json:"user_limit,omitempty"`
	// MaxRun ends a run of any job of the queue after this much running time; 0 is none.
	MaxRun unit.Duration `json:"max_run_us,omitempty"`
	// Preempt lets a job of higher priority displace jobs of lower priority in the
	// queues below the same parent.
	Preempt bool `json:"preempt,omitempty"`
	// MaxPriority bounds the priority that jobs of the queue and below ask for, where who
	// submits them does not administer it; nil is as the queue above says.
	MaxPriority *int32 `json:"max_priority,omitempty"`
}

// DefaultMaxPriority is the bound where no queue says one.
const DefaultMaxPriority = 1000

// Amount is a number of devices of a model, in thousandths; an empty Model is all
// models together.
type Amount struct {
	Model string `json:"model,omitempty"`
	Milli int64  `json:"milli"`
}

// Root is the queue that a tree without queues consists of.
func Root() Queue { return Queue{Parent: -1, Weight: 1000} }

// Flat is the tree of one queue per tenant, all of equal weight.
func Flat(tenants ...string) Tree {
	t := Tree{Queues: []Queue{Root()}, HalfLife: DefaultHalfLife, Protect: DefaultProtect}
	for _, name := range tenants {
		t.Queues = append(t.Queues, Queue{Name: name, Weight: 1000})
	}
	return t
}

// Average is what comes to as much in the past, in thousandths of a device times seconds of
// which half is forgotten per half-life, when it is held all the time: in thousandths of a device.
func (t *Tree) Average(past int64) int64 {
	if t.HalfLife == 0 {
		return 0
	}
	return int64(float64(past) * math.Ln2 / t.HalfLife.Seconds())
}

// Find returns the queue that a tenant's jobs go to: the one of that name, or the
// nearest above it that exists, the root at last.
func (t *Tree) Find(tenant string) int32 {
	for len(t.Queues) > 0 {
		for i := range t.Queues {
			if t.Queues[i].Name == tenant {
				return int32(i)
			}
		}
		cut := strings.LastIndexByte(tenant, '/')
		if cut < 0 {
			return 0
		}
		tenant = tenant[:cut]
	}
	return 0
}

// MaxPriority is the highest priority that who does not administer a tenant's queue may
// ask for there: the nearest queue above that says one says it.
func (t *Tree) MaxPriority(tenant string) int32 {
	for q := t.Find(tenant); len(t.Queues) > 0 && q >= 0; q = t.Queues[q].Parent {
		if most := t.Queues[q].MaxPriority; most != nil {
			return *most
		}
	}
	return DefaultMaxPriority
}

// Check says what is wrong with a tree, and nil where nothing is. known reports
// whether the cluster has a device model.
func (t *Tree) Check(known func(model string) bool) error {
	if t.HalfLife < 0 || t.Protect < 0 || t.ProtectRank < 0 || t.Disruptions < 0 {
		return fmt.Errorf("half-life, protection and disruptions are at least 0")
	}
	for i := range t.Queues {
		if err := t.checkPlace(i); err != nil {
			return err
		}
		if err := t.Queues[i].check(known); err != nil {
			return err
		}
	}
	return nil
}

// checkPlace says what is wrong with where a queue stands in the tree, and with its name, which says so.
func (t *Tree) checkPlace(i int) error {
	q := &t.Queues[i]
	switch {
	case i == 0 && (q.Parent != -1 || q.Name != ""):
		return fmt.Errorf("the first queue is the root: without a name or a parent")
	case i == 0:
		return nil
	case q.Parent < 0 || int(q.Parent) >= i:
		return fmt.Errorf("queue %q: its parent comes after it or does not exist", q.Name)
	case !named(q.Name, t.Queues[q.Parent].Name):
		return fmt.Errorf("queue %q: its name is not its parent's %q, a slash and one word", q.Name, t.Queues[q.Parent].Name)
	case slices.ContainsFunc(t.Queues[:i], func(other Queue) bool { return other.Name == q.Name }):
		return fmt.Errorf("queue %q is there twice", q.Name)
	}
	return nil
}

// check says what is wrong with a queue itself.
func (q *Queue) check(known func(model string) bool) error {
	switch {
	case q.Weight < 1:
		return fmt.Errorf("queue %q: weight is %d thousandths: expected at least 1", q.Name, q.Weight)
	case q.MaxRun < 0:
		return fmt.Errorf("queue %q: the longest run is negative", q.Name)
	}
	for _, a := range slices.Concat(q.Guarantee, q.Limit, q.Keep, q.Borrow, q.UserLimit) {
		if a.Milli < 0 || a.Model != "" && !known(a.Model) {
			return fmt.Errorf("queue %q: %d thousandths of %q: expected at least 0 of a device model that the cluster has", q.Name, a.Milli, a.Model)
		}
	}
	return nil
}

func named(name, parent string) bool {
	if parent != "" {
		rest, ok := strings.CutPrefix(name, parent+"/")
		if !ok {
			return false
		}
		name = rest
	}
	return name != "" && !strings.Contains(name, "/")
}
