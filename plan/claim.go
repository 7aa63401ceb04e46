package plan

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Claim is a place in the calendar: what a waiting job will be given, from when on.
type Claim struct {
	Job     JobID
	Workers int32
	// At is when it is expected to start; Never if that hangs on runs whose end nobody
	// knows.
	At unit.Time
	// Due is the earliest At that was ever claimed, and the calendar's slack. From then
	// on, and for as long as At is Never, the claim is closed: no other work gets its
	// room.
	Due    unit.Time
	Length unit.Duration // of the run to come; Forever when unknown
	Parts  []Part        // by node
}

// Part is what a claim takes of one node.
type Part struct {
	Node    NodeID
	Devices int32 // whole ones
	CPU     int32 // thousandths of a core
	Host    int32 // MiB
}

// Window is a time in which a node is closed for maintenance: it is drained at From
// and takes runs again at To.
type Window struct {
	Node     NodeID
	From, To unit.Time
	// Open says that it has begun, and Kept that the node was closed already by then and
	// stays so.
	Open, Kept bool
}

// Claims are the places in the calendar, the best-ranked job's first.
func (v View) Claims() []Claim { return v.s.Claims }

// Windows are the maintenance windows that have not ended, by node and instant.
func (v View) Windows() []Window { return v.s.Windows }

// Reserve replaces the claims in the calendar.
func (d *Draft) Reserve(claims []Claim) {
	if !slices.EqualFunc(d.s.Claims, claims, Claim.Equal) {
		claims = slices.Clone(claims) // a new list: a mark, or a copy of the state, may hold the old
		for i := range claims {
			claims[i].Parts = slices.Clone(claims[i].Parts)
		}
		d.s.Claims = claims
		d.aside(Aside{Kind: "claims", Claims: d.s.Claims})
	}
}

// Closed reports whether a claim's room is kept from all other work by now.
func (c *Claim) Closed(now unit.Time) bool { return c.At == unit.Never || c.Due <= now }

// Equal reports whether two claims are the same.
func (c Claim) Equal(o Claim) bool {
	return c.Job == o.Job && c.Workers == o.Workers && c.At == o.At && c.Due == o.Due && c.Length == o.Length && slices.Equal(c.Parts, o.Parts)
}

// Close adds a window to the calendar.
func (s *State) Close(w Window) {
	s.Windows = append(slices.Clone(s.Windows), w)
	slices.SortFunc(s.Windows, func(a, b Window) int {
		if a.Node != b.Node {
			return int(a.Node - b.Node)
		}
		return int(min(1, max(-1, a.From-b.From)))
	})
}

// Reopen takes a node's windows out of the calendar that begin before an instant, and
// all that have begun.
func (s *State) Reopen(node NodeID, before unit.Time) {
	s.Windows = slices.DeleteFunc(slices.Clone(s.Windows), func(w Window) bool { return w.Node == node && (w.Open || w.From < before) })
}
