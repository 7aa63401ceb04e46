package plan

import (
	"strconv"

	"github.com/musterdl/muster/model/unit"
)

// Verb says what a change does.
type Verb uint8

// The verbs. Resizing or moving a run is a stop and a start that waits for it.
const (
	Start    Verb = iota // a new run of a job
	Stop                 // end a run, keeping its work as far as the job can
	Suspend              // keep a run resident without computing
	Resume               // let a suspended run compute again
	Regrant              // new terms for a run that goes on
	Reshape              // cut a device another way
	Refuse               // do not accept a job
	Withdraw             // take back a promise before it was carried out
	Rent                 // send for a node that can be rented
	Return               // give a rented node back
	Finish               // end a job although work is left: its goal is reached
	numVerbs
)

var verbNames = [...]string{"start", "stop", "suspend", "resume", "regrant", "reshape", "refuse", "withdraw", "rent", "return", "finish"}

// String names the verb as journal and API do.
func (v Verb) String() string { return verbNames[v] }

// OfRun reports whether a change is about a run of a job.
func (v Verb) OfRun() bool { return v != Reshape && v != Rent && v != Return }

// Change is one thing to be carried out. It goes to the driver once every change
// in After is confirmed; its own confirmation or failure comes back as an event.
type Change struct {
	ID      int64
	Job     JobID
	Attempt int32
	Run     RunID
	Device  DeviceID // of a reshape
	Node    NodeID   // that is rented or given back
	Verb    Verb
	Shape   int16 // geometry of a reshape
	After   []int64
	Terms   Terms
	Price   unit.Duration // running time the change is expected to cost
	Reason  Reason
}

// Pending is a change that waits for the changes in Left.
type Pending struct {
	Change Change
	Left   []int64
	Gone   bool // withdrawn, or handed over
}

// Note is one line of a dossier: what a step decided for a change, the best
// alternative it rejected, and the two numbers that decided.
type Note struct {
	Change           int64
	Step             Step
	Chosen, Rejected int64
	Won, Lost        int64
}

// Step is one of the six steps of the procedure.
type Step uint8

// The six steps.
const (
	Profiling Step = iota + 1
	Allocation
	Scheduling
	Pipelining
	Flows
	Execution
)

var stepNames = [...]string{"", "profile", "allocate", "schedule", "pipeline", "flow", "run"}

// String is the step's name.
func (s Step) String() string { return stepNames[s] }

// Commit is the complete list of changes decided at one instant.
type Commit struct {
	Seq     int64
	At      unit.Time
	Changes []Change
	Notes   []Note
	Asides  []Aside
}

// AppendJSON appends the commit's canonical line to b: what --decisions writes and
// what the decision hash is taken of. Members are read from the grants, so it must
// be called before the state moves on.
func (c *Commit) AppendJSON(b []byte, v View) []byte {
	b = append(b, `{"commit":`...)
	b = strconv.AppendInt(b, c.Seq, 10)
	b = append(b, `,"at_us":`...)
	b = strconv.AppendInt(b, int64(c.At), 10)
	b = append(b, `,"changes":[`...)
	for i := range c.Changes {
		if i > 0 {
			b = append(b, ',')
		}
		b = c.Changes[i].appendJSON(b, v)
	}
	return append(b, "]}\n"...)
}

func (c *Change) appendJSON(b []byte, v View) []byte {
	b = append(b, `{"id":`...)
	b = strconv.AppendInt(b, c.ID, 10)
	b = append(b, `,"verb":"`...)
	b = append(b, c.Verb.String()...)
	b = append(b, '"')
	switch c.Verb {
	case Reshape:
		b = appendInt(b, "device", int64(c.Device))
		b = appendInt(b, "geometry", int64(c.Shape))
	case Rent, Return:
		b = appendInt(b, "node", int64(c.Node))
	default:
		b = appendInt(b, "job", int64(c.Job))
		b = appendInt(b, "attempt", int64(c.Attempt))
	}
	if len(c.After) > 0 {
		b = append(b, `,"after":[`...)
		for i, a := range c.After {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, a, 10)
		}
		b = append(b, ']')
	}
	if c.Verb == Start {
		b = appendMembers(b, v, c.Run)
	}
	b = c.Terms.AppendMembers(b)
	b = append(b, `,"reason":"`...)
	b = append(b, c.Reason.Code.String()...)
	b = append(b, '"')
	if c.Reason.A != 0 || c.Reason.B != 0 {
		b = appendInt(b, "a", c.Reason.A)
		b = appendInt(b, "b", c.Reason.B)
	}
	return append(b, '}')
}

// appendMembers writes the devices of a run as [node,first,count] for runs of
// whole devices in a row and [node,device,thousandths] for shares.
func appendMembers(b []byte, v View, id RunID) []byte {
	b = append(b, `,"on":[`...)
	first := true
	var from, count DeviceID
	var node NodeID
	flush := func() {
		if count == 0 {
			return
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendTriple(b, int64(node), int64(from), int64(count))
		count = 0
	}
	v.GrantsOf(id, func(g Grant) {
		whole := g.Device != None && g.Reserve == 1000
		if whole && count > 0 && g.Device == from+count && g.Node == node {
			count++
			return
		}
		flush()
		if whole {
			node, from, count = g.Node, g.Device, 1
			return
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = appendTriple(b, int64(g.Node), int64(g.Device), -int64(g.Reserve))
	})
	flush()
	return append(b, ']')
}

func appendTriple(b []byte, x, y, z int64) []byte {
	b = append(b, '[')
	b = strconv.AppendInt(b, x, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, y, 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, z, 10)
	return append(b, ']')
}

func appendInt(b []byte, name string, n int64) []byte {
	b = append(b, ',', '"')
	b = append(b, name...)
	b = append(b, '"', ':')
	return strconv.AppendInt(b, n, 10)
}
