package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/musterdl/muster/internal/release"
	"github.com/musterdl/muster/run/report"
)

// muster runs a command line and returns what it prints.
func muster(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var b bytes.Buffer
	cmd := root()
	cmd.SetOut(&b)
	cmd.SetErr(&b)
	cmd.SetArgs(args)
	err := cmd.Execute()
	return b.String(), err
}

// mustMuster is muster where a mistake ends the test.
func mustMuster(t *testing.T, args ...string) string {
	t.Helper()
	out, err := muster(t, args...)
	if err != nil {
		t.Fatalf("muster %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func TestCompareCommand(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	out := mustMuster(t, "compare", "--trace", "gen:rw-a-prime", "--strategies", "fifo,tiresias", "--seeds", "3", "--html", page)
	for _, want := range []string{"seeds 1 to 3", "vs first", "tiresias", "95 % intervals over 3 seeds"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if data, err := os.ReadFile(page); err != nil || !bytes.Contains(data, []byte("<svg")) {
		t.Errorf("the page: %v", err)
	}
	var c struct {
		Over string
		Rows []struct {
			Strategy string
			Jobs     int
			Ratio    struct{ Point, Low, High *float64 }
			BySeed   []struct {
				Hash string `json:"decision_hash"`
			} `json:"by_seed"`
		}
	}
	out = mustMuster(t, "compare", "--trace", "gen:rw-a-prime", "--strategies", "fifo", "--without", "run", "--seeds", "1", "--json")
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatal(err)
	}
	if len(c.Rows) != 2 || c.Over != "seeds" || c.Rows[0].Jobs != 160 || len(c.Rows[1].BySeed[0].Hash) != 64 {
		t.Errorf("%+v", c)
	}
	if r := c.Rows[1].Ratio; *r.Point != 1 || r.Low != nil {
		t.Errorf("ratio of one seed: %v, %v", *r.Point, r.Low)
	}
}

func TestTraceCommands(t *testing.T) {
	dir := t.TempDir()
	stats := mustMuster(t, "trace", "stats", "gen:rw-a", "--json")
	var generated, read map[string]any
	if err := json.Unmarshal([]byte(stats), &generated); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"jobs.csv", "jobs.jsonl", "jobs.csv.gz", "jobs.jsonl.gz"} {
		file := filepath.Join(dir, name)
		if out := mustMuster(t, "trace", "convert", "gen:rw-a", "--to", file); !strings.Contains(out, "480 jobs") {
			t.Errorf("%s: %s", name, out)
		}
		if err := json.Unmarshal([]byte(mustMuster(t, "trace", "stats", "muster:"+file, "--json")), &read); err != nil {
			t.Fatal(err)
		}
		for key := range generated {
			if key != "trace" && key != "gangs" && generated[key] != read[key] {
				t.Errorf("%s: %s is %v, was %v", name, key, read[key], generated[key])
			}
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if zipped := data[0] == 0x1f && data[1] == 0x8b; zipped != strings.HasSuffix(name, ".gz") {
			t.Errorf("%s: zipped is %v", name, zipped)
		}
	}
	if out := mustMuster(t, "trace", "stats", "gen:rw-a", "--devices", "60"); !strings.Contains(out, "offered load on 60 devices") {
		t.Errorf("no load in\n%s", out)
	}
	var kinds []struct{ Ref, About string }
	if err := json.Unmarshal([]byte(mustMuster(t, "trace", "kinds", "--json")), &kinds); err != nil || len(kinds) < 10 {
		t.Errorf("kinds %v, %v", kinds, err)
	}
}

func TestTraceConvertLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	broken, kept := filepath.Join(dir, "broken.csv"), filepath.Join(dir, "kept.csv")
	for file, text := range map[string]string{broken: "name,submit_s,duration_s\na,0,x\n", kept: "old\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := muster(t, "trace", "convert", "muster:"+broken, "--to", kept); err == nil {
		t.Error("a broken trace was converted")
	}
	if _, err := muster(t, "trace", "convert", "gen:rw-a", "--to", filepath.Join(dir, "jobs.parquet")); err == nil || !strings.Contains(err.Error(), ".jsonl.gz") {
		t.Errorf("an unknown ending: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(kept); err != nil || string(data) != "old\n" || len(entries) != 2 {
		t.Errorf("kept %q, %v, and %v are there", data, err, entries)
	}
}

// A flag that takes a number says so in words.
func TestFlagMistakes(t *testing.T) {
	for says, args := range map[string][]string{
		`--load: found "abc", expected a number: see muster simulate --help`:                      {"simulate", "--load", "abc"},
		`--seed: found "-1", expected a whole number that is not negative: see muster simulate`:   {"simulate", "--seed", "-1"},
		`--priority: found "high", expected a whole number: see muster submit`:                    {"submit", "--priority", "high", "--", "true"},
		`--priority: found "99999999999", expected a whole number, and none that large: see`:      {"submit", "--priority", "99999999999", "--", "true"},
		`--quiet: found "maybe", expected true or false: see muster simulate`:                     {"simulate", "--quiet=maybe"},
		`--free: found "maybe", expected true or false: see muster simulate`:                      {"simulate", "--free=maybe"},
		`--horizon: "soon" is not a duration: write one like 90s, 2h30m or 1d: see muster whatif`: {"whatif", "--horizon", "soon"},
		`--bandwidth: "soon" is not a bandwidth: write one like 25Gbps: see muster plan`:          {"plan", "--bandwidth", "soon"},
		`--memory: "soon" is not an amount of memory: write one like 16GiB or 512MiB: see muster`: {"plan", "--memory", "soon"},
	} {
		if _, err := muster(t, args...); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("muster %s: %v, want %s", strings.Join(args, " "), err, says)
		}
	}
	// No flag may leave a kind of number to the library's words.
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			switch kind := f.Value.Type(); {
			case kind == "string", kind == "stringSlice", kind == "stringArray", kind == "duration", kind == "bandwidth", kind == "memory", takes[kind] != "":
			default:
				t.Errorf("%s --%s takes %s, of which nothing is said", c.CommandPath(), f.Name, kind)
			}
		})
		for _, below := range c.Commands() {
			each(below)
		}
	}
	each(root())
}

