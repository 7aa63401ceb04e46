package trainer

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestPlansThatCannotRunAreRefused(t *testing.T) {
	good := `{"stages":2,"microbatches":2,"cuts":[2],"orders":[["F0","F1","B0","B1"],["F0","B0","F1","B1"]]}`
	for _, c := range []struct{ old, new, says string }{
		{``, ``, ""},
		{`"stages":2`, `"stages":0`, "stages is 0: expected 1 to 4"},
		{`"stages":2`, `"stages":5`, "stages is 5"},
		{`"stages":2`, `"stages":3`, "cuts has 1 entries: 3 stages need 2"},
		{`"microbatches":2`, `"microbatches":0`, "microbatches is 0"},
		{`"microbatches":2`, `"microbatches":7`, "microbatches is 7: expected 1 to 6"},
		{`"microbatches":2`, `"microbatches":3`, "orders[0] has 4 entries: 3 microbatches need 6"},
		{`[2]`, `[0]`, "cuts[0] is 0: expected 1 to 3"},
		{`[2]`, `[4]`, "cuts[0] is 4: expected 1 to 3"},
		{`,["F0","B0","F1","B1"]`, ``, "orders has 1 entries: expected one per stage, 2"},
		{`["F0","B0"`, `["F0","F0"`, "orders[1][1]: F0 is there twice"},
		{`["F0","B0"`, `["F0","X0"`, `orders[1][1] is "X0": expected F0 to F1 or B0 to B1`},
		{`["F0","B0"`, `["F0","BF0"`, `is "BF0"`},
		{`["F0","B0"`, `["F0","B2"`, `is "B2"`},
		{`["F0","B0"`, `["B0","F0"`, "orders[0][2]: B0 waits for what comes after it"},
		{`["F0","F1","B0","B1"]`, `["F0","B0","F1","B1"]`, ""},
		{`["F0","B0","F1","B1"]`, `["F1","B1","F0","B0"]`, ""}, // odd, but it runs
		{`["F0","F1","B0","B1"],["F0","B0","F1","B1"]`, `["F0","B0","F1","B1"],["F1","B1","F0","B0"]`, "waits for what comes after it"},
		{`"stages"`, `"stage"`, "unknown field"},
	} {
		p, err := ParsePlan([]byte(strings.Replace(good, c.old, c.new, 1)))
		if err == nil {
			err = p.Validate(tiny())
		}
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s -> %s: %v", c.old, c.new, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s -> %s: got %v, want %q", c.old, c.new, err, c.says)
		}
	}
}

func TestOrdersThatStagesDisagreeOnStillTrain(t *testing.T) {
	p := &Plan{2, 2, []int{2}, [][]string{{"F0", "F1", "B0", "B1"}, {"F1", "B1", "F0", "B0"}}}
	want := attempt(t, 1, flags(tiny()), nil).must(t, ExitDone).losses()
	got := attempt(t, 2, flags(tiny()), map[string]string{"MUSTER_PLAN": writePlan(t, p)}).must(t, ExitDone).losses()
	if !closeTo(got[20], want[20], 1e-3, 0) {
		t.Errorf("loss %g, of one worker %g", got[20], want[20])
	}
}

// Whatever order of legal moves is recorded from a run can be run again.
func TestRecordedOrdersAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tiny()
		c.Layers = rapid.IntRange(1, 5).Draw(t, "layers")
		stages := rapid.IntRange(1, c.depth()).Draw(t, "stages")
		p := &Plan{Stages: stages, Microbatches: rapid.IntRange(1, c.Batch).Draw(t, "microbatches"), Orders: make([][]string, stages)}
		for s := 1; s < stages; s++ {
			p.Cuts = append(p.Cuts, s)
		}
		// at counts the passes of each microbatch: forward through all stages, then back.
		at := make([]int, p.Microbatches)
		for left := 2 * stages * p.Microbatches; left > 0; left-- {
			n := rapid.IntRange(0, p.Microbatches-1).Draw(t, "next")
			for at[n] == 2*stages {
				n = (n + 1) % p.Microbatches
			}
			stage, name := at[n], "F"
			if at[n] >= stages {
				stage, name = 2*stages-1-at[n], "B"
			}
			p.Orders[stage] = append(p.Orders[stage], name+string(rune('0'+n)))
			at[n]++
		}
		if err := p.Validate(c); err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		layer := 0
		for s := range stages {
			from, to := p.layers(s, c.depth())
			if from != layer || to <= from {
				t.Fatalf("stage %d has layers %d to %d after %d", s, from, to, layer)
			}
			layer = to
		}
		if layer != c.depth() {
			t.Fatalf("the stages end at %d of %d", layer, c.depth())
		}
	})
}

func FuzzParsePlan(f *testing.F) {
	f.Add([]byte(`{"stages":2,"microbatches":2,"cuts":[2],"orders":[["F0","F1","B0","B1"],["F0","B0","F1","B1"]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePlan(data)
		if err != nil || p.Validate(tiny()) != nil {
			return
		}
		if _, to := p.layers(p.Stages-1, tiny().depth()); to != tiny().depth() {
			t.Errorf("the last stage ends at %d", to)
		}
	})
}
