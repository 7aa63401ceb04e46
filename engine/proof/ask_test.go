package proof

import (
	"encoding/json"
	"fmt"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// ask leaves the decision to a program outside: it describes what waits and what is
// free, goes on, and tries the answer one operation at a time on what is there when it
// comes. What no longer fits is refused with a reason; where no answer comes in time,
// or one leaves jobs waiting, first fit decides. It pulls at: questions and answers as
// events, a decider that is slow, dead or wrong.
type ask struct {
	m    askMemory
	asks []strategy.Ask
}

type askMemory struct {
	Asked int64     // questions so far; an answer names the one it is for
	Open  bool      // the last has no answer yet
	Until unit.Time // when first fit decides
	Of    string    // what the last question was about
}

const patience = 30 * unit.Second

func (a *ask) Remember() []byte { return remember(a.m) }

func (a *ask) Recall(memory []byte) error { return recall(memory, &a.m) }

// Asks hands over the question of the last decision, once.
func (a *ask) Asks() []strategy.Ask {
	asks := a.asks
	a.asks = nil
	return asks
}

// question is what the program outside reads, and answer what it writes.
type question struct {
	ID    int64          `json:"id"`
	Jobs  []questionJob  `json:"jobs"`
	Nodes []questionNode `json:"nodes"`
}

type questionJob struct {
	Job     plan.JobID `json:"job"`
	Workers int32      `json:"workers"`
	Devices int32      `json:"devices"`
}

type questionNode struct {
	Node plan.NodeID `json:"node"`
	Free int32       `json:"free"`
}

type answer struct {
	ID  int64 `json:"id"`
	Ops []struct {
		Op  string     `json:"op"`
		Job plan.JobID `json:"job"`
		On  [][2]int32 `json:"on"` // node, workers
	} `json:"ops"`
}

func (a *ask) Decide(d *plan.Draft, why schedule.Trigger) unit.Time {
	for _, reply := range why.Answers {
		var r answer
		if err := json.Unmarshal(reply.Reply, &r); err == nil && a.m.Open && r.ID == a.m.Asked {
			a.m.Open, a.m.Until = false, d.Now().Add(patience)
			a.apply(d, &r)
		}
	}
	if d.Now() >= a.m.Until && a.m.Of != "" {
		a.m.Open, a.m.Until = false, unit.Never
		for _, job := range waiting(d.View) {
			place(d, job, d.Shape(job).Gang, plan.DefaultTerms(), plan.Reason{Code: plan.Fits})
		}
	}
	if len(waiting(d.View)) == 0 {
		a.m.Open, a.m.Until, a.m.Of = false, unit.Never, ""
		return unit.Never
	}
	a.ask(d.View)
	return a.m.Until
}

// ask puts the question if it is another than the last.
func (a *ask) ask(v plan.View) {
	q := question{Jobs: []questionJob{}, Nodes: []questionNode{}}
	for _, job := range waiting(v) {
		q.Jobs = append(q.Jobs, questionJob{job, v.Shape(job).Gang, v.Shape(job).Devices})
	}
	for id := range plan.NodeID(v.Nodes()) {
		if n := v.Node(id); n.Status == plan.Up {
			q.Nodes = append(q.Nodes, questionNode{id, n.FreeDevices + idleCut(v, n)})
		}
	}
	if of := fmt.Sprint(q.Jobs, q.Nodes); !a.m.Open && of != a.m.Of {
		a.m = askMemory{Asked: a.m.Asked + 1, Open: true, Until: v.Now().Add(patience), Of: of}
		q.ID = a.m.Asked
		text, err := json.Marshal(q)
		if err != nil {
			panic(err) // numbers
		}
		a.asks = append(a.asks, strategy.Ask{Asker: "ask", Question: text})
	}
}

// idleCut counts the devices of a node that would be free whole if they were made so.
func idleCut(v plan.View, n plan.Node) (count int32) {
	for id := n.First; id < n.First+plan.DeviceID(n.Count); id++ {
		if d := v.Device(id); d.Geometry != 0 && d.First == plan.None {
			count++
		}
	}
	return count
}

// apply tries the operations of an answer one by one.
func (a *ask) apply(d *plan.Draft, r *answer) {
	for _, op := range r.Ops {
		var slots []plan.Slot
		for _, on := range op.On {
			slots = append(slots, plan.Slot{Node: plan.NodeID(on[0]), Device: plan.None, Workers: on[1]})
		}
		why := plan.Reason{Code: plan.Impossible}
		if op.Op == "start" {
			_, why = d.Start(op.Job, slots, plan.DefaultTerms(), plan.Reason{Code: plan.Answered})
		}
		if why.Code != plan.NoReason {
			d.Explain(op.Job, plan.Reason{Code: plan.Outdated, A: int64(why.Code)})
		}
	}
}
