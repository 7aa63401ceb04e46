package strategy

import "maps"

// Act is something that a strategy does with runs beyond starting and stopping them.
type Act string

// The acts. A strategy lists those that it does, a driver those that it can.
const (
	Time     Act = "time"
	Share    Act = "share"
	Filler   Act = "filler"
	Equal    Act = "equal"
	Merge    Act = "merge"
	Batch    Act = "batch"
	Pipeline Act = "pipeline"
	Class    Act = "class"
	Weight   Act = "weight"
	Shift    Act = "shift"
	Reshape  Act = "reshape"
	Rent     Act = "rent"
)

// Acts are all acts, in the order in which tables show them.
var Acts = []Act{Time, Share, Filler, Equal, Merge, Batch, Pipeline, Class, Weight, Shift, Reshape, Rent}

var does = map[Act]string{
	Time:     "suspends a run that stays where it is, and lets it go on: runs take turns on a device",
	Share:    "holds a run to a part of its devices that the strategy chooses",
	Filler:   "lets a guest use what its host leaves of a device, and no more",
	Equal:    "lets two runs compute side by side on a device, with equal rights",
	Merge:    "has a guest train in one process with its host",
	Batch:    "tells a run its batch",
	Pipeline: "tells a run its pipeline plan",
	Class:    "puts the traffic of a run into a strict class",
	Weight:   "gives the traffic of a run a weight against that of others",
	Shift:    "delays the traffic of a run by a part of an iteration",
	Reshape:  "cuts a device into parts",
	Rent:     "rents nodes and gives them back",
}

// Does says in words what a strategy with this act does.
func (a Act) Does() string { return does[a] }

// Ability is what a driver can do with runs beyond starting and stopping them.
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
