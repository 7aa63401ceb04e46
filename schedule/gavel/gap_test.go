package gavel

import "testing"

// TestTwinGap: on measured rates the twin is legal, not better than the program, and
// within half of it.
func TestTwinGap(t *testing.T) {
	rates, err := tables(data(t))
	if err != nil {
		t.Fatal(err)
	}
	gap, err := twinGap(rates, 1)
	if err != nil || gap < -1e-9 || gap > 0.5 {
		t.Errorf("the gap is %.3f, %v", gap, err)
	}
	t.Logf("the gap of the twin is %.3f", gap)
}
