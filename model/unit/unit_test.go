package unit_test

import (
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// TestNoSixtySeconds rounds before it splits.
func TestNoSixtySeconds(t *testing.T) {
	for d, want := range map[unit.Duration]string{
		3*unit.Hour - 1: "3h",
		unit.Minute + 59*unit.Second + 700*unit.Millisecond: "2m",
		unit.Day + unit.Second/2:                            "1d1s",
	} {
		if got := d.String(); got != want {
			t.Errorf("%d us is %s, not %s", int64(d), got, want)
		}
	}
}
