package plan

import (
	"slices"

	"github.com/musterdl/muster/model/unit"
)

// Repairs are what was seen of how long lost nodes are away: what the next one is believed to take.
type Repairs struct {
	Away []Absence // nodes that are lost now; the list is replaced, never written into
	Seen int64     // how many came back
	Took unit.Duration
}

// Absence is a node that is lost, and since when.
type Absence struct {
	Node  NodeID
	Since unit.Time
}

// Lose notes that a node is lost from now on.
func (s *State) Lose(id NodeID) {
	s.Repairs.Away = append(slices.Clip(s.Repairs.Away), Absence{id, s.Now})
}

// Mend notes that a lost node is back.
func (s *State) Mend(id NodeID) {
	r := &s.Repairs
	at := slices.IndexFunc(r.Away, func(l Absence) bool { return l.Node == id })
	if at < 0 {
		return // it was lost before anybody counted
	}
	r.Seen++
	r.Took += s.Now.Sub(r.Away[at].Since)
	r.Away = slices.Delete(slices.Clone(r.Away), at, at+1)
}

// Repair is how long a lost node is believed to be away: the mean of what was seen, in which what one
// believes beforehand counts as one.
func (v View) Repair(prior unit.Duration) unit.Duration {
	return (prior + v.s.Repairs.Took) / unit.Duration(1+v.s.Repairs.Seen)
}

// UsualRepair is how long a lost node is believed to be away before any came back, where nobody says otherwise.
const UsualRepair = 30 * unit.Minute

// Return is when a lost node is expected back: it is believed to be away for as long as such nodes are in the mean;
// once it is away for longer, for twice as long, and then for four times. Of times that are spread as those between
// chance events one in fifty is longer still: nobody counts on the node then any more, and Return is Never.
func (v View) Return(id NodeID, prior unit.Duration) unit.Time {
	away := v.s.Repairs.Away
	at := slices.IndexFunc(away, func(l Absence) bool { return l.Node == id })
	if at < 0 {
		return unit.Never
	}
	mean := v.Repair(prior)
	for _, times := range [...]unit.Duration{1, 2, 4} {
		if back := away[at].Since.Add(times * mean); back > v.s.Now {
			return back
		}
	}
	return unit.Never
}
