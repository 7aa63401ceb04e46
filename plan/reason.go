package plan

import (
	"fmt"
	"math"
	"strconv"

	"github.com/musterdl/muster/model/unit"
)

// Reason says in data why a job is where it is, or why a change is made. Words
// turns it into a sentence.
type Reason struct {
	Code ReasonCode
	A, B int64
}

// Lost is for how long whoever starts with so many thousandths of devices would have to compute to make up
// for what those lost who made room for it.
func (r Reason) Lost(milli int64) unit.Duration {
	if r.Code != TookRoomOf || milli <= 0 {
		return 0
	}
	return unit.Duration(min(float64(unit.Forever), math.Ceil(float64(r.B)*1000/float64(milli))))
}

// ReasonCode is what A and B are about.
type ReasonCode uint8

// The reasons.
const (
	NoReason      ReasonCode = iota
	New                      // just submitted
	Fits                     // there was room: A milli taken
	Backfilled               // started ahead of job A, which does not fit
	NoRoom                   // wants A milli, B are free; where B is no less, what it needs beside them is not
	Fragmented               // A milli are free in all, but not where the job could use them
	Behind                   // the order is strict and job A is ahead
	Unsatisfiable            // the cluster can never hold it: wants A milli, B exist
	WaitsForJob              // after job A
	UserHeld                 // a person holds it
	BackingOff               // until A after failure class B
	CrashLoop                // held after A failures
	MadeWayFor               // preempted for job A
	TookRoomOf               // started in room taken from A runs, which lost B device-microseconds by it
	SliceOver                // its turn is over
	SliceBegins              // its turn has come
	Rebalanced               // resized from A to B workers
	Moved                    // moved for a better place
	LeaseOver                // its lease ended
	LeaseBegins              // its lease began
	NodeLost                 // node A was lost
	StartBroke               // could not start, class A
	RunFailed                // failed, class A
	OverLimit                // over its time limit
	ByUser                   // a person asked
	RoundPlan                // the round's allocation says so; approximated for A jobs where A is above 0, though B are divided exactly
	Packed                   // shares a device with job A
	Unpacked                 // sharing with job A did not pay
	Interleaved              // its traffic is shifted by A microseconds
	Partitioned              // the device is cut into geometry A
	NotFeasible              // refused: earliest acceptable end is A after submission
	Answered                 // an outside decider answered
	Superseded               // the promise was overtaken by events
	DidFinish                // done
	DependencyEnd            // job A ended without finishing
	NodeSick                 // node A quarantined after B failures
	Estimated                // A microseconds by the estimator
	Impossible               // asked for what is not there, or for A workers, which the job cannot have
	Outdated                 // an outside decider's answer no longer fits, for reason A
	Switched                 // another strategy decides from now on
	QueueLimit               // queue A may hold only B milli more
	BorrowLimit              // queue A may borrow only B milli more
	UserLimit                // its user may hold only B milli more in queue A
	KeptBack                 // queue A does not lend the B milli that it keeps idle
	Reserved                 // what is free is reserved for job A from B on
	Maintenance              // node A is closed from B on
	Reclaimed                // taken back for the guarantee of job A's queue
	Outranked                // made way for job A of higher priority
	Defragmented             // moved to make room for job A
	Rented                   // node A is worth its price
	NotNeeded                // node A is not worth its price any more
	Merged                   // trains together with job A, whose model it shares
	Shed                     // stopped for overload: its goal is reached, or near enough
	Replanned                // goes on by another plan, whose step takes B microseconds in place of A
	WentOn                   // goes on without what was lost, on A workers
	LeftSlow                 // leaves a device that became slow, and goes on with A workers
	KeptOn                   // goes on in the processes that are left, with A workers
	numReasons
)

var reasonNames = [...]string{"", "new", "fits", "backfilled", "no-room", "fragmented", "behind", "unsatisfiable",
	"waits-for-job", "held", "backing-off", "crash-loop", "made-way-for", "took-room-of", "slice-over", "slice-begins",
	"rebalanced", "moved", "lease-over", "lease-begins", "node-lost", "start-broke", "run-failed", "over-limit", "by-user",
	"round-plan", "packed", "unpacked", "interleaved", "partitioned", "not-feasible", "answered", "superseded", "finished",
	"dependency-ended", "node-sick", "estimated", "impossible", "outdated", "switched", "queue-limit", "borrow-limit",
	"user-limit", "kept-back", "reserved", "maintenance", "reclaimed", "outranked", "defragmented", "rented", "not-needed", "merged", "shed", "replanned", "went-on", "left-slow", "kept-on"}

