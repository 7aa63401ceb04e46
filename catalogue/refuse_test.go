package catalogue_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/run"
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
		{"test-turns", can(strategy.Time), `test-turns cannot be obeyed here: its order test-turns holds a run to a part of its devices that the strategy chooses (share), and this driver cannot; what works as its order: edf, express, `},
		{"test-turns", can(), `its order test-turns suspends a run`},
		{"test-turns+test-cuts", can(strategy.Time, strategy.Share), `its place test-cuts cuts a device into parts (reshape), and nothing has parts; what works as its place: advantage, best-fit, `},
		{"order: test-turns\nplace: first-fit/test-cuts\n", can(strategy.Time, strategy.Share), `its place test-cuts cuts`},
		{"order: fifo\nshare: colocate\n", run.Bare, ""},
		{"order: fifo\nshare: colocate\n", run.GPUs, `its share colocate lets a guest compute in what its host leaves of a device, so that the host hardly notices (filler), and a GPU has no idle class, and no law reaches into it; leave the part out`},
		{"order: fifo\nshare: colocate\n", run.Kubernetes, `(filler), and nothing on its nodes holds a guest back; leave the part out`},
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

// TestRefused: which driver refuses which strategy, also for what only its options do.
func TestRefused(t *testing.T) {
	slots, bare, gpus, mps, kube := run.Slots.Driver, run.Bare.Driver, run.GPUs.Driver, run.WithMPS.Driver, run.Kubernetes.Driver
	live := []string{slots, bare, gpus, mps, kube}
	want := map[string][]string{
		"parrot": live, "cassini": live, "strict": live, "mig": live, "jahani": live, "titan": live, "hydro": live, "pipeswitch": live,
		"gandiva": {bare, gpus, mps, kube}, "igniter": {bare, gpus, mps, kube}, "antman": {gpus, mps, kube}, "colocate": {gpus, mps, kube}, "mps": {bare, gpus, kube}, "salus": {kube},
		"dp-cut": {kube}, "1f1b": {kube}, "dualpipe": live, "dualpipe-v": {kube}, "zb-h1": {kube}, "zb-h2": {kube},
		"chimera": live, "mixpipe": live, "hanayo": {kube}, "pipedream": live, "hetpipe": live,
		"interleaved": {kube}, "zbv": {kube}, "v-half": {kube}, "v-min": {kube}, "zero-bubble": {kube},
		"ooo-backprop": {kube}, "varuna": {kube}, "ptd-p": {kube}, "piper": {kube}, "dt-fm": {kube}, "swarm": live,
		"oobleck": {kube}, "autopipe": {kube}, "1f1b-sliced": {kube}, "eager-1f1b": {kube}, "alpa": {kube}, "adapipe": {kube}, "hetpipe-workers": {kube},
		"varuna-morph": {kube},
		"fixed-3d":     {kube},
		"place: igniter\noptions: {igniter: {repack: false}}\n": {bare, gpus, kube},
		"joint: salus\noptions: {salus: {lanes: 2}}\n":          {bare, gpus, kube},
		"joint: salus\noptions: {salus: {swap: true}}\n":        live,
		"joint: gandiva\noptions: {gandiva: {swap: true}}\n":    live,
	}
	names := slices.Sorted(maps.Keys(want))
	for _, e := range catalogue.All {
		if want[e.Name] == nil {
			names = append(names, e.Name)
		}
	}
	for _, name := range names {
		c, err := catalogue.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		var refused []string
		for _, a := range run.Abilities {
			if err := c.Refuse(a); err != nil {
				refused = append(refused, a.Driver)
			}
		}
		if !slices.Equal(refused, want[name]) {
			t.Errorf("%s is refused %q, expected %q", name, refused, want[name])
		}
	}
}

// TestLiveLines: a live line says that it cannot be done, or is refused, of those strategies
// that every live driver refuses, or that want true run times, and of no others.
func TestLiveLines(t *testing.T) {
	for _, e := range catalogue.All {
		c, err := catalogue.Resolve(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		nowhere := !slices.ContainsFunc(run.Abilities, func(a strategy.Ability) bool {
			return a.Driver != run.Simulated.Driver && c.Refuse(a) == nil
		})
		if says := strings.HasPrefix(e.Live, "cannot, because "); says != nowhere {
			t.Errorf("%s: no live driver obeys it: %v, its line: %s", e.Name, nowhere, e.Live)
		}
		_, err = c.Live()
		if says := strings.HasPrefix(e.Live, "refused, because "); says != (err != nil) {
			t.Errorf("%s: live: %v, its line: %s", e.Name, err, e.Live)
		}
		if e.Live == "" {
			t.Errorf("%s says nothing", e.Name)
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
		if slices.Sort(said); !slices.Equal(said, slices.Sorted(slices.Values(slices.Concat(strategy.Basic, strategy.Acts)))) {
			t.Errorf("%s: %v", a.Driver, said)
		}
	}
	for _, act := range slices.Concat(strategy.Basic, strategy.Acts) {
		if act.Does() == "" {
			t.Errorf("%s has no sentence", act)
		}
	}
}
