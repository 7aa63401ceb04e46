package supervise

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local/cgroup"
)

// TestHostMeter: what a guest's law is told of its host: nothing while there is none or a window is
// not over, then the most that its rate may be, as a part of the least that it was alone, by its
// record. One that makes no step is told at once.
func TestHostMeter(t *testing.T) {
	dir := t.TempDir()
	w, _, err := openRecord(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.file.Close()
	for i := range 5 {
		r := Record{Kind: Progress, Blocks: []control.Block{{Steps: int64(98 + i), Took: unit.Second}, {Steps: 100, Took: unit.Second}}}
		if i == 2 {
			r.Blocks[0].Steps = 30 // somebody else was there for a while
		}
		if err := w.add(r); err != nil {
			t.Fatal(err)
		}
	}
	if solo := soloPace(dir); solo.Is != 100 || solo.Least != 98 || solo.Most != 101 { // of ten the second from either end
		t.Fatalf("by itself it went at %+v", solo)
	}
	var m hostMeter
	now, steps := time.Unix(1_700_000_100, 0), int64(0)
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
		if err == nil {
			err = os.Chtimes(ProgressPath(dir), now, now)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	report(1)
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
	if _, _, news := m.measure(dir, now); news {
		t.Error("something is told before it was looked at")
	}
	// goes lets the host go on for so many looks, a quarter of a second apart, at so many steps in each.
	goes := func(looks int, perLook int64) (rate unit.Milli, after int) {
		for i := range looks {
			now = now.Add(250 * time.Millisecond)
			report(perLook)
			if rate, alone, news := m.measure(dir, now); news && alone == unit.Whole {
				return rate, i + 1
			}
		}
		return 0, looks
	}
	for _, c := range []struct {
		looks   int
		perLook int64
		rate    unit.Milli
		after   int
	}{{20, 25, 1020, 8}, {20, 20, 816, 8}, {7, 25, 0, 7}, {20, 24, 1020, 1}, {20, 1, 41, 2}, {20, 0, 1, 2}} {
		if rate, after := goes(c.looks, c.perLook); rate != c.rate || after != c.after {
			t.Errorf("at %d in %d looks: rate %d after %d, expected %d after %d", c.perLook, c.looks, rate, after, c.rate, c.after)
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
