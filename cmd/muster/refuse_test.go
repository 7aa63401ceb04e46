package main

import (
	"strings"
	"testing"
)

// TestUnableStrategies: a strategy that needs what this machine cannot do is refused,
// with the reason, by muster up and by a switch; one that suspends and regrants is not.
func TestUnableStrategies(t *testing.T) {
	t.Parallel()
	for strategy, act := range map[string]string{"jahani": "rent", "mig": "reshape"} {
		if out, err := muster(t, "up", "--state", t.TempDir(), "--strategy", strategy); err == nil || !strings.Contains(err.Error(), "acts by \""+act+"\"") {
			t.Errorf("muster up --strategy %s: %v, expected that it acts by %s\n%s", strategy, err, act, out)
		}
	}
	p := newPlane(t)
	p.start()
	if code, said := p.mutter("strategies", "switch", "mig"); code == 0 || !strings.Contains(said, `place mig acts by "reshape", and this driver can suspend, regrant`) {
		t.Errorf("a switch to mig: exit code %d, %s", code, said)
	}
	if code, said := p.mutter("strategies", "switch", "gandiva"); code != 0 {
		t.Errorf("a switch to gandiva: exit code %d, %s", code, said)
	}
}
