package catalogue_test

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
)

// acting lists one more strategy for the test: a known one under another name that
// acts on runs in some ways.
func acting(t *testing.T, like, name string, acts ...string) {
	e, ok := catalogue.Find(like)
	if !ok {
		t.Fatalf("there is no %s", like)
	}
	e.Name, e.Acts = name, acts
	before := catalogue.All
	catalogue.All = append(before[:len(before):len(before)], e)
	t.Cleanup(func() { catalogue.All = before })
}

// TestRefuse: a composition is refused for what any of its parts does that the driver
// cannot, also one of a chain of placers, and the reason names the part and the deed.
func TestRefuse(t *testing.T) {
	acting(t, "fifo", "test-turns", "suspend", "regrant")
	acting(t, "best-fit", "test-cuts", "reshape")
	for _, c := range []struct{ ref, can, why string }{
		{"fifo", "", ""},
		{"test-turns", "suspend regrant", ""},
		{"test-turns", "suspend", `order test-turns acts by "regrant", and this driver can suspend`},
		{"test-turns", "", `order test-turns acts by "suspend", and this driver can only start and stop runs`},
		{"test-turns+test-cuts", "suspend regrant", `place test-cuts acts by "reshape", and this driver can suspend, regrant`},
		{"order: test-turns\nplace: first-fit/test-cuts\n", "suspend regrant", `place test-cuts acts by "reshape"`},
	} {
		composition, err := catalogue.Resolve(c.ref)
		if err != nil {
			t.Fatal(err)
		}
		err = composition.Refuse(strings.Fields(c.can)...)
		if (err == nil) != (c.why == "") || err != nil && !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s where one can %q: %v, expected %q", c.ref, c.can, err, c.why)
		}
	}
}
