package defrag

import (
	"strings"

	"github.com/musterdl/muster/plan"
)

// Request asks for a plan, and for it to be carried out.
type Request struct {
	// Job is whom room is made for; empty is the best-ranked job that there is a plan for.
	Job string `json:"job,omitempty"`
	// Apply carries the plan out if it still is the one that Digest stands for.
	Apply  bool   `json:"apply"`
	Digest string `json:"digest,omitempty"`
	// MovesMost and PriceMostDeviceHours bound the plan; 0 is DefaultBudget's.
	MovesMost            int     `json:"moves_most,omitempty"`
	PriceMostDeviceHours float64 `json:"price_most_device_hours,omitempty"`
}

// Shown is a plan as people see it.
type Shown struct {
	Job              string      `json:"job,omitempty"`
	Moves            []ShownMove `json:"moves"`
	Starts           *ShownStart `json:"starts,omitempty"`
	PriceDeviceHours float64     `json:"price_device_hours"`
	Before           []ShownNode `json:"before"`
	After            []ShownNode `json:"after"`
	Words            string      `json:"words"`
	// Digest stands for the plan; there is none where nothing is moved.
	Digest  string `json:"digest,omitempty"`
	Applied bool   `json:"applied"`
}

// ShownMove is one move; those before it make its room.
type ShownMove struct {
	Job              string   `json:"job"`
	From             []string `json:"from"`
	To               []string `json:"to"`
	Devices          float64  `json:"devices"`
	PriceSec         float64  `json:"price_s"` // of its running time
	PriceDeviceHours float64  `json:"price_device_hours"`
}

// ShownStart is what the moves make possible.
type ShownStart struct {
	Job     string   `json:"job"`
	Nodes   []string `json:"nodes"`
	Workers int32    `json:"workers"`
	Devices float64  `json:"devices"`
}

// ShownNode is who is on the devices of a node: a job, several joined by " + ", or "".
type ShownNode struct {
	Node    string   `json:"node"`
	Devices []string `json:"devices"`
}

// Show puts a plan, or that there is none, in names.
func (s *Sequence) Show(v plan.View) Shown {
	out := Shown{Moves: []ShownMove{}, Before: show(v, s.Before), After: show(v, s.After), Words: s.Why, PriceDeviceHours: hours(s.Price)}
	if s.Job != plan.None {
		out.Job = v.Name(s.Job)
	}
	if len(s.Start.Places) == 0 {
		return out
	}
	out.Starts = &ShownStart{Job: out.Job, Nodes: Nodes(v, s.Start.Places)}
	for _, p := range s.Start.Places {
		out.Starts.Workers += p.Workers
	}
	out.Starts.Devices = float64(v.Shape(s.Job).Milli(out.Starts.Workers)) / 1000
	for i := range s.Moves {
		m := &s.Moves[i]
		out.Moves = append(out.Moves, ShownMove{Job: v.Name(m.Job), From: Nodes(v, m.From), To: Nodes(v, m.Places),
			Devices: float64(m.Devices) / 1000, PriceSec: m.Move.Price.Seconds(), PriceDeviceHours: hours(m.Price)})
	}
	if len(s.Moves) > 0 {
		out.Digest = s.Digest()
	}
	return out
}

func show(v plan.View, nodes []NodeView) []ShownNode {
	list := []ShownNode{}
	for _, n := range nodes {
		shown := ShownNode{Node: v.Cluster().Nodes[n.Node].Name, Devices: make([]string, len(n.Devices))}
		for i, jobs := range n.Devices {
			var names []string
			for _, id := range jobs {
				names = append(names, v.Name(id))
			}
			shown.Devices[i] = strings.Join(names, " + ")
		}
		list = append(list, shown)
	}
	return list
}

// Applied reports whether the engine has carried a plan out: every job has the run that
// it was given. All of it was done or nothing.
func (s *Sequence) Applied(v plan.View) bool {
	ev := s.Event()
	for i := range ev.Moves {
		if v.Job(ev.Moves[i].Job).Attempt < ev.Moves[i].Attempt {
			return false
		}
	}
	return true
}
