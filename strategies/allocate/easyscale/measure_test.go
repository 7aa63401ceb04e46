package easyscale

import "testing"

// TestMeasure: the gain of a proposal tells something of the time saved and not all.
func TestMeasure(t *testing.T) {
	if inner := Measure(1)["inner_rank_correlation"]; !(inner > .2 && inner < 1) {
		t.Errorf("the gain's rank correlation with the time saved is %.2f", inner)
	}
}