// A trace for Perfetto holds every stretch of every run, however many, and the page
// says which of them it shows.
func TestSimulateDrawsItAll(t *testing.T) {
	dir := t.TempDir()
	page, traced := filepath.Join(dir, "page.html"), filepath.Join(dir, "trace.json")
	args := []string{"simulate", "--trace", "gen:helios", "--limit", "6000", "--cluster", "venus", "--strategy", "tiresias", "--json", "--quiet"}
	without := mustMuster(t, args...)
	out := mustMuster(t, append(args, "--html", page, "--perfetto", traced)...)
	var r, plain struct {
		MakespanSec float64 `json:"makespan_s"`
		UsefulSec   float64 `json:"useful_device_s"`
		OverheadSec float64 `json:"overhead_device_s"`
		LostSec     float64 `json:"lost_device_s"`
		Hash        string  `json:"decision_hash"`
	}
	if err := errors.Join(json.Unmarshal([]byte(out), &r), json.Unmarshal([]byte(without), &plain)); err != nil || r != plain {
		t.Fatalf("%+v with pictures, %+v without, %v", r, plain, err)
	}
	var trace struct {
		TraceEvents []struct {
			Phase           string `json:"ph"`
			At              int64  `json:"ts"`
			For             int64  `json:"dur"`
			Process, Thread int
		}
	}
	data, err := os.ReadFile(traced)
	if err := errors.Join(err, json.Unmarshal(data, &trace)); err != nil {
		t.Fatal(err)
	}
	bars, last, busy := 0, int64(0), int64(0)
	for _, e := range trace.TraceEvents {
		if e.Phase == "X" {
			bars, last, busy = bars+1, max(last, e.At+e.For), busy+e.For
		}
	}
	t.Logf("%d bars to %d us, %d us busy, %+v", bars, last, busy, r)
	if bars <= report.ChartSpans {
		t.Fatalf("%d bars try nothing", bars)
	}
	if sum, held := float64(busy)/1e6, r.UsefulSec+r.OverheadSec+r.LostSec; math.Abs(sum-held) > 1e-6*held {
		t.Errorf("the bars take %v device seconds of %v", sum, held)
	}
	if data, err := os.ReadFile(page); err != nil || !regexp.MustCompile(`Of [0-9,]+ bars the 5,000 longest are shown; the others are \S+ or shorter`).Match(data) {
		t.Errorf("the page does not say what it shows: %v", err)
	}
}

func TestSimulateVerify(t *testing.T) {
	file := filepath.Join(t.TempDir(), "decisions")
	args := []string{"simulate", "--trace", "gen:rw-a-prime", "--strategy", "tiresias", "--quiet"}
	mustMuster(t, append(args, "--decisions", file)...)
	if out := mustMuster(t, append(args, "--verify", file)...); !strings.Contains(out, "commits are the same") {
		t.Error(out)
	}
	out, err := muster(t, append(args, "--seed", "2", "--verify", file)...)
	var code exit
	if !errors.As(err, &code) || code != 1 || !strings.Contains(out, "differs") {
		t.Errorf("another seed: %v\n%s", err, out)
	}
}

func TestStrategyCommands(t *testing.T) {
	if out := mustMuster(t, "strategies", "show", "tiresias"); !strings.Contains(out, "queues-device-s: [36000]") {
		t.Errorf("no default in\n%s", out)
	}
	var shown struct {
		Name    string
		Options []struct{ Name, Default string }
	}
	if err := json.Unmarshal([]byte(mustMuster(t, "strategies", "show", "tiresias", "--json")), &shown); err != nil || len(shown.Options) == 0 {
		t.Errorf("%+v, %v", shown, err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module github.com/musterdl/muster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "strategies", "flow"), 0o700); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "catalogue", "all.go")
	text, err := os.ReadFile("../../catalogue/all.go")
	if err := errors.Join(err, os.Mkdir(filepath.Dir(list), 0o700), os.WriteFile(list, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	mustMuster(t, "strategies", "new", "for-tests", "--part", "flow", "--dir", dir)
	if text, err = os.ReadFile(list); err != nil || !strings.Contains(string(text), "\n\tplain(fortests.Description, fortests.Policy{}),\n") {
		t.Errorf("no line in\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "strategies", "flow", "fortests", "fortests_test.go")); err != nil {
		t.Error(err)
	}
}

// TestVersion: both ways of asking say which version this is.
func TestVersion(t *testing.T) {
	said := mustMuster(t, "version")
	if !strings.HasPrefix(said, "muster "+release.Version+" (") || mustMuster(t, "--version") != said {
		t.Errorf("muster version says %q, --version %q, expected version %s", said, mustMuster(t, "--version"), release.Version)
	}
}
