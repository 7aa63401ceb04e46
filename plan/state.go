// Package plan holds what the engine believes and what it decides: the State of
// jobs, runs, grants and devices as flat arrays of integers; the Draft through
// which alone it is edited (mark, try, look, roll back, commit); the Changes a
// commit yields, each with its reason; and the checker that proves a State legal.
//
// A job is what was asked; a run is one execution of it; a grant is the part of
// one device that a run holds. Every strategy of steps 1 to 5 sees a View and
// edits a Draft; every driver carries out Changes and reports back events.
package plan

import (
	"slices"

	"github.com/musterdl/muster/model/cluster"
	"github.com/musterdl/muster/model/queue"
	"github.com/musterdl/muster/model/unit"
)

// JobID numbers jobs in order of submission. Ids are never used again.
type JobID int32

// RunID is the slot of a live run. Slots are used again; a run's lasting name is
// its job and attempt.
type RunID int32

// NodeID and DeviceID are positions in the cluster.
type (
	NodeID   int32
	DeviceID int32
)

// None is the id of nothing: no run, no device.
const None = -1

// Shape is everything about a job that placing it depends on. Jobs of equal
// shape form a class: when one of them cannot be placed, none can.
type Shape struct {
	Gang    int32 // workers
	Devices int32 // whole devices per worker; 0 for CPU-only work
	Share   int32 // thousandths of a device per worker; 1000 is a whole one
	Memory  int32 // MiB of device memory per device
	CPU     int32 // thousandths of a core per worker
	Host    int32 // MiB of host memory per worker
	Skew    int32 // largest tensor over model size, thousandths
	Models  uint64
	// NodeSet numbers the set of nodes it may be on; 0 is all of them. PerNode is how many
	// of its workers one node takes at most; 0 is any number.
	NodeSet int32
	PerNode int32
	// Sizes lists legal worker counts other than Gang, ascending, zero-terminated.
	Sizes [8]int32
}

// Elastic reports whether the shape has more than one legal size.
func (s *Shape) Elastic() bool { return s.Sizes[0] != 0 }

// MayHave reports whether n is a legal number of workers.
func (s *Shape) MayHave(n int32) bool {
	return n > 0 && (n == s.Gang || slices.Contains(s.Sizes[:], n))
}

// Most is the largest legal number of workers.
func (s *Shape) Most() int32 { return max(s.Gang, slices.Max(s.Sizes[:])) }

// Milli is what the gang holds in all at n workers, in thousandths of a device.
func (s *Shape) Milli(n int32) int64 {
	if s.Share < 1000 {
		return int64(n) * int64(s.Share)
	}
	return int64(n) * int64(s.Devices) * 1000
}

// WholeDevices is the number of whole devices n workers take; 0 for shares.
func (s *Shape) WholeDevices(n int32) int32 {
	if s.Share < 1000 {
		return 0
	}
	return n * s.Devices
}

// Job is what was asked, and the facts about it that every strategy may read: a part for
// each who writes it.
type Job struct {
	Standing
	Asked
	Attained
	Reported
	Estimate unit.Duration // step 1's, of the running time on Gang workers; 0 is unknown
	Oracle   unit.Duration // the true running time, where a driver tells it; only the estimators oracle and noisy may look
	// Memo is two words that the active Order keeps for this job. They are rolled
	// back with a draft, saved with a snapshot and zeroed when the strategy changes.
	Memo [2]int64
}

// Standing is where a job stands: its phase, its runs and what it waits for. Transitions
// write it.
type Standing struct {
	Phase Phase
	// Admitted says that a decision has seen the job and not refused it: from then on
	// no strategy may.
	Admitted  bool
	Blockers  int32         // unfinished jobs it comes after
	Since     unit.Time     // of the present phase
	Started   unit.Time     // first start; Never before
	Ended     unit.Time     // Never before
	Waited    unit.Duration // in earlier waits; the present one starts at Since
	NotBefore unit.Time     // end of a back-off
	Reason    Reason        // why it is where it is
	Run       RunID         // the run it has or is promised; None
	Leaving   RunID         // an earlier run that is still stopping; None
	Attempt   int32
}

// Asked is what the owner of a job asked for, with the tables' ids for its names. It is
// written at submission.
type Asked struct {
	Shape      int32
	Tenant     int32
	User       int32
	Account    int32 // the first of its accounts, one per device model
	Class      int32 // kind of work, key to measured speeds
	Command    int32 // what it runs, counted from 1; 0 is unknown
	Profile    int32 // what is known of it beside its shape; None without
	Priority   int32
	Retries    int32 // failures of its own making that are forgiven
	Traffic    int32 // Mbps per worker at full speed
	Submit     unit.Time
	Declared   unit.Duration // the owner's estimate; 0 is unknown
	TimeLimit  unit.Duration
	Deadline   unit.Duration // after Submit; 0 is none
	Checkpoint Checkpointing
}

