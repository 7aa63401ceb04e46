package plane

import (
	"bytes"
	"encoding/gob"
	"errors"
	"fmt"

	"github.com/musterdl/muster/engine"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
)

// RecordCommit is the kind of record that holds the canonical line of a commit.
const RecordCommit = recordCommit

// Setting is what decisions depend on besides events.
type Setting = setting

// ReadSetting decodes the setting of an event of kind Rebuilt or Switched.
func ReadSetting(data []byte) (Setting, error) { return parseSetting(data) }

// Past goes through a recorded history from its beginning, batch by batch, without a
// driver and without writing a journal: what snapshots are made with.
type Past struct {
	plane Plane
	seq   store.Seq
}

// Moment is one batch of a history, and what the engine made of it; Out is valid until
// the next one.
type Moment struct {
	At     unit.Time
	Events []engine.Event
	Out    engine.Out
}

// History calls fn with every batch there is at this moment, in order. The plane goes
// on meanwhile.
func (p *Plane) History(fn func(store.Batch) error) error { return p.config.Journal.Replay(1, fn) }

// Fold applies the next batch as it was recorded, asking no strategy.
func (h *Past) Fold(b store.Batch) (Moment, error) {
	m, line, asides, notes, err := h.next(b)
	if err == nil {
		m.Out, err = h.plane.engine.Fold(m.At, m.Events, line, asides)
	}
	if err != nil {
		return m, fmt.Errorf("batch %d: %w", b.Seq, err)
	}
	if m.Out.Commit != nil {
		m.Out.Commit.Notes = notes
	}
	h.plane.took(m.At, m.Events, &m.Out)
	return m, nil
}

// Decide decides the next batch again and returns it as a plane would have journaled
// it: of what was recorded only the events are believed. A commit that is not the
// recorded one is an error.
func (h *Past) Decide(b store.Batch) (store.Batch, error) {
	m, line, _, _, err := h.next(b)
	if err != nil {
		return b, fmt.Errorf("batch %d: %w", b.Seq, err)
	}
	e := h.plane.engine
	m.Out = e.Step(m.At, m.Events)
	again, err := encodeBatch(m.At, m.Events, &m.Out, e.View())
	if err != nil {
		return b, fmt.Errorf("batch %d: %w", b.Seq, err)
	}
	var decided []byte
	if m.Out.Commit != nil {
		decided = again.Commits[0].Data
	}
	if !bytes.Equal(decided, line) {
		return b, fmt.Errorf("batch %d is decided otherwise: recorded %q, decided %q", b.Seq, line, decided)
	}
	again.Seq = b.Seq
	h.plane.took(m.At, m.Events, &m.Out)
	return again, nil
}

// next decodes a batch and sees to it that the engine is the one that decided it.
func (h *Past) next(b store.Batch) (m Moment, line []byte, asides []plan.Aside, notes []plan.Note, err error) {
	if b.Seq != h.seq+1 {
		return m, nil, nil, nil, fmt.Errorf("expected batch %d: a history is gone through from its beginning", h.seq+1)
	}
	if m.At, m.Events, line, asides, notes, err = decodeBatch(b); err != nil {
		return m, nil, nil, nil, err
	}
	if h.plane.engine == nil {
		if h.plane.engine, err = firstEngine(m.Events); err != nil {
			return m, nil, nil, nil, err
		}
	}
	h.seq = b.Seq
	return m, line, asides, notes, h.plane.decide.follow(h.plane.engine, m.Events)
}

// View is the state after the last batch; there must have been one.
func (h *Past) View() plan.View { return h.plane.engine.View() }

// State is a copy of the state after the last batch.
func (h *Past) State() *plan.State { return h.plane.engine.State().Copy() }

// Seq is the number of the last batch.
func (h *Past) Seq() store.Seq { return h.seq }

// Setting is the newest one, as it was journaled; nil before the first batch.
func (h *Past) Setting() []byte { return h.plane.decide.current }

// Image is what a plane saves as its snapshot at this place, and recovers from.
func (h *Past) Image() ([]byte, error) {
	if h.plane.engine == nil {
		return nil, errors.New("the history has no batch")
	}
	var state, b bytes.Buffer
	if err := h.plane.engine.State().Save(&state); err != nil {
		return nil, err
	}
	img := image{State: state.Bytes(), Jobs: h.plane.jobs, Setting: h.plane.decide.current, Before: h.plane.decide.before}
	if err := gob.NewEncoder(&b).Encode(img); err != nil {
		return nil, fmt.Errorf("encoding the state: %w", err)
	}
	return b.Bytes(), nil
}

// CheckImage reads a saved image and proves that its state is legal.
func CheckImage(data []byte) error {
	var img image
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&img); err != nil {
		return fmt.Errorf("decoding a saved state: %w", err)
	}
	_, err := plan.Load(img.State)
	return err
}
