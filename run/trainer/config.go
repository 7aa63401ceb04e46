package trainer

import (
	"fmt"
	"time"
)

// Shape is the size of the model: what a checkpoint must share with the job that
// resumes from it.
type Shape struct {
	Vocab  int `json:"vocab"`
	Dim    int `json:"dim"`
	Layers int `json:"layers"` // transformer blocks, without embedding and head
	Heads  int `json:"heads"`
	Seq    int `json:"seq"` // tokens per sequence
}

// Config is one training job. It is the same on all its workers.
type Config struct {
	Shape
	// Batch is the number of sequences per step over all workers, so that the
	// number of workers does not change what is learned.
	Batch int
	Steps int
	// Seed decides the first parameters and the order of the data.
	Seed uint64
	LR   float64
	// CheckpointEvery is in steps; 0 saves only at the end and when asked.
	CheckpointEvery int
	// TimingsEvery is in steps, between two reports of how long passes took; 0 is never.
	TimingsEvery int
	// StepDelay is the least time one step takes: it paces demonstrations.
	StepDelay time.Duration
}

// Default returns a job of about half a minute on half a core.
func Default() Config {
	return Config{
		Shape: Shape{Vocab: 256, Dim: 64, Layers: 2, Heads: 4, Seq: 32},
		Batch: 16, Steps: 300, Seed: 1, LR: 3e-3, CheckpointEvery: 50, TimingsEvery: 20,
	}
}

// batchLimit keeps the sum of what all workers are asked for exact likewise.
const batchLimit = 1 << 16

// stepLimit keeps step numbers exact in the float32 that workers share them in.
const stepLimit = 10_000_000

// Validate names the first field out of range.
func (c Config) Validate() error {
	for _, f := range []struct {
		name          string
		value, lo, hi int
	}{
		{"vocab", c.Vocab, 2, 256},
		{"dim", c.Dim, 1, 8192},
		{"layers", c.Layers, 1, 1000},
		{"heads", c.Heads, 1, c.Dim},
		{"seq", c.Seq, 1, 8192},
		{"batch", c.Batch, 1, batchLimit},
		{"steps", c.Steps, 1, stepLimit},
		{"checkpoint-every", c.CheckpointEvery, 0, stepLimit},
		{"timings-every", c.TimingsEvery, 0, stepLimit},
	} {
		if f.value < f.lo || f.value > f.hi {
			return fmt.Errorf("%s is %d: expected %d to %d", f.name, f.value, f.lo, f.hi)
		}
	}
	if c.Dim%c.Heads != 0 {
		return fmt.Errorf("dim %d is not a multiple of heads %d", c.Dim, c.Heads)
	}
	if !(c.LR > 0 && c.LR <= 10) {
		return fmt.Errorf("lr is %g: expected more than 0 and at most 10", c.LR)
	}
	if c.StepDelay < 0 || c.StepDelay > time.Hour {
		return fmt.Errorf("step-delay is %s: expected 0s to 1h", c.StepDelay)
	}
	return nil
}

// depth is the number of layers that a plan can cut between: embedding, blocks, head.
func (s Shape) depth() int { return s.Layers + 2 }
