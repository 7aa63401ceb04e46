package run

import "github.com/musterdl/muster/strategy"

// What each driver can do with runs beyond starting and stopping them. TestActs of the
// catalogue has every act happen in simulation, TestEveryYes of run/local names a test with
// real processes for each act of this machine.

const noLinks = "no driver here sets what a run sends when"

// Simulated nature does all that there is to do.
var Simulated = strategy.Ability{Driver: "in simulation", Means: map[strategy.Act]string{
	strategy.Time:     "it stands still",
	strategy.Share:    "it is never faster than its ceiling",
	strategy.Filler:   "the law's steady state divides the device",
	strategy.Equal:    "what both need divides the device, or a measured pair does",
	strategy.Merge:    "a step of all lasts longer by what each adds",
	strategy.Batch:    "its terms hold it; it changes no speed",
	strategy.Pipeline: "an iteration lasts as long as the plan takes",
	strategy.Class:    "a link serves the first class first",
	strategy.Weight:   "a link is divided by weight",
	strategy.Shift:    "what overlaps on a link is delayed",
	strategy.Reshape:  "the device has other parts",
	strategy.Rent:     "the node arrives, and leaves",
}}

// Slots is this machine where devices are declared parts of its cores.
var Slots = strategy.Ability{Driver: "on this machine's slots", Means: map[strategy.Act]string{
	strategy.Time:     "its processes are frozen; what they hold in memory stays",
	strategy.Share:    "a quota of cores and memory, from the start and while it runs",
	strategy.Filler:   "the idle class, and a law that watches its host",
	strategy.Equal:    "one group around both has the slot's cores, which they divide",
	strategy.Batch:    "MUSTER_BATCH at the start, batch N in the control file later",
	strategy.Pipeline: "MUSTER_PLAN names the plan at the start",
}, Why: map[strategy.Act]string{
	strategy.Merge:   "no trainer here trains two jobs in one process",
	strategy.Class:   noLinks,
	strategy.Weight:  noLinks,
	strategy.Shift:   noLinks,
	strategy.Reshape: "a slot has no parts",
	strategy.Rent:    "there is one node, which is not rented",
}}

// GPUs is this machine where devices are its GPUs.
var GPUs = strategy.Ability{Driver: "on this machine's GPUs", Means: map[strategy.Act]string{
	strategy.Time:     Slots.Means[strategy.Time],
	strategy.Batch:    Slots.Means[strategy.Batch],
	strategy.Pipeline: Slots.Means[strategy.Pipeline],
}, Why: map[strategy.Act]string{
	strategy.Share:   "it takes NVIDIA's MPS, whose daemon does not run",
	strategy.Filler:  "a GPU has no idle class, and no law reaches into it",
	strategy.Equal:   "nobody here has seen two processes of one GPU take equal parts",
	strategy.Merge:   Slots.Why[strategy.Merge],
	strategy.Class:   noLinks,
	strategy.Weight:  noLinks,
	strategy.Shift:   noLinks,
	strategy.Reshape: "nobody here turns MIG on or cuts instances",
	strategy.Rent:    Slots.Why[strategy.Rent],
}}

// WithMPS is GPUs where NVIDIA's MPS daemon runs.
var WithMPS = withMPS()

func withMPS() strategy.Ability {
	a := GPUs.But(strategy.Share, "limits that MPS reads when a worker starts; they stay until it ends")
	a.Driver = "on this machine's GPUs under MPS"
	return a
}

// Kubernetes starts and stops pods.
var Kubernetes = strategy.Ability{Driver: "on Kubernetes", Why: map[strategy.Act]string{
	strategy.Time:     "no verb of its API keeps a container without computing",
	strategy.Share:    "a pod has of a device what it asks for itself",
	strategy.Filler:   "nothing on its nodes holds a guest back",
	strategy.Equal:    "a pod has of a device what it asks for itself",
	strategy.Merge:    Slots.Why[strategy.Merge],
	strategy.Batch:    "no pod is told one",
	strategy.Pipeline: "no pod is told one",
	strategy.Class:    noLinks,
	strategy.Weight:   noLinks,
	strategy.Shift:    noLinks,
	strategy.Reshape:  "its devices are cut by the cluster's operator",
	strategy.Rent:     "nodes come and go by the cluster's autoscaler",
}}

// Abilities are those of all drivers, in the order in which tables show them.
var Abilities = []strategy.Ability{Simulated, Slots, GPUs, WithMPS, Kubernetes}