// String names the reason as journal and API do.
func (c ReasonCode) String() string { return reasonNames[c] }

// ReasonByName is the reason that String names so.
func ReasonByName(name string) (ReasonCode, bool) {
	for i, n := range reasonNames {
		if n == name {
			return ReasonCode(i), true
		}
	}
	return NoReason, false
}

// Words puts the reason in a sentence for people.
func (r Reason) Words(v View) string {
	if words, ok := reasonWords[r.Code]; ok {
		return words + r.approximated()
	}
	if words, ok := r.aboutShares(v); ok {
		return words
	}
	name := v.s.jobName
	switch r.Code {
	case NoReason:
		return ""
	case New:
		return "just submitted"
	case Fits:
		return "there was room"
	case Backfilled:
		return "fits beside " + name(r.A) + ", which is ahead in the queue but does not fit yet"
	case NoRoom:
		if r.B >= r.A {
			return fmt.Sprintf("%s free, but with too few cores or too little memory beside them", Devices(r.B)+" "+Are(r.B))
		}
		return fmt.Sprintf("wants %s, %s %s free for it", Devices(r.A), Amount(r.B), Are(r.B))
	case Fragmented:
		return fmt.Sprintf("%s %s free, but not together where the job could use them", Devices(r.A), Are(r.A))
	case Behind:
		return name(r.A) + " is ahead and the order is strict"
	case Unsatisfiable:
		return "can never start here: " + r.whyNever()
	case WaitsForJob:
		return "comes after " + name(r.A)
	case UserHeld:
		return "held by a person; release it to go on"
	case BackingOff:
		return fmt.Sprintf("failed (%s); will be tried again in %s", FailureClass(r.B), unit.Time(r.A).Sub(v.s.Now))
	case CrashLoop:
		return fmt.Sprintf("held after %s of its own; look at its log, then release it", counted(r.A, "failure"))
	case MadeWayFor:
		return "made way for " + name(r.A)
	case TookRoomOf:
		return fmt.Sprintf("started in room that %s gave up", counted(r.A, "lower-ranked run"))
	case Rebalanced:
		return fmt.Sprintf("resized from %d to %d workers", r.A, r.B)
	case NodeLost:
		return "its node " + v.s.nodeName(r.A) + " was lost"
	case StartBroke, RunFailed:
		return fmt.Sprintf("attempt failed (%s)", FailureClass(r.A))
	case Packed:
		return "shares a device with " + name(r.A)
	case Unpacked:
		return "sharing a device with " + name(r.A) + " did not pay"
	case Interleaved:
		if r.A == 0 {
			return "its part of the links that it shares is set anew"
		}
		return fmt.Sprintf("its traffic is shifted by %s to pass between its neighbours'", unit.Duration(r.A))
	case NotFeasible:
		return fmt.Sprintf("its deadline cannot be promised; the earliest that could be is %s after submission", unit.Duration(r.A))
	case DependencyEnd:
		return name(r.A) + ", which it comes after, ended without finishing"
	case NodeSick:
		return fmt.Sprintf("%s is quarantined after %s in a row", v.s.nodeName(r.A), counted(r.B, "failure"))
	case Impossible:
		return fmt.Sprintf("%s of it would stand somewhere that is not there or may not be", counted(r.A, "worker"))
	case Estimated:
		return "expected to run " + unit.Duration(r.A).String()
	}
	return ""
}

// whyNever is why a cluster never holds a job, as far as devices tell.
func (r Reason) whyNever() string {
	if r.A > 0 && r.A <= r.B {
		return fmt.Sprintf("no nodes that it may use have %s as it wants them", Devices(r.A))
	}
	return fmt.Sprintf("wants %s, the cluster has %s it could use", Devices(r.A), Amount(r.B))
}

