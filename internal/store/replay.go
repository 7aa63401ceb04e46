package store

import (
	"database/sql"
	"errors"
	"fmt"
)

// chunk bounds what one query of walk holds in memory, and with it how long a reader
// keeps SQLite from reusing its log.
const (
	chunkBatches = 256
	chunkBytes   = 4 << 20
)

// stored is a batch as it lies in the database: its place, as its chain says, and its body.
type stored struct {
	at   link
	body []byte
}

// walk reads the batches after from, up to and including to, and calls fn with each
// that fits the chain. It returns the last place that fits, and the reason why what
// follows does not; there is none where the rows simply end.
func walk(q querier, from link, to Seq, fn func(Batch, stored) error) (at link, fault string, err error) {
	at = from
	for at.seq < to {
		rows, readErr := chunk(q, at.seq, to)
		for _, row := range rows {
			switch {
			case row.at.seq != at.seq+1:
				return at, fmt.Sprintf("batch %d is missing", at.seq+1), nil
			case at.next(row.body) != row.at:
				return at, fmt.Sprintf("batch %d does not match its chain hash", row.at.seq), nil
			}
			batch, err := decode(row.at.seq, row.body)
			if err != nil {
				return at, err.Error(), nil
			}
			if err := fn(batch, row); err != nil {
				return at, "", err
			}
			at = row.at
		}
		if isDamage(readErr) {
			return at, fmt.Sprintf("batch %d cannot be read: %v", at.seq+1, readErr), nil
		}
		if readErr != nil || len(rows) == 0 {
			return at, "", readErr
		}
	}
	return at, "", nil
}

// chunk reads some rows after seq; where it fails, it returns those before the failure too.
func chunk(q querier, after, to Seq) ([]stored, error) {
	rows, err := q.Query("SELECT seq, body, chain FROM batch WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", after, to, chunkBatches)
	if err != nil {
		return nil, fmt.Errorf("read the batches after %d: %w", after, err)
	}
	defer rows.Close()
	var out []stored
	for size := 0; size < chunkBytes && rows.Next(); {
		var seq whole
		var body, chain blob
		if err := rows.Scan(&seq, &body, &chain); err != nil {
			return out, fmt.Errorf("read the batches after %d: %w", after, err)
		}
		out = append(out, stored{link{Seq(seq), asDigest(chain)}, body})
		size += len(body)
	}
	if err := rows.Err(); err != nil {
		return out, fmt.Errorf("read the batches after %d: %w", after, err)
	}
	return out, nil
}

// Replay calls fn with each batch from number from up to the newest one at the time of
// the call, in order, each checked against the chain. An error of fn ends it and is
// returned as it is. Where a batch is damaged or lost, fn has got the intact batches
// before it and Replay returns a DamageError: a prefix never passes for the whole.
func (s *Store) Replay(from Seq, fn func(Batch) error) error {
	last := s.Last()
	if s.report.Loss != nil && from > last+1 {
		return &DamageError{Dir: s.dir, Report: s.report}
	}
	if from < 1 || from > last+1 {
		return fmt.Errorf("replay the journal %s from batch %d: expected 1 to %d", s.dir, from, last+1)
	}
	start, err := linkAt(s.readers, from-1)
	if errors.Is(err, sql.ErrNoRows) {
		return s.gone(from)
	}
	if err != nil {
		return s.wrap(err)
	}
	var stop error
	at, fault, err := walk(s.readers, start, last, func(b Batch, _ stored) error {
		stop = fn(b)
		return stop
	})
	switch {
	case stop != nil:
		return stop
	case err != nil:
		return s.wrap(err)
	case at.seq == last && s.report.Loss != nil:
		return &DamageError{Dir: s.dir, Report: s.report}
	case at.seq == last:
		return nil
	}
	if fault == "" {
		fault = fmt.Sprintf("the database ends at batch %d", at.seq)
	}
	if o, err := loadOrigin(s.readers); err == nil && o.at.seq > at.seq {
		return s.gone(at.seq + 1)
	}
	loss := &Loss{From: at.seq + 1, Batches: int64(last - at.seq), Why: fault}
	return &DamageError{Dir: s.dir, Report: Report{First: from, Last: at.seq, Loss: loss}}
}

// gone explains why batch seq is not there to be replayed: it was compacted, or is damaged.
func (s *Store) gone(seq Seq) error {
	o, err := loadOrigin(s.readers)
	if err != nil {
		return s.wrap(err)
	}
	if seq <= o.at.seq {
		return fmt.Errorf("replay the journal %s from batch %d: the batches up to %d were compacted, start from a snapshot", s.dir, seq, o.at.seq)
	}
	loss := &Loss{From: seq, Batches: 1, Why: fmt.Sprintf("batch %d, before it, is missing", seq-1)}
	return &DamageError{Dir: s.dir, Report: Report{First: seq, Last: seq - 1, Loss: loss}}
}
