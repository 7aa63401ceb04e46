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
