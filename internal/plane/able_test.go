package plane

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
)

// limited is nature where runs can be suspended and nothing else.
type limited struct{ *nature }

func (limited) Can() []string { return []string{"suspend"} }

// TestUnable: a strategy that needs what the driver cannot do decides nothing: a start
// with it is refused, so is a switch to it, and the one before goes on.
func TestUnable(t *testing.T) {
	e, _ := catalogue.Find("fifo")
	before := catalogue.All
	t.Cleanup(func() { catalogue.All = before })
	rests, rents := e, e
	rests.Name, rests.Acts = "test-rests", []string{"suspend"}
	rents.Name, rents.Acts = "test-rents", []string{"suspend", "rent"}
	catalogue.All = append(before[:len(before):len(before)], rests, rents)

	w := newBench(t, t.TempDir(), "fifo")
	defer w.close()
	w.config.Driver = limited{w.nature}
	w.start()
	if err := w.switchTo("test-rests"); err != nil {
		t.Errorf("a switch to what can be done: %v", err)
	}
	const why = `order test-rents acts by "rent", and this driver can suspend`
	if err := w.switchTo("test-rents"); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("a switch to what cannot be done: %v", err)
	}
	if got := w.plane.Strategy(); got != "test-rests" {
		t.Errorf("after it %s decides", got)
	}
	w.strategy("test-rents")
	if _, err := Open(w.config); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("a start with what cannot be done: %v", err)
	}
}
