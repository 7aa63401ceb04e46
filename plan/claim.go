package plan

import (
	"slices"

	"github.com/musterdl/muster/unit"
)

// Claim is a place in the calendar: what a waiting job will be given, from when on.
type Claim struct {
	Job JobID
	// Made is when the job first had a claim, and First the instant it was given then.
	Made, First unit.Time
	At          unit.Time     // Never where it hangs on runs of which nobody knows the end
	Length      unit.Duration // Forever where unknown
	Parts       []Part
}

// Part is what a claim takes of one node.
type Part struct {
	Node    NodeID
	Devices int32
	CPU     int32 // thousandths of a core
	Host    int32 // MiB
}

// Window is a time in which a node is closed for maintenance: it is drained at From
// and takes runs again at To.
type Window struct {
	Node     NodeID
	From, To unit.Time
	// Open says that it has begun.
	Open bool
}

// Claims are the places in the calendar, the best-ranked job's first.
func (v View) Claims() []Claim { return v.s.Claims }

// Windows are the maintenance windows that have not ended, by node and instant.
func (v View) Windows() []Window { return v.s.Windows }

// Reserve replaces the claims in the calendar.
func (d *Draft) Reserve(claims []Claim) {
	if !slices.EqualFunc(d.s.Claims, claims, Claim.equal) {
		d.s.Claims = slices.Clone(claims) // a new list: a mark, or a copy of the state, may hold the old
		d.aside(Aside{Kind: "claims", Claims: d.s.Claims})
	}
}

func (c Claim) equal(o Claim) bool {
	return c.Job == o.Job && c.Made == o.Made && c.First == o.First && c.At == o.At && c.Length == o.Length && slices.Equal(c.Parts, o.Parts)
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
