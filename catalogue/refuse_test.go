package catalogue_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/run"
	"github.com/musterdl/muster/strategy"
)

// acting lists one more strategy for the test: a known one under another name that
// acts on runs in some ways.
func acting(t *testing.T, like, name string, acts ...strategy.Act) {
	e, ok := catalogue.Find(like)
	if !ok {
		t.Fatalf("there is no %s", like)
	}
	e.Name, e.Acts = name, acts
	before := catalogue.All
	catalogue.All = append(before[:len(before):len(before)], e)
	t.Cleanup(func() { catalogue.All = before })
}

// can is a driver that can do so much.
func can(acts ...strategy.Act) strategy.Ability {
	a := strategy.Ability{Driver: "here", Means: map[strategy.Act]string{}, Why: map[strategy.Act]string{strategy.Reshape: "nothing has parts"}}
	for _, act := range acts {
		a.Means[act] = "somehow"
	}
	return a
}

// TestRefuse: a composition is refused for what any of its parts does that the driver
// cannot, also one of a chain of placers; the reason names the part, the deed, why it
// cannot be done and what works.
func TestRefuse(t *testing.T) {
	acting(t, "fifo", "test-turns", strategy.Time, strategy.Share)
	acting(t, "best-fit", "test-cuts", strategy.Reshape)
	for _, c := range []struct {
		ref  string
		able strategy.Ability
		why  string
	}{
		{"fifo", can(), ""},
		{"test-turns", can(strategy.Time, strategy.Share), ""},
		{"test-turns", can(strategy.Time), `test-turns cannot be obeyed here: its order test-turns holds a run to a part of its devices that the strategy chooses (share), and this driver cannot; what works as its order: express, edf, `},
		{"test-turns", can(), `its order test-turns suspends a run`},
		{"test-turns+test-cuts", can(strategy.Time, strategy.Share), `its place test-cuts cuts a device into parts (reshape), and nothing has parts; what works as its place: advantage, best-fit, `},
		{"order: test-turns\nplace: first-fit/test-cuts\n", can(strategy.Time, strategy.Share), `its place test-cuts cuts`},
		{"fifo+cassini", can(), `its rate cassini delays the traffic of a run by a part of an iteration (shift), and this driver cannot; leave the part out`},
	} {
		composition, err := catalogue.Resolve(c.ref)
		if err != nil {
			t.Fatal(err)
		}
		err = composition.Refuse(c.able)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v, expected %q", c.ref, err, c.why)
		}
	}
}

// TestRefused: which driver refuses which strategy.
func TestRefused(t *testing.T) {
	const slots, gpus, mps, kube = "on this machine's slots", "on this machine's GPUs", "on this machine's GPUs under MPS", "on Kubernetes"
	live := []string{slots, gpus, mps, kube}
	want := map[string][]string{
		"parrot": live, "cassini": live, "strict": live, "mig": live, "jahani": live, "titan": live, "hydro": live,
		"gandiva": {gpus, mps, kube}, "igniter": {gpus, kube}, "antman": {gpus, mps, kube}, "mps": {gpus, kube}, "salus": {gpus, kube}, "dp-cut": {kube}, "1f1b": {kube},
	}
	for _, e := range catalogue.All {
		c, err := catalogue.Resolve(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		var refused []string
		for _, a := range run.Abilities {
			if err := c.Refuse(a); err != nil {
				refused = append(refused, a.Driver)
			}
		}
		if !slices.Equal(refused, want[e.Name]) {
			t.Errorf("%s is refused %q, expected %q", e.Name, refused, want[e.Name])
		}
	}
}

// TestAbilities: each driver says of each act how it does it, or why it cannot.
func TestAbilities(t *testing.T) {
	for _, a := range run.Abilities {
		said := slices.Collect(maps.Keys(a.Means))
		for act := range a.Why {
			if a.Means[act] == "" {
				said = append(said, act)
			}
		}
		if slices.Sort(said); !slices.Equal(said, slices.Sorted(slices.Values(strategy.Acts))) {
			t.Errorf("%s: %v", a.Driver, said)
		}
	}
	for _, act := range strategy.Acts {
		if act.Does() == "" {
			t.Errorf("%s has no sentence", act)
		}
	}
}
