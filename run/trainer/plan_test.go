package trainer

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/pipeline"
	"github.com/musterdl/muster/pipeline/shape"
	"pgregory.net/rapid"
)

func TestPlansThatCannotRunAreRefused(t *testing.T) {
	good := `{"stages":2,"microbatches":2,"cuts":[2],"orders":[["0F0","0F1","0B0","0B1"],["1F0","1B0","1F1","1B1"]]}`
	for _, c := range []struct{ old, new, says string }{
		{``, ``, ""},
		{`"stages":2`, `"stages":0`, "0 stages"},
		{`"stages":2`, `"stages":5`, "for 5 stages"},
		{`"stages":2`, `"stages":3`, "1 cuts and routes of 3 stages for 3 stages: expected 2 and 3"},
		{`"microbatches":2`, `"microbatches":0`, "0 microbatches"},
		{`"microbatches":2`, `"microbatches":7`, "microbatches is 7: expected 1 to 6"},
		{`"microbatches":2`, `"microbatches":3`, "stage 0, microbatch 2: expected a pass forward and one backward"},
		{`[2]`, `[0]`, "cut 0 is at layer 0: expected more than 0 and less than 4"},
		{`[2]`, `[4]`, "cut 0 is at layer 4"},
		{`,["1F0","1B0","1F1","1B1"]`, ``, "expected ranks 0 to 0"},
		{`["1F0","1B0"`, `["1F0","1F0"`, "rank 1, operation 1 is 1F0"},
		{`["1F0","1B0"`, `["1F0","1X0"`, `operation "1X0"`},
		{`["1F0","1B0"`, `["1F0","1BF0"`, `"1BF0"`},
		{`["1F0","1B0"`, `["1F0","1B2"`, "1B2"},
		{`["1F0","1B0"`, `["1B0","1F0"`, "rank 1, operation 0 is 1B0"},
		{`["1F0","1B0"`, `["1F0","1I0","1W0"`, ""},
		{`"cuts"`, `"wave":1,"cuts"`, pipeline.LiveCopies},
		{`"cuts"`, `"routes":[[0,1],[1,0]],"cuts"`, "meets stage 0 on rank 1"},
		{`["0F0","0F1","0B0","0B1"]`, `["0F0","0B0","0F1","0B1"]`, ""},
		{`["1F0","1B0","1F1","1B1"]`, `["1F1","1B1","1F0","1B0"]`, ""}, // odd, but it runs
		{`["0F0","0F1","0B0","0B1"],["1F0","1B0","1F1","1B1"]`, `["0F0","0B0","0F1","0B1"],["1F1","1B1","1F0","1B0"]`, "wait for one another in a circle"},
		{`["0F0","0F1","0B0","0B1"],["1F0","1B0"`, `["0G0","0F1","0H0","0B0","0B1"],["1G0","1H0","1B0"`, ""},
		{`["0F0","0F1","0B0","0B1"],["1F0","1B0"`, `["0G0","0H0","0F1","0R0","0B0","0B1"],["1G0","1H0","1B0"`, "0R0 computes again what passed forward in halves"},
		{`["0F0","0F1"`, `["0G0","0H0","0F1"`, "microbatch 0 passes 1 of 2 stages in halves"},
		{`"stages"`, `"stage"`, "unknown field"},
	} {
		p, err := shape.ReadTold([]byte(strings.Replace(good, c.old, c.new, 1)))
		if err == nil {
			err = checkPlan(p, tiny())
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
	p, err := shape.ReadTold([]byte(`{"stages":2,"microbatches":2,"cuts":[2],"orders":[["0F0","0F1","0B0","0B1"],["1F1","1B1","1F0","1B0"]]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := attempt(t, 1, flags(tiny()), nil).must(t, ExitDone).losses()
	got := attempt(t, 2, flags(tiny()), map[string]string{"MUSTER_PLAN": writePlan(t, &p.Plan)}).must(t, ExitDone).losses()
	if !closeTo(got[20], want[20], 1e-3, 0) {
		t.Errorf("loss %g, of one worker %g", got[20], want[20])
	}
}

// Whatever order of legal moves is recorded from a run can be run again.
func TestRecordedOrdersAreValid(t *testing.T) {
	draws.Check(t, func(t *rapid.T) {
		c := tiny()
		c.Layers = rapid.IntRange(1, 5).Draw(t, "layers")
		stages := rapid.IntRange(1, c.depth()).Draw(t, "stages")
		p := &pipeline.Plan{Stages: int32(stages), Microbatches: int32(rapid.IntRange(1, c.Batch).Draw(t, "microbatches")), Orders: make([][]pipeline.Op, stages)}
		for s := 1; s < stages; s++ {
			p.Cuts = append(p.Cuts, int32(s))
		}
		// at counts the passes of each microbatch: forward through all stages, then back.
		at := make([]int, p.Microbatches)
		for left := 2 * stages * int(p.Microbatches); left > 0; left-- {
			n := rapid.IntRange(0, int(p.Microbatches)-1).Draw(t, "next")
			for at[n] == 2*stages {
				n = (n + 1) % int(p.Microbatches)
			}
			stage, kind := at[n], pipeline.Forward
			if at[n] >= stages {
				stage, kind = 2*stages-1-at[n], pipeline.Backward
			}
			p.Orders[stage] = append(p.Orders[stage], pipeline.Op{Kind: kind, Stage: int32(stage), Micro: int32(n)})
			at[n]++
		}
		if err := checkPlan(&shape.Told{Plan: *p}, c); err != nil {
			t.Fatalf("%+v: %v", p, err)
		}
		layer := 0
		for s := range stages {
			from, to := layersOf(p, s, c.depth())
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

// A plan of a model is of the sizes that the trainer then has, and no other; what it does not build, and
// what it does not compute again, it refuses by name.
func TestModelOfPlan(t *testing.T) {
	good := examples(t, "json")[1]
	none := func(string) bool { return false }
	for _, c := range []struct{ old, new, says string }{
		{``, ``, ""},
		{`"blocks": 4`, `"blocks": 1`, "less than 3"},
		{`"blocks": 4`, `"blocks": 4, "gated": true`, "a gated feed-forward, which this trainer does not build"},
		{`"ffn": 256`, `"ffn": 128`, "not 4 times as wide"},
		{`"positions": 32`, `"positions": 0`, "other positions"},
		{`"batch": 4`, `"batch": 2`, "microbatches is 4: expected 1 to 2"},
		{`"heads": 4`, `"heads": 1`, "tensor is 2: expected a divisor of 1"},
		{`"copies": 1`, `"copies": 1, "ways": [0, 1, 1, 1, 1, 0]`, "computed again"},
		{`"model"`, `"modle"`, "unknown field"},
		{`"model": {"name": "tiny", "blocks": 4, "hidden": 64, "ffn": 256, "heads": 4, "sequence": 32, "vocabulary": 256, "positions": 32},`, ``, "without a model"},
	} {
		config := Default()
		p, err := shape.ReadTold([]byte(strings.Replace(good, c.old, c.new, 1)))
		if err == nil {
			err = config.build(p, none)
		}
		if err == nil {
			err = checkPlan(p, config)
		}
		if c.says == "" && (err != nil || config.Layers != 4 || config.Batch != 4 || config.Dim != 64) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s -> %s: %v, want %q; %+v", c.old, c.new, err, c.says, config)
		}
	}
	p, err := shape.ReadTold([]byte(good))
	if err != nil {
		t.Fatal(err)
	}
	config := Default()
	if err := config.build(p, func(flag string) bool { return flag == "layers" }); err == nil || !strings.Contains(err.Error(), "layers is 2, and the plan is of the model tiny with 4") {
		t.Errorf("other layers than the model's: %v", err)
	}
}

// What is measured is there, and can be read again.
func TestMeasure(t *testing.T) {
	file := filepath.Join(t.TempDir(), "figures")
	if code := Main([]string{"--measure", file}, func(string) string { return "" }, io.Discard); code != ExitDone {
		t.Fatalf("exit code %d", code)
	}
	var f Figures
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err != nil || !(f.GFLOPS > 0 && f.MemoryGBs > 0) || f.LinkMbps < 1 || f.LinkUs < 1 {
		t.Errorf("%v, measured %+v", err, f)
	}
}

func FuzzReadTold(f *testing.F) {
	f.Add([]byte(`{"stages":2,"microbatches":2,"cuts":[2],"orders":[["0F0","0F1","0B0","0B1"],["1F0","1B0","1F1","1B1"]]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := shape.ReadTold(data)
		if err != nil || checkPlan(p, tiny()) != nil {
			return
		}
		if _, to := layersOf(&p.Plan, int(p.Stages)-1, tiny().depth()); to != tiny().depth() {
			t.Errorf("the last stage ends at %d", to)
		}
	})
}
