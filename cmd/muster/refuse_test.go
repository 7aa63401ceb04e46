package main

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/run"
)

// TestUnableStrategies: of all strategies those that need what this machine cannot do are
// refused, with the reason, by muster up and by a switch.
func TestUnableStrategies(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start()
	for _, e := range catalogue.All {
		act := run.Slots.Lacks(e.Acts)
		if act == "" {
			continue
		}
		why := "its " + e.Part.Name + " " + e.Name + " " + act.Does() + " (" + string(act) + "), and " + run.Slots.Why[act]
		if out, err := muster(t, "up", "--state", t.TempDir(), "--strategy", e.Name); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("muster up --strategy %s: %v, expected that %s\n%s", e.Name, err, why, out)
		}
		if code, said := p.mutter("strategies", "switch", e.Name); code == 0 || !strings.Contains(said, why) {
			t.Errorf("a switch to %s: exit code %d, %s", e.Name, code, said)
		}
	}
	if code, said := p.mutter("strategies", "switch", "salus"); code != 0 {
		t.Errorf("a switch to salus: exit code %d, %s", code, said)
	}
}
