package main

import (
	"strings"
	"testing"
)

// TestRefusesWhatPodsCannot: a strategy that suspends, regrants, cuts or rents is
// refused where it is read, unless it is only to advise.
func TestRefusesWhatPodsCannot(t *testing.T) {
	for _, c := range []struct{ strategy, act string }{{"tiresias", ""}, {"gandiva", "suspend"}, {"mig", "reshape"}, {"jahani", "rent"}} {
		f := flags{strategy: c.strategy}
		_, err := f.composition()
		if (err == nil) != (c.act == "") || err != nil && !strings.Contains(err.Error(), `acts by "`+c.act+`", and this driver can only start and stop`) {
			t.Errorf("%s: %v, expected that it acts by %q", c.strategy, err, c.act)
		}
		f.advise = true
		if _, err := f.composition(); err != nil {
			t.Errorf("%s, to advise: %v", c.strategy, err)
		}
	}
}
