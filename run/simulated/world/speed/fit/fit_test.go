package main

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/musterdl/muster/run/simulated/world/speed"
)

const data = "../../../../../../shared/data"

func TestShippedTableIsRegenerated(t *testing.T) {
	for _, part := range []string{"/gavel", "/pollux-sia"} {
		if _, err := os.Stat(data + part); err != nil {
			t.Skipf("the measurements are not present in ../shared/data%s", part)
		}
	}
	var report strings.Builder
	made, err := build(data, &report)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + report.String())
	shipped, err := os.ReadFile("../table.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, shipped) {
		t.Error("run/simulated/world/speed/table.json is not what the program makes: run go run ./run/simulated/world/speed/fit")
	}
}

// A fit of times that the model itself made must find the model's times again.
func TestFitRecovers(t *testing.T) {
	truth := speed.Modelled{Compute: [2]float64{0.1, 0.01}, Node: [2]float64{0.05, 0.02}, Remote: [2]float64{0.3, 0.01}, Gamma: 2}
	var timings []timing
	for _, shape := range [][2]int{{1, 1}, {1, 2}, {1, 3}, {1, 4}, {2, 2}, {2, 4}, {3, 8}, {4, 16}, {16, 64}} {
		for _, local := range []float64{4, 8, 16, 32} {
			x := timing{nodes: shape[0], workers: shape[1], local: local}
			x.step, x.compute = truth.Step(local, x.workers, x.nodes), truth.Step(local, 1, 1)
			timings = append(timings, x)
		}
	}
	m, err := fit(timings)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range timings {
		if off := math.Abs(m.Step(x.local, x.workers, x.nodes)/x.step - 1); off > 0.01 {
			t.Errorf("%d workers on %d nodes at %v: %.2f %% off", x.workers, x.nodes, x.local, 100*off)
		}
	}
}

func TestJobNames(t *testing.T) {
	for _, c := range []class{{"", "A3C", ""}, {"", "ResNet-18", "16"}} {
		parts := jobName.FindStringSubmatch(c.job(4))
		if parts == nil || parts[1] != c.model || parts[2] != c.batch || parts[3] != "4" {
			t.Errorf("%q is read as %q", c.job(4), parts)
		}
	}
}
