package control

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
)

// acceptance is what a live experiment with both jobs pinned to one core must show:
// the protected one computes 60 % of its time and waits 40 %, and keeps at least 95 %
// of its solo rate while the other gets at least 25 % of its own.
const keeps, gets = .95, .25

// onOneCore is that experiment, with a cycle and a quota period of so many ms.
func onOneCore(cycle, period int64) *core {
	return &core{protected: task{compute: cycle * 6 / 10, wait: cycle - cycle*6/10}, guest: task{compute: 1}, period: period}
}

// TestLawsOnOneCore tells which law, quota period and cycle reach the acceptance.
// Only a guest that yields does so on all; a quota does where its period and the cycle
// happen to fall into step, so that the guest's turn always meets the other's wait.
func TestLawsOnOneCore(t *testing.T) {
	for _, law := range Laws {
		reached, tried := 0, 0
		for _, period := range []int64{10, 100} {
			for _, cycle := range []int64{10, 50, 100, 370} {
				p, o := onOneCore(cycle, period).ratesUnder(law, 10_000, 30)
				t.Logf("%-12s quota period %3d ms, cycle %3d ms: protected %.3f, opportunistic %.3f", law.Name, period, cycle, p, o)
				tried++
				if p >= keeps && o >= gets {
					reached++
				}
				if law.Name == "fixed" && p >= .8 {
					t.Errorf("without a law the protected job keeps %.3f of its rate: expected below 0.8", p)
				}
				if law.Name == "antman" && p < .94 {
					t.Errorf("antman lets the protected job fall to %.3f", p)
				}
			}
		}
		if yields := law.Name == "antman-fill"; yields != (reached == tried) {
			t.Errorf("%s reaches the acceptance in %d of %d", law.Name, reached, tried)
		}
	}
}

// TestNoQuotaIsEnough: whatever the quota and its period, a guest in the same class
// takes turns with the protected job while that computes, unless they are in step.
func TestNoQuotaIsEnough(t *testing.T) {
	for _, period := range []int64{10, 100} {
		for quota := unit.Milli(20); quota <= 1000; quota += 20 {
			const ms = 100_000
			c := onOneCore(370, period)
			c.run(ms, Actuator{CPU: quota})
			if p, o := float64(c.protected.done)/ms, float64(c.guest.done)/ms; p >= keeps && o >= gets {
				t.Errorf("quota %d per %d ms: protected %.3f, opportunistic %.3f", quota, period, p, o)
			}
		}
	}
}

// TestCoreAgainstClosedForm: two that always compute have half each; a lone job has
// all; a guest under a quota q takes its q, and the other one the rest.
func TestCoreAgainstClosedForm(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		quota := unit.Milli(rapid.IntRange(1, 10).Draw(t, "quota") * 100)
		c := core{protected: task{compute: 1}, guest: task{compute: 1}, period: 10}
		c.run(10_000, Actuator{CPU: quota})
		want := min(500, int64(quota)) * 10
		if got := c.guest.done; got < want-20 || got > want+20 {
			t.Fatalf("quota %d: the guest did %d ms of 10 s, expected %d", quota, got, want)
		}
		if c.protected.done+c.guest.done != 10_000 {
			t.Fatalf("%d and %d ms of 10 s", c.protected.done, c.guest.done)
		}
		alone := core{protected: task{compute: 3, wait: 4}, guest: task{compute: 1}, period: 10}
		alone.run(10_000, Actuator{})
		if alone.protected.done != 10_000 || alone.guest.done != 0 {
			t.Fatalf("with nobody beside it the protected job did %d ms of 10 s", alone.protected.done)
		}
	})
}

// TestSteady: rates are parts of the solo rates, a law that yields protects every
// demand, and the guest gets about what the other leaves.
func TestSteady(t *testing.T) {
	for protected := unit.Milli(100); protected <= 1000; protected += 150 {
		for guest := unit.Milli(250); guest <= 1000; guest += 250 {
			p, o := Steady("antman-fill", protected, guest)
			if again, same := Steady("antman-fill", protected+4, guest); again != p || same != o {
				t.Errorf("%d and %d: the second answer differs", protected, guest)
			}
			// What it computes fits into what the other leaves, whose waits it may miss.
			left := 1 - float64(protected)/1000
			if did := o * float64(guest) / 1000; p < .98 || did > left+.01 || o < .5*min(1, left)-.02 {
				t.Errorf("demands %d and %d: protected %.3f, opportunistic %.3f", protected, guest, p, o)
			}
		}
	}
	if p, o := Steady("fixed", 1000, 1000); p < .49 || p > .51 || o < .49 || o > .51 {
		t.Errorf("two full demands in turns: %.3f and %.3f, expected half each", p, o)
	}
}

// TestFilling: a guest computes no more than its host's windows hold, handing over costs both and
// the more the shorter the windows are, and without windows nothing is changed.
func TestFilling(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		host, guest := rapid.Float64Range(.5, .999).Draw(t, "host"), rapid.Float64Range(.1, 1).Draw(t, "guest")
		length := unit.Duration(rapid.Int64Range(1, 100_000).Draw(t, "window"))
		in := Windows{Length: length, Switch: unit.Duration(rapid.Int64Range(0, 5_000).Draw(t, "switch"))}
		p, o := Filling(ForGuests, host, guest, in)
		if did := o * guest; did > 1-host+1e-12 || did < 0 || p <= 0 || p > 1 {
			t.Fatalf("the guest computes %g of the time beside a host that leaves %g, which keeps %g", did, 1-host, p)
		}
		longer, more := Filling(ForGuests, host, guest, Windows{Length: 2 * length, Switch: in.Switch})
		if longer < p || more < o {
			t.Fatalf("with windows twice as long %g and %g, else %g and %g", longer, more, p, o)
		}
		if free, _ := Filling(ForGuests, host, guest, Windows{Length: length}); free > p*(1+(1-host)*float64(in.Switch)/float64(length))*(1+1e-9) {
			t.Fatalf("the host keeps %g of its rate, %g where handing over is free: it waits once in each window", p, free)
		}
		if a, b := Filling(ForGuests, host, guest, Windows{}); true {
			if x, y := Steady(ForGuests, unit.Milli(1000*host), unit.Milli(1000*guest)); a != x || b != y {
				t.Fatalf("without windows %g and %g, want %g and %g", a, b, x, y)
			}
		}
	})
}

func BenchmarkSteady(b *testing.B) {
	for range b.N {
		steadyStates.Clear()
		Steady("antman-fill", 600, 900)
	}
}
