package reproduce

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report"
)

// venusCluster is the cluster that the operator's claims are made on: at it the trace
// asks for 84 % of what there is, and for half of its days for more than there is.
const (
	venusCluster = "gpus:74x8"
	venusDevices = 74 * 8
)

// venus is a simulation of the Venus trace with the composition of a file.
func venus(t *testing.T, composition string) Setup {
	t.Helper()
	const data = "../../../shared/data/helios"
	if _, err := os.Stat(data); err != nil {
		t.Skip("no ../shared/data/helios: the Venus trace is not in the repository")
	}
	s := Defaults()
	s.Trace, s.Cluster, s.Limits = "helios:"+data, venusCluster, report.Limits{Jobs: 1_000_000}
	s.Strategy = filepath.Join(t.TempDir(), "composition.yaml")
	if err := os.WriteFile(s.Strategy, []byte(composition), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// simulateWhole runs a setup whose jobs must all finish and whose books must balance.
func simulateWhole(t *testing.T, s Setup) *Outcome {
	t.Helper()
	o, err := Simulate(s)
	if err != nil {
		t.Fatal(err)
	}
	if r := &o.Result; r.Finished != r.Jobs || r.Restarts != 0 || !r.Balanced {
		t.Errorf("%d of %d jobs finished, %d restarts without any failure, balanced: %v", r.Finished, r.Jobs, r.Restarts, r.Balanced)
	}
	return o
}

// got is what some of the jobs got.
type got struct {
	jobs              int
	waitSec, jctSec   float64 // means
	longestWaitSec    float64
	sumWait, sumOfJCT float64
}

func (g *got) add(j *report.JobRecord) {
	g.jobs++
	g.sumWait += j.Waited.Seconds()
	g.sumOfJCT += j.JCT().Seconds()
	g.waitSec, g.jctSec = g.sumWait/float64(g.jobs), g.sumOfJCT/float64(g.jobs)
	g.longestWaitSec = max(g.longestWaitSec, j.Waited.Seconds())
}

func (g *got) String() string {
	return fmt.Sprintf("%d: wait %.0f s, at most %.0f s, JCT %.0f s", g.jobs, g.waitSec, g.longestWaitSec, g.jctSec)
}

// bySize divides the jobs into gangs of 16 devices and more, and the others.
func bySize(o *Outcome) (gangs, others got) {
	for _, j := range o.Collector.View().Jobs {
		if j.Devices >= 16*unit.Whole {
			gangs.add(&j)
		} else {
			others.add(&j)
		}
	}
	return gangs, others
}

// reserving is a composition file of first-fit in order of submission with a reserve
// policy, its options, and estimates that are off by up to half.
func reserving(reserve, options string) string {
	return "order: fifo\nplace: first-fit\nestimate: noisy\nreserve: " + reserve +
		"\noptions:\n  noisy: {error: uniform, spread: 0.5}\n" + options
}

// TestReservationOnVenus: with a place in the calendar, gangs of 16 and more wait half
// as long as where nobody has one, at no more than three points of utilisation. The
// beginning of the trace, which has a queue for some days only, shows no more than that
// the longest wait is bounded; MUSTER_FULL=1 runs all of it with three draws of the
// errors, and what else was tried.
func TestReservationOnVenus(t *testing.T) {
	long := os.Getenv("MUSTER_FULL") == "1"
	measure := func(t *testing.T, what, composition string, seed uint64) (utilisation float64, gangs got) {
		s := venus(t, composition)
		if s.Seed = seed; !long {
			s.Limit, s.Load = 8000, 0.65
		}
		o := simulateWhole(t, s)
		gangs, others := bySize(o)
		t.Logf("%-16s utilisation %.4f, gangs of 16 and more %s; others %s", what, o.Result.Utilization, &gangs, &others)
		return o.Result.Utilization, gangs
	}
	before, free := measure(t, "no reservation", reserving("no-reservation", ""), 1)
	seeds := uint64(1)
	if long {
		seeds = 3
	}
	for seed := range seeds {
		after, held := measure(t, "easy", reserving("easy", ""), seed+1)
		if after < before-0.03 {
			t.Errorf("utilisation falls from %.4f to %.4f: by more than three points", before, after)
		}
		if held.longestWaitSec > free.longestWaitSec/2 {
			t.Errorf("a gang waits %.0f s, without reservation %.0f s: no bound on starvation is seen", held.longestWaitSec, free.longestWaitSec)
		}
		if ratio := held.waitSec / free.waitSec; long && ratio > 0.5 {
			t.Errorf("gangs wait %.0f s, without reservation %.0f s: %.2f of it, more than half", held.waitSec, free.waitSec, ratio)
		}
	}
	if !long {
		return
	}
	for _, other := range []struct{ what, composition string }{
		{"exact estimates", "order: fifo\nplace: first-fit\nestimate: oracle\nreserve: easy\n"},
		{"two claims", reserving("easy", "  easy: {depth: 2}\n")},
	} {
		measure(t, other.what, other.composition, 1)
	}
}
