package progress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// Timings is what a pipeline measured of its passes: one JSON object in the file that
// MUSTER_TIMINGS names, written anew whenever there is news.
type Timings struct {
	Step int64 `json:"step"` // that the timeline is of
	// Passes are how long the passes of each kind took at each stage since the last report.
	Passes []PassTimes `json:"passes"`
	// Timeline is what each worker of the pipeline did in the step, in the order of its plan. Of
	// a long plan it is the beginning.
	Timeline [][]Span `json:"timeline"`
	// Devices are how fast those of the workers are; nil is not measured.
	Devices *Devices `json:"devices,omitempty"`
}

// Devices are how fast the devices of all workers are, whatever layers are on them: how many times as
// long as at best each takes for the same work by the clock, in windows of at least WindowLeast.
type Devices struct {
	Windows int64 `json:"windows"` // that were measured in all
	// Times are those of the last windows, at most WindowsMost, and in each by rank; 0 is not measured.
	Times [][]float64 `json:"times"`
}

// PassTimes are those of one kind of pass at a stage.
type PassTimes struct {
	Stage  int     `json:"stage"`
	Kind   string  `json:"kind"` // a letter, as in plans
	Count  int     `json:"count"`
	MeanUs float64 `json:"mean_us"`
	MostUs float64 `json:"most_us"`
}

// Span is one pass: from when to when it computed, since the step's first moment. What it
// waited for before is not in it.
type Span struct {
	Op      string  `json:"op"` // as in plans: 0F3
	StartUs float64 `json:"start_us"`
	EndUs   float64 `json:"end_us"`
}

// StepUs is how long the passes of the step took, from its first moment to the end of the last; 0
// where the timeline is so long that it may be the beginning only.
func (t *Timings) StepUs() (us float64) {
	for _, line := range t.Timeline {
		if len(line) > 0 && len(line) == Shown(len(line)+1, len(t.Timeline)) {
			return 0
		}
		for _, span := range line {
			us = max(us, span.EndUs)
		}
	}
	return us
}

// StageUs is how long a microbatch took in each stage in the mean, all its passes together; nil
// where a stage was not measured, or not as anything can be.
func (t *Timings) StageUs() []float64 {
	var stages []float64
	for _, p := range t.Passes {
		if p.Stage < 0 || p.Stage >= SpansMost || !(p.MeanUs >= 0 && p.MeanUs < usMost) {
			return nil
		}
		for len(stages) <= p.Stage {
			stages = append(stages, 0)
		}
		stages[p.Stage] += p.MeanUs
	}
	if slices.Contains(stages, 0) {
		return nil
	}
	return stages
}

// Windows are so long that whatever holds a device up now and then comes several times in each: a quota
// is given out ten times a second, and a core changes hands more often.
const (
	WindowLeast = 200 * time.Millisecond
	WindowsMost = 16
)

// Tells reports whether they are of so many workers, and as anything can be.
func (d *Devices) Tells(workers int) bool {
	if d == nil || len(d.Times) > WindowsMost {
		return false
	}
	for _, times := range d.Times {
		if len(times) != workers || slices.ContainsFunc(times, func(is float64) bool { return !(is >= 0 && is < timesMost) }) {
			return false
		}
	}
	return true
}

// Bounds of a file of timings.
const (
	// SpansMost is how many spans all workers of a pipeline report together.
	SpansMost = 1024
	// timingsMost is how many bytes are read.
	timingsMost = 1 << 20
	// timesMost is how many times as long a device can take in a report that is believed.
	timesMost = 1e6
	// usMost is how long a pass can take in a report that is believed: eleven days.
	usMost = 1e12
)

// Shown is how many of a worker's passes are in a timeline of so many workers.
func Shown(passes, workers int) int { return min(passes, max(1, SpansMost/workers)) }

// Write writes them over what the file at path holds: a job may write to the file that it was
// given, and make none beside it. With one call, so that the first object in it is whole.
func (t Timings) Write(path string) error {
	b, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("write timings: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write timings: %w", err)
	}
	n, err := f.Write(append(b, '\n'))
	if err = errors.Join(err, f.Truncate(int64(n)), f.Close()); err != nil {
		return fmt.Errorf("write timings: %w", err)
	}
	return nil
}

// ReadTimings reads a file that a job wrote, and trusts nothing of it. One that nothing was
// written to yet is io.EOF.
func ReadTimings(path string) (t Timings, err error) {
	f, err := os.Open(path)
	if err != nil {
		return t, err
	}
	defer f.Close()
	if err := json.NewDecoder(io.LimitReader(f, timingsMost)).Decode(&t); err != nil {
		return Timings{}, fmt.Errorf("read timings %s: %w", path, err)
	}
	for _, line := range t.Timeline {
		if len(line) > Shown(len(line), len(t.Timeline)) {
			return Timings{}, fmt.Errorf("read timings %s: %d passes of one of %d workers: expected at most %d of all together", path, len(line), len(t.Timeline), SpansMost)
		}
	}
	return t, nil
}
