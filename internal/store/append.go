package store

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/musterdl/muster/model/unit"
)

// ErrFull says that there was no space. Nothing of the batch was kept, nothing older
// is harmed, and the next Append may succeed once there is space.
var ErrFull = errors.New("no space left")

// DuplicateKeyError says that a batch was not written because one of its keys was
// acknowledged before: Value is what was answered then, in batch Seq.
type DuplicateKeyError struct {
	Key   string
	Value []byte
	Seq   Seq
}

// Error says which key and where it was seen.
func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("idempotency key %q was acknowledged before, in batch %d", e.Key, e.Seq)
}

// Stats describes one group commit. Waits has one entry per batch, from the call of
// Append until it was durable, and is valid during the callback only.
type Stats struct {
	Batches  int // made durable
	Rejected int // refused, because a key was seen before or could not be looked up
	Records  int // events and commits
	Bytes    int // encoded
	Commit   unit.Duration
	Waits    []unit.Duration
	Err      error // why nothing became durable
}

// request is one Append on its way through the writer.
type request struct {
	batch Batch
	body  []byte
	since unit.Time
	at    link  // where the batch went
	err   error // why it went nowhere
	done  chan struct{}
}

// task is other work for the writing goroutine.
type task struct {
	do   func(tx *sql.Tx) error
	done chan error
}

// Append makes batch durable and returns its number. Where it returns an error nothing
// of the batch is acknowledged; after anything but a refusal (a bad batch, a
// DuplicateKeyError, ErrFull) it may still be found in the journal after a crash, so a
// caller who retries should use an idempotency key.
func (s *Store) Append(batch Batch) (Seq, error) {
	if err := batch.check(); err != nil {
		return 0, fmt.Errorf("append to the journal: %w", err)
	}
	body := batch.encode()
	if len(body) > s.options.MaxBatchBytes {
		return 0, fmt.Errorf("append to the journal: the batch has %d bytes, at most %d are allowed (Options.MaxBatchBytes): split it",
			len(body), s.options.MaxBatchBytes)
	}
	r := &request{batch: batch, body: body, since: s.options.Now(), done: make(chan struct{})}
	select {
	case s.appends <- r:
	case <-s.closing:
		return 0, ErrClosed
	}
	<-r.done
	if r.err != nil {
		return 0, fmt.Errorf("append to the journal %s: %w", s.dir, r.err)
	}
	return r.at.seq, nil
}

// run is the goroutine that writes. The channels have no buffer, so a request that was
// taken is always answered, and one that was not is never half done.
func (s *Store) run() {
	defer close(s.stopped)
	for {
		select {
		case r := <-s.appends:
			s.commit(s.gather(r))
		case t := <-s.tasks:
			t.done <- s.perform(t.do)
		case <-s.closing:
			return
		}
		s.fold()
	}
}

// gather takes whatever waits beside the first request: while one group waits for the
// disk the next one forms by itself, so nobody waits for company.
func (s *Store) gather(first *request) []*request {
	group, size := []*request{first}, len(first.body)
	for len(group) < s.options.MaxGroupBatches && size < s.options.MaxGroupBytes {
		select {
		case r := <-s.appends:
			group, size = append(group, r), size+len(r.body)
		default:
			return group
		}
	}
	return group
}

// fold puts the log into the database once it has logPages pages that are not there yet. Those who waited have their
// answers by then. Where it cannot, as on a full disk, it is tried again after what is written next.
func (s *Store) fold() {
	var busy, log, folded int
	err := s.writer.QueryRow("PRAGMA wal_checkpoint(NOOP)").Scan(&busy, &log, &folded)
	if cmp.Or(s.failed, err) == nil && log-folded >= logPages { // what a failed disk dropped must not reach the database
		_, _ = s.writer.Exec("PRAGMA wal_checkpoint(PASSIVE)")
	}
}

// commit makes a group durable, answers its callers and reports it.
func (s *Store) commit(group []*request) {
	start := s.options.Now()
	tail, size, err := s.write(group)
	end := s.options.Now()
	s.refuse(err, size)
	if err == nil {
		s.tail = tail
		s.last.Store(int64(tail.seq))
		// The batches are durable, so they are acknowledged even if this fails; but
		// nothing more is until the head file has caught up.
		s.headLate = s.head.write(tail) != nil
	}
	stats := Stats{Commit: max(0, end.Sub(start)), Err: err}
	for _, r := range group {
		switch {
		case err != nil:
			r.err = err
		case r.err != nil:
			stats.Rejected++
		default:
			stats.Batches++
			stats.Records += len(r.batch.Events) + len(r.batch.Commits)
			stats.Bytes += len(r.body)
			stats.Waits = append(stats.Waits, max(0, end.Sub(r.since)))
		}
		close(r.done)
	}
	if s.options.OnCommit != nil {
		s.options.OnCommit(stats)
	}
}

