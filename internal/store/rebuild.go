package store

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
)

// A rebuild copies what is intact into a new database, because deleting rows from a
// damaged one may do more damage. The new file is complete before it gets the name
// "accepted"; from then on finishRebuild, here or at the next start, puts it in place.
const (
	partialName  = databaseName + ".partial"
	acceptedName = databaseName + ".accepted"
)

// rebuild goes on without what is lost.
func (s *Store) rebuild(f findings) error {
	if err := s.keepLog(f.report); err != nil {
		return err
	}
	partial := filepath.Join(s.dir, partialName)
	if err := errors.Join(removeIfThere(partial), removeIfThere(partial+"-journal")); err != nil {
		return err
	}
	db, err := connect(partial, toWrite)
	if err != nil {
		return err
	}
	err = inTransaction(db, func(tx *sql.Tx) error {
		if err := create(tx); err != nil {
			return err
		}
		return copyIntact(tx, s.readers, f)
	})
	if err := errors.Join(err, db.Close(), syncFolder(s.dir)); err != nil {
		return err
	}
	if err := os.Rename(partial, filepath.Join(s.dir, acceptedName)); err != nil {
		return err
	}
	if err := errors.Join(syncFolder(s.dir), s.closeFiles()); err != nil {
		return err
	}
	s.readers, s.writer, s.head = nil, nil, nil
	return s.finishRebuild()
}

// copyIntact copies the longest intact run of batches that ends at the tail, and all
// that belongs to it.
func copyIntact(tx *sql.Tx, from querier, f findings) error {
	start := origin{at: f.base, purged: math.MinInt64}
	if f.origin != nil {
		start.purged = f.origin.purged
		at, _, err := walk(from, f.origin.at, f.base.seq, func(Batch, stored) error { return nil })
		if err != nil {
			return err
		}
		if at == f.base {
			start.at = f.origin.at
		}
	}
	if err := saveOrigin(tx, start); err != nil {
		return err
	}
	for _, seq := range f.report.Snapshots {
		if seq < start.at.seq {
			continue // the batches that led on from it are damaged
		}
		at, data, err := loadSnapshot(from, seq)
		if err != nil {
			return err
		}
		if err := putSnapshot(tx, at, data); err != nil {
			return err
		}
	}
	put, err := tx.Prepare(insertKey)
	if err != nil {
		return err
	}
	defer put.Close()
	if err := copyKeys(put, from, f.tail.seq); err != nil {
		return err
	}
	if err := copyBatches(tx, put, from, start.at, f.tail); err != nil {
		return err
	}
	accepted := f.report.Accepted
	if f.report.Loss != nil {
		accepted = append(accepted, *f.report.Loss)
	}
	for _, l := range accepted {
		if err := putAccepted(tx, l); err != nil {
			return err
		}
	}
	return nil
}

// copyKeys copies the intact keys, but for those of lost batches: what was done for
// such a request is gone, so it must be possible to make it again.
func copyKeys(put *sql.Stmt, from querier, last Seq) error {
	err := eachKey(from, func(k keyRow, err error) error {
		if err != nil || k.seq > last {
			return nil
		}
		return putKey(put, k)
	})
	if isDamage(err) {
		return nil // the rest is found again in the batches, as far as these are held
	}
	return err
}

// copyBatches copies the batches and restores the keys that they acknowledged; those
// that were purged come back expired, until the next Compact.
func copyBatches(tx *sql.Tx, put *sql.Stmt, from querier, start, tail link) error {
	at, fault, err := walk(from, start, tail.seq, func(b Batch, row stored) error {
		if _, err := tx.Exec(insertBatch, row.at.seq, row.body, row.at.chain[:]); err != nil {
			return err
		}
		for _, k := range b.Keys {
			if err := putKey(put, keyRow{k, b.Seq}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && at != tail {
		err = fmt.Errorf("batch %d was intact a moment ago: %s", at.seq+1, fault)
	}
	return err
}

// finishRebuild puts a rebuilt database in place, if there is one: first the head file
// says where it ends, then the damaged files step aside. Each step may be repeated
// after a crash.
func (s *Store) finishRebuild() error {
	accepted := filepath.Join(s.dir, acceptedName)
	if _, err := os.Stat(accepted); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	tail, err := tailOf(accepted)
	if err != nil {
		return fmt.Errorf("read %s: %w", acceptedName, err)
	}
	head, err := openHead(filepath.Join(s.dir, headName))
	if err != nil {
		return err
	}
	if err := errors.Join(head.reset(tail), head.file.Close()); err != nil {
		return err
	}
	database := filepath.Join(s.dir, databaseName)
	aside := freeName(database + ".damaged")
	for _, suffix := range []string{"-wal", ""} {
		if err := os.Rename(database+suffix, aside+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := removeIfThere(database + "-shm"); err != nil {
		return err
	}
	if err := os.Rename(accepted, database); err != nil {
		return err
	}
	return syncFolder(s.dir)
}

// tailOf returns the place where a rebuilt database ends.
func tailOf(path string) (link, error) {
	db, err := connect(path, toRead)
	if err != nil {
		return link{}, err
	}
	defer db.Close()
	var seq whole
	err = db.QueryRow("SELECT seq FROM batch ORDER BY seq DESC LIMIT 1").Scan(&seq)
	if err == nil {
		return linkAt(db, Seq(seq))
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return link{}, err
	}
	o, err := loadOrigin(db)
	return o.at, err
}

// keepLog copies the write-ahead log of a journal that lost something: SQLite deletes
// it when the database is closed, and someone may find more in it than we did.
func (s *Store) keepLog(r Report) error {
	if r.Loss == nil {
		return nil
	}
	log := filepath.Join(s.dir, databaseName+"-wal")
	if info, err := os.Stat(log); err != nil || info.Size() == 0 {
		return nil
	}
	kept := fmt.Sprintf("%s.lost-from-%d", log, r.Loss.From)
	if _, err := os.Stat(kept); err == nil {
		return nil
	}
	if err := copyFile(kept, log); err != nil {
		return fmt.Errorf("keep a copy of the damaged log: %w", err)
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// freeName returns name with the first number at which there is no file.
func freeName(name string) string {
	for n := 1; ; n++ {
		numbered := fmt.Sprintf("%s-%d", name, n)
		if _, err := os.Stat(numbered); err != nil {
			return numbered
		}
	}
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
