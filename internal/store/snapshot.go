package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/musterdl/muster/model/unit"
)

const (
	// keptSnapshots is how many snapshots are kept: one may turn out to be damaged.
	keptSnapshots = 2
	// maxSnapshotBytes stays clear of SQLite's limit of 10^9 bytes per row.
	maxSnapshotBytes = 900 << 20
	// compactStep bounds how long Compact keeps appends waiting.
	compactStep = 2000
)

// Snapshot is a state that stands for all batches up to and including Seq.
type Snapshot struct {
	Seq  Seq
	Data []byte
}

// SaveSnapshot makes a snapshot of the state after batch seq durable. The newest two
// are kept.
func (s *Store) SaveSnapshot(seq Seq, data []byte) error {
	s.upkeep.Lock()
	defer s.upkeep.Unlock()
	if len(data) > maxSnapshotBytes {
		return fmt.Errorf("save a snapshot: it has %d bytes, at most %d are allowed", len(data), maxSnapshotBytes)
	}
	err := s.inWriter(func(tx *sql.Tx) error {
		if seq < 0 || seq > s.tail.seq {
			return fmt.Errorf("the journal ends at batch %d", s.tail.seq)
		}
		held, err := snapshotSeqs(tx)
		if err != nil {
			return err
		}
		if len(held) > 0 && seq < held[0] {
			return fmt.Errorf("there is a newer one, at batch %d", held[0])
		}
		at, err := linkAt(tx, seq)
		if err != nil {
			return err
		}
		if err := putSnapshot(tx, at, data); err != nil {
			return err
		}
		_, err = tx.Exec("DELETE FROM snapshot WHERE seq NOT IN (SELECT seq FROM snapshot ORDER BY seq DESC LIMIT ?)", keptSnapshots)
		return err
	})
	if err != nil {
		return fmt.Errorf("save a snapshot at batch %d in the journal %s: %w", seq, s.dir, err)
	}
	return nil
}

// LatestSnapshot returns the newest snapshot that is intact; found is false where the
// journal has none, and everything is in its batches.
func (s *Store) LatestSnapshot() (snapshot Snapshot, found bool, err error) {
	s.upkeep.Lock()
	defer s.upkeep.Unlock()
	held, err := snapshotSeqs(s.readers)
	if err != nil {
		return Snapshot{}, false, s.wrap(err)
	}
	var damage error
	for _, seq := range held {
		_, data, err := loadSnapshot(s.readers, seq)
		if err == nil {
			return Snapshot{Seq: seq, Data: data}, true, nil
		}
		if !isDamage(err) {
			return Snapshot{}, false, s.wrap(err)
		}
		damage = err
	}
	o, err := loadOrigin(s.readers)
	if err != nil {
		return Snapshot{}, false, s.wrap(err)
	}
	if o.at.seq > 0 {
		return Snapshot{}, false, s.wrap(noState(o, damage))
	}
	return Snapshot{}, false, nil
}

// noState is the error of a journal whose first batches were dropped for a snapshot that is not there.
func noState(o origin, damage error) error {
	if damage == nil {
		damage = errors.New("there is none")
	}
	return fmt.Errorf("batches 1 to %d were compacted and no snapshot is intact (%w): restore the folder from a backup", o.at.seq, damage)
}

// Compacted says what Compact dropped.
type Compacted struct {
	Batches int64
	Keys    int64
}

// Compact drops the idempotency keys that have expired and, unless Options.KeepHistory
// is set, the batches that the older of the two snapshots stands for. With fewer than
// two intact snapshots it drops no batch. The file does not shrink; the space is used again.
func (s *Store) Compact() (Compacted, error) {
	s.upkeep.Lock()
	defer s.upkeep.Unlock()
	var done Compacted
	wrapped := func(err error) (Compacted, error) {
		return done, fmt.Errorf("compact the journal %s: %w", s.dir, err)
	}
	var err error
	if done.Keys, err = s.purgeKeys(s.options.Now()); err != nil {
		return wrapped(err)
	}
	if s.options.KeepHistory {
		return done, nil
	}
	held, err := snapshotSeqs(s.readers)
	if err != nil {
		return wrapped(err)
	}
	if len(held) < keptSnapshots {
		return done, nil
	}
	for _, seq := range held {
		if _, _, err := loadSnapshot(s.readers, seq); err != nil {
			return wrapped(err)
		}
	}
	for more := true; more; {
		var dropped int64
		if dropped, more, err = s.dropBatches(held[len(held)-1]); err != nil {
			return wrapped(err)
		}
		done.Batches += dropped
	}
	return done, nil
}

func (s *Store) purgeKeys(now unit.Time) (purged int64, err error) {
	err = s.inWriter(func(tx *sql.Tx) error {
		o, err := loadOrigin(tx)
		if err != nil {
			return err
		}
		result, err := tx.Exec("DELETE FROM key WHERE expires <= ?", int64(now))
		if err != nil {
			return err
		}
		if purged, err = result.RowsAffected(); err != nil || purged == 0 {
			return err
		}
		// Verify expects to find the keys of the batches, but for those that expired by then.
		o.purged = max(o.purged, now)
		return saveOrigin(tx, o)
	})
	return purged, err
}

// dropBatches drops some of the oldest batches up to upTo and moves the origin behind
// them; more says whether some are left.
func (s *Store) dropBatches(upTo Seq) (dropped int64, more bool, err error) {
	err = s.inWriter(func(tx *sql.Tx) error {
		o, err := loadOrigin(tx)
		if err != nil || o.at.seq >= upTo {
			return err
		}
		to := min(upTo, o.at.seq+compactStep)
		more = to < upTo
		if o.at, err = linkAt(tx, to); err != nil {
			return err
		}
		result, err := tx.Exec("DELETE FROM batch WHERE seq <= ?", to)
		if err != nil {
			return err
		}
		if dropped, err = result.RowsAffected(); err != nil {
			return err
		}
		return saveOrigin(tx, o)
	})
	return dropped, more, err
}
