package scenario

import (
	"testing"
)

func TestDay(t *testing.T) {
	w, err := NewWarm(Setup{Data: "../../../shared/data", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, null := range [][]string{nil, {"profile"}, {"allocate"}, {"schedule"}, {"pipeline"}, {"flow"}, {"run"}, {"profile", "allocate", "schedule", "pipeline", "flow", "run"}} {
		d, err := w.Run(null, "throughput")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", d)
	}
}
