package plan

import "fmt"

// Phase is where a job stands.
type Phase uint8

// The phases of a job.
const (
	Waiting   Phase = iota // in the queue
	Held                   // kept back by a person
	Blocked                // after jobs that have not finished
	Backoff                // will be tried again after a failure
	Active                 // has a run
	Finished               // did its work
	Failed                 // gave up, with a class
	Cancelled              // ended by a person
	Refused                // not accepted, with the terms that would be
	numPhases
)

// RunStatus is where a run stands.
type RunStatus uint8

// The statuses of a run.
const (
	Promised  RunStatus = iota // has its grants, waits for others to leave them
	Starting                   // the driver was told to start it
	Running                    // confirmed
	Suspended                  // resident, not computing
	Resuming                   // the driver was told, or is to be told, to let it compute again
	Stopping                   // the driver was told to stop it
	Gone                       // ended; the slot is free
	numRunStatuses
)

// DeviceStatus is where a device stands.
type DeviceStatus uint8

// The statuses of a device.
const (
	Steady    DeviceStatus = iota
	Reshaping              // its partition is being changed
	Arriving               // rented or repaired, not here yet
	Lost                   // failed, or its node is
	Elsewhere              // in use by work that is not ours
	numDeviceStatuses
)

// NodeStatus is where a node stands.
type NodeStatus uint8

// The statuses of a node.
const (
	Up          NodeStatus = iota
	Cordoned               // keeps its runs, takes no new ones
	Quarantined            // cordoned by the engine after repeated failures, until a trial goes well
	Down                   // lost
	Away                   // could be rented
	Coming                 // rented, not here yet
	numNodeStatuses
)

// RunKind says what a run is for.
type RunKind uint8

// The kinds of run.
const (
	Work  RunKind = iota
	Probe         // measures, and may be thrown away
)

// FailureClass says whose failure it was; the retry policy follows from it.
type FailureClass uint8

// The failure classes.
const (
	NoFailure     FailureClass = iota
	UserFailure                // the job's own: non-zero exit
	NodeFailure                // the node's or the network's: does not count against the job
	MemoryFailure              // out of memory: counts against the job
	TimeFailure                // its time limit: final
	StartFailure               // could not be started: counts against the node
	Hindered                   // could not be started there or then, which is nobody's fault: something was in the way
)

var (
	phaseNames   = [...]string{"waiting", "held", "blocked", "backoff", "active", "finished", "failed", "cancelled", "refused"}
	statusNames  = [...]string{"promised", "starting", "running", "suspended", "resuming", "stopping", "gone"}
	deviceNames  = [...]string{"steady", "reshaping", "arriving", "lost", "elsewhere"}
	nodeNames    = [...]string{"up", "cordoned", "quarantined", "down", "away", "coming"}
	failureNames = [...]string{"none", "user", "node", "memory", "time-limit", "start", "hindered"}
)

// String names the phase as journal and API do.
func (p Phase) String() string { return phaseNames[p] }

// String names the status of a run as journal and API do.
func (s RunStatus) String() string { return statusNames[s] }

// String names the status of a device as journal and API do.
func (s DeviceStatus) String() string { return deviceNames[s] }

// String names the status of a node as journal and API do.
func (s NodeStatus) String() string { return nodeNames[s] }

// String names the class as journal and API do.
func (c FailureClass) String() string { return failureNames[c] }

// Out reports whether a device in this status has nothing to give.
func (s DeviceStatus) Out() bool { return s == Lost || s == Elsewhere }

// Computes reports whether a run in this status computes or is about to: of the
// members of one turn on a device at most one does.
func (s RunStatus) Computes() bool {
	return s == Promised || s == Starting || s == Running || s == Resuming
}

// Steady reports whether a run computes or rests, and is not on its way to either or to its end.
func (s RunStatus) Steady() bool { return s == Running || s == Suspended }

// HasBegun reports whether a run has computed. Before that neither rank nor a round takes its place from it:
// for some others were stopped, and would have been for nothing.
func (s RunStatus) HasBegun() bool { return s == Running || s == Suspended || s == Resuming }

// Over reports whether a job in this phase has ended.
func (p Phase) Over() bool { return p >= Finished }

// Waits reports whether a job in this phase is waiting for something.
func (p Phase) Waits() bool { return p <= Backoff }

var phaseTable = [numPhases][]Phase{
	// A job may finish, or fail, while its stop is under way: it waits or is held by then.
	Waiting: {Held, Active, Cancelled, Refused, Failed, Finished},
	Held:    {Waiting, Blocked, Cancelled, Finished},
	Blocked: {Waiting, Held, Cancelled, Failed},
	Backoff: {Waiting, Held, Cancelled, Failed},
	Active:  {Waiting, Backoff, Held, Finished, Failed, Cancelled},
	// A person may put an ended job back in the queue.
	Finished: {Waiting, Blocked}, Failed: {Waiting, Blocked}, Cancelled: {Waiting, Blocked}, Refused: {},
}

var runTable = [numRunStatuses][]RunStatus{
	Promised:  {Starting, Gone},
	Starting:  {Running, Stopping, Gone},
	Running:   {Suspended, Stopping, Gone},
	Suspended: {Resuming, Stopping, Gone},
	Resuming:  {Running, Stopping, Gone},
	Stopping:  {Gone},
	Gone:      {Promised},
}

var deviceTable = [numDeviceStatuses][]DeviceStatus{
	Steady:    {Reshaping, Lost, Elsewhere},
	Reshaping: {Steady, Lost},
	Arriving:  {Steady, Lost},
	Lost:      {Steady, Arriving},
	Elsewhere: {Steady, Lost},
}

var nodeTable = [numNodeStatuses][]NodeStatus{
	Up:          {Cordoned, Quarantined, Down, Away},
	Cordoned:    {Up, Down, Away},
	Quarantined: {Up, Cordoned, Down},
	Down:        {Up, Cordoned},
	Away:        {Coming},
	Coming:      {Up, Down},
}

// must panics unless the transition is in its table: an illegal one is a bug of
// ours, never of the input.
func must[S interface {
	~uint8
	fmt.Stringer
}](noun string, table [][]S, from, to S) {
	for _, t := range table[from] {
		if t == to {
			return
		}
	}
	panic(fmt.Sprintf("plan: illegal transition of a %s from %s to %s", noun, from, to))
}
