package reside_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/allocate/reside"
	"github.com/musterdl/muster/unit"
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
	rapid.Check(t, func(t *rapid.T) {
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

func curve(t *rapid.T) reside.Curve {
	c := reside.Curve{Steps: []reside.Step{{Memory: unit.MiB(rapid.IntRange(0, 9).Draw(t, "memory"))}}, Period: unit.Duration(rapid.IntRange(1, 12).Draw(t, "period"))}
	for at := unit.Duration(1); at < c.Period; at++ {
		if rapid.Bool().Draw(t, "step") {
			c.Steps = append(c.Steps, reside.Step{At: at, Memory: unit.MiB(rapid.IntRange(0, 9).Draw(t, "memory"))})
		}
	}
	return c
}

// On curves with steps at whole instants the answer is that of trying every delay at
// every instant.
func TestStaggerAgainstEveryDelay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := curve(t), curve(t)
		into := unit.Duration(rapid.IntRange(0, int(a.Period)-1).Draw(t, "into"))
		memory := unit.MiB(rapid.IntRange(0, 18).Draw(t, "budget"))
		want := unit.Duration(-1)
		for d := unit.Duration(0); d < a.Period && want < 0; d++ {
			want = d
			for x := unit.Duration(0); x < b.Period; x++ {
				if a.At((into+d+x)%a.Period)+b.At(x) > memory {
					want = -1
				}
			}
		}
		if got, ok := reside.Stagger(a, into, b, memory); ok != (want >= 0) || ok && got != want {
			t.Fatalf("%v, %d into it, and %v within %d: %d, %v, want %d", a, into, b, memory, got, ok, want)
		}
	})
}

// Zico's setting: two equal triangles with a peak of 10 GiB. Where both peaks fit
// nothing waits; on 16 GiB the second begins so much later that the peak of one
// meets at most 6 GiB of the other; on 9 GiB they take turns.
func TestTriangles(t *testing.T) {
	c := reside.Curve{Period: 100}
	for i := range unit.Duration(100) {
		c.Steps = append(c.Steps, reside.Step{At: i, Memory: unit.MiB(10240 * min(i, 100-i) / 50)})
	}
	for memory, want := range map[unit.MiB]unit.Duration{20 << 10: 0, 16 << 10: 20} {
		if got, ok := reside.Stagger(c, 0, c, memory); !ok || got != want {
			t.Errorf("in %d MiB: %d, %v, want %d", memory, got, ok, want)
		}
	}
	if _, ok := reside.Stagger(c, 0, c, 9<<10); ok {
		t.Error("there is no delay for 9 GiB")
	}
}
