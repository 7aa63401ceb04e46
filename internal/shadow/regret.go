package shadow

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/musterdl/muster/catalogue"
	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/snapshot"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/internal/view"
	"github.com/musterdl/muster/run/report"
)

// ErrBusy says that a history is being replayed already.
var ErrBusy = errors.New("the history is being replayed for somebody else: try again when that is done")

// Regrets says what was missed by not having each of the shadows decide all along, and
// how well a replay tells what was. It reads the journal and replays it beside the
// plane, one at a time: that takes memory and time as long as the history is.
func (s *Set) Regrets(ctx context.Context) (map[string]view.Regret, *view.ReplayCalibration, error) {
	if !s.one.TryLock() {
		return nil, nil, ErrBusy
	}
	defer s.one.Unlock()
	s.mu.Lock()
	shadows := s.shadows
	s.mu.Unlock()
	dir, err := os.MkdirTemp("", "muster-regret-")
	if err != nil {
		return nil, nil, fmt.Errorf("replaying the history: %w", err)
	}
	defer os.RemoveAll(dir)
	past, strategy, err := history(ctx, s.config.Plane, dir)
	if err != nil {
		return nil, nil, fmt.Errorf("replaying the history: %w", err)
	}
	active, err := catalogue.Parse("journal", strategy)
	if err != nil {
		return nil, nil, fmt.Errorf("replaying the history: %w", err)
	}
	texts := []string{strategy}
	for _, x := range shadows {
		texts = append(texts, x.composition.Text)
	}
	for i, text := range texts {
		if !strings.Contains(text, ":") {
			continue // names
		}
		texts[i] = filepath.Join(dir, strconv.Itoa(i)+".yaml")
		if err := os.WriteFile(texts[i], []byte(text), 0o600); err != nil {
			return nil, nil, fmt.Errorf("replaying the history: %w", err)
		}
	}
	rows, err := past.Replay(ctx, texts)
	if err != nil {
		return nil, nil, err
	}
	c := calibrate(past.Recorded, rows[0], past.Arrivals)
	c.Strategy = active.Name
	regrets := map[string]view.Regret{}
	for i, x := range shadows {
		regrets[x.composition.Name] = regret(rows[0], rows[i+1], c.Error)
	}
	return regrets, c, nil
}

// history reads the journal as a snapshot of this moment has it.
func history(ctx context.Context, p *plane.Plane, dir string) (past *snapshot.Past, strategy string, err error) {
	name := filepath.Join(dir, "history.zip")
	out, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return nil, "", err
	}
	// Who asked and went away is not read a whole journal for.
	each := func(fn func(store.Batch) error) error {
		return p.History(func(b store.Batch) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fn(b)
		})
	}
	manifest, err := snapshot.Save(out, each, snapshot.Options{})
	if err = errors.Join(err, out.Close()); err != nil {
		return nil, "", err
	}
	f, err := snapshot.Open(name)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	past, err = snapshot.Read(f, snapshot.ReadOptions{})
	return past, manifest.Strategy, err
}

// both are the mean times to completion, in seconds, of the jobs that finish in both of
// two histories, and the number of those that are censored in the second.
func both(a, b snapshot.Row) (meanA, meanB float64, jobs, censored int) {
	done := map[int32]float64{}
	for i := range a.Jobs {
		if j := &a.Jobs[i]; j.Outcome == report.Finished {
			done[j.ID] = j.End.Sub(j.Submit).Seconds()
		}
	}
	for i := range b.Jobs {
		j := &b.Jobs[i]
		jct, also := done[j.ID]
		switch {
		case j.Outcome == report.Finished && also:
			meanA, meanB, jobs = meanA+jct, meanB+j.End.Sub(j.Submit).Seconds(), jobs+1
		case j.Outcome == report.Unfinished:
			censored++
		}
	}
	n := float64(max(1, jobs))
	return meanA / n, meanB / n, jobs, censored
}

// calibrate compares the replay under the active strategy with what was recorded.
func calibrate(recorded, replayed snapshot.Row, a *snapshot.Arrivals) *view.ReplayCalibration {
	c := &view.ReplayCalibration{Censored: a.Declared + a.Twice + a.Median, Notes: recorded.Result.Notes}
	c.RecordedJCTSec, c.ReplayedJCTSec, c.Jobs, _ = both(recorded, replayed)
	c.Error = ratio(c.ReplayedJCTSec-c.RecordedJCTSec, c.RecordedJCTSec)
	return c
}

// regret compares two replays of the same arrivals; off is how far a replay is off.
func regret(active, other snapshot.Row, off float64) (r view.Regret) {
	r.ActiveJCTSec, r.ShadowJCTSec, r.Jobs, r.Censored = both(active, other)
	r.RegretSec = r.ActiveJCTSec - r.ShadowJCTSec
	r.Regret = ratio(r.RegretSec, r.ActiveJCTSec)
	r.Told = math.Abs(r.Regret) > math.Abs(off)
	return r
}

// ratio is 0 of nothing.
func ratio(part, of float64) float64 {
	if of == 0 {
		return 0
	}
	return part / of
}
