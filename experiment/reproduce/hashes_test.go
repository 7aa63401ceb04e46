package reproduce

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/run/report"
	"github.com/musterdl/muster/run/simulated"
)

var update = flag.Bool("update", false, "write the digests of decisions anew")

// history is a small cluster with its jobs, on which a strategy decides, the defaults in
// most other parts.
type history struct {
	name string
	long bool // only with MUSTER_LONG or -update
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

// TestDecisionHashes holds every strategy to the decisions that it made before: the digests
// of its commits on small histories are those of testdata/decisions.hash in its folder. Where a
// decision is meant to change, -update writes them anew, of all strategies or of those that -run
// names, and the commit says why:
//
//	go test ./experiment/reproduce -run 'Hashes/of/^fifo$' -update
func TestDecisionHashes(t *testing.T) {
	playScripts(t)
	folders, found := strategyFolders(t), &digests{all: map[string]map[string]string{}}
	t.Run("of", func(t *testing.T) {
		for _, level := range levels() {
			for _, c := range level {
				if c.name == "" {
					continue
				}
				name, _, _ := strings.Cut(c.name, "/") // without what takes what it does not
				t.Run(name, func(t *testing.T) {
					if folders[name] == "" {
						t.Fatalf("no folder has the description of %s: expected strategy.Description{ and Name: %q below", name, name)
					}
					holdToHistories(t, c, name, filepath.Join(folders[name], hashFile), found)
				})
			}
		}
	})
	if *update && !t.Failed() {
		found.write(t)
	}
}

// hashFile is where the digests of a strategy stand in its folder.
const hashFile = "testdata/decisions.hash"

// holdToHistories plays every history with one strategy.
func holdToHistories(t *testing.T, c choice, name, file string, found *digests) {
	golden := readDigests(t, file)
	for _, h := range histories {
		if h.name != histories[0].name && slices.Contains(mixedOnly, c.name) || h.long && os.Getenv("MUSTER_LONG") == "" && !*update {
			continue
		}
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			r, err := h.play(append([]choice{c}, beside[c.part]...))
			if err != nil {
				t.Fatal(err)
			}
			what := name + " " + h.name
			said := fmt.Sprintf("decides otherwise than before: digest %s, expected %s", r.DecisionHash, golden[what])
			if golden[what] == "" {
				said = "nothing holds its decisions yet"
			}
			if r.DecisionHash != golden[what] && !*update {
				t.Errorf("%s; to hold it to these from here on (%s), run\n\tgo test ./experiment/reproduce -run 'Hashes/of/^%s$' -update", said, file, name)
			}
			found.add(file, what, r.DecisionHash)
		})
	}
}

// digests are what was found, by file and then by strategy and history.
type digests struct {
	mutex sync.Mutex
	all   map[string]map[string]string
}

func (d *digests) add(file, what, hash string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.all[file] == nil {
		d.all[file] = map[string]string{}
	}
	d.all[file][what] = hash
}

// write writes the files anew whose strategies were played; what was not played stays.
func (d *digests) write(t *testing.T) {
	t.Helper()
	for file, now := range d.all {
		whole := readDigests(t, file)
		maps.Copy(whole, now)
		var b strings.Builder
		for _, what := range slices.Sorted(maps.Keys(whole)) {
			fmt.Fprintf(&b, "%s: %s\n", what, whole[what])
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(b.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
}

// readDigests reads a file by strategy and history; there are none where there is no file.
func readDigests(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	golden := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if what, hash, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			golden[what] = hash
		}
	}
	return golden
}

// strategyFolders are the folders in which strategies describe themselves, by name.
func strategyFolders(t *testing.T) map[string]string {
	t.Helper()
	described := regexp.MustCompile(`strategy\.Description\{\s*Name:\s*"([^"]+)"`)
	folders := map[string]string{}
	for _, pattern := range []string{"../../strategies/*/*/*.go", "../../schedule/*/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range described.FindAllStringSubmatch(string(text), -1) {
				folders[name[1]] = filepath.Dir(file)
			}
		}
	}
	return folders
}

// TestHashesAreOfStrategies: what stands in such a file is of a strategy that describes itself beside it, and of a
// history that there is.
func TestHashesAreOfStrategies(t *testing.T) {
	folders, files := strategyFolders(t), 0
	for _, pattern := range []string{"../../strategies/*/*", "../../schedule/*"} {
		list, err := filepath.Glob(filepath.Join(pattern, hashFile))
		if err != nil {
			t.Fatal(err)
		}
		files += len(list)
		for _, file := range list {
			for what := range readDigests(t, file) {
				name, at, _ := strings.Cut(what, " ")
				if _, ok := catalogue.Find(name); !ok || filepath.Join(folders[name], hashFile) != file || !slices.ContainsFunc(histories, func(h history) bool { return h.name == at }) {
					t.Errorf("%s has the digest of %s: take it out", file, what)
				}
			}
		}
	}
	if files == 0 {
		t.Error("there are no digests")
	}
}
