package fifo_test

import (
	"testing"

	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/fifo"
)

func TestConforms(t *testing.T) {
	for name, c := range map[string]fifo.Config{"backfill": fifo.Default(), "strict": {}} {
		t.Run(name, func(t *testing.T) {
			scheduletest.Conform(t, func() schedule.Order { return fifo.New(c) })
		})
	}
}
