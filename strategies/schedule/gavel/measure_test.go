package gavel

import "testing"

// TestTwinGap: on drawn rates the twin is legal, not better than the program, and within
// half of it; the objective tells something of the goal and not all.
func TestTwinGap(t *testing.T) {
	m := Measure(1)
	if gap := m["twin_gap"]; gap < -1e-9 || gap > 0.5 {
		t.Errorf("the gap is %.3f", gap)
	}
	if inner := m["inner_rank_correlation"]; !(inner > -1 && inner < 1) {
		t.Errorf("the objective's rank correlation with the mean time left is %.2f", inner)
	}
	t.Log(m)
}
