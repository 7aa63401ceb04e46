package supervise

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup"
)

// TestHostMeter: what a guest's law is told of its host: nothing while there is none or
// a window is not over, then its rate as a part of what its record says it was alone.
func TestHostMeter(t *testing.T) {
	dir := t.TempDir()
	w, _, err := openRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.file.Close()
	at := unit.Time(1_700_000_000_000_000)
	steps := int64(0)
	for i, perSecond := range []int64{100, 100, 20, 100, 40} { // another guest was there for a while
		steps += perSecond
		b, err := encode(Record{Kind: Progress, At: at.Add(unit.Duration(i) * unit.Second), Report: Report{Step: steps}})
		if err == nil {
			_, err = w.file.Write(b)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	report := func(n int64) {
		t.Helper()
		var b strings.Builder
		for range n {
			steps++
			fmt.Fprintf(&b, "step=%d\n", steps)
		}
		f, err := os.OpenFile(ProgressPath(dir), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(b.String())
			f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	report(1)
	solo := soloRate(dir)
	if solo != 60 { // of 100, of 20 and 100 together, which are too few by themselves, and of 40
		t.Fatalf("by itself it made %v steps per second, expected 60", solo)
	}
	var m hostMeter
	now := time.Unix(1_700_000_100, 0)
	if rate, alone, news := m.measure("", now); rate != 0 || alone != 0 || !news {
		t.Error("without a host something is told of one")
	}
	if _, alone, news := m.measure(dir, now); alone != 0 || !news {
		t.Error("of a host whose supervisor is dead something is told")
	}
	held, err := lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	m = hostMeter{}
	for i, c := range []struct {
		steps int64
		sec   float64
		rate  float64 // as a part of solo; 0 is no news
	}{{0, 0, 0}, {31, 0.5, 0}, {33, 0.5, 64 / solo}, {int64(solo), 1, 1}, {0, .1, 0}, {1, 100, .01 / solo}} {
		now = now.Add(time.Duration(c.sec * float64(time.Second)))
		report(c.steps)
		rate, alone, news := m.measure(dir, now)
		want := max(1, unit.Milli(1000*c.rate))
		if news != (c.rate > 0) || news && (alone != unit.Whole || rate < want-20 || rate > want+20) {
			t.Errorf("%d: rate %d of %d, news %v: expected %d", i, rate, alone, news, want)
		}
	}
}

// TestGrantOrder: an order for other limits says them, and nothing else is taken for one.
func TestGrantOrder(t *testing.T) {
	want := cgroup.Limits{CPU: 250, Memory: 64, Weight: 500}
	if l, ok := Grant(want).granted(); !ok || l != want {
		t.Errorf("%q reads %+v, %v", Grant(want), l, ok)
	}
	for _, o := range []Order{Go, Suspend, "grant", "grant x 1 0", "grant -1 0 0", "grant 1", Batch(4)} {
		if l, ok := o.granted(); ok {
			t.Errorf("%q reads %+v", o, l)
		}
	}
}