// aboutShares puts a reason about queues, the calendar or giving way in a sentence.
func (r Reason) aboutShares(v View) (words string, ok bool) {
	queue, name := "the cluster", v.s.jobName(r.A)
	if q := v.s.Queues.Queues; r.A > 0 && r.A < int64(len(q)) {
		queue = "queue " + q[r.A].Name
	}
	switch r.Code {
	case QueueLimit:
		return fmt.Sprintf("%s is at its limit: %s %s left of it", queue, Devices(r.B), Are(r.B)), true
	case BorrowLimit:
		return fmt.Sprintf("%s borrows as much as it may: %s %s left of that", queue, Devices(r.B), Are(r.B)), true
	case UserLimit:
		return fmt.Sprintf("its user is at the limit for one user in %s: %s %s left of it", queue, Devices(r.B), Are(r.B)), true
	case KeptBack:
		return fmt.Sprintf("%s keeps %s free for itself and does not lend them", queue, Devices(r.B)), true
	case Reserved:
		return "what is free is reserved for " + name, true
	case Maintenance:
		return v.s.nodeName(r.A) + " is closed for maintenance before the job would end", true
	case Reclaimed:
		return "gave back what its queue had borrowed, to " + name, true
	case Outranked:
		return "made way for " + name + ", which has a higher priority", true
	case Defragmented:
		return "moved to make room for " + name, true
	case Rented:
		return v.s.nodeName(r.A) + " is worth its price", true
	case NotNeeded:
		return v.s.nodeName(r.A) + " is not worth its price any more", true
	case Merged:
		return "trains together with " + name + ", whose model it shares", true
	case Replanned:
		return fmt.Sprintf("goes on by another plan: a step takes %s in place of %s", unit.Duration(r.B), unit.Duration(r.A)), true
	case WentOn:
		return fmt.Sprintf("goes on without what was lost, on %s", counted(r.A, "worker")), true
	case KeptOn:
		return fmt.Sprintf("goes on in the processes that are left, with %s", counted(r.A, "worker")), true
	case LeftSlow:
		return fmt.Sprintf("leaves what became slow, and goes on with %s", counted(r.A, "worker")), true
	case Shed:
		return "stopped under overload: its goal is reached, or near enough", true
	}
	return "", false
}

func (s *State) jobName(id int64) string {
	if id < 0 || id >= int64(len(s.Names)) {
		return "another job"
	}
	return s.Names[id]
}

func (s *State) nodeName(id int64) string {
	if id < 0 || id >= int64(len(s.Cluster.Nodes)) {
		return "a node"
	}
	return s.Cluster.Nodes[id].Name
}

// approximated says of an allocation that the strategy's own program did not make it.
func (r Reason) approximated() string {
	switch {
	case r.Code != RoundPlan || r.A == 0:
		return ""
	case r.A > r.B:
		return fmt.Sprintf(", approximated because %s are more than the %d that it divides exactly", counted(r.A, "job"), r.B)
	}
	return fmt.Sprintf(", approximated because its program found no answer for %s", counted(r.A, "job"))
}

var reasonWords = map[ReasonCode]string{
	SliceOver: "its turn on the device is over", SliceBegins: "its turn on the device has come",
	Moved: "moved to a better place", LeaseOver: "its lease ended", LeaseBegins: "its lease began",
	OverLimit: "ran over its time limit", ByUser: "a person asked", RoundPlan: "this round's allocation says so",
	Partitioned: "the device is being cut another way", Answered: "an outside decider said so",
	Outdated: "what an outside decider said of it no longer fits", Switched: "another strategy decides from now on",
	Superseded: "the promise was overtaken by events", DidFinish: "did its work",
}

// Amount writes thousandths as people do: "2", "0.5".
func Amount(milli int64) string { return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64) }

// Devices counts devices: "1 device", "0.5 devices".
func Devices(milli int64) string {
	if milli == 1000 {
		return "1 device"
	}
	return Amount(milli) + " devices"
}

// counted is so many of something, one or several.
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strconv.FormatInt(n, 10) + " " + noun
}

// Are goes with an amount.
func Are(milli int64) string {
	if milli == 1000 {
		return "is"
	}
	return "are"
}
