package defrag

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// sequence makes the edits once more and writes down what they are.
func (x *search) sequence(chosen []int) Sequence {
	mark := x.d.Mark()
	if !x.edit(chosen) || !x.sort(chosen) {
		panic("defrag: a plan that was made cannot be made again")
	}
	s := Sequence{Job: x.job, Start: x.moveOf(x.job), Price: x.price(chosen)}
	s.Start.Pipeline = x.pipeline
	if x.terms != plan.DefaultTerms() {
		s.Start.Terms = &x.terms
	}
	nodes := nodesOf(nil, s.Start.Places)
	for _, i := range x.order {
		c := x.runs[i]
		m := Move{Move: x.moveOf(c.Job), Run: c.Run, From: engine.PlacesOf(x.d.View, c.Run), Price: c.Price}
		m.Move.Price = x.late[c.Job]
		if shape := x.d.Shape(c.Job); shape.Devices > 0 {
			m.Devices = shape.Milli(x.d.Run(c.Run).Workers)
		}
		nodes = nodesOf(nodesOf(nodes, m.From), m.Places)
		s.Moves = append(s.Moves, m)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	s.After = occupants(x.d.View, nodes)
	s.Why = x.words(&s)
	x.d.Rollback(mark)
	s.Before = occupants(x.d.View, nodes)
	return s
}

// moveOf is the run that a job was just promised.
func (x *search) moveOf(job plan.JobID) engine.Move {
	j := x.d.Job(job)
	return engine.Move{Job: job, Attempt: j.Attempt, Places: engine.PlacesOf(x.d.View, j.Run)}
}

func nodesOf(into []plan.NodeID, places []engine.Place) []plan.NodeID {
	for _, p := range places {
		into = append(into, p.Node)
	}
	return into
}

// occupants says who is, or is to be, on the devices of some nodes.
func occupants(v plan.View, nodes []plan.NodeID) []NodeView {
	var list []NodeView
	for _, id := range nodes {
		n := v.Node(id)
		view := NodeView{Node: id, Devices: make([][]plan.JobID, n.Count)}
		for i := range view.Devices {
			v.GrantsOn(n.First+plan.DeviceID(i), func(g plan.Grant) {
				if r := v.Run(g.Run); r.Status != plan.Stopping {
					view.Devices[i] = append(view.Devices[i], r.Job)
				}
			})
			slices.Sort(view.Devices[i])
		}
		list = append(list, view)
	}
	return list
}

// words puts a plan in a sentence.
func (x *search) words(s *Sequence) string {
	name, where := x.d.Name(s.Job), strings.Join(Nodes(x.d.View, s.Start.Places), ", ")
	if len(s.Moves) == 0 {
		return fmt.Sprintf("%s fits on %s as things are: nothing has to be moved", name, where)
	}
	moves := "1 move makes"
	if n := len(s.Moves); n > 1 {
		moves = fmt.Sprintf("%d moves make", n)
	}
	return fmt.Sprintf("%s room for %s on %s (%s), at a price of %.3g device-hours", moves, name, where,
		devices(x.shape.Milli(x.workers)), hours(s.Price))
}

func devices(milli int64) string {
	if milli == 1000 {
		return "1 device"
	}
	return unit.Milli(milli).String() + " devices"
}

// hours turns device-microseconds into device-hours.
func hours(price int64) float64 { return float64(price) / float64(unit.Hour) }

// Nodes are the names of the nodes of a placement, each once.
func Nodes(v plan.View, places []engine.Place) []string {
	names := []string{}
	for _, p := range places {
		if name := v.Cluster().Nodes[p.Node].Name; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Digest stands for everything that a plan would do and what it is expected to cost:
// who has seen a plan says so by its digest.
func (s *Sequence) Digest() string {
	text, err := json.Marshal(struct {
		Event engine.Event
		Moves []Move
	}{s.Event(), s.Moves})
	if err != nil {
		panic(err) // numbers and texts
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
