package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/snapshot"
	"github.com/musterdl/muster/internal/steady"
	"github.com/musterdl/muster/internal/store"
)

// goOn is what is printed to go on without what a journal lost.
const goOn = "muster up --accept-journal-loss"

// journal opens the journal of a control plane. Where the operator accepts a loss it goes on with what is intact, or
// with the newest snapshot, where that holds more.
func (f *upFlags) journal(state string, clock *steady.Clock, log *slog.Logger) (*store.Store, error) {
	dir := filepath.Join(state, "journal")
	journal, err := store.Open(dir, store.Options{Now: clock.Now})
	if err == nil && !journal.Report().Intact() {
		err = &lossError{journal.Report()}
		err = errors.Join(err, journal.Close())
	}
	var lost *lossError
	damaged := errors.As(err, &lost) || store.Unopenable(err)
	if damaged && f.acceptLoss {
		var last store.Seq
		if lost != nil {
			last = lost.report.Last
		}
		if err := fromSnapshot(state, last, log, err); err != nil {
			return nil, err
		}
		journal, err = store.Open(dir, store.Options{AcceptTruncatedTail: true, Now: clock.Now})
	}
	if err != nil {
		return nil, withSnapshot(state, err)
	}
	if r := journal.Report(); len(r.Mended) > 0 {
		log.Warn("the journal was damaged in what follows from its batches, which are all there: that was made anew, and the damaged file is kept", "what", strings.Join(r.Mended, "; "))
	}
	return journal, nil
}

// lossError says what a journal lost.
type lossError struct{ report store.Report }

// Error says it, and how to go on.
func (e *lossError) Error() string {
	return fmt.Sprintf("%s\nto go on with what is intact: %s", e.report, goOn)
}

// fromSnapshot puts a journal aside that is whole up to a batch, and makes another of the newest snapshot that is whole and
// holds more; where none does, the journal stays.
func fromSnapshot(state string, last store.Seq, log *slog.Logger, broken error) error {
	files, fresh := snapshotsOf(state), filepath.Join(state, "journal.new")
	for i := len(files) - 1; i >= 0; i-- {
		if err := os.RemoveAll(fresh); err != nil {
			return err
		}
		if more, err := loadSnapshot(files[i], fresh, last); err != nil || !more {
			log.Warn("a snapshot is not gone on from", "file", files[i], "why", cmp.Or(err, errors.New("the journal holds as much")))
			continue
		}
		dir := filepath.Join(state, "journal")
		aside := dir + ".damaged-" + time.UnixMicro(int64(now())).UTC().Format("2006-01-02T150405.000")
		if err := errors.Join(os.Rename(dir, aside), os.Rename(filepath.Join(fresh, "journal"), dir), os.RemoveAll(fresh)); err != nil {
			return err
		}
		log.Warn("this goes on from a snapshot, without what happened since and the variables of jobs", "snapshot", files[i], "because", broken, "kept", aside)
		return nil
	}
	return nil
}

// loadSnapshot makes a state directory of a snapshot that holds more than last batches, and reports whether it does.
func loadSnapshot(file, dir string, last store.Seq) (bool, error) {
	f, err := snapshot.Open(file)
	if err != nil {
		return false, err
	}
	more := store.Seq(f.Manifest.Batches) > last
	if more {
		err = snapshot.Load(f, dir)
	}
	return more, errors.Join(err, f.Close())
}

// checkEvery is how often the whole journal is looked through while the control plane runs.
const checkEvery = 6 * time.Hour

// checkJournal looks through the whole journal, once soon and then every few hours, and tells of damage in what no start
// reads: the history before the newest snapshot. The state is saved then, so that the next start needs none of it.
func checkJournal(ctx context.Context, journal *store.Store, p *plane.Plane, log *slog.Logger) {
	for wait := time.Minute; ; wait = checkEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		r, err := journal.Verify()
		switch {
		case err != nil && !errors.Is(err, store.ErrClosed):
			log.Warn("the journal could not be looked through", "error", err)
		case err == nil && !r.Intact():
			log.Warn("the journal is damaged; the state is not: it is saved now, and what is lost of the history can be had from a backup or a daily snapshot alone", "what", r)
			p.Keep(ctx)
		}
	}
}
