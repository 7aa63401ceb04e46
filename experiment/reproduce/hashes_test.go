package reproduce

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

var update = flag.Bool("update", false, "write testdata/hashes.txt anew")

// history is a small cluster with its jobs, on which a strategy decides, the defaults in
// most other parts.
type history struct {
	name string
	long bool // only with MUSTER_LONG
	play func(row []choice) (report.Result, error)
}

var histories = []history{
	{"mixed", false, func(row []choice) (report.Result, error) { return playMixed(row, 80, simulated.Breaks{}) }},
	{"broken", true, func(row []choice) (report.Result, error) {
		return playMixed(row, 200, simulated.Breaks{Seed: 2, NodeEvery: 2 * unit.Hour, NodeFor: 10 * unit.Minute, DeviceEvery: 5 * unit.Hour, DeviceFor: unit.Hour})
	}},
	{"rw-l", false, func(row []choice) (report.Result, error) {
		return playTrace(row, "gen:rw-l?jobs=60&estimate=noisy", "gpus:4x8")
	}},
	{"rw-a", true, func(row []choice) (report.Result, error) {
		return playTrace(row, "gen:rw-a?jobs=240&estimate=noisy", "gpus:8x4")
	}},
}

// mixedOnly are strategies that play the first history alone: gavel and pollux take long,
// and jahani takes no gang over several nodes.
var mixedOnly = []string{"gavel", "pollux", "jahani"}

// beside is what decides beside a strategy of a part, so that the part has work to do.
var beside = map[string][]choice{
	"estimate": {{"order", "srtf"}}, "size": {{"order", "srtf"}}, "place": {{"order", "srtf"}}, "rate": {{"order", "srtf"}, {"place", "spread"}}, "share": {{"order", "srtf"}},
	"victims": {{"order", "srtf"}}, "gate": {{"order", "edf"}}, "sequence": {{"cut", "dp-cut"}}, "cut": {{"sequence", "1f1b"}}, "flow": {{"place", "spread"}},
}

// playMixed plays a little of every kind of work on unlike devices.
func playMixed(row []choice, jobs int, breaks simulated.Breaks) (report.Result, error) {
	built, err := buildRow(row)
	if err != nil {
		return report.Result{}, err
	}
	source := &taken{source: mixedJobs(1, jobs), deadlines: map[string]bool{}}
	for _, c := range row {
		if out := leftOut[c.name]; out != nil {
			source.leave = append(source.leave, out)
		}
	}
	return new(scene).finish(simulated.Config{Cluster: unlikeNodes(), Jobs: source, Scheduler: built.Scheduler, Policy: engine.DefaultPolicy(),
		TellTruth: built.TellTruth, Prices: simulated.DefaultPrices(), Collector: report.NewCollector(report.Limits{}),
		Until: unit.Time(4 * unit.Day), Breaks: breaks})
}

// playTrace plays a generated trace.
func playTrace(row []choice, trace, on string) (report.Result, error) {
	file := fileOf(row)
	s := Defaults()
	s.Trace, s.Cluster, s.Strategy = trace, on, file
	o, err := Simulate(s)
	if err != nil {
		return report.Result{}, err
	}
	return o.Result, nil
}

// TestDecisionHashes holds every strategy to the decisions that it made before: the digest
// of its commits on small histories is the one of testdata/hashes.txt. Where a decision is
// meant to change, the file is written anew, with MUSTER_LONG=1 and -update, and the
// commit says why.
func TestDecisionHashes(t *testing.T) {
	const file = "testdata/hashes.txt"
	playScripts(t)
	long := os.Getenv("MUSTER_LONG") != ""
	text, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	golden := map[string]string{} // by history, part and strategy
	for line := range strings.Lines(string(text)) {
		if what, hash, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			golden[what] = hash
		}
	}
	if *update && !long {
		t.Fatal("-update writes the long histories too: set MUSTER_LONG=1")
	}
	var list []string // what the file holds, in order
	var mutex sync.Mutex
	found := map[string]string{}
	t.Run("histories", func(t *testing.T) {
		for _, h := range histories {
			for _, level := range levels() {
				for _, c := range level {
					if c.name == "" || h.name != histories[0].name && slices.Contains(mixedOnly, c.name) {
						continue
					}
					what := fmt.Sprintf("%s %s %s", h.name, c.part, c.name)
					list = append(list, what)
					if h.long && !long {
						continue
					}
					t.Run(what, func(t *testing.T) {
						t.Parallel()
						r, err := h.play(append([]choice{c}, beside[c.part]...))
						if err != nil {
							t.Fatal(err)
						}
						if r.DecisionHash != golden[what] && !*update {
							t.Errorf("decides otherwise than before: digest %s, expected %q (%s)", r.DecisionHash, golden[what], file)
						}
						mutex.Lock()
						defer mutex.Unlock()
						found[what] = r.DecisionHash
					})
				}
			}
		}
	})
	if *update && !t.Failed() {
		var b strings.Builder
		for _, what := range list {
			fmt.Fprintf(&b, "%s: %s\n", what, found[what])
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
