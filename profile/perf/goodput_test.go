package perf

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// TestGradient compares the slope of the objective with differences.
func TestGradient(t *testing.T) {
	seen := measured(Params{.08, .004, .15, .01, .05, .004, 2.5}, 0, 1)
	f := newFit(seen)
	x := []float64{-2.5, -5, -2.2, -4.1, -2.9, -5.2, .9}
	grad, scratch := make([]float64, len(x)), make([]float64, len(x))
	f.value(x, grad)
	for i := range x {
		const h = 1e-6
		up, down := slices.Clone(x), slices.Clone(x)
		up[i] += h
		down[i] -= h
		if want := (f.value(up, scratch) - f.value(down, scratch)) / (2 * h); math.Abs(want-grad[i]) > 1e-5 {
			t.Errorf("slope %d is %v, by differences %v", i, grad[i], want)
		}
	}
}

// measured makes up observations of a model.
func measured(p Params, noise float64, seed uint64) []Observation {
	rng := rand.New(rand.NewPCG(seed, 0))
	shake := func(s float64) float64 { return s * math.Exp(noise*rng.NormFloat64()) }
	var all []Observation
	for _, c := range [][2]int{{1, 1}, {1, 2}, {1, 4}, {2, 8}, {4, 16}} {
		for _, local := range []int{8, 32, 128} {
			all = append(all, Observation{Nodes: c[0], Replicas: c[1], Local: local,
				PassSeconds: shake(p.Pass(local)), StepSeconds: shake(p.Step(c[0], c[1], local, 1))})
		}
	}
	return all
}

// TestFitRecovers: with 5 % of noise the model predicts what it has not seen (other
// replicas, other batches) within 15 %, the worst of 80 predictions.
func TestFitRecovers(t *testing.T) {
	worst := 0.0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := Params{.02 + .1*rng.Float64(), .001 + .01*rng.Float64(), .05 + .3*rng.Float64(), .01 * rng.Float64(),
			.02 + .1*rng.Float64(), .005 * rng.Float64(), 1 + 3*rng.Float64()}
		got, trust := Fit(measured(p, .05, seed))
		for _, c := range [][3]int{{1, 3, 16}, {2, 6, 64}, {3, 12, 100}, {6, 24, 64}} {
			want := p.Step(c[0], c[1], c[2], 1)
			worst = max(worst, math.Abs(got.Step(c[0], c[1], c[2], 1)/want-1))
		}
		if trust.Sigma < .02 || trust.Sigma > .15 || trust.Points != 15 {
			t.Errorf("seed %d: trust %+v, expected about .05", seed, trust)
		}
	}
	t.Logf("worst error %.3f", worst)
	if worst > .15 {
		t.Errorf("worst error of a prediction %.3f, more than .15", worst)
	}
}

// TestFitIsOptimistic: what was never seen costs nothing, except nodes once the
// exchange inside one is known.
func TestFitIsOptimistic(t *testing.T) {
	one := Observation{Nodes: 1, Replicas: 1, Local: 32, PassSeconds: .5, StepSeconds: .5}
	p, trust := Fit([]Observation{one})
	if math.Abs(p.AlphaC-.25) > 1e-9 || math.Abs(p.Pass(32)-.5) > .005 || p.Exchange(1, 4) > 1e-6 || p.Exchange(4, 16) > 1e-6 {
		t.Errorf("one observation: %+v", p)
	}
	if trust.Sigma != 1 {
		t.Errorf("one observation is trusted: %+v", trust)
	}
	p, _ = Fit([]Observation{one, {Nodes: 1, Replicas: 2, Local: 32, PassSeconds: .5, StepSeconds: .7}})
	if math.Abs(p.Step(1, 2, 32, 1)/.7-1) > .02 || p.AlphaN < 1.1*p.AlphaR-1e-12 {
		t.Errorf("two replicas: %+v", p)
	}
}