// Attained is what the runs of a job that have ended came to. The books write it.
type Attained struct {
	// Executed is the running time of ended runs whose work is kept, and Service
	// the same in device-microseconds; time spent starting, stopping or redoing
	// lost work is in neither.
	Executed unit.Duration
	Service  int64
	// Work is the same as Executed in reference running time: at another rate than
	// that of what the job asked for, more or less gets done.
	Work unit.Duration
	// Used is what its ended runs used of devices, starts and stops included.
	Used unit.DeviceTime

	Preemptions int32
	Restarts    int32
	Failures    int32 // of its own making
	Unstarted   int32 // starts in a row that failed
}

// Reported is what the runs of a job last said of themselves.
type Reported struct {
	Progress int32         // in millionths of its work
	Loss     float64       // 0 before
	Fallen   float64       // how far the loss has come down since the first report
	Pace     float64       // how far, per millionth of the work, between the last two reports
	SeenAt   unit.Duration // its useful running time at the last report of its loss
	// Foretold is how long the job runs in all, on the workers that it asked for, by the report that it
	// made at ForetoldAt: the first after foretells. It is kept: what a job said is known when it has
	// ended. 0 is none yet.
	Foretold   unit.Duration
	ForetoldAt unit.Time
}

// Run is one execution of a job.
type Run struct {
	Job     JobID
	Attempt int32
	Status  RunStatus
	Kind    RunKind
	Workers int32
	First   int32     // first grant
	Since   unit.Time // of the present status
	Began   unit.Time // when it was confirmed running; Never before
	// Paused is the running time spent suspended, to be left out of service.
	Paused unit.Duration
	Until  unit.Time     // end of a lease; Never without
	Saved  unit.Duration // running time covered by its last reported checkpoint
	// RateMicro is the rate that it is believed, or seen, to have; Done is what it had
	// done, in reference running time, when it had computed for DoneAt.
	RateMicro    int64
	Done, DoneAt unit.Duration
	// RateOff is by how much RateMicro may be off, as far as it was measured; nothing where what is
	// told is exact.
	RateOff Off `json:",omitzero"`
	Terms   Terms
	Change  int64 // the unconfirmed change that is moving it; 0 is none
	Start   int64 // the change that promised it: runs in order of their starts
	// Charged says that what it holds is charged to its accounts, since ChargedAt.
	Charged   bool
	ChargedAt unit.Time
}

// Grant is the part of one device, or of one node's cores, that a run holds.
// Grants of one run form a list, and so do the grants on one device.
type Grant struct {
	Run      RunID
	Device   DeviceID // None for CPU-only work
	Node     NodeID
	Reserve  int32 // thousandths of the device
	Ceiling  int32 // may use up to; at least Reserve
	Persist  int32 // MiB kept while suspended
	Peak     int32 // MiB more while running
	CPU      int32 // thousandths of a core; on the first grant of each worker
	Host     int32 // MiB of host memory; likewise
	Turn     int32 // members of one turn alternate; 0 shares with nobody
	Part     int16 // of a cut device, counted from 1; 0 is a whole one
	OfRun    int32 // next grant of the run; None
	OnDevice int32 // next grant on the device; None
	freed    bool  // stopping: counts as occupied, no longer as taken
	reserved bool  // promised and not yet started: counts as taken, not yet as occupied
}

// Device is the state of one device. Free and FreeMemory are what a new promise
// may take (stopping runs no longer count); Now and NowMemory are what is
// unoccupied at this moment (stopping runs still count, promised ones do not yet).
type Device struct {
	Node       NodeID
	First      int32 // first grant on it
	Free       int32
	Now        int32
	FreeMemory int32
	NowMemory  int32
	Memory     int32
	Geometry   int16
	Status     DeviceStatus
	Generation int32 // counts reshapes
	held       bool  // out of the room while a placement is tried
	Change     int64 // the unconfirmed reshape; 0 is none
}

