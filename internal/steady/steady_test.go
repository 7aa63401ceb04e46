package steady

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// TestClockLeaps: a clock that is set ahead and back is told of, is not felt, and one that stays is followed.
func TestClockLeaps(t *testing.T) {
	var log bytes.Buffer
	var set, passed unit.Duration
	c := New(func() (unit.Time, unit.Duration) { return unit.Time(unit.Day + passed + set), passed }, slog.New(slog.NewTextHandler(&log, nil)))
	pass := func(by unit.Duration, times int, off unit.Duration) {
		t.Helper()
		for range times {
			before := c.Now()
			passed += by
			if went := c.Now().Sub(before); went < by-by/follows-1 || went > by+by/follows+1 {
				t.Fatalf("in %s it went on by %s", by, went)
			}
		}
		if got := c.Now().Sub(unit.Time(unit.Day + passed)); got != off {
			t.Fatalf("it is off by %s, expected %s", got, off)
		}
	}
	pass(unit.Second, 100, 0)
	set = unit.Day
	pass(unit.Second, 600, 6*unit.Second)
	set = 0
	pass(unit.Second, 600, 0)
	if n := strings.Count(log.String(), "the machine's clock was set"); n != 2 {
		t.Errorf("told %d times of two leaps:\n%s", n, log.String())
	}
	set = -unit.Minute
	pass(8, int(unit.Minute/8), -unit.Minute/100) // whoever asks often is no hindrance
	pass(unit.Second, 60*follows, -unit.Minute)
	pass(unit.Second, 10, -unit.Minute)
}

// TestClockIsKept: a restart goes on as it was, whatever was set meanwhile, and follows on.
func TestClockIsKept(t *testing.T) {
	var set, passed unit.Duration
	file := filepath.Join(t.TempDir(), "clock")
	start := func() *Clock {
		return Kept(file, func() (unit.Time, unit.Duration) { return unit.Time(unit.Day + passed + set), passed }, slog.New(slog.DiscardHandler))
	}
	c := start()
	set = unit.Day
	for range 1000 {
		passed += unit.Second
		c.Now()
	}
	before := c.Now()
	if now := start().Now(); now < before.Add(-leap) || now > before.Add(leap) {
		t.Errorf("a restart made of %d %d", before, now)
	}
	for what, data := range map[string]string{"of another start of the machine": `{"boot":"another","ahead_us":5}`, "damaged": `{"boo`} {
		if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		if now := start().Now(); now != unit.Time(unit.Day+passed+set) {
			t.Errorf("%s it begins at %d", what, now)
		}
	}
}

// TestClockIsTheMachines: it goes on as the machine's does.
func TestClockIsTheMachines(t *testing.T) {
	c := New(Machine, slog.New(slog.DiscardHandler))
	first := c.Now()
	if clock, _ := Machine(); clock.Sub(first) > unit.Minute || first.Sub(clock) > unit.Minute || c.Now() < first {
		t.Errorf("it says %d and %d, the machine's %d", first, c.Now(), clock)
	}
}
