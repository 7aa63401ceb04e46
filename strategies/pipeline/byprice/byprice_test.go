package byprice_test

import (
	"testing"

	"github.com/musterdl/muster/pipeline/reaction"
	"github.com/musterdl/muster/run/simulated/scheduletest"
	"github.com/musterdl/muster/strategies/pipeline/byprice"
)

func TestConforms(t *testing.T) {
	for name, made := range map[string]reaction.Policy{"by-price": byprice.New(byprice.Default()), "none": byprice.None{}} {
		t.Run(name, func(t *testing.T) { scheduletest.ConformPart(t, reaction.Part, func() any { return made }) })
	}
}
