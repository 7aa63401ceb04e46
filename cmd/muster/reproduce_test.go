package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/catalogue"
)

const smallClaim = `name: small
system: Small
source: folklore
published: nothing
setup: forty jobs
kind: simulate
trace: gen:rw-a-prime?jobs=40
cluster: gpus:4x8
strategies: {fifo: fifo, srtf: srtf}
seeds: 2
metrics:
  - {metric: all end, figure: finished fifo / jobs fifo, published: 1, low: 1, high: 1}
  - {metric: srtf over fifo, figure: avg_jct_s srtf / fifo, published: 0, high: 0, note: nothing takes no time}
`

func TestReproduceCommand(t *testing.T) {
	dir := t.TempDir()
	file, found := filepath.Join(dir, "claim.yaml"), filepath.Join(dir, "found.json")
	if err := os.WriteFile(file, []byte(smallClaim), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := muster(t, "reproduce", file, "--write", found)
	if err != exit(1) {
		t.Errorf("a band is missed: %v", err)
	}
	for _, want := range []string{"small (Small)", "all end", "1 [1, 1]", "1 to 1", "holds", "at most 0", "missed", "nothing takes no time", "2 seeds"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	list, err := readFindings(found)
	if err != nil || len(list) != 2 || !list[0].Holds || *list[0].Measured != 1 || list[1].Verdict != catalogue.Missed {
		t.Errorf("%v, %+v", err, list)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(smallClaim, "high: 0,", "high: 100,", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.yaml")
	if err := os.WriteFile(other, []byte(strings.Replace(smallClaim, "name: small", "name: other", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what is written of other claims stays
		if _, err := muster(t, "reproduce", other, "--write", found); err != exit(1) {
			t.Error(err)
		}
		if list, err := readFindings(found); err != nil || len(list) != 4 || list[0].Name == list[3].Name {
			t.Errorf("%v, %+v", err, list)
		}
	}
	var lines []map[string]any
	if err := json.Unmarshal([]byte(mustMuster(t, "reproduce", file, "--json", "--seeds", "1")), &lines); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"name", "system", "step", "metric", "published", "measured", "low", "high", "holds", "seeds", "wall_s"} {
		if _, ok := lines[0][field]; !ok {
			t.Errorf("no %s in %v", field, lines[0])
		}
	}
}

func TestReproduceWithoutData(t *testing.T) {
	t.Setenv("MUSTER_DATA", "")
	out := mustMuster(t, "reproduce", "fgd", "--quick", "--data", t.TempDir())
	if !strings.Contains(out, "skipped: needs") || !strings.Contains(out, "openb2023") {
		t.Error(out)
	}
}

func TestReproduceMistakes(t *testing.T) {
	for _, args := range [][]string{{}, {"tiresias", "--all"}, {"nobody"}, {"--step", "sleep"}} {
		if _, err := muster(t, append([]string{"reproduce"}, args...)...); err == nil || !strings.Contains(err.Error(), "tiresias") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestStrategiesSelection(t *testing.T) {
	out := mustMuster(t, "strategies", "--challenge", "C8", "--step", "schedule")
	if !strings.Contains(out, "tiresias") || strings.Contains(out, "fgd") {
		t.Error(out)
	}
	if _, err := muster(t, "strategies", "--goal", "fame"); err == nil || !strings.Contains(err.Error(), "throughput") {
		t.Errorf("a goal that does not exist: %v", err)
	}
}
