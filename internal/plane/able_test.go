package plane

import (
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/model/strategy"
)

// limited is nature where runs can be suspended and nothing else.
type limited struct{ *nature }

func (limited) Can() strategy.Ability {
	return strategy.Ability{Driver: "here", Means: map[strategy.Act]string{strategy.Time: "it rests"}}
}

// TestUnable: a strategy that needs what the driver cannot do decides nothing: a start
// with it is refused, so is a switch to it, and the one before goes on.
func TestUnable(t *testing.T) {
	e, _ := catalogue.Find("fifo")
	before := catalogue.All
	t.Cleanup(func() { catalogue.All = before })
	rests, rents := e, e
	rests.Name, rests.Acts = "test-rests", []strategy.Act{strategy.Time}
	rents.Name, rents.Acts = "test-rents", []strategy.Act{strategy.Time, strategy.Rent}
	catalogue.All = append(before[:len(before):len(before)], rests, rents)

	w := newBench(t, t.TempDir(), "fifo")
	defer w.close()
	w.config.Driver = limited{w.nature}
	w.start()
	if err := w.switchTo("test-rests"); err != nil {
		t.Errorf("a switch to what can be done: %v", err)
	}
	const why = `order test-rents rents nodes and gives them back (rent), and this driver cannot`
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
