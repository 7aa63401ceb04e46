package compose

import (
	"github.com/musterdl/muster/pipeline/parallel"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/schedule"
)

// living is where so many workers of a run that lost devices could go on in the processes that are left, each with
// what it holds: whole copies first, and else each rank of the plan where somebody has it. Nil where processes have ended, or
// the plan for so many workers divides the model in another way.
func living(v plan.View, b *schedule.Broken, n int32) (slots []plan.Slot) {
	if n >= b.Workers || b.Alive == nil {
		return nil
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
		if slots != nil && (measured || spread(v, b.Job, slots).Shape == string(text)) {
			return slots
		}
	}
	return nil
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
