// Package store is Muster's journal: an append-only log of batches of events and the
// commits they caused, with snapshots and idempotency keys, in a SQLite database.
// Nothing is acknowledged before it is on the disk, and nothing is believed on the way
// back unless it is what was written.
//
// Each batch carries the SHA-256 of the batch before it and of its own content, so an
// altered, exchanged or missing batch is found at its place. SQLite itself drops a torn
// end of its write-ahead log silently; the head file, which remembers the last
// acknowledged batch outside the database, is what makes that visible. A journal that
// lost something opens for reading, says what it lost, and takes no new batch until the
// operator has accepted the loss.
//
// One goroutine writes. It commits all batches that wait for it in one transaction, so
// that many callers share one wait for the disk.
package store

import (
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/musterdl/muster/model/unit"
)

// databaseName is the file in the journal's folder; SQLite puts its log beside it.
const databaseName = "journal.db"

// headName is the file of the last acknowledged batch.
const headName = "head"

// Options says how a journal is opened. The zero value is a good one.
type Options struct {
	MaxBatchBytes   int  // the largest batch, encoded; 16 MiB if zero
	MaxGroupBatches int  // how many batches share one commit at most; 512 if zero
	MaxGroupBytes   int  // how many bytes until a group takes no further batch; 16 MiB if zero
	KeepHistory     bool // Compact keeps all batches

	// AcceptTruncatedTail is the operator's word that what a damaged journal lost is
	// lost: it is rebuilt from what is intact, and the damaged file is kept beside it.
	AcceptTruncatedTail bool

	// Now is the clock that expires idempotency keys and that Stats are measured with;
	// without one, no key expires and all durations are zero.
	Now func() unit.Time

	// OnCommit is told about each group commit, by the goroutine that writes, after its
	// callers got their answers: it must be quick and must not call the Store.
	OnCommit func(Stats)
}

func (o Options) withDefaults() (Options, error) {
	for _, size := range []struct {
		name  string
		value *int
		most  int
		usual int
	}{
		{"MaxBatchBytes", &o.MaxBatchBytes, 512 << 20, 16 << 20},
		{"MaxGroupBatches", &o.MaxGroupBatches, 1 << 20, 512},
		{"MaxGroupBytes", &o.MaxGroupBytes, 512 << 20, 16 << 20},
	} {
		if *size.value == 0 {
			*size.value = size.usual
		}
		if *size.value < 0 || *size.value > size.most {
			return o, fmt.Errorf("journal option %s is %d: expected 1 to %d", size.name, *size.value, size.most)
		}
	}
	if o.Now == nil {
		o.Now = func() unit.Time { return math.MinInt64 }
	}
	return o, nil
}

// Store is an open journal. Its methods may be called by many goroutines at once.
type Store struct {
	dir     string
	options Options
	lock    *os.File
	head    *headFile
	writer  *sql.DB
	readers *sql.DB
	report  Report

	read statements

	last    atomic.Int64 // the newest durable batch
	refused atomic.Pointer[refusal]
	appends chan *request
	tasks   chan task
	closing chan struct{}
	stopped chan struct{}
	close   sync.Once

	// upkeep is held by whatever removes rows or must not see them vanish.
	upkeep sync.Mutex

	// Of the writing goroutine alone:
	tail     link  // the place after the newest durable batch
	headLate bool  // the head file is behind, its last write failed
	failed   error // why nothing can be appended any more
}

// statements are read once and used for every batch.
type statements struct {
	seen              *sql.Stmt // of the readers
	find, put, insert *sql.Stmt // of the writer
}

// ErrClosed is returned by every use of a closed Store.
var ErrClosed = errors.New("the journal is closed")

// Open opens the journal in dir, creating it where there is none, and checks it: the
// chain from the newest intact snapshot to the end, the snapshots, the keys, the
// database's structure, and that the end is what was last acknowledged. What it found
// is in Report. What is wrong and follows from batches that are all there is made anew. A
// journal that lost anything can be read but takes no batch, unless Options.AcceptTruncatedTail
// says to go on without what was lost.
func Open(dir string, options Options) (*Store, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	s := &Store{
		dir: dir, options: options,
		appends: make(chan *request), tasks: make(chan task),
		closing: make(chan struct{}), stopped: make(chan struct{}),
	}
	if s.lock, err = lock(dir); err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the journal %s: %w", dir, err), s.release())
	}
	go s.run()
	return s, nil
}

// start opens and checks the files, and rebuilds the database where that was asked for.
func (s *Store) start() error {
	if err := s.finishRebuild(); err != nil {
		return err
	}
	found, err := s.openFiles()
	if err == nil && !found.report.Intact() {
		found, err = s.mend(found)
	}
	if err != nil {
		return err
	}
	s.report, s.tail = found.report, found.tail
	s.last.Store(int64(s.tail.seq))
	if !s.report.Intact() {
		s.failed = &DamageError{Dir: s.dir, Report: s.report}
		return s.keepLog(s.report)
	}
	return s.head.reset(s.tail)
}

// mend rebuilds the database where the operator accepts what was lost, and where nothing was: what is wrong is then made
// anew. Else all stays as it was found.
func (s *Store) mend(found findings) (findings, error) {
	var mended []string
	if !s.options.AcceptTruncatedTail {
		if whole, err := s.whole(&found); err != nil || !whole {
			return found, err
		}
		mended = found.report.Damage
	}
	if err := s.rebuild(found); err != nil {
		return found, fmt.Errorf("rebuild the database: %w", err)
	}
	found, err := s.openFiles()
	found.report.Mended = mended
	return found, err
}

