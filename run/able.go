package run

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/pipeline"
)

// OnRequest and LastCheckpoint are the choices of RestartPart: jobs are asked to save
// before they are stopped, or lose what came after their own last checkpoint.
const (
	OnRequest      = "on-request"
	LastCheckpoint = "last-checkpoint"
)

// RestartPart is what is done for a run that is stopped. Nobody wants to lose work that
// can be kept, so its default is not its null. No strategy fills it.
var RestartPart = strategy.NewPart[string](strategy.Part{Name: "restart", Rank: 140, Step: "run", Null: LastCheckpoint, Default: OnRequest,
	Words: []string{OnRequest, LastCheckpoint}})

// What each driver can do with runs. Whatever a table says here is shown by a test of that
// driver, which plays the texts of run/runtest; TestEveryYes sees that there is one.

const (
	noStream = "no worker here is given its memory layer by layer"
	noLinks  = "no driver here sets what a run sends when"
	noGroups = "only a control group holds a process to a part of a core, and none can be made here"
)

// Simulated nature does all that there is to do.
var Simulated = strategy.Ability{Driver: "in simulation", Means: map[strategy.Act]string{
	strategy.Start:    "it computes when it has been set up, and restored",
	strategy.Stop:     "it saves for as long as that takes, and is gone",
	strategy.Resize:   "the job's rate with as many workers",
	strategy.Time:     "it stands still",
	strategy.Swap:     "others have the room; moving takes time by the MiB",
	strategy.Stream:   "a start takes what does not hide behind the first pass",
	strategy.Share:    "it is never faster than its ceiling",
	strategy.Reshare:  "it has another ceiling at once, or when another process of it runs",
	strategy.Filler:   "the law's steady state divides the device",
	strategy.Equal:    "what both need divides the device, or a measured pair does",
	strategy.Merge:    "a step of all lasts longer by what each adds",
	strategy.Batch:    "its terms hold it; it changes no speed",
	strategy.Pipeline: "an iteration lasts as long as the plan takes",
	strategy.Replan:   "from then on an iteration lasts as long as the other plan takes",
	strategy.Keep:     "those that are left save, find each other, and read nothing that they hold",
	strategy.Chunks:   "a rank holds them, and what it sends itself takes no time",
	strategy.Halves:   "the next stage goes on after the first",
	strategy.Copies:   "each microbatch goes its own way, with the weights with which it began",
	strategy.Class:    "a link serves the first class first",
	strategy.Weight:   "a link is divided by weight",
	strategy.Shift:    "what overlaps on a link is delayed",
	strategy.Reshape:  "the device has other parts",
	strategy.Rent:     "the node arrives, and leaves",
}}

// Slots is this machine where devices are declared parts of its cores.
var Slots = strategy.Ability{Driver: "on this machine's slots", Means: map[strategy.Act]string{
	strategy.Start:    "a supervisor for each worker; all are told to go when all are ready",
	strategy.Stop:     "checkpoint in the control file, then SIGTERM, then SIGKILL",
	strategy.Resize:   "another attempt, with another WORLD_SIZE",
	strategy.Time:     "its processes are frozen; what they hold in memory stays",
	strategy.Share:    "a quota of cores and memory",
	strategy.Reshare:  "another quota at once",
	strategy.Filler:   "the idle class of the machine, a slot's cores at most, and a law that watches its host",
	strategy.Equal:    "one group around both has the slot's cores, which they divide",
	strategy.Batch:    "MUSTER_BATCH at the start, batch N in the control file later",
	strategy.Pipeline: "MUSTER_PLAN names the plan at the start",
	strategy.Replan:   "plan PATH in the control file; layers that change their worker are sent, and a program that does not take the plan up is said not to",
	strategy.Chunks:   "the trainer hands on in memory what one stage has for the next",
	strategy.Halves:   "the trainer keeps what the other half takes",
}, Why: map[strategy.Act]string{
	strategy.Swap:    "a frozen process keeps its memory",
	strategy.Stream:  noStream,
	strategy.Merge:   "no trainer here trains two jobs in one process",
	strategy.Keep:    "the connections of the trainer are those of its start: the workers that are left save, and leave",
	strategy.Copies:  pipeline.NoCopies,
	strategy.Class:   noLinks,
	strategy.Weight:  noLinks,
	strategy.Shift:   noLinks,
	strategy.Reshape: "a slot has no parts",
	strategy.Rent:    "there is one node, which is not rented",
}}

