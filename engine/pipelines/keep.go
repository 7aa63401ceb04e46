package pipelines

import (
	"math"
	"slices"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// living is where so many workers of a run that lost devices could go on in the processes that are left, and how long
// these send each other what each is to hold then: nothing where each stays with what it holds, whole copies first and else
// each rank of the plan where somebody has it. Where the plan for so many workers divides the model in another way, it is the first
// processes that are left, if they hold all of it among them. Nil where processes have ended, or too few are left.
func living(v plan.View, b *schedule.Broken, n int32) (slots []plan.Slot, copies unit.Duration) {
	if n >= b.Workers || b.Alive == nil {
		return nil, 0
	}
	measured, each := v.ProfileOf(b.Job).Stages > 0, max(1, v.Shape(b.Job).Devices)
	gone := make([]bool, len(b.Alive))
	for i, d := range b.Alive {
		gone[i] = v.Device(d).Status.Out() || v.Node(v.Device(d).Node).Status != plan.Up
	}
	was := parallel.HeldBy(v.Pipeline(b.Plan).JSON, measured, len(b.Alive), int(each), true)
	text := v.Pipeline(b.Plan).JSON
	// What a menu says of a size may depend on whether that is on several nodes, which is known once it is placed.
	for _, several := range []bool{true, false} {
		if !measured {
			text = []byte(v.Menu(b.Job).Spread(b.Model, n, several).Shape)
		}
		to := parallel.HeldBy(text, measured, int(n*each), int(each), true)
		slots = onPlaces(v, b, was.Smaller(&to, gone), each)
		if slots != nil && (measured || v.Menu(b.Job).On(v, slots).Shape == string(text)) {
			return slots, 0
		}
	}
	if measured {
		return nil, 0
	}
	return dividedAnew(v, b, &was, gone, n, each)
}

// dividedAnew are the first workers that are left, if they hold all that the run held, and how long it takes until each has been
// sent what the plan for so many puts on it.
func dividedAnew(v plan.View, b *schedule.Broken, was *parallel.Held, gone []bool, n, each int32) ([]plan.Slot, unit.Duration) {
	var places []int32
	for i := int32(0); i < int32(len(gone)) && int32(len(places)) < n*each; i += each {
		if slices.Contains(gone[i:i+each], true) {
			continue
		}
		for k := range each {
			places = append(places, i+k)
		}
	}
	others := slices.Repeat([]bool{true}, len(gone))
	for _, place := range places {
		others[place] = false
	}
	slots := onPlaces(v, b, places, each)
	if int32(len(places)) < n*each || slots == nil || !was.Whole(others) {
		return nil, 0
	}
	to := v.Menu(b.Job).On(v, slots)
	if to.Name == "" {
		return nil, 0
	}
	on := make([]plan.DeviceID, 0, len(places))
	for _, place := range places {
		on = append(on, b.Alive[place])
	}
	copies := v.Filling(to.Spare, on, func(int) bool { return true }, func(link int32) float64 {
		if at := v.Cluster().LinkBandwidth(link); at > 0 {
			return float64(at)
		}
		return math.Inf(1)
	})
	if copies == unit.Forever {
		return nil, 0
	}
	return slots, max(1, copies)
}

// onPlaces are workers on the devices in these places of a run, so many each; nil where those of one are not on one node.
func onPlaces(v plan.View, b *schedule.Broken, places []int32, each int32) (slots []plan.Slot) {
	for i, place := range places {
		device := b.Alive[place]
		node := v.Device(device).Node
		begins := int32(i)%each == 0
		if last := len(slots) - 1; last < 0 || slots[last].Node != node {
			if !begins {
				return nil
			}
			slots = append(slots, plan.Slot{Node: node, Device: plan.None})
		}
		s := &slots[len(slots)-1]
		if s.On = append(s.On, device); begins {
			s.Workers++
		}
	}
	return slots
}