// whole reports whether all that is wrong follows from the batches, as snapshots, idempotency keys and SQLite's own
// structure do, and these are all there. Of batches that were compacted nothing can be made anew.
func (s *Store) whole(f *findings) (bool, error) {
	if f.report.Loss != nil || f.harm > 0 || f.origin.at.seq > 0 {
		return false, nil
	}
	at, _, err := walk(s.readers, f.origin.at, f.tail.seq, func(Batch, stored) error { return nil })
	return at == f.tail, err
}

// openFiles opens head file and database and checks them.
func (s *Store) openFiles() (findings, error) {
	path := filepath.Join(s.dir, databaseName)
	if err := orphanLog(path); err != nil {
		return findings{}, err
	}
	var err error
	if s.head, err = openHead(filepath.Join(s.dir, headName)); err != nil {
		return findings{}, err
	}
	if s.writer, err = connect(path, toWrite); err != nil {
		return findings{}, err
	}
	if err := s.ready(); err != nil {
		return findings{}, explain(err)
	}
	if err := syncFolder(s.dir); err != nil {
		return findings{}, err
	}
	if s.readers, err = connect(path, toRead); err != nil {
		return findings{}, err
	}
	if err := s.prepare(); err != nil {
		return findings{}, explain(err)
	}
	found, err := s.inspect(tailOnly)
	return found, explain(err)
}

// prepare reads once the statements that every batch needs.
func (s *Store) prepare() (err error) {
	for _, x := range []struct {
		into **sql.Stmt
		on   *sql.DB
		text string
	}{{&s.read.seen, s.readers, selectKey}, {&s.read.find, s.writer, selectKey}, {&s.read.put, s.writer, insertKey}, {&s.read.insert, s.writer, insertBatch}} {
		if *x.into, err = x.on.Prepare(x.text); err != nil {
			return err
		}
	}
	return nil
}

// explain adds what to do to an error that means a damaged database.
func explain(err error) error {
	if isDamage(err) {
		return unopenable{fmt.Errorf("%s is damaged: %w: restore the folder from a backup", databaseName, err)}
	}
	return err
}

// unopenable is the error of a journal whose files hold nothing that one could go on from.
type unopenable struct{ error }

// Unwrap returns what is wrong.
func (u unopenable) Unwrap() error { return u.error }

// Unopenable reports whether Open failed because of what the journal's files hold, which no option makes good: only
// another copy of the history does.
func Unopenable(err error) bool { return errors.As(err, new(unopenable)) }

// orphanLog refuses a write-ahead log without its database: SQLite would delete it,
// and it may hold acknowledged batches.
func orphanLog(path string) error {
	log, err := os.Stat(path + "-wal")
	if err != nil || log.Size() == 0 {
		return nil
	}
	if db, err := os.Stat(path); err != nil || db.Size() == 0 {
		return unopenable{fmt.Errorf("%s is missing or empty, but its log %s-wal is there: restore both from a backup, or move the folder away to start anew",
			databaseName, databaseName)}
	}
	return nil
}

// makeFolder creates dir where it is not there, so that its name survives a power cut.
// Folders above it that are missing too are made, but are the caller's to make durable.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("create the journal's folder: %w", err)
	}
	return syncFolder(filepath.Dir(dir))
}

// syncFolder makes the names of new files durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("sync the journal's folder: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync the journal's folder: %w", err)
	}
	return nil
}

// Report returns what Open found.
func (s *Store) Report() Report { return s.report }

// Last returns the newest durable batch, 0 where there is none.
func (s *Store) Last() Seq { return Seq(s.last.Load()) }

// Seen returns what was answered to the request of this idempotency key, if it was
// acknowledged and the key has not expired.
func (s *Store) Seen(key string) (value []byte, seen bool, err error) {
	k, found, err := findKey(s.read.seen, key)
	if err != nil {
		return nil, false, s.wrap(err)
	}
	if !found || k.ExpiresAt <= s.options.Now() {
		return nil, false, nil
	}
	return k.Value, true, nil
}

// wrap says which journal an error is about.
func (s *Store) wrap(err error) error {
	select {
	case <-s.closing:
		return ErrClosed
	default:
		return fmt.Errorf("journal %s: %w", s.dir, err)
	}
}

// Close commits nothing further, waits for the commit under way and releases the
// journal. Batches whose Append has not returned by then may or may not be durable.
func (s *Store) Close() error {
	err := ErrClosed
	s.close.Do(func() {
		close(s.closing)
		<-s.stopped
		err = s.release()
	})
	return err
}

// release closes the files and gives up the lock.
func (s *Store) release() error {
	return errors.Join(s.closeFiles(), s.lock.Close())
}

// closeFiles closes what openFiles opened, as far as it came. The readers go first, so
// that the writer, closing last, puts the log into the database.
func (s *Store) closeFiles() error {
	var errs []error
	for _, db := range []*sql.DB{s.readers, s.writer} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.head != nil {
		errs = append(errs, s.head.sync(), s.head.file.Close())
	}
	return errors.Join(errs...)
}
