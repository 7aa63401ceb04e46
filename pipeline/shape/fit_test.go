package shape

import (
	"math"
	"testing"
)

// TestFitted: the constant of V100 is that of the step that it names. The others are those of whole steps, which
// experiment/measured simulates (TestConstants).
func TestFitted(t *testing.T) {
	on, why := Device("V100-32GB", Half)
	if why != "" {
		t.Fatal(why)
	}
	const samples, hidden, sequence = 8, 1536, 1024
	p, whys := New(gpt("1.2B", 40, hidden, 16, sequence, 51200), Half)
	if len(whys) > 0 {
		t.Fatal(whys)
	}
	p.Whole = true
	takes := func() float64 { // a block with all computed again
		ways, why := p.Ways(1, &on, 1, samples)
		if why != "" {
			t.Fatal(why)
		}
		full := ways[len(ways)-1]
		return float64(full.Forward + full.Again + full.Input + full.Weight)
	}
	// 62.4 TFLOP/s, the passes computed again among them, of a device that is 4 % faster (recalled).
	measured, launches := 4*samples*sequence*hidden*(24*hidden+4*sequence)/62.4e6*1.04, 3*float64(on.Launch)
	fitted := on.Reach * (takes() - launches) / (measured - launches)
	if math.Abs(on.Reach/fitted-1) > .005 {
		t.Errorf("the constant is %.4f, %g in the table", fitted, on.Reach)
	}
}

// TestNamed: a card is known by all words of its name, so that not each RTX is one of these.
func TestNamed(t *testing.T) {
	for name, want := range map[string]string{"NVIDIA GeForce RTX 3090": "RTX-3090", "NVIDIA GeForce RTX 2080 Ti": "RTX-2080-Ti", "NVIDIA TITAN RTX": "Titan-RTX",
		"NVIDIA A100-SXM4-80GB": "A100-80GB", "NVIDIA RTX A6000": "", "NVIDIA GeForce RTX 2080": ""} {
		d, why := Like(name, 0, Half)
		if d.Name != want || (why == "") != (want != "") {
			t.Errorf("%s: %q %s, want %q", name, d.Name, why, want)
		}
	}
}
