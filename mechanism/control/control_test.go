package control_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
)

// TestLaws: every law keeps to its range whatever it sees, and the same steps give
// the same settings.
func TestLaws(t *testing.T) {
	for _, law := range control.Laws {
		draws.Check(t, func(t *rapid.T) {
			floor := unit.Milli(rapid.Int64Range(1, 1000).Draw(t, "floor"))
			r := control.Range{Floor: floor, Ceiling: floor + unit.Milli(rapid.Int64Range(0, 4000).Draw(t, "more")),
				Memory: unit.MiB(rapid.Int64Range(0, 1000).Draw(t, "memory"))}
			var a, b control.State
			for range rapid.IntRange(1, 50).Draw(t, "steps") {
				milli := func(label string) unit.Milli { return unit.Milli(rapid.Int64Range(0, 1000).Draw(t, label)) }
				o := control.Observation{
					Idle: milli("idle"), Rate: milli("rate"), Solo: milli("solo"), Spare: unit.MiB(rapid.Int64Range(-5, 2000).Draw(t, "spare")),
				}
				var x, y control.Actuator
				x, a = law.Step(r, o, a)
				y, b = law.Step(r, o, b)
				if x != y || x.CPU < r.Floor || x.CPU > r.Ceiling || x.Memory < 0 || x.Memory > r.Memory {
					t.Fatalf("%s set %v and %v in %v", law.Name, x, y, r)
				}
			}
		})
	}
}

// TestGiveWay is its step response: down in halves while the machine is busy, up in
// tenths when it is calm, still in between.
func TestGiveWay(t *testing.T) {
	law, ok := control.Find("give-way")
	if !ok {
		t.Fatal("there is no law give-way")
	}
	r := control.Range{Floor: 100, Ceiling: 1000}
	var s control.State
	var got []unit.Milli
	for _, idle := range []unit.Milli{500, 50, 50, 50, 50, 150, 900, 900} {
		var a control.Actuator
		a, s = law.Step(r, control.Observation{Idle: idle}, s)
		got = append(got, a.CPU)
	}
	for i, want := range []unit.Milli{1000, 500, 250, 125, 100, 100, 190, 280} {
		if got[i] != want {
			t.Errorf("step %d sets %v, want %v (all: %v)", i, got[i], want, got)
		}
	}
	if _, ok := control.Find("no such law"); ok {
		t.Error("a law that does not exist was found")
	}
}
