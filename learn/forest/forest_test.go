package forest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/musterdl/muster/learn/forest"
)

func TestParse(t *testing.T) {
	got := forest.Parse("python train.py data --model vgg --batch-size=64 -lr 1e-3 --shift -2 --amp --out x")
	want := map[string]string{"model": "vgg", "batch-size": "64", "lr": "1e-3", "shift": "-2", "amp": "1", "out": "x"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	c := forest.ColumnsOf([]string{"a --model vgg --n 3", "a --model bert --amp"})
	if !slices.Equal(c, forest.Columns{"amp", "model=bert", "model=vgg", "n"}) {
		t.Errorf("columns are %v", c)
	}
	if row := c.Row("a --n=4 --model bert --lr 2"); !slices.Equal(row, []float64{0, 1, 0, 4}) {
		t.Errorf("got %v", row)
	}
}

// A step is found where it is, and a tree that may not split says the mean.
func TestStep(t *testing.T) {
	var x [][]float64
	var y []float64
	for i := range 200 {
		v := 1.0
		if i >= 80 {
			v = 5
		}
		x, y = append(x, []float64{float64(i * 7 % 10), float64(i)}), append(y, v)
	}
	c := forest.Published()
	f, err := forest.Train(x, y, c)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ at, want float64 }{{10, 1}, {60, 1}, {100, 5}, {190, 5}} {
		if got := f.Predict([]float64{3, test.at}); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("at %g: got %g, want %g", test.at, got, test.want)
		}
	}
	c.MinSplit = 1000
	if f, _ = forest.Train(x, y, c); math.Abs(f.Predict(x[0])-3.4) > .1 {
		t.Errorf("a leaf says %g, the mean is 3.4", f.Predict(x[0]))
	}
}

func TestSameSeedSameForest(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var x [][]float64
	var y []float64
	for range 100 {
		x, y = append(x, []float64{rng.Float64(), rng.Float64()}), append(y, rng.Float64())
	}
	c := forest.Published()
	a, _ := forest.Train(x, y, c)
	b, _ := forest.Train(x, y, c)
	c.Seed++
	other, _ := forest.Train(x, y, c)
	at := []float64{.3, .7}
	if a.Predict(at) != b.Predict(at) || a.Predict(at) == other.Predict(at) {
		t.Errorf("got %g and %g from one seed, %g from another", a.Predict(at), b.Predict(at), other.Predict(at))
	}
}

func TestRefuses(t *testing.T) {
	x, y := [][]float64{{1}, {2}}, []float64{1, 2}
	for _, c := range []forest.Config{{}, {Trees: 1, Depth: 1, MinSplit: 1, MinLeaf: 1}, {Trees: 1, Depth: 1, MinSplit: 2, MinLeaf: 1, Features: -1}} {
		if _, err := forest.Train(x, y, c); err == nil {
			t.Errorf("%+v passes", c)
		}
	}
	if _, err := forest.Train(x, y[:1], forest.Published()); err == nil {
		t.Error("two rows with one value pass")
	}
	if _, err := forest.Train([][]float64{{1}, {1, 2}}, y, forest.Published()); err == nil {
		t.Error("rows of unlike length pass")
	}
}

// job draws a command line and what it needs: device memory of the model, the optimiser's
// state and the batch; and seconds for an epoch. Both with 5 % noise.
func job(rng *rand.Rand) (line string, memoryMiB, seconds float64) {
	model := rng.IntN(4)
	batch, workers, layers := 16<<rng.IntN(4), 1<<rng.IntN(4), 12+12*rng.IntN(3)
	adam := rng.IntN(2)
	base, sample := []float64{1200, 2600, 900, 1800}[model], []float64{45, 70, 20, 30}[model]
	memoryMiB = (base*(1+float64(adam)) + sample*float64(batch)*float64(layers)/24) * (1 + .05*rng.NormFloat64())
	seconds = sample * 50 * float64(layers) / 24 / float64(workers) * (1 + 8/float64(batch)) * (1 + .05*rng.NormFloat64())
	line = fmt.Sprintf("python train.py --model %s --batch-size %d --workers=%d --layers %d --optimizer %s --lr %.4f --log-every %d",
		[]string{"resnet", "vgg", "mobilenet", "bert"}[model], batch, workers, layers, []string{"sgd", "adam"}[adam], rng.Float64(), 10*rng.IntN(50))
	return line, memoryMiB, seconds
}

// Liquid's acceptance: on command lines held out the error is at most 20 %.
func TestHeldOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var lines []string
	values := [2][]float64{}
	for range 1000 {
		line, memory, seconds := job(rng)
		lines = append(lines, line)
		values[0], values[1] = append(values[0], memory), append(values[1], seconds)
	}
	const train = 800
	columns := forest.ColumnsOf(lines[:train])
	var x [][]float64
	for _, l := range lines {
		x = append(x, columns.Row(l))
	}
	for k, what := range []string{"memory", "seconds"} {
		f, err := forest.Train(x[:train], values[k][:train], forest.Published())
		if err != nil {
			t.Fatal(err)
		}
		errs, mean, ofMean := 0.0, 0.0, 0.0
		for _, v := range values[k][:train] {
			mean += v / train
		}
		for i := train; i < len(lines); i++ {
			got := f.Predict(x[i])
			errs += math.Abs(got-values[k][i]) / values[k][i]
			ofMean += math.Abs(mean-values[k][i]) / values[k][i]
		}
		n := float64(len(lines) - train)
		t.Logf("%s: mean error %.3f, of the mean alone %.3f", what, errs/n, ofMean/n)
		if errs/n > .2 || errs > ofMean/3 {
			t.Errorf("%s: mean error %.3f, want at most 0.2; the mean alone errs by %.3f", what, errs/n, ofMean/n)
		}
	}
}