// refusal is why a group could not be made durable.
type refusal struct {
	err  error
	free uint64 // bytes on the disk then
	size int    // bytes of what was refused
}

// refuse notes how the last group fared. That a smaller one found space, as of what was freed within the files, does
// not say that there is some for what was refused.
func (s *Store) refuse(err error, size int) {
	if err != nil {
		s.refused.Store(&refusal{err, s.free(), size})
		return
	}
	if s.Refusing() == nil || size >= s.refused.Load().size {
		s.refused.Store(nil)
	}
}

// roomAgain is how much more room than when it was full makes a disk worth another try.
const roomAgain = 1 << 20 // bytes

// Refusing says why batches are refused, and nil where the next may be accepted. It may be
// called by anybody at any time and writes nothing.
func (s *Store) Refusing() error {
	r := s.refused.Load()
	if r == nil || errors.Is(r.err, ErrFull) && s.free() >= r.free+roomAgain {
		return nil
	}
	return r.err
}

// free is how many bytes the journal's disk has left; 0 is also that nobody knows.
func (s *Store) free() uint64 {
	var disk unix.Statfs_t
	if unix.Statfs(s.dir, &disk) != nil {
		return 0
	}
	return disk.Bavail * uint64(disk.Bsize)
}

// write puts a group into one transaction and returns the new tail, and how many bytes it was to hold.
func (s *Store) write(group []*request) (tail link, size int, err error) {
	tail = s.tail
	err = s.perform(func(tx *sql.Tx) error {
		find, put, insert := tx.Stmt(s.read.find), tx.Stmt(s.read.put), tx.Stmt(s.read.insert)
		now := s.options.Now()
		for _, r := range group {
			if r.err = refuse(find, r.batch.Keys, now); r.err != nil {
				continue
			}
			tail, size = tail.next(r.body), size+len(r.body)
			r.at = tail
			if _, err := insert.Exec(tail.seq, r.body, tail.chain[:]); err != nil {
				return err
			}
			for _, k := range r.batch.Keys {
				if err := putKey(put, keyRow{k, tail.seq}); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return tail, size, err
}

// refuse says why a batch with these keys cannot be written: one was seen before.
func refuse(find *sql.Stmt, keys []Key, now unit.Time) error {
	for _, k := range keys {
		old, found, err := findKey(find, k.Key)
		if err != nil {
			return err
		}
		if found && old.ExpiresAt > now {
			return &DuplicateKeyError{Key: k.Key, Value: old.Value, Seq: old.seq}
		}
	}
	return nil
}

// perform runs one transaction on the writing goroutine, and decides after a failure
// whether the journal can go on.
func (s *Store) perform(do func(tx *sql.Tx) error) error {
	if s.failed != nil {
		return s.failed
	}
	if s.headLate {
		if err := s.head.write(s.tail); err != nil {
			return err
		}
		s.headLate = false
	}
	err := inTransaction(s.writer, do)
	switch c := code(err); {
	case err == nil:
		return nil
	case c&0xff == sqliteFull || c == sqliteSharedSize:
		err = fmt.Errorf("%w: nothing of this was kept, free some space and try again (%w)", ErrFull, err)
	case c == sqliteFsync || c == sqliteDirFsync:
		// The kernel may have dropped what it could not write and will not say so again.
		s.failed = fmt.Errorf("the disk failed to keep what was written, check it and open the journal again: %w", err)
		return s.failed
	}
	if lost := s.resume(); lost != nil {
		s.failed = fmt.Errorf("%w, and after that: %w", err, lost)
		return s.failed
	}
	return err
}

// resume checks after a failed transaction that nothing of it stayed.
func (s *Store) resume() error {
	var last whole
	if err := s.writer.QueryRow("SELECT coalesce(max(seq), 0) FROM batch").Scan(&last); err != nil {
		return err
	}
	if Seq(last) > s.tail.seq {
		return fmt.Errorf("batch %d is in the journal though its commit failed, open the journal again", last)
	}
	return nil
}

// inWriter runs do in a transaction on the writing goroutine.
func (s *Store) inWriter(do func(tx *sql.Tx) error) error {
	t := task{do: do, done: make(chan error, 1)}
	select {
	case s.tasks <- t:
		return <-t.done
	case <-s.closing:
		return ErrClosed
	}
}
