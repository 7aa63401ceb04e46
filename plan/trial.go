package plan

import "github.com/musterdl/muster/model/unit"

// Trial is how a quarantined node comes back: at At one start is let in, and the node is closed again behind it
// until that has gone well.
type Trial struct {
	On     bool // it may be tried, or Run tries it: then the node is quarantined
	Run    RunID
	Failed int32 // trials in a row that failed
	At     unit.Time
}

// tries closes the nodes that a start is let in on to see how it goes, until that is known.
func tries(s *State, run RunID, slots []Slot) {
	for i := range slots {
		if n := &s.Nodes[slots[i].Node]; n.Trial.On && n.Status == Up {
			s.touchNode(slots[i].Node).Trial.Run = run
			s.SetNode(slots[i].Node, Quarantined)
		}
	}
}