// Bare is the same where nobody may make control groups: only what a process can be asked
// or told, and the kernel's classes of threads, are left.
var Bare = strategy.Ability{Driver: "on this machine's slots without control groups", Means: map[strategy.Act]string{
	strategy.Start:    Slots.Means[strategy.Start],
	strategy.Stop:     Slots.Means[strategy.Stop],
	strategy.Resize:   Slots.Means[strategy.Resize],
	strategy.Time:     "SIGSTOP and SIGCONT to each of its processes",
	strategy.Filler:   "the idle class for each of its threads",
	strategy.Batch:    Slots.Means[strategy.Batch],
	strategy.Pipeline: Slots.Means[strategy.Pipeline],
	strategy.Replan:   Slots.Means[strategy.Replan],
	strategy.Chunks:   Slots.Means[strategy.Chunks],
	strategy.Halves:   Slots.Means[strategy.Halves],
}, Why: map[strategy.Act]string{
	strategy.Swap:    Slots.Why[strategy.Swap],
	strategy.Stream:  noStream,
	strategy.Share:   noGroups,
	strategy.Reshare: noGroups,
	strategy.Equal:   noGroups,
	strategy.Merge:   Slots.Why[strategy.Merge],
	strategy.Keep:    Slots.Why[strategy.Keep],
	strategy.Copies:  pipeline.NoCopies,
	strategy.Class:   noLinks,
	strategy.Weight:  noLinks,
	strategy.Shift:   noLinks,
	strategy.Reshape: Slots.Why[strategy.Reshape],
	strategy.Rent:    Slots.Why[strategy.Rent],
}}

// GPUs is this machine where devices are its GPUs.
var GPUs = strategy.Ability{Driver: "on this machine's GPUs", Means: map[strategy.Act]string{
	strategy.Start:    Slots.Means[strategy.Start],
	strategy.Stop:     Slots.Means[strategy.Stop],
	strategy.Resize:   Slots.Means[strategy.Resize],
	strategy.Time:     Slots.Means[strategy.Time],
	strategy.Batch:    Slots.Means[strategy.Batch],
	strategy.Pipeline: Slots.Means[strategy.Pipeline],
	strategy.Replan:   Slots.Means[strategy.Replan],
	strategy.Chunks:   Slots.Means[strategy.Chunks],
	strategy.Halves:   Slots.Means[strategy.Halves],
}, Why: map[strategy.Act]string{
	strategy.Swap:    Slots.Why[strategy.Swap],
	strategy.Stream:  noStream,
	strategy.Share:   "it takes NVIDIA's MPS, whose daemon does not run",
	strategy.Reshare: "MPS reads its limits when a worker starts, and never again",
	strategy.Filler:  "a GPU has no idle class, and no law reaches into it",
	strategy.Equal:   "nobody here has seen two processes of one GPU take equal parts",
	strategy.Merge:   Slots.Why[strategy.Merge],
	strategy.Keep:    Slots.Why[strategy.Keep],
	strategy.Copies:  pipeline.NoCopies,
	strategy.Class:   noLinks,
	strategy.Weight:  noLinks,
	strategy.Shift:   noLinks,
	strategy.Reshape: "nobody here turns MIG on or cuts instances",
	strategy.Rent:    Slots.Why[strategy.Rent],
}}

// WithMPS is GPUs where NVIDIA's MPS daemon runs.
var WithMPS = withMPS()

func withMPS() strategy.Ability {
	a := GPUs.But(strategy.Share, "a limit that MPS reads when a worker starts; it stays until that ends")
	a.Driver = "on this machine's GPUs under MPS"
	return a
}

// Kubernetes starts and stops pods.
var Kubernetes = strategy.Ability{Driver: "on Kubernetes", Means: map[strategy.Act]string{
	strategy.Start:  "pods are bound when all of the gang are there",
	strategy.Stop:   "its owner is suspended, or else its pods are evicted, which have their grace period to save",
	strategy.Resize: "its owner is told another number of pods",
}, Why: map[strategy.Act]string{
	strategy.Time:     "no verb of its API keeps a container without computing",
	strategy.Swap:     "no verb of its API suspends a container",
	strategy.Stream:   noStream,
	strategy.Share:    "a pod has of a device what it asks for itself",
	strategy.Reshare:  "a pod has of a device what it asks for itself",
	strategy.Filler:   "nothing on its nodes holds a guest back",
	strategy.Equal:    "a pod has of a device what it asks for itself",
	strategy.Merge:    Slots.Why[strategy.Merge],
	strategy.Batch:    "no pod is told one",
	strategy.Pipeline: "no pod is told one",
	strategy.Replan:   "no pod is told a plan",
	strategy.Keep:     "pods that are left of a gang are evicted, so that it can be bound whole again",
	strategy.Chunks:   "no pod is told a plan",
	strategy.Halves:   "no pod is told a plan",
	strategy.Copies:   "no pod is told a plan",
	strategy.Class:    noLinks,
	strategy.Weight:   noLinks,
	strategy.Shift:    noLinks,
	strategy.Reshape:  "its devices are cut by the cluster's operator",
	strategy.Rent:     "nodes come and go by the cluster's autoscaler",
}}

// Abilities are those of all drivers, in the order in which tables show them.
var Abilities = []strategy.Ability{Simulated, Slots, Bare, GPUs, WithMPS, Kubernetes}
