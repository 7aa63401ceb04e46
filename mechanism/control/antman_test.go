package control_test

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/mechanism/control"
	"github.com/musterdl/muster/model/unit"
)

// TestAntManStep is its step response: from the floor up in twentieths, down to seven
// tenths while the protected job is slower than it may be, and back.
func TestAntManStep(t *testing.T) {
	law, ok := control.Find("antman")
	if !ok {
		t.Fatal("there is no law antman")
	}
	var s control.State
	var got []unit.Milli
	for _, rate := range []unit.Milli{1000, 1000, 960, 953, 900, 900, 951, 1000} {
		var a control.Actuator
		a, s = law.Step(control.Range{Ceiling: 1000}, control.Observation{Rate: rate, Solo: 1000}, s)
		got = append(got, a.CPU)
	}
	if want := []unit.Milli{0, 50, 100, 150, 105, 73, 51, 101}; !slices.Equal(got, want) {
		t.Errorf("it sets %v, want %v", got, want)
	}
	// Nobody to protect: up to the ceiling.
	for range 25 {
		var a control.Actuator
		a, s = law.Step(control.Range{Ceiling: 1000}, control.Observation{}, s)
		got = append(got, a.CPU)
	}
	if last := got[len(got)-1]; last != 1000 {
		t.Errorf("with nobody to protect it stays at %d", last)
	}
}

// TestAntManMemory: the cap follows what the protected job leaves, down at once and
// up by tenths of what the guest may have.
func TestAntManMemory(t *testing.T) {
	law, _ := control.Find("antman-fill")
	var s control.State
	var got []unit.MiB
	for _, spare := range []unit.MiB{8000, 12000, 3000, 9000, 9000, -1} {
		var a control.Actuator
		a, s = law.Step(control.Range{Ceiling: 1000, Memory: 10000}, control.Observation{Spare: spare}, s)
		if !a.Yield {
			t.Fatal("antman-fill does not yield")
		}
		got = append(got, a.Memory)
	}
	if want := []unit.MiB{8000, 9000, 3000, 4000, 5000, 0}; !slices.Equal(got, want) {
		t.Errorf("it caps at %v, want %v", got, want)
	}
}
