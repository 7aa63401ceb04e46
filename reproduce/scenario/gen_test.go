package scenario

import ("testing"; "time"
"github.com/musterdl/muster/engine"
"github.com/musterdl/muster/plan"
"github.com/musterdl/muster/unit")

var spy func(at unit.Time, e []engine.Event, out *engine.Out, v plan.View)

func TestGen(t *testing.T) {
	b := time.Now()
	w, err := NewWarm(Setup{Data: "/nowhere", Seed: 1})
	if err != nil { t.Fatal(err) }
	t.Logf("warm %v jobs %d load %v factor %v", time.Since(b), len(w.mix.day), w.mix.load, w.mix.factor)
	n, quiet, changes := 0, 0, 0
	kinds := map[engine.Kind]int{}
	spy = func(at unit.Time, e []engine.Event, out *engine.Out, v plan.View) {
		n++
		if len(e) == 0 { quiet++ }
		for _, x := range e { kinds[x.Kind]++ }
		if out.Commit != nil { changes += len(out.Commit.Changes) }
		if n%20000 == 0 {
			t.Logf("%d steps, at %v h, quiet %d changes %d wake in %v kinds %v", n, at.Sub(w.at).Seconds()/3600, quiet, changes, out.Wake-at, kinds)
		}
		if n > 200000 { t.FailNow() }
	}
	d, err := w.Run(nil, "throughput")
	t.Logf("%+v %v", d, err)
}
