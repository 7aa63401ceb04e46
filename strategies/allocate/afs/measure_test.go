package afs

import "testing"

// TestMeasure: the longer of two jobs hardly wins at few devices and never more than half
// the time, for the rule has no forecast that could make it.
func TestMeasure(t *testing.T) {
	m := Measure(1)
	if m["longer_wins_at_1"] != 0 || m["longer_wins_at_16"] >= .5 || m["longer_wins_at_16"] < m["longer_wins_at_2"] {
		t.Errorf("the longer of two jobs wins %.2f at 1 device, %.2f at 2, %.2f at 16",
			m["longer_wins_at_1"], m["longer_wins_at_2"], m["longer_wins_at_16"])
	}
}
