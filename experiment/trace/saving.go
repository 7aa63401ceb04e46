package trace

import (
	"fmt"
	"math/rand/v2"

	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
)

// Saving is what is assumed of jobs whose trace says nothing of how they save. The zero
// Saving has all of them save when asked.
type Saving struct {
	// Never is the part of them that never save.
	Never float64
	// Every is how often the others save by themselves, besides; 0 is never.
	Every unit.Duration
}

// Validate says what is no part of the jobs.
func (s Saving) Validate() error {
	if !(s.Never >= 0 && s.Never <= 1) {
		return fmt.Errorf("never-save is %g: expected a part of the jobs, from 0 to 1", s.Never)
	}
	return nil
}

// drawnSavingStream is apart from those of generators and tenancies, whose seed may be the same.
const drawnSavingStream = 201

// Saved is a trace of which it is known how all its jobs save.
type Saved struct {
	Reader
	saving Saving
	seed   uint64
	chance *rand.Rand

	jobs, silent, never int
}

// WithSaving puts what is assumed in the place of what r does not say of how jobs save. What it
// says stays. The same seed draws the same, and a job's draw does not depend on what others say.
func WithSaving(r Reader, saving Saving, seed uint64) *Saved {
	return &Saved{Reader: r, saving: saving, seed: seed, chance: rand.New(rand.NewPCG(seed, drawnSavingStream))}
}

// Next returns the next job of the trace with how it saves.
func (s *Saved) Next() (workload.Job, workload.Truth, error) {
	job, truth, err := s.Reader.Next()
	if err != nil {
		return job, truth, err
	}
	s.jobs++
	never := s.chance.Float64() < s.saving.Never
	c := &job.Checkpoint
	if c.OnRequest || c.Every > 0 || truth.NeverSaves {
		return job, truth, nil
	}
	s.silent++
	if never {
		s.never++
		return job, truth, nil
	}
	c.OnRequest, c.Every = true, s.saving.Every
	return job, truth, nil
}

// About says, of the jobs handed out so far, what was assumed; empty where that is what is usual.
func (s *Saved) About() string {
	if s.saving.Never == 0 {
		return ""
	}
	return fmt.Sprintf("the trace does not say how %d of %d jobs save: %d of them, drawn by seed %d, never do", s.silent, s.jobs, s.never, s.seed)
}
