package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/musterdl/muster/internal/explain"
	"github.com/musterdl/muster/internal/scenetest"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// TestSituations builds situations whose true cause is known because the text makes it
// so, and says it: because=CODE is written by hand, and "-args -rewrite" leaves it alone.
func TestSituations(t *testing.T) {
	situations := 0
	datadriven.Walk(t, "../scenetest/testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "why" || len(d.CmdArgs) == 0 {
				d.Fatalf(t, "expected why JOB because=CODE strategy=NAMES")
			}
			because, strategy := "", "fifo"
			d.MaybeScanArgs(t, "because", &because)
			d.MaybeScanArgs(t, "strategy", &strategy)
			situations++
			s := scenetest.New(strategy).Play(t, d.Input)
			job, ok := s.Engine.Find(d.CmdArgs[0].Key)
			if !ok {
				d.Fatalf(t, "there is no job %q", d.CmdArgs[0].Key)
			}
			a := explain.Of(s.Engine.View(), nil).Why(job)
			if a.Code.String() != because {
				t.Errorf("%s: the cause is %s, it says %s: %s", d.Pos, because, a.Code, a.Words)
			}
			return told(s.Engine.View(), a)
		})
	})
	if situations < 20 {
		t.Errorf("only %d situations", situations)
	}
}

func told(v plan.View, a explain.Answer) string {
	var b strings.Builder
	fmt.Fprintln(&b, a.Words)
	for _, o := range a.Obstacles {
		fmt.Fprintf(&b, "  %d: %s\n", o.Nodes, o.Obstacle)
	}
	for _, n := range a.Needs {
		fmt.Fprintf(&b, "needs %s\n", n)
	}
	for _, h := range a.Holders {
		until := "nobody knows when"
		if h.Until != unit.Never {
			until = h.Until.Sub(v.Now()).String() + " from now"
		}
		fmt.Fprintf(&b, "holder %s in %q with %v until %s\n", h.Job, h.Queue, h.Devices, until)
	}
	fmt.Fprintf(&b, "tried %s ago: %s\n", v.Now().Sub(a.Tried.At), a.Tried.Words)
	return b.String()
}
