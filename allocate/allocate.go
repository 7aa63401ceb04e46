// Package allocate is step 2: how many devices, which ones, shared how. It
// declares the contracts of sizing and placing; strategies are in the folders
// below, and what several of them share in allocate/fit.
package allocate

import (
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// Need is what is to be placed.
type Need struct {
	Job     plan.JobID
	Attempt int32 // of the run to come, so that chance differs between attempts
	Workers int32
	Shape   *plan.Shape
}

// Candidate is one way to place a need. Higher scores are better; what a score
// means is the placer's own affair.
type Candidate struct {
	Slots []plan.Slot
	Score int64
	// Share says how the run is to use its devices, of one that shares them; nil is as its
	// job asks.
	Share *plan.ShareTerms
	// Cut lists the devices that are to be cut another way first.
	Cut []Cut
	// Beside are runs on its devices that go on under other terms, in this order, before
	// it begins.
	Beside []Beside
}

// Beside is a run and how it is to use its devices from now on.
type Beside struct {
	Run   plan.RunID
	Share plan.ShareTerms
}

// Cut is a device and the geometry, of its model, that it is to have.
type Cut struct {
	Device   plan.DeviceID
	Geometry int16
}

// PlacePart says which devices a job gets. Several placers may share it, see Chain.
var PlacePart = strategy.NewPart[Placer](strategy.Part{Name: "place", Rank: 30, Step: "allocate", Null: "first-fit", Default: "first-fit", Chain: newChain})

// Placer finds room. It appends at most k candidates to into, best first, all of
// them legal, with ties broken in the end by id; none means that there is no room
// it would use. Candidates in into beyond its length may be used again.
type Placer interface {
	Place(v plan.View, need Need, k int, into []Candidate) []Candidate
}

// Finder is a Placer that may find room for a job that the count of free devices does
// not show: beside a host, or on a device that it would have cut another way.
type Finder interface {
	Finds(v plan.View, job plan.JobID) bool
}

// Patient is a Placer that lets a job wait for a better place although there is room:
// Retry is when it would settle for less, or look again; now where it waits for nothing.
type Patient interface {
	Retry(v plan.View, job plan.JobID) unit.Time
}

// Watcher is a Placer that looks at how those fare beside whom it has put others: of the jobs
// whose runs changed or were seen at another rate it tells the guests that are to end for them,
// and whether somebody may take guests now who did not before.
type Watcher interface {
	Unwelcome(v plan.View, changed []plan.JobID) (guests []Guest, opened bool)
}

// Guest is a run beside that of another job.
type Guest struct {
	Run  plan.RunID
	Host plan.JobID
}

// SwitchPart prices suspending one job for another. There need be none: then suspending
// costs nothing that a decision would look at.
var SwitchPart = strategy.NewPart[Switcher](strategy.Part{Name: "switch", Rank: 120, Step: "allocate"})

// Switcher says what it costs to let one job have a device after another, neither of
// which is ended: the running time that both lose. plan.None is nobody.
type Switcher interface {
	Switch(v plan.View, from, to plan.JobID) unit.Duration
}

// Streamer is a Switcher under which the memory of a job comes to its devices in groups of
// layers, the first of which compute while others come: Groups are their ends, over what
// switching.Layers lists.
type Streamer interface {
	Switcher
	Groups(v plan.View, job plan.JobID) []int32
}

// Crowd is who competes for the room.
type Crowd struct {
	Active  int   // jobs waiting or running
	Devices int64 // devices in all, on nodes that take runs
}

// Largest is the largest legal size of a shape that fits, or the smallest there is.
func Largest(shape *plan.Shape, fits func(size int32) bool) int32 {
	want, least := int32(0), shape.Gang
	consider := func(size int32) {
		least = min(least, size)
		if size > want && fits(size) {
			want = size
		}
	}
	consider(shape.Gang)
	for _, size := range shape.Sizes {
		if size > 0 {
			consider(size)
		}
	}
	if want == 0 {
		return least
	}
	return want
}

// SizePart says how many workers an elastic job gets.
var SizePart = strategy.NewPart[Sizer](strategy.Part{Name: "size", Rank: 20, Step: "allocate", Null: "fixed", Default: "fixed"})

// Sizer says how many workers an elastic job should have.
type Sizer interface {
	Want(v plan.View, job plan.JobID, crowd Crowd) int32
}

// Mover is a Sizer that also has a running job go elsewhere at the size that it has, where the placer
// will put it better: it is saved and started again.
type Mover interface {
	Sizer
	Moves(v plan.View, job plan.JobID) bool
}

// Extend grows a candidate list by one, using again what lies beyond its length.
func Extend(list []Candidate) []Candidate {
	if len(list) < cap(list) {
		list = list[:len(list)+1]
		c := &list[len(list)-1]
		*c = Candidate{Slots: c.Slots[:0], Cut: c.Cut[:0], Beside: c.Beside[:0]}
		return list
	}
	return append(list, Candidate{})
}
