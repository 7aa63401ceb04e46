package reproduce

import (
	"math"
	"os"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/run/report"
)

// unseen is the part of a published trace that nobody looked at while the house order was developed,
// and what holds there of the order, which goes on with what it learned before.
type unseen struct {
	trace, cluster string
	load           float64
	limit          int
	from           int32 // its first job
	// Mean JCT over SRSF's, which knows all times, and over that of LAS, which knows as little; and
	// preemptions over those of Tiresias in the whole trace.
	srsf, las, preemptions float64
}

// TestHouseUnseen: on weeks that it never saw the house order is as near SRSF as is said, and no worse
// than LAS, but for what is said.
func TestHouseUnseen(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("set MUSTER_LONG=1 to simulate months")
	}
	const data = "../../../shared/data/"
	for name, u := range map[string]unseen{
		"Venus in August":    {"helios:" + data + "helios", venusCluster, 0, 0, 77_574, 1.11, .99, .5},
		"Philly in November": {"philly:" + data + "philly", "philly", .95, 0, 52_849, 1.05, 1, .5},
		"PAI's second half":  {"pai:" + data + "pai2020", "gpus:100x8", 1, 30_000, 15_000, 1.1, 1.01, .5},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(data); err != nil {
				t.Skip("no ../shared/data: the published traces are not in the repository")
			}
			jct, preemptions := map[string]float64{}, map[string]int64{}
			for _, strategy := range []string{"srsf+oracle", catalogue.House, "las", "tiresias"} {
				s := Defaults()
				s.Trace, s.Cluster, s.Load, s.Limit, s.Strategy = u.trace, u.cluster, u.load, u.limit, strategy
				s.Limits, s.NoBounds = report.Limits{Points: 2, Jobs: math.MaxInt}, true
				o := simulateWhole(t, s)
				sum, jobs := 0., 0
				for _, j := range o.Collector.View().Jobs {
					if j.ID >= u.from {
						sum, jobs = sum+j.JCT().Seconds(), jobs+1
					}
				}
				jct[strategy], preemptions[strategy] = sum/float64(jobs), o.Result.Preemptions
			}
			house := jct[catalogue.House]
			over := [...]float64{house / jct["srsf+oracle"], house / jct["las"], float64(preemptions[catalogue.House]) / float64(preemptions["tiresias"])}
			t.Logf("mean JCT %.3f of SRSF, %.3f of LAS; preemptions %.2f of Tiresias", over[0], over[1], over[2])
			for i, most := range [...]float64{u.srsf, u.las, u.preemptions} {
				if over[i] > most {
					t.Errorf("figure %d is %.3f, want at most %.3f", i, over[i], most)
				}
			}
		})
	}
}