// Node is the state of one node. FreeDevices counts its wholly free, undivided,
// healthy devices, in the sense of Device.Free.
type Node struct {
	Model       int32
	Rack        int32
	First       DeviceID
	Count       int32
	FreeDevices int32
	FreeCPU     int32
	FreeHost    int32
	LeavingCPU  int32 // of stopping runs: counted as free, still occupied
	LeavingHost int32
	OtherCPU    int32 // what work that is not ours uses
	OtherHost   int32
	Sick        int32 // failed starts in a row
	Status      NodeStatus
	Trial       Trial
	// Stamp changes whenever anything on the node does; caches compare it.
	Stamp int64
}

// State is all the engine knows. It holds no pointers into itself and no maps that say
// more than its rows do, so Copy is a few block moves; the append-only tables are shared
// between copies.
type State struct {
	Now     unit.Time
	Jobs    []Job
	Runs    []Run
	Grants  []Grant
	Devices []Device
	Nodes   []Node
	Vacant
	Decisions
	Books
	Calendar
	Tables

	// NodeSets are the nodes that work is confined to, 64 to a word; each is replaced,
	// never written into. A Shape's NodeSet counts from 1.
	NodeSets [][]uint64
	Cluster  *cluster.Cluster // is replaced when it grows, never written into

	room      Room
	stamp     int64   // the last that a node or a run was given
	runStamps []int64 // by run: changes whenever anything about it or its job does; caches compare it
	derived
	editing
}

// Vacant are the places in the tables of runs and of grants to use again.
type Vacant struct {
	FreeRuns   []RunID
	FreeGrants []int32
}

// Decisions are what was decided and is not carried out yet, and what the next decision
// starts from.
type Decisions struct {
	Pending    []Pending // decided, waiting for others to be confirmed
	NextChange int64
	Commits    int64
	Paused     bool // by a person: nothing is decided
	// Memory is what the active strategy remembers beside the State, as of its last
	// decision.
	Memory []byte
	// Reactions are how runs with plans went on, the latest last. The list is replaced, never
	// written into.
	Reactions []Reaction
	Repairs   Repairs
	Ended     EndedRuns
}

// Books are the tree of queues, and the accounts of who used what; past use in them was
// last aged at AgedAt, for the Ages-th time.
type Books struct {
	Queues   queue.Tree
	Accounts []Account
	AgedAt   unit.Time
	Ages     int64
}

// Calendar is what is set down for later. Both lists are replaced, never written into.
type Calendar struct {
	Claims  []Claim
	Windows []Window
}

// Tables are lists that are only appended to.
type Tables struct {
	Shapes   []Shape
	Names    []string // of jobs
	Tenants  []string
	Users    []string
	Classes  []string
	Commands []string // what jobs run: programs and scripts
	Profiles []Profile
	Plans    []Pipeline
	Links    []Dependency
}

// derived is what follows from the rows and is worked out when it is asked for.
type derived struct {
	ledger   map[[2]int32]int32 // the first account of a user of a tenant
	queueOf  []int32            // a tenant's queue
	capacity [][]int64          // by shape and device model, how many workers the idle cluster holds
	touched  *touches           // nil while nobody watches
	waiters  waiters            // of Pending
}

// editing is the open draft, and the memory of drafts, which is used again.
type editing struct {
	log    *undo // of the open draft; nil when none is
	undone *undo
	draft  *Draft
}

// NewState returns the state of an idle, healthy cluster.
func NewState(c *cluster.Cluster) *State {
	s := &State{Cluster: c, Decisions: Decisions{NextChange: 1}}
	s.Nodes = make([]Node, len(c.Nodes))
	s.Devices = make([]Device, len(c.Devices))
	for i := range c.Devices {
		m := int32(c.Devices[i].Memory)
		s.Devices[i] = Device{Node: NodeID(c.Devices[i].Node), First: None, Free: 1000, Now: 1000,
			FreeMemory: m, NowMemory: m, Memory: m}
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		s.Nodes[i] = Node{Model: n.Model, Rack: n.Rack, First: DeviceID(n.First), Count: n.Count,
			FreeDevices: n.Count, FreeCPU: int32(n.CPU), FreeHost: int32(n.Memory)}
		if n.Rental {
			s.Nodes[i].Status = Away
		}
	}
	s.room = newRoom(s)
	return s
}

// Copy returns an independent copy: the append-only tables are shared, all else moved.
func (s *State) Copy() *State {
	c := new(State)
	s.CopyInto(c)
	return c
}

