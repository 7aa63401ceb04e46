package speed

import (
	"math"
	"slices"
	"testing"
)

func TestReferenceIsOne(t *testing.T) {
	classes := Classes()
	if len(classes) != 26+6 || !slices.IsSorted(classes) {
		t.Errorf("%d classes %v, expected 32, sorted", len(classes), classes)
	}
	for _, c := range classes {
		reference := "v100"
		if _, ok := Rate(c, "t4", 1, 1); ok {
			reference = "t4"
		}
		if rate, ok := Rate(c, reference, 1, 1); !ok || rate != 1 {
			t.Errorf("%s on %s: %v, %v, expected 1", c, reference, rate, ok)
		}
	}
}

func TestRate(t *testing.T) {
	for _, c := range []struct {
		class, model   string
		workers, nodes int
		want           float64 // 0 if unknown
	}{
		{"resnet50/64", "k80", 1, 1, 0.141},
		{"resnet50/64", "v100", 8, 1, 3.94},
		{"resnet50/64", "v100", 8, 8, 4.5},
		{"resnet50/64", "v100", 8, 2, 4.5},
		{"resnet50/64", "v100", 6, 1, math.Pow(2.15, 1-math.Log2(1.5)) * math.Pow(3.94, math.Log2(1.5))},
		{"resnet50/64", "v100", 9, 1, 0},
		{"resnet50/64", "v100", 2, 3, 0},
		{"resnet50/64", "v100", 0, 0, 0},
		{"resnet50/128", "k80", 2, 1, 0}, // does not run
		{"a3c", "v100", 2, 1, 0},
		{"resnet50/64", "t4", 1, 1, 0},
		{"gpt", "v100", 1, 1, 0},
		{"imagenet/200", "t4", 65, 16, 0},
		{"imagenet/200", "t4", 32, 17, 0},
	} {
		rate, ok := Rate(c.class, c.model, c.workers, c.nodes)
		if ok != (c.want > 0) || math.Abs(rate-c.want) > 1e-9 {
			t.Errorf("Rate(%s, %s, %d, %d) = %v, %v, expected %v", c.class, c.model, c.workers, c.nodes, rate, ok, c.want)
		}
	}
}

// More nodes never help a modelled job, and no job exceeds its workers.
func TestModelledRates(t *testing.T) {
	for _, m := range table().modelled {
		for workers := 2; workers <= mostWorkers; workers++ {
			near, ok := Rate(m.Class, m.Model, workers, 1)
			far, _ := Rate(m.Class, m.Model, workers, 2)
			if !ok || near <= 0 || near > float64(workers) || workers <= 4 && far > near {
				t.Errorf("%s on %d workers: %v on one node, %v on two", m.Class, workers, near, far)
			}
		}
	}
}

func TestModelledClosedForm(t *testing.T) {
	m := Modelled{Compute: [2]float64{1, 0.5}, Node: [2]float64{4, 1}, Remote: [2]float64{3, 0.5}, Gamma: 2}
	for _, c := range []struct {
		workers, nodes int
		want           float64
	}{{1, 1, 3}, {2, 1, 5}, {4, 2, 5}, {3, 1, math.Sqrt(34)}} {
		if got := m.Step(4, c.workers, c.nodes); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("step of %d on %d nodes: %v, expected %v", c.workers, c.nodes, got, c.want)
		}
	}
}

func TestPair(t *testing.T) {
	for _, model := range []string{"k80", "p100", "v100"} {
		unfit := 0
		for _, a := range Classes() {
			for _, b := range Classes() {
				rateA, rateB, ok := Pair(a, b, model)
				mirrorB, mirrorA, mirrored := Pair(b, a, model)
				if rateA != mirrorA || rateB != mirrorB || ok != mirrored {
					t.Errorf("%s and %s on %s depend on the order", a, b, model)
				}
				alone, known := Rate(a, model, 1, 1)
				if ok && (!known || rateA > alone || (rateA == 0) != (rateB == 0)) {
					t.Errorf("%s beside %s on %s: %v, alone %v; the other %v", a, b, model, rateA, alone, rateB)
				}
				if ok && rateA == 0 {
					unfit++
				}
			}
		}
		if want := map[string]int{"k80": 87, "p100": 20, "v100": 40}[model]; unfit != want {
			t.Errorf("%d pairs do not fit on %s, expected %d", unfit, model, want)
		}
	}
	if _, _, ok := Pair("bert/12", "bert/12", "t4"); ok {
		t.Error("a pair on t4 is known, though none was measured")
	}
}
