package shape

import (
	"math"
	"testing"

	"github.com/musterdl/muster/pipeline/parallel"
)

// TestFitted: the constants in half precision are those of the rows that they name, and of no
// others. The rows are recalled from the papers.
func TestFitted(t *testing.T) {
	a100, _ := Device("A100-80GB", Half)
	v100, _ := Device("V100-32GB", Half)
	big, _ := Find("gpt-22b")
	for _, row := range []struct {
		name     string
		device   parallel.Device
		shape    Shape
		tensor   int
		samples  int
		way      string
		measured float64 // microseconds, of all passes of a block
	}{
		{"a block of 22B over 8 A100", a100, big, 8, 4, "", 19600},
		// 62.4 TFLOP/s, the passes computed again among them, of a device that is 4 % faster.
		{"a block of 1.2B on a V100", v100, gpt("1.2B", 40, 1536, 16, 1024, 51200), 1, 8, "full", 4 * 8 * 1024 * 1536 * (24*1536 + 4*1024) / 62.4e6 * 1.04},
	} {
		p, whys := New(row.shape, Half)
		if len(whys) > 0 {
			t.Fatal(whys)
		}
		p.Whole, p.Efficiency = true, 1
		ways, why := p.Ways(1, &row.device, row.tensor, row.samples)
		if why != "" {
			t.Fatal(why)
		}
		for _, w := range ways {
			if w.Way != row.way {
				continue
			}
			reduce := row.device.Inside.Takes(2 * int64(row.tensor-1) * w.ReduceKiB / int64(row.tensor))
			fitted := float64(w.Forward+w.Again+w.Input+w.Weight) / (row.measured - float64(2*reduce))
			if got := Efficiency(row.device.Name, Half); math.Abs(got/fitted-1) > 0.005 {
				t.Errorf("%s: the constant is %.4f, %g in the table", row.name, fitted, got)
			}
		}
	}
}