// CopyInto makes c an independent copy of s, in the memory that c has: what-if asks
// for one after another, and fresh memory costs more than the copying.
func (s *State) CopyInto(c *State) {
	old := *c
	*c = *s
	c.derived, c.editing = derived{}, editing{}
	c.Accounts = append(old.Accounts[:0], s.Accounts...)
	c.Jobs = append(old.Jobs[:0], s.Jobs...)
	c.Runs = append(old.Runs[:0], s.Runs...)
	c.Grants = append(old.Grants[:0], s.Grants...)
	c.Devices = append(old.Devices[:0], s.Devices...)
	c.Nodes = append(old.Nodes[:0], s.Nodes...)
	c.runStamps = append(old.runStamps[:0], s.runStamps...)
	c.FreeRuns = append(old.FreeRuns[:0], s.FreeRuns...)
	c.FreeGrants = append(old.FreeGrants[:0], s.FreeGrants...)
	c.Pending = append(old.Pending[:0], s.Pending...)
	c.Links = append(old.Links[:0], s.Links...)
	// Two owners may append to a shared table: cap it, so that the first to do so moves.
	c.Shapes = s.Shapes[:len(s.Shapes):len(s.Shapes)]
	c.Names = s.Names[:len(s.Names):len(s.Names)]
	c.Tenants = s.Tenants[:len(s.Tenants):len(s.Tenants)]
	c.Users = s.Users[:len(s.Users):len(s.Users)]
	c.Classes = s.Classes[:len(s.Classes):len(s.Classes)]
	c.Commands = s.Commands[:len(s.Commands):len(s.Commands)]
	c.Profiles = s.Profiles[:len(s.Profiles):len(s.Profiles)]
	c.Plans = s.Plans[:len(s.Plans):len(s.Plans)]
	c.Ended = s.Ended[:len(s.Ended):len(s.Ended)]
	c.room = s.room.copy()
}

// View is the read-only face of a State.
type View struct{ s *State }

// View returns the read-only face of s.
func (s *State) View() View { return View{s} }

// Now is the present instant.
func (v View) Now() unit.Time { return v.s.Now }

// Paused reports whether a person has paused all decisions.
func (v View) Paused() bool { return v.s.Paused }

// Cluster is what there is.
func (v View) Cluster() *cluster.Cluster { return v.s.Cluster }

// Jobs is the number of jobs ever submitted; ids run from 0.
func (v View) Jobs() int { return len(v.s.Jobs) }

// Job returns a job by id.
func (v View) Job(id JobID) Job { return v.s.Jobs[id] }

// Name returns a job's name.
func (v View) Name(id JobID) string { return v.s.Names[id] }

// Shape returns the shape of a job.
func (v View) Shape(id JobID) *Shape { return &v.s.Shapes[v.s.Jobs[id].Shape] }

// ShapeOf returns a shape by its id.
func (v View) ShapeOf(id int32) *Shape { return &v.s.Shapes[id] }

// RunSlots is the number of run slots, some of them empty (Status Gone).
func (v View) RunSlots() int { return len(v.s.Runs) }

// Run returns a run by its slot.
func (v View) Run(id RunID) Run { return v.s.Runs[id] }

// Node returns a node by id.
func (v View) Node(id NodeID) Node { return v.s.Nodes[id] }

// Nodes is the number of nodes.
func (v View) Nodes() int { return len(v.s.Nodes) }

// Device returns a device by id.
func (v View) Device(id DeviceID) Device { return v.s.Devices[id] }

// Devices is the number of devices.
func (v View) Devices() int { return len(v.s.Devices) }

// Profile returns a layer profile by id.
func (v View) Profile(id int32) Profile { return v.s.Profiles[id] }

// Pipeline returns a pipeline plan by id.
func (v View) Pipeline(id int32) Pipeline { return v.s.Plans[id] }

// Class returns the name of a kind of work.
func (v View) Class(id int32) string {
	if id < 0 || int(id) >= len(v.s.Classes) {
		return ""
	}
	return v.s.Classes[id]
}

// Command is the program and the script that a job runs; empty where that is unknown.
func (v View) Command(id JobID) string {
	if c := v.s.Jobs[id].Command; c > 0 && int(c) <= len(v.s.Commands) {
		return v.s.Commands[c-1]
	}
	return ""
}

// Room is the index of free capacity.
func (v View) Room() *Room { return &v.s.room }

// GrantsOf calls f for every grant of a run.
func (v View) GrantsOf(id RunID, f func(g Grant)) {
	for i := v.s.Runs[id].First; i != None; i = v.s.Grants[i].OfRun {
		f(v.s.Grants[i])
	}
}

// GrantsOn calls f for every grant on a device.
func (v View) GrantsOn(id DeviceID, f func(g Grant)) {
	for i := v.s.Devices[id].First; i != None; i = v.s.Grants[i].OnDevice {
		f(v.s.Grants[i])
	}
}
