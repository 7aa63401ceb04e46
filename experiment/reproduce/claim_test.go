package reproduce

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/experiment/reproduce/stand"
	"github.com/musterdl/muster/model/strategy"
)

const measuredClaim = `name: coin
system: Coin
source: folklore
published: half
setup: a coin per seed
kind: measure
seeds: 4
quick-seeds: 2
metrics:
  - {metric: heads, figure: heads, published: 0.5, low: 0.4, high: 0.6}
  - {metric: heads over throws, figure: heads / throws, published: 0.5, low: 0.7, long: true}
  - {metric: throws, figure: throws, published: none}
`

// coin is an entry whose Measure shows heads at even seeds.
func coin(claim string) catalogue.Entry {
	return catalogue.Entry{Description: strategy.Description{Name: "coin", Step: "allocate"}, Claim: []byte(claim),
		Measure: func(_ func(string) (io.ReadCloser, error), seed uint64) (map[string]float64, error) {
			return map[string]float64{"heads": float64(1 - seed%2), "throws": 1, innerKey: .9}, nil
		}}
}

func run(t *testing.T, r ClaimRun, e catalogue.Entry) []catalogue.Finding {
	t.Helper()
	c, err := ReadClaim(e)
	if err != nil {
		t.Fatal(err)
	}
	list, err := r.Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func verdicts(list []catalogue.Finding) string {
	var all []string
	for i := range list {
		all = append(all, list[i].Verdict)
	}
	return strings.Join(all, " ")
}

func TestMeasuredClaim(t *testing.T) {
	list := run(t, ClaimRun{}, coin(measuredClaim))
	if got := verdicts(list); got != "holds missed reported reported" {
		t.Errorf("verdicts %q", got)
	}
	if f := list[0]; f.By != catalogue.ByKernel || f.BandFrom != "catalogue" || *f.Low != .4 || *f.High != .6 {
		t.Errorf("%+v", f)
	}
	if f := list[0]; *f.Measured != .5 || f.Seeds != 4 || !f.Holds || len(f.Interval) != 2 || f.Step != "allocate" {
		t.Errorf("%+v", f)
	}
	if f := list[3]; *f.Measured != .9 || !strings.Contains(f.Metric, "rank correlation") {
		t.Errorf("the inner score: %+v", f)
	}
	if got := verdicts(run(t, ClaimRun{Quick: true}, coin(measuredClaim))); got != "open reported reported" {
		t.Errorf("a quick run leaves long metrics out, and two seeds decide nothing here: %q", got)
	}
	wide := strings.Replace(measuredClaim, "low: 0.4, high: 0.6", "low: -9, high: 9", 1)
	if got := verdicts(run(t, ClaimRun{Quick: true}, coin(wide))); !strings.HasPrefix(got, "holds") {
		t.Errorf("a quick run holds with certainty: %q", got)
	}
	if got := verdicts(run(t, ClaimRun{Quick: true, Seeds: 1}, coin(wide))); !strings.HasPrefix(got, "open") {
		t.Errorf("one seed of four is certain of nothing: %q", got)
	}
	narrow := strings.Replace(measuredClaim, "low: 0.4, high: 0.6", "low: 0.6", 1)
	if got := verdicts(run(t, ClaimRun{Quick: true}, coin(narrow))); !strings.HasPrefix(got, "open") {
		t.Errorf("a quick run misses a band only with certainty: %q", got)
	}
	if got := verdicts(run(t, ClaimRun{}, coin(narrow))); !strings.HasPrefix(got, "missed") {
		t.Errorf("a full run misses it: %q", got)
	}
}

func TestClaimWithoutItsData(t *testing.T) {
	e := coin(measuredClaim)
	e.Measure = func(open func(string) (io.ReadCloser, error), _ uint64) (map[string]float64, error) {
		f, err := open("nowhere/file.csv")
		if err != nil {
			return nil, err
		}
		return nil, f.Close()
	}
	list := run(t, ClaimRun{Data: t.TempDir()}, e)
	if got := verdicts(list); got != "skipped skipped skipped" || !strings.Contains(list[0].Note, filepath.Join("nowhere", "file.csv")) {
		t.Errorf("%q, %+v", got, list[0])
	}
	e.Measure = func(func(string) (io.ReadCloser, error), uint64) (map[string]float64, error) {
		return nil, errors.New("broken")
	}
	c, err := ReadClaim(e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (ClaimRun{}).Run(c); err == nil || !strings.Contains(err.Error(), "claim coin: broken") {
		t.Errorf("another error is one: %v", err)
	}
}

func TestClaimMistakes(t *testing.T) {
	for _, c := range []struct{ old, new, say string }{
		{"published: half", "publishd: half", `coin/claim.yaml:4:1: publishd`},
		{"kind: measure", "kind: guess", `kind is "guess"`},
		{"kind: measure", "kind: simulate", "needs trace"},
		{"source: folklore", `source: ""`, "source is missing"},
		{"figure: throws,", "figure: a b c,", `metrics[2].figure: "a b c": expected FIGURE LABEL`},
		{"quick-seeds: 2", "quick-seeds: 5", "quick-seeds 5"},
		{"low: 0.4, high: 0.6", "low: 0.6, high: 0.4", "the band is 0.6 to 0.4"},
		{"low: 0.4, high: 0.6", "low: 0.4, from: hearsay", `the band is from "hearsay"`},
		{"{metric: throws,", "{metric: heads,", `metrics[2]: another is called "heads" too`},
		{"kind: measure", "kind: measure\ncluster: gpus:1x1", "needs trace"},
		{"kind: measure", "kind: measure\ninner: heads throws", "inner is expected"},
		{"kind: measure", "kind: measure\nstand: chronus\ncluster: gpus:1x1", "a stand gives the jobs"},
		{"kind: measure", "kind: measure\nstand: chronus", "needs trace"},
		{"metrics:", "plots: [{plot: p, at: [1, 2], curves: {ours: [heads]}}]\nmetrics:", "ours has 1 figures at 2 values"},
		{"metrics:", "plots: [{plot: p, at: [1], curves: {ours: [tails]}}]\nmetrics:", `"tails" is the figure of no metric`},
	} {
		if _, err := ReadClaim(coin(strings.Replace(measuredClaim, c.old, c.new, 1))); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: got %v, want %q", c.new, err, c.say)
		}
	}
	c, err := ReadClaim(coin(strings.Replace(measuredClaim, "figure: throws,", "figure: rolls,", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (ClaimRun{}).Run(c); err == nil || !strings.Contains(err.Error(), `no figure "rolls": the run has heads, inner_rank_correlation, throws`) {
		t.Errorf("a figure that is not measured: %v", err)
	}
}

const simulatedClaim = `name: two
system: Two
source: folklore
published: nothing
setup: two traces
kind: simulate
traces: {a: gen:rw-a-prime?jobs=40, b: gen:rw-a-prime?jobs=20}
cluster: |
  name: small
  models: [{name: gpu, memory: 16GiB}]
  racks: [{nodes: [{name: n, count: 4, devices: 8}]}]
strategies:
  fifo: fifo
  las: |
    order: tiresias
    options: {tiresias: {queues-device-s: [1000]}}
seeds: 2
metrics:
  - {metric: one, figure: avg_jct_s las / fifo on a, published: 1, high: 100}
  - {metric: two, figure: jobs las on b, published: 20, low: 20, high: 20}
  - {metric: three, figure: run_inflation fifo on b, published: 1, low: 1}
  - {metric: four, figure: jobs las on a / fifo on b, published: 2, low: 2, high: 2}
  - {metric: five, figure: jobs las on all / fifo on b*, published: 1.5, low: 1.5, high: 1.5}
`

func TestSimulatedClaim(t *testing.T) {
	e := catalogue.Entry{Description: strategy.Description{Name: "two"}, Claim: []byte(simulatedClaim)}
	if got := verdicts(run(t, ClaimRun{}, e)); got != "holds holds holds holds holds" {
		t.Errorf("verdicts %q", got)
	}
	for _, c := range []struct{ old, new, say string }{
		{"las / fifo on a", "las / srtf on a", `"srtf" is none of the strategies fifo, las`},
		{"las / fifo on a", "las / fifo on c", `"c" is none of the traces ["a" "b"]`},
		{"las / fifo on a", "las on a / fifo on c*", `"c*" is none of the traces ["a" "b"]`},
		{"las / fifo on a", "", "expected FIGURE LABEL"},
	} {
		e.Claim = []byte(strings.Replace(simulatedClaim, c.old, c.new, 1))
		if _, err := ReadClaim(e); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%q: got %v, want %q", c.new, err, c.say)
		}
	}
}

// TestClaimOnAStand: the engine decides, and both the stand's figures and the result's are
// read.
func TestClaimOnAStand(t *testing.T) {
	text := "name: s\nsystem: S\nsource: none\npublished: none\nsetup: none\nkind: simulate\nstands: {small: chronus?one-in=200&devices=8}\n" +
		"strategies: {edf: edf, fifo: fifo}\nmetrics:\n  - {metric: a, figure: late edf / fifo on small, high: 1}\n  - {metric: b, figure: jobs fifo on small, low: 1}\n"
	e := catalogue.Entry{Description: strategy.Description{Name: "s"}, Claim: []byte(text)}
	if got := verdicts(run(t, ClaimRun{Data: t.TempDir()}, e)); got != "skipped skipped" {
		t.Errorf("without its data: %q", got)
	}
	if _, err := os.Stat(filepath.Join(sharedData(), "chronus")); err != nil {
		t.Skip("the data set chronus is not here")
	}
	if got := verdicts(run(t, ClaimRun{Data: sharedData()}, e)); got != "holds holds" {
		t.Errorf("verdicts %q", got)
	}
}

// TestClaimsAreRead reads every claim of the catalogue. With MUSTER_LONG=1 they are run
// quickly, and none may be missed but those of docs/misses.txt.
func TestClaimsAreRead(t *testing.T) {
	claims, err := Claims("", "")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range claims {
		if names[c.Name] {
			t.Errorf("two claims are called %s", c.Name)
		}
		names[c.Name] = true
	}
	if _, err := Claims("nobody", ""); err == nil || !strings.Contains(err.Error(), "tiresias") {
		t.Errorf("a claim that does not exist: %v", err)
	}
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("every claim is run with MUSTER_LONG=1")
	}
	known := misses(t)
	for _, c := range claims {
		t.Run(c.Name, func(t *testing.T) {
			list, err := ClaimRun{Data: sharedData(), Quick: true}.Run(c)
			if err != nil {
				t.Fatal(err)
			}
			for i := range list {
				if f := &list[i]; f.Verdict == catalogue.Missed && !known[missed(f)] {
					t.Errorf("%s is %s: the band is %s", f.Metric, f.Ours(), f.Band())
				}
			}
		})
	}
}

// TestReleasePage: when a version is cut docs/strategies.md is what the catalogue says. Until then
// nobody who adds a strategy touches the page.
func TestReleasePage(t *testing.T) {
	if os.Getenv("MUSTER_RELEASE") == "" {
		t.Skip("is held when a version is cut: .ci/release sets MUSTER_RELEASE=1")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "strategies.md"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join("..", "..", "docs", "claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	found, err := catalogue.ReadFindings(f)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := catalogue.WriteMarkdown(&b, Grounds(), found); err != nil {
		t.Fatal(err)
	}
	if b.String() != string(page) {
		t.Error("docs/strategies.md is not what the catalogue says; run: go run ./cmd/muster strategies --markdown > docs/strategies.md")
	}
}

// TestReleaseMisses holds the last full run to docs/misses.txt when a version is cut: what missed is
// listed there with a reason, written by hand, and what does not miss is listed no longer.
func TestReleaseMisses(t *testing.T) {
	if os.Getenv("MUSTER_RELEASE") == "" {
		t.Skip("is held when a version is cut: .ci/release sets MUSTER_RELEASE=1")
	}
	f, err := os.Open(filepath.Join("..", "..", "docs", "claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	list, err := catalogue.ReadFindings(f)
	if err != nil {
		t.Fatal(err)
	}
	known, named := misses(t), map[string]bool{}
	for i := range list {
		f := &list[i]
		if f.Verdict == catalogue.Holds && f.Measured != nil && (f.Low != nil && *f.Measured < *f.Low || f.High != nil && *f.Measured > *f.High) {
			t.Errorf("%s is said to hold: it is %s, the band is %s", missed(f), f.Ours(), f.Band())
		}
		if f.Verdict != catalogue.Missed {
			continue
		}
		if named[missed(f)] = true; !known[missed(f)] {
			t.Errorf("docs/claims.json says that this is missed: add it to docs/misses.txt with the reason, or mend it: %s", missed(f))
		}
	}
	for name := range known {
		if !named[name] {
			t.Errorf("this is not missed any more: take it out of docs/misses.txt: %s", name)
		}
	}
}

func missed(f *catalogue.Finding) string { return f.Name + ": " + f.Metric }

// misses are the figures of docs/misses.txt, each of which has a reason.
func misses(t *testing.T) map[string]bool {
	t.Helper()
	return reasoned(t, filepath.Join("..", "..", "docs", "misses.txt"))
}

// sharedData is the data folder as seen from this package's tests.
func sharedData() string {
	if data := os.Getenv("MUSTER_DATA"); data != "" {
		return data
	}
	return filepath.Join("..", "..", "..", "shared", "data")
}

// TestClaimsWithoutData: where no data is, the stand of a claim says that it lacks it, whatever its options are, which skips
// the claim; it fails for nothing else.
func TestClaimsWithoutData(t *testing.T) {
	claims, err := Claims("", "")
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(path string) (io.ReadCloser, error) { return nil, missing(path) }
	lacks := 0
	for _, c := range claims {
		for _, ref := range append(slices.Collect(maps.Values(c.Stands)), c.Stand) {
			if ref == "" {
				continue
			}
			if _, err := stand.Open(ref, nothing, 1); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", c.Name, err)
			} else if err != nil {
				lacks++
			}
		}
	}
	if lacks < 10 {
		t.Errorf("%d stands lack their data", lacks)
	}
}
