package shape

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"testing"

	"github.com/musterdl/muster/pipeline/parallel"
)

// block is what all passes of a block take, in microseconds, besides its matrix products and,
// with these at their peak, what those take.
func block(t *testing.T, s Shape, d parallel.Device, whole bool, tensor, samples int, again string) (besides, atPeak float64) {
	t.Helper()
	p, whys := New(s, Half)
	if len(whys) > 0 {
		t.Fatal(whys)
	}
	p.Whole = whole
	all := func(efficiency float64) float64 {
		p.Efficiency = efficiency
		ways, why := p.Ways(1, &d, tensor, samples)
		if why != "" {
			t.Fatal(why)
		}
		for _, w := range ways {
			if w.Way == again {
				reduce := d.Inside.Takes(2 * int64(tensor-1) * w.ReduceKiB / int64(tensor))
				return float64(w.Forward + w.Again + w.Input + w.Weight + 2*reduce)
			}
		}
		t.Fatalf("%s has no way %q", s.Name, again)
		return 0
	}
	atPeak = 2 * (all(0.5) - all(1)) / 2
	return all(1) - atPeak, atPeak
}

// TestFitted: the constants are those of the rows that they name, and of no others. The rows
// are recalled from the papers.
func TestFitted(t *testing.T) {
	a100, _ := Device("A100-80GB", Half)
	v100, _ := Device("V100-32GB", Half)
	big, _ := Find("gpt-22b")
	small := gpt("1.2B", 40, 1536, 16, 1024, 51200)
	for _, row := range []struct {
		name     string
		device   parallel.Device
		shape    Shape
		whole    bool
		tensor   int
		samples  int
		again    string
		measured float64 // microseconds
	}{
		{"a block of 22B over 8 A100", a100, big, true, 8, 4, "", 19600},
		// 62.4 TFLOP/s, the passes computed again among them, of a device that is 4 % faster.
		{"a block of 1.2B on a V100", v100, small, true, 1, 8, "full", 4 * 8 * 1024 * 1536 * (24*1536 + 4*1024) / 62.4e6 * 1.04},
	} {
		besides, atPeak := block(t, row.shape, row.device, row.whole, row.tensor, row.samples, row.again)
		fitted := atPeak / (row.measured - besides)
		if got := Efficiency(row.device.Name, Half); math.Abs(got/fitted-1) > 0.01 {
			t.Errorf("%s: %.0f besides, %.0f at the peak of %.0f measured: the constant is %.3f, %g in the table", row.name, besides, atPeak, row.measured, fitted, got)
		}
	}
}

// TestFittedSailor: the constant of GH200 in TF32 is that of a block of OPT-350 on one device.
func TestFittedSailor(t *testing.T) {
	data, err := os.ReadFile("../../../shared/data/pipeline-profiles/sailor/OPT-350/GH-96/profile.json")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../shared/data/pipeline-profiles: the profiles of Sailor are not in the repository")
	}
	var all map[string]map[string]map[string][3]float64 // by samples, tensor and layer: forward, backward, update in s
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	opt := gpt("OPT-350", 24, 1024, 16, 2048, 50272)
	d, _ := Device("GH200-96GB", TF32)
	p, _ := New(opt, TF32)
	sum, n := 0., 0.
	for samples, by := range map[int]string{1: "1", 2: "2", 4: "4", 8: "8", 16: "16", 32: "32"} {
		times, there := all[by]["1"]["12"]
		if !there {
			t.Fatalf("the profile has no layer 12 for %s samples on one device", by)
		}
		at := func(e float64) float64 {
			p.Efficiency = e
			ways, _ := p.Ways(12, &d, 1, samples)
			return float64(ways[0].Forward + ways[0].Input + ways[0].Weight)
		}
		peak := at(0.5) - at(1)
		measured := 1e6 * (times[0] + times[1])
		fitted := peak / (measured - (at(1) - peak))
		p.Efficiency = 0
		if off := at(0)/measured - 1; math.Abs(off) > 0.12 {
			t.Errorf("%d samples: %.0f, measured %.0f", samples, at(0), measured)
		}
		t.Logf("%d samples: %.3f, measured %.0f", samples, fitted, measured)
		sum, n = sum+math.Log(fitted), n+1
	}
	if fitted, got := math.Exp(sum/n), Efficiency(d.Name, TF32); math.Abs(got/fitted-1) > 0.01 {
		t.Errorf("the constant is %.4f, %g in the table", fitted, got)
	}
}
