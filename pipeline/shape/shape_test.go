package shape

import (
	"math"
	"strings"
	"testing"
)

// TestParameters holds the presets against what was published of each: all parameters, and
// those that a token passes.
func TestParameters(t *testing.T) {
	published := map[string][2]float64{ // in billions
		"gpt-2": {1.5576}, "gpt-22b": {22}, "gpt-3": {174.6}, "mt-nlg": {530}, "1t": {1008},
		"llama-3-8b": {8.030}, "llama-3-70b": {70.554}, "llama-3-405b": {405.85}, "mixtral": {46.70, 12.88}, "deepseek-v3": {671, 37},
		"t5": {11.307}, "vit-h": {0.632}, "vit-22b": {21.743},
	}
	for i := range Presets {
		s := &Presets[i]
		if whys := s.Check(); len(whys) > 0 {
			t.Errorf("%s: %v", s.Name, whys)
		}
		all, active := s.Parameters()
		want, known := published[s.Name]
		if !known {
			t.Errorf("%s: no published count", s.Name)
		}
		if want[1] == 0 {
			want[1] = want[0]
		}
		if math.Abs(all/1e9/want[0]-1) > 0.02 || math.Abs(active/1e9/want[1]-1) > 0.02 {
			t.Errorf("%s: %.4g billion parameters, %.4g of them active; published %.4g and %.4g", s.Name, all/1e9, active/1e9, want[0], want[1])
		}
	}
}

func profile(t *testing.T, name string) *Profile {
	t.Helper()
	s, why := Find(name)
	if why != "" {
		t.Fatal(why)
	}
	p, whys := New(s, Half)
	if len(whys) > 0 {
		t.Fatal(whys)
	}
	return p
}

// TestOperations holds the useful operations of a whole model against the closed form of
// Narayanan et al. (2021) less what is computed again: 72 B s l h² (1 + s/6h + V/12lh).
func TestOperations(t *testing.T) {
	for _, name := range []string{"gpt-22b", "gpt-3", "mt-nlg", "1t"} {
		p := profile(t, name)
		d, _ := Device("A100-80GB", Half)
		sum := 0.0
		for l := range p.Layers() {
			ways, why := p.Ways(l, &d, 8, 4)
			if why != "" {
				t.Fatal(why)
			}
			sum += 8 * ways[0].GFlop
		}
		l, h, s, v := float64(p.shape.Blocks), float64(p.shape.Hidden), float64(p.shape.Sequence), float64(p.shape.Vocabulary)
		want := 72 * 4 * s * l * h * h * (1 + s/(6*h) + v/(12*l*h)) / 1e9
		if math.Abs(sum/want-1) > 1e-4 {
			t.Errorf("%s: %.6g GFLOP, the closed form says %.6g", name, sum, want)
		}
	}
}

// TestActivations holds what a block keeps against Korthikanti et al. (2022): s b h (10 + 24/t +
// 5as/ht), with the sequence split s b h (34 + 5as/h)/t, selective 34 s b h/t, full 2 s b h.
func TestActivations(t *testing.T) {
	p := profile(t, "gpt-22b")
	d, _ := Device("A100-80GB", Half)
	for _, tensor := range []int{1, 2, 4, 8} {
		sbh, at, as := 2048.*4*6144, float64(tensor), 64*2048/6144.
		for _, whole := range []bool{false, true} {
			p.Whole = whole
			ways, why := p.Ways(1, &d, tensor, 4)
			if why != "" {
				t.Fatal(why)
			}
			want := map[string]float64{"": sbh * (34 + 5*as) / at, "selective": sbh * 34 / at, "full": sbh * 2 / at}
			if whole {
				want = map[string]float64{"": sbh * (10 + 24/at + 5*as/at), "selective": sbh * (10 + 24/at), "full": sbh * 2}
			}
			if len(ways) != len(want) {
				t.Fatalf("%d ways: expected %d", len(ways), len(want))
			}
			for _, w := range ways {
				if math.Abs(float64(w.ActivationKiB)*1024/want[w.Way]-1) > 1e-4 {
					t.Errorf("tensor %d, whole %v, %q: %d KiB, the closed form says %.0f", tensor, whole, w.Way, w.ActivationKiB, want[w.Way]/1024)
				}
				if (w.Again > 0) != (w.Way != "") {
					t.Errorf("%q computes %d again", w.Way, w.Again)
				}
			}
			if tensor > 1 && math.Abs(float64(ways[0].ReduceKiB)*1024/(4*sbh)-1) > 1e-6 {
				t.Errorf("tensor %d sums up %d KiB: expected two of %.0f", tensor, ways[0].ReduceKiB, 2*sbh/1024)
			}
		}
	}
}

