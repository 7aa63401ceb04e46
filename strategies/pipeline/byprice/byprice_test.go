package byprice_test

import (
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/pipeline/byprice"
)

func TestConforms(t *testing.T) {
	for name, made := range map[string]reaction.Policy{"by-price": byprice.New(byprice.Default()), "none": byprice.None{}} {
		t.Run(name, func(t *testing.T) { scheduletest.ConformPart(t, reaction.Part, func() any { return made }) })
	}
}

// TestAlways: the way that is always taken comes first where it can be, and else the cheapest does.
func TestAlways(t *testing.T) {
	r := &reaction.Run{Sound: unit.Second, Full: reaction.Of(4), Now: reaction.Of(4), Sizes: []reaction.Size{{Workers: 4, Step: unit.Second}, {Workers: 2, Step: 2 * unit.Second}},
		Left: unit.Day, Repair: unit.Hour, Start: unit.Minute}
	for always, want := range map[string]string{byprice.Cheapest: reaction.Swap, "restart": reaction.Restart, "wait": reaction.Wait, "re-route": reaction.Swap} {
		c := byprice.Default()
		c.Always = always
		if all := byprice.New(c).Ways(r); all[0].Name != want || len(all) != 8 {
			t.Errorf("always %s: %+v, expected %s before seven others", always, all, want)
		}
	}
}
