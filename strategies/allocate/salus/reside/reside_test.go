package reside_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/strategies/allocate/salus/reside"
)

// Of jobs that keep 2 GiB and need 8 more within an iteration, a device of 16 GiB has
// room for one side by side, and for four that take turns.
func TestAdmit(t *testing.T) {
	small := reside.Footprint{Persistent: 2 << 10, Ephemeral: 8 << 10}
	var lanes []reside.Lane
	for _, want := range []int{0, 0, 0, 0} {
		lane, ok := reside.Admit(16<<10, lanes, small, nil)
		if !ok || lane != want {
			t.Fatalf("with %v: lane %d, %v, want %d", lanes, lane, ok, want)
		}
		if lane == len(lanes) {
			lanes = append(lanes, reside.Lane{})
		}
		lanes[lane] = lanes[lane].Join(small)
	}
	if _, ok := reside.Admit(16<<10, lanes, small, nil); ok {
		t.Error("a fifth job does not fit")
	}
}

// Whatever comes, the invariant holds; a job waits only where no lane, old or new,
// could take it; a lane of its own comes first, then the smallest.
func TestAdmitAgainstAllLanes(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		memory := unit.MiB(rapid.IntRange(1, 40).Draw(t, "memory"))
		var lanes []reside.Lane
		for range rapid.IntRange(1, 12).Draw(t, "jobs") {
			f := reside.Footprint{Persistent: unit.MiB(rapid.IntRange(0, 10).Draw(t, "persistent")), Ephemeral: unit.MiB(rapid.IntRange(0, 20).Draw(t, "ephemeral"))}
			closed := rapid.IntRange(-1, len(lanes)).Draw(t, "closed")
			lane, ok := reside.Admit(memory, lanes, f, func(lane int) bool { return lane != closed })
			possible, own := false, false
			for i := range len(lanes) + 1 {
				with := append(append([]reside.Lane{}, lanes...), reside.Lane{})
				with[i] = with[i].Join(f)
				if reside.Need(with) > memory || i == closed {
					continue
				}
				possible, own = true, i == len(lanes)
				if ok && i < len(lanes) && lane < len(lanes) && lanes[i].Ephemeral < lanes[lane].Ephemeral {
					t.Fatalf("%v goes to lane %d of %v, %d is smaller", f, lane, lanes, i)
				}
			}
			if ok != possible || ok && own != (lane == len(lanes)) {
				t.Fatalf("%v with %v in %d: lane %d, %v", f, lanes, memory, lane, ok)
			}
			if !ok {
				continue
			}
			if lane == len(lanes) {
				lanes = append(lanes, reside.Lane{})
			}
			if lanes[lane] = lanes[lane].Join(f); reside.Need(lanes) > memory {
				t.Fatalf("%v need more than %d", lanes, memory)
			}
		}
	})
}