// TestSplits: what does not divide is named, with the nearest that does.
func TestSplits(t *testing.T) {
	for _, c := range []struct {
		model  string
		tensor int
		want   string
	}{
		{"gpt-2", 8, "the 25 heads of gpt-2: the nearest that divides all is 5"},
		{"llama-3-70b", 16, "8 kv-heads of llama-3-70b: the nearest that divides all is 8"},
		{"1t", 48, "160 heads of 1t: the nearest that divides all is 40"},
		{"1t", 0, "the nearest that divides all is 1"},
		{"1t", 8, ""}, {"mixtral", 8, ""}, {"deepseek-v3", 64, ""}, {"t5", 16, ""},
	} {
		s, _ := Find(c.model)
		if why := s.Splits(c.tensor); (why == "") != (c.want == "") || !strings.Contains(string(why), c.want) {
			t.Errorf("%s over %d: %q: expected %q", c.model, c.tensor, why, c.want)
		}
	}
	if _, why := Find("gpt-5"); !strings.Contains(string(why), "llama-3-8b (8.03 billion parameters)") {
		t.Errorf("an unknown model: %q", why)
	}
	if _, why := Device("V100-16GB", TF32); why == "" {
		t.Error("a V100 computes in TF32")
	}
	wrong := Shape{Name: "wrong", Blocks: 0, Hidden: 100, FFN: 400, Heads: 3, KVHeads: 2, Sequence: 10, Vocabulary: 10}
	if _, whys := New(wrong, Half); len(whys) != 3 {
		t.Errorf("%d mistakes are named of three: %v", len(whys), whys)
	}
}

// TestTimes: twice the samples take twice as long, twice the devices half, and a pass back
// about twice as long as one forward.
func TestTimes(t *testing.T) {
	d, _ := Device("A100-80GB", Half)
	d.Launch = 0 // which is the same for each
	for i := range Presets {
		p := profile(t, Presets[i].Name)
		for l := range p.Layers() {
			one, why := p.Ways(l, &d, 1, 4)
			twice, _ := p.Ways(l, &d, 1, 8)
			if why != "" {
				t.Fatal(why)
			}
			a, b := one[0], twice[0]
			if math.Abs(float64(b.Forward-2*a.Forward)) > 1 || math.Abs(float64(b.Input+b.Weight-2*a.Input-2*a.Weight)) > 2 {
				t.Errorf("%s, layer %d: %+v for twice the samples of %+v", p.shape.Name, l, b, a)
			}
			if back := a.Input + a.Weight; back < a.Forward*19/10 || back > a.Forward*22/10 {
				t.Errorf("%s, layer %d (%s): %d forward, %d back", p.shape.Name, l, p.Kind(l), a.Forward, back)
			}
			if half, why := p.Ways(l, &d, 2, 4); why == "" && l > 0 && l <= p.shape.Blocks {
				if off := float64(2*half[0].Forward - a.Forward); math.Abs(off) > 2+0.001*float64(a.Forward) {
					t.Errorf("%s, layer %d: %d over two devices, %d on one", p.shape.Name, l, half[0].Forward, a.Forward)
				}
			}
		}
	}
}
