package strategy

import "maps"

// Act is something that a driver does with runs because a strategy says so.
type Act string

// The acts. A strategy lists those that it does, a driver those that it can.
const (
	Start    Act = "start"
	Stop     Act = "stop"
	Resize   Act = "resize"
	Time     Act = "time"
	Swap     Act = "swap"
	Stream   Act = "stream"
	Share    Act = "share"
	Reshare  Act = "reshare"
	Filler   Act = "filler"
	Equal    Act = "equal"
	Merge    Act = "merge"
	Batch    Act = "batch"
	Pipeline Act = "pipeline"
	Replan   Act = "replan"
	Keep     Act = "keep"
	Chunks   Act = "chunks"
	Halves   Act = "halves"
	Copies   Act = "copies"
	Class    Act = "class"
	Weight   Act = "weight"
	Shift    Act = "shift"
	Reshape  Act = "reshape"
	Rent     Act = "rent"
)

// Basic are the acts without which there is no driver; no strategy lists them.
var Basic = []Act{Start, Stop, Resize}

// Acts are all others, in the order in which tables show them.
var Acts = []Act{Time, Swap, Stream, Share, Reshare, Filler, Equal, Merge, Batch, Pipeline, Replan, Keep, Chunks, Halves, Copies, Class, Weight, Shift, Reshape, Rent}

var does = map[Act]string{
	Start:    "starts all workers of a run together, on the devices that it says",
	Stop:     "stops a run, which saves first where its job can, and gives its devices to others",
	Resize:   "starts a run again with other workers or elsewhere, from what it saved",
	Time:     "suspends a run that stays where it is, and lets it go on: runs take turns on a device",
	Swap:     "has a run give up a part of its memory while it is suspended",
	Stream:   "brings a run's memory to its devices in groups of layers, the first of which compute while others come",
	Share:    "holds a run to a part of its devices that the strategy chooses",
	Reshare:  "gives a run another part of its devices while it goes on",
	Filler:   "lets a guest compute in what its host leaves of a device, so that the host hardly notices",
	Equal:    "lets two runs compute side by side on a device, with equal rights",
	Merge:    "has a guest train in one process with its host",
	Batch:    "tells a run its batch",
	Pipeline: "tells a run its pipeline plan",
	Replan:   "gives a run another pipeline plan while it goes on",
	Keep:     "lets a job that lost devices go on in the processes that are left, with what they hold",
	Chunks:   "has a process of a pipeline train several stages",
	Halves:   "takes passes in two halves: backward passes, the second of them later, or forward passes, half the samples at a time",
	Copies:   "keeps a stage in several processes at once, or several versions of its weights",
	Class:    "puts the traffic of a run into a strict class",
	Weight:   "gives the traffic of a run a weight against that of others",
	Shift:    "delays the traffic of a run by a part of an iteration",
	Reshape:  "cuts a device into parts",
	Rent:     "rents nodes and gives them back",
}

// Does says in words what a strategy with this act does.
func (a Act) Does() string { return does[a] }

// Acting is implemented by options under which a strategy does more than its Description
// lists.
type Acting interface{ Acts() []Act }

// Ability is what a driver can do with runs.
type Ability struct {
	Driver string // as "here" is named in a sentence: "on Kubernetes"
	// Means says of each act how the driver does it. Why says of the others why it cannot.
	Means, Why map[Act]string
}

// Lacks is the first of some acts that the driver cannot do; empty where it can do all.
func (a Ability) Lacks(acts []Act) Act {
	for _, act := range acts {
		if a.Means[act] == "" {
			return act
		}
	}
	return ""
}

// But is the ability with one more act.
func (a Ability) But(act Act, means string) Ability {
	a.Means = maps.Clone(a.Means)
	a.Means[act] = means
	return a
}
