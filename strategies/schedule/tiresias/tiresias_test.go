package tiresias_test

import (
	"testing"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/tiresias"
)

// configs are the strategy's forms with bounds that small histories reach.
func configs() map[string]tiresias.Config {
	las := tiresias.Config{QueuesDeviceSec: []float64{60, 600}}
	promoting := tiresias.Config{QueuesDeviceSec: []float64{60}, PromoteAfter: 2}
	learning := tiresias.Config{QueuesDeviceSec: []float64{200}, Gittins: true, QuantumDeviceSec: 50, Refresh: 10 * unit.Minute, PromoteAfter: 2}
	informed := tiresias.Config{Gittins: true, Textbook: true, QuantumDeviceSec: 100, Refresh: unit.Day, PromoteAfter: 1,
		SamplesDeviceSec: []float64{50, 50, 60, 1000, 1000}}
	return map[string]tiresias.Config{"las": las, "promoting": promoting, "learning": learning, "informed": informed}
}

func TestOrderConforms(t *testing.T) {
	for name, c := range configs() {
		t.Run(name, func(t *testing.T) {
			if err := strategy.Check(c); err != nil {
				t.Fatal(err)
			}
			scheduletest.Conform(t, func() schedule.Order { return tiresias.New(c) })
		})
	}
}
