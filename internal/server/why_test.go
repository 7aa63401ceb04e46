package server_test

import (
	"slices"
	"testing"

	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/internal/whatif"
)

// TestWhyTellsWhatIsKnown: under an order that learns, why says that nothing is known of a job; under
// one that does not it says nothing of the kind.
func TestWhyTellsWhatIsKnown(t *testing.T) {
	w := start(t, nil)
	w.submit(lasts("first", 4), lasts("waits", 4))
	w.until("first", "active", "running")
	why := func() view.Why {
		y, err := w.client.Why(t.Context(), "waits")
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	const line = "nothing is known of what part of its declared time it takes, so jobs that have used the least device time go first"
	if y := why(); slices.Contains(y.Detail, line) {
		t.Errorf("under fifo: %q", y.Detail)
	}
	if _, err := w.client.SwitchStrategy(t.Context(), whatif.SwitchRequest{Strategy: "muster"}); err != nil {
		t.Fatal(err)
	}
	if y := why(); !slices.Contains(y.Detail, line) {
		t.Errorf("under muster: %q, want %q", y.Detail, line)
	}
}
