package store

import (
	"database/sql"
	"errors"
	"fmt"
)

// Import fills an empty journal with a history that was written before, in one
// transaction: all of it or nothing. Append would wait for the disk once per batch.
// The batches' own numbers and keys are left out; they are numbered anew from 1.
func (s *Store) Import(fill func(add func(Batch) error) error) error {
	var tail link
	err := s.inWriter(func(tx *sql.Tx) error {
		if s.tail != genesis() {
			return errors.New("it is not empty")
		}
		insert, err := tx.Prepare(insertBatch)
		if err != nil {
			return err
		}
		defer insert.Close()
		tail = s.tail
		return fill(func(b Batch) error {
			b.Keys = nil
			if err := b.check(); err != nil {
				return err
			}
			body := b.encode()
			tail = tail.next(body)
			_, err := insert.Exec(tail.seq, body, tail.chain[:])
			return err
		})
	})
	if err == nil {
		err = s.inWriter(func(*sql.Tx) error {
			s.tail = tail
			s.last.Store(int64(tail.seq))
			return s.head.reset(tail)
		})
	}
	if err != nil {
		return fmt.Errorf("import a history into the journal %s: %w", s.dir, err)
	}
	return nil
}
