// Package taskgraph is the clockwork under everything that happens within one
// iteration: pipelines, gradient blocks, transfers. A graph is tasks that wait for
// one another and for what they run on: serial resources, links that transfers
// share, or several of both at once. Run says when each task starts and ends and
// what it waited for, how long each resource is busy and idle, and how much of each
// memory pool is held at most; a pool above its limit is reported and delays nothing.
// It is exact arithmetic on events: the same graph gives the same timeline.
package taskgraph

import "github.com/musterdl/muster/model/unit"

// Kind is how a resource treats the tasks that want it.
type Kind uint8

// The kinds of resource.
const (
	// Ordered runs one task at a time, in the order in which the tasks were added.
	Ordered Kind = iota
	// Prioritised runs as many tasks at a time as it has Slots, without preemption: of
	// those ready the lowest Priority, then the lowest id.
	Prioritised
	// Fluid is a link: the transfers of the lowest Priority present share its
	// bandwidth equally, the others stand still meanwhile. A transfer over several
	// links goes as fast as the scarcest lets it (max-min).
	Fluid
	// Joint is several resources, of which a task holds all at once: a send slot, a
	// receive slot and the links between them, say.
	Joint
)

// Resource is what tasks run on.
type Resource struct {
	Name string
	Kind Kind
	// Slots is how many tasks a Prioritised resource runs at once; 0 is one.
	Slots int32
	// Bandwidth is what a Fluid resource carries; 0 is unlimited.
	Bandwidth unit.Mbps
	// Latency passes after the last byte has left a Fluid resource until the
	// transfer has arrived; it occupies neither link nor slot.
	Latency unit.Duration
	// Parts are the resources, not Joint themselves, that a Joint one stands for.
	Parts []int32
}

// Task is one piece of work. It starts as soon as the tasks before it have ended and
// all serial resources it needs have room for it; of several that wait for the same
// room, the lowest Priority goes first, then the lowest id. It holds what it needs
// until its time is up or its last byte has left.
type Task struct {
	Resource int32
	Priority int32 // lower goes first
	// Duration is the time that it takes, or, where it goes over links, Bytes the amount
	// that it moves. To move nothing takes no more than the latency.
	Duration unit.Duration
	Bytes    int64
	// AllocKiB is taken from memory Pool when the task starts, FreeKiB given back
	// when it ends. What ends at an instant frees before what starts then allocates.
	Pool              int32
	Memory            int32 // the row of Graph.Memory with further pools
	AllocKiB, FreeKiB int64
}

// Memory is what a task takes from a pool when it starts and gives back when it ends.
type Memory struct {
	Pool              int32
	AllocKiB, FreeKiB int64
}

// Pool is the memory of one class on one device.
type Pool struct {
	Name string
	// LimitKiB is what Timeline.Over measures the pool against; 0 is no limit.
	LimitKiB int64
	// Parts are earlier pools that count here too: the classes of a device, say. A
	// pool is part of one other at most.
	Parts []int32
}

// Edge says that task After may start once task Before has ended.
type Edge struct{ Before, After int32 }

// Graph is the work to be timed. Ids are positions in its slices.
type Graph struct {
	Resources []Resource
	Tasks     []Task
	Edges     []Edge
	// Pools may be fewer than the tasks name: the others have neither limit nor parts.
	Pools []Pool
	// Memory holds rows that any number of tasks may name. Its first row, which tasks
	// name that say nothing, is mostly empty.
	Memory [][]Memory
	// Label names a task in errors; nil numbers them.
	Label func(task int32) string
}

// AddResource appends a resource and returns its id.
func (g *Graph) AddResource(r Resource) int32 {
	g.Resources = append(g.Resources, r)
	return int32(len(g.Resources) - 1)
}

// AddTask appends a task that waits for the given tasks and returns its id.
func (g *Graph) AddTask(t Task, after ...int32) int32 {
	id := int32(len(g.Tasks))
	g.Tasks = append(g.Tasks, t)
	for _, before := range after {
		g.Edges = append(g.Edges, Edge{before, id})
	}
	return id
}

// Timeline is when everything happened. What is per resource counts each part of a
// Joint one and leaves the joint itself at zero.
type Timeline struct {
	// Start and End are per task. A transfer starts when it reaches its links, and
	// ends when it has arrived.
	Start, End []unit.Time
	// Busy is per resource: the time with a task running or bytes moving on the link;
	// Idle is the rest of its window, from its first start to the last end there.
	Busy, Idle []unit.Duration
	// PeakKiB is per memory pool, its parts included.
	PeakKiB []int64
	// Over lists the pools that exceeded their limit, in the order in which they did.
	Over     []Excess
	Makespan unit.Duration
	// Critical is the chain of tasks that the makespan consists of: each started when
	// the one before let it, and the last is the first to end at the makespan.
	Critical []Step
}

// Excess is the first time that a pool held more than its limit.
type Excess struct {
	Pool, Task int32 // whose start it was
	At         unit.Time
}
