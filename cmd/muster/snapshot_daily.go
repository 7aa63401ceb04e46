package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/snapshot"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/plan"
)

// snapshotsKept is how many of the snapshots that a control plane takes by itself are
// kept: with one a day, a week.
const snapshotsKept = 7

func snapshotDir(state string) string { return filepath.Join(state, "snapshots") }

// snapshotsOf lists the snapshots that a control plane took by itself, the newest last.
func snapshotsOf(state string) []string {
	files, err := filepath.Glob(filepath.Join(snapshotDir(state), "*.zip"))
	if err != nil {
		return nil // the pattern is well formed, so there is no such error
	}
	slices.Sort(files) // they are named after their time
	return files
}

// saveDaily saves a snapshot of the plane when the newest one is older than every, and
// again each time that it is, until the context ends. One that fails is tried again an
// hour later.
func saveDaily(ctx context.Context, p *plane.Plane, state string, every time.Duration, log *slog.Logger) {
	if p.Query(ctx, func(plan.View) {}) != nil { // from here on there is a history
		return
	}
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if wait = untilDue(state, every); wait > 0 {
			continue
		}
		if err := saveNow(p, state); err != nil {
			log.Warn("no snapshot was saved", "error", err)
			wait = time.Hour
		}
	}
}

// untilDue is how long until the next snapshot is due.
func untilDue(state string, every time.Duration) time.Duration {
	files := snapshotsOf(state)
	if len(files) == 0 {
		return 0
	}
	info, err := os.Stat(files[len(files)-1])
	if err != nil {
		return 0
	}
	return time.Until(info.ModTime().Add(every))
}

// saveNow saves a snapshot and removes the oldest ones.
func saveNow(p *plane.Plane, state string) error {
	if err := os.MkdirAll(snapshotDir(state), 0o700); err != nil {
		return err
	}
	torn, err := filepath.Glob(filepath.Join(snapshotDir(state), "*.partial-*"))
	for _, file := range torn { // of a control plane that was killed
		err = errors.Join(err, os.Remove(file))
	}
	if err != nil {
		return err
	}
	at := now()
	name := filepath.Join(snapshotDir(state), time.UnixMicro(int64(at)).UTC().Format("2006-01-02T150405.000")+".zip")
	_, err = saveSnapshot(name, true, func(w io.Writer) error {
		_, err := snapshot.Save(w, p.History, snapshot.Options{Program: version(), MadeAt: at})
		return err
	})
	if err != nil {
		return err
	}
	files := snapshotsOf(state)
	for _, old := range files[:max(0, len(files)-snapshotsKept)] {
		err = errors.Join(err, os.Remove(old))
	}
	return err
}

// withSnapshot adds to an error of a journal that cannot be opened how to go on from the
// newest snapshot, if there is one.
func withSnapshot(state string, err error) error {
	files := snapshotsOf(state)
	if len(files) == 0 || !store.Unopenable(err) {
		return err
	}
	return fmt.Errorf("%w\nto go on with the newest snapshot, %s, which lacks what happened since and the variables of jobs: %s",
		err, files[len(files)-1], goOn)
}
