package mlfs

import (
	_ "embed" // for the weights
	"encoding/json"
	"fmt"
	"math"

	"github.com/musterdl/muster/model/strategy"
	"github.com/musterdl/muster/schedule"
	"github.com/musterdl/muster/strategies/schedule/mlfs/perceptron"
)

// LearnedDescription is what MLF-RL says about itself, the verdict about what it has
// learned included.
var LearnedDescription = strategy.Description{
	Name: "mlfs-learned", System: "MLFS", Part: schedule.OrderPart, Status: "after",
	Source: Description.Source,
	Idea:   "a small perceptron ranks jobs: it imitates mlfs first and is then improved in simulation; " + shipped.says(),
	Goal:   "throughput", Needs: Description.Needs,
	Live: "as mlfs; with weights that did not pass the gate it is mlfs",
}

// Learned is a trained scorer with what there is to know about its training; weights.json
// holds the one that ships.
type Learned struct {
	Shape     perceptron.Shape `json:"shape"`
	Weights   []float64        `json:"weights"`
	Seed      uint64           `json:"seed"`
	Generator string           `json:"generator"` // of the histories it was trained on
	TrainSec  float64          `json:"train_s"`   // on one core
	Imitation float64          `json:"imitation"` // part of all pairs that it ranked as mlfs before the search
	Curve     []float64        `json:"curve"`     // best of each generation: mean JCT over that of mlfs, in the geometric mean
	HeldOut   string           `json:"held_out"`  // the histories that the verdict is about
	// Verdict is about its mean JCT beside that of mlfs on histories it never saw.
	Verdict Verdict `json:"verdict"`
}

// Verdict is what the gate said: the tests of this package train and judge, on histories
// that were not learned from, and may act is what beat MLF-H there and not by luck.
type Verdict struct {
	Gain  float64 `json:"gain"` // part of the baseline's cost that is saved, in the geometric mean
	P     float64 `json:"p"`    // how likely luck does as well, if nothing is gained
	Cases int     `json:"cases"`
	Open  bool    `json:"open"` // the learned one may act
}

//go:embed weights.json
var weightsFile []byte

var shipped = mustRead(weightsFile)

func mustRead(file []byte) *Learned {
	l := &Learned{}
	if err := json.Unmarshal(file, l); err != nil || l.Shape.Inputs != inputs || len(l.Weights) != l.Shape.Weights() {
		panic(fmt.Sprintf("mlfs: weights.json does not hold %d inputs and their weights: %v", inputs, err))
	}
	return l
}

// says puts the verdict in words.
func (l *Learned) says() string {
	if l.Verdict.Open {
		return fmt.Sprintf("it saves %.1f %% of mlfs' mean JCT on %d unseen histories (p = %.2g)", 100*l.Verdict.Gain, l.Verdict.Cases, l.Verdict.P)
	}
	return fmt.Sprintf("its weights did not beat mlfs on %d unseen histories, so it ranks as mlfs", l.Verdict.Cases)
}

// NewLearned returns MLF-RL if what it learned has passed the gate, else MLF-H. The
// weights of the configuration are those of MLF-H; the rest holds for both.
func NewLearned(c Config) *Order { return shipped.order(c) }

func (l *Learned) order(c Config) *Order {
	if !l.Verdict.Open {
		return New(c)
	}
	return newScored(c, l.Shape, l.Weights)
}

func newScored(c Config, shape perceptron.Shape, weights []float64) *Order {
	return &Order{config: c, score: func(f *facts) float64 {
		x := f.features()
		return shape.Output(weights, x[:])
	}}
}

// inputs is how many features a job has. None is of the cluster (free devices, length of
// the queue): they are the same for all jobs, and a rank must hold although they change.
const inputs = 10

// features are the facts in numbers of about 1: times as logarithms of minutes.
func (f *facts) features() [inputs]float64 {
	x := [inputs]float64{log(f.attained), math.Log2(f.devices) / 5, log(f.executed), log(f.waited), 0, f.progress, f.falling}
	if f.running {
		x[4] = 1
	}
	if f.known {
		x[7], x[8] = 1, log(f.left)
	}
	if f.slack > 0 {
		x[9] = 1 / (1 + f.slack)
	}
	return x
}

func log(hours float64) float64 { return math.Log1p(60*hours) / 8 }