// TestHeldOut fits the measured steps of an application and predicts those of the
// third of its pairs of replicas and local batch that were held out. A harder question is
// reported beside it: the placements 3, 12, 33 and 1111 from 1, 2, 4, 22 and 44 alone.
// There two of five applications are more than 15 % off (bert .17, yolov3 .20). Of yolov3
// the measured steps do not grow evenly with the batch, and two nodes of one replica are
// slower than three, neither of which the model can say; why bert is off we did not find.
func TestHeldOut(t *testing.T) {
	const dir = "../../../shared/data/pollux-sia/profiles/"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no ../shared/data/pollux-sia: the measured profiles are not in the repository")
	}
	few, asked := []string{"1", "2", "4", "22", "44"}, []string{"3", "12", "33", "1111"}
	for _, app := range []string{"bert", "cifar10", "deepspeech2", "imagenet", "yolov3"} {
		var seen, held, fewSeen, far []Observation
		for _, m := range placements(t, dir+app+"/placements.csv") {
			if (m.Replicas+m.batch)%3 == 0 {
				held = append(held, m.Observation)
			} else {
				seen = append(seen, m.Observation)
			}
			if slices.Contains(few, m.placement) {
				fewSeen = append(fewSeen, m.Observation)
			} else if slices.Contains(asked, m.placement) {
				far = append(far, m.Observation)
			}
		}
		pairs, places := heldOutError(seen, held), heldOutError(fewSeen, far)
		t.Logf("%s: mean error %.3f on %d held-out pairs, %.3f on %d steps of other placements", app, pairs, len(held), places, len(far))
		if pairs > .15 {
			t.Errorf("%s: mean error %.3f on held-out pairs, more than .15", app, pairs)
		}
		if places > .25 {
			t.Errorf("%s: mean error %.3f on other placements, more than .25", app, places)
		}
	}
}

func heldOutError(seen, held []Observation) float64 {
	p, _ := Fit(seen)
	sum := 0.0
	for _, o := range held {
		sum += math.Abs(p.Step(o.Nodes, o.Replicas, o.Local, 1)/o.StepSeconds - 1)
	}
	return sum / float64(len(held))
}

// measurement is a row of a profile; batch is the index of its local batch.
type measurement struct {
	Observation
	placement string
	batch     int
}

func placements(t *testing.T, path string) (all []measurement) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := func(row []string, column string) float64 {
		v, err := strconv.ParseFloat(row[slices.Index(rows[0], column)], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var locals []int
	for _, row := range rows[1:] {
		name := row[slices.Index(rows[0], "placement")]
		o := Observation{Nodes: len(name), Local: int(at(row, "local_bsz")), StepSeconds: at(row, "step_time")}
		for _, digit := range name {
			o.Replicas += int(digit - '0')
		}
		o.PassSeconds = o.StepSeconds - at(row, "sync_time")
		if !slices.Contains(locals, o.Local) {
			locals = append(locals, o.Local)
		}
		all = append(all, measurement{o, name, slices.Index(locals, o.Local)})
	}
	return all
}

func TestChoices(t *testing.T) {
	p := Params{AlphaC: .1, BetaC: .01, AlphaR: .05, AlphaN: .2, Gamma: 1}
	b := Batches{Init: 32, Max: 1024, MinLocal: 8, MaxLocal: 64}
	signal, noise := Noise{Sqr: 1}, Noise{Var: 1}
	if _, c := Best(Choices(&p, b, 1, 4), signal, b.Init, 4); c.Local != 8 || c.Passes != 1 {
		t.Errorf("a pure signal gains nothing from batch: %+v", c)
	}
	if _, c := Best(Choices(&p, b, 1, 4), noise, b.Init, 4); c.Local*c.Passes*4 < 1024 {
		t.Errorf("pure noise wants the largest batch: %+v", c)
	}
	if all := Choices(&p, b, 1, 1); all[0] != (Choice{Local: 32, Passes: 1, Throughput: 32 / p.Step(1, 1, 32, 1)}) || all[1].Passes < 2 {
		t.Errorf("one replica above the initial batch takes two passes: %+v", all[:2])
	}
	// The batch grows as the gradient becomes noisier.
	last := 0
	for _, v := range []float64{.1, 1, 10, 100} {
		_, c := Best(Choices(&p, b, 2, 8), Noise{Sqr: 1, Var: v}, b.Init, 8)
		if batch := c.Local * c.Passes * 8; batch < last {
			t.Errorf("variance %v: batch %d after %d", v, batch, last)
		} else {
			last = batch
		}
	}
}

func TestAverage(t *testing.T) {
	var a Average
	a.Add(Noise{2, 4}, 1)
	if math.Abs(a.Sqr-2) > 1e-12 || math.Abs(a.Var-4) > 1e-12 {
		t.Errorf("the first step is the average: %+v", a)
	}
	for range 20000 {
		a.Add(Noise{1, 1}, 1)
	}
	if math.Abs(a.Sqr-1) > 1e-3 {
		t.Errorf("the past is not forgotten: %+v", a)
	}
}

func BenchmarkFit(b *testing.B) {
	seen := measured(Params{.08, .004, .15, .01, .05, .004, 2.5}, .05, 1)
	for b.Loop() {
		Fit(seen)
	}
}
