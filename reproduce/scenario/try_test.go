package scenario

import "testing"
import "os"
import "strings"

func TestTry(t *testing.T) {
	data := "../../../shared/data"
	if os.Getenv("GEN") != "" { data = "/nowhere" }
	w, err := NewWarm(Setup{Data: data, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	goals := []string{"throughput"}
	if g := os.Getenv("GOALS"); g != "" { goals = strings.Split(g, ",") }
	for _, g := range goals {
		d, err := w.Run(nil, g)
		if err != nil {
			t.Error(g, err)
			continue
		}
		t.Logf("%+v", d)
		if d.Window != nil { t.Logf("%+v", *d.Window) }
	}
	if os.Getenv("GOALS") == "" {
		d, err := w.Run([]string{"profile", "allocate", "schedule", "pipeline", "flow", "run"}, "throughput")
		t.Logf("%+v %v", d, err)
		if d.Window != nil { t.Logf("%+v", *d.Window) }
	}
}
