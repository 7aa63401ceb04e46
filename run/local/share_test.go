package local_test

import (
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/local"
	"github.com/musterdl/muster/run/local/cgroup"
)

// TestTwoShares: two jobs that hold parts of one slot and compute all the time use
// their parts of its core, each within a tenth, over ten seconds.
func TestTwoShares(t *testing.T) {
	needLong(t)
	if support := cgroup.Probe(); !support.CPU {
		t.Skip(support)
	}
	h := startOn(t, stateDir(t), "fifo", local.Slots{Count: 1, CPU: unit.Whole, Memory: 512})
	defer h.stop()
	shares := map[string]unit.Milli{"most": 600, "rest": 400}
	for name, share := range shares {
		j := worker(t, name, 10, 0, -1, 0)
		j.Share = share
		defer h.cancel(h.begin(j))
	}
	h.favour("most")
	time.Sleep(500 * time.Millisecond)
	const window, tries, within = 10 * time.Second, 3, .1
	for try := range tries { // a machine that others want too may give less, never more
		before, began := map[string]unit.Duration{}, time.Now()
		for name := range shares {
			before[name] = h.cpu(name)
		}
		time.Sleep(window)
		good := true
		for name, share := range shares {
			got := (h.cpu(name) - before[name]).Seconds() / time.Since(began).Seconds() / (float64(share) / 1000)
			t.Logf("window %d: %s used %.3f of its %s", try, name, got, share)
			good = good && got > 1-within && got < 1+within
			if got >= 1+within {
				t.Errorf("%s used %.3f of its share", name, got)
			}
		}
		if good {
			return
		}
	}
	t.Errorf("in none of %d windows did both shares hold within %v", tries, within)
}
