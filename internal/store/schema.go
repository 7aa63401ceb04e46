package store

import (
	"database/sql"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"

	_ "modernc.org/sqlite" // the database/sql driver "sqlite"
)

const (
	// formatVersion is the format that this program writes, kept in the file as PRAGMA user_version.
	formatVersion = 2
	// applicationID marks the file as ours: "Mstr".
	applicationID = 0x4d737472
)

// schema is format 2. Every row carries a hash of its own: a database page can rot
// without SQLite noticing.
//
//   - batch: the log. chain is the hash of the chain before, the number and the body.
//   - snapshot: states that stand for all batches up to seq; chain is the place in the chain.
//   - key: idempotency keys, an index over what the batches' bodies also hold.
//   - origin: the place before the first batch still held, and how far keys were purged.
//   - accepted: losses that the operator has accepted.
const schema = `
CREATE TABLE batch (seq INTEGER PRIMARY KEY, body BLOB NOT NULL, chain BLOB NOT NULL);
CREATE TABLE snapshot (seq INTEGER PRIMARY KEY, chain BLOB NOT NULL, data BLOB NOT NULL, sum BLOB NOT NULL);
CREATE TABLE key (key TEXT PRIMARY KEY, value BLOB NOT NULL, seq INTEGER NOT NULL, expires INTEGER NOT NULL, sum BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE origin (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, chain BLOB NOT NULL, purged INTEGER NOT NULL, sum BLOB NOT NULL);
CREATE TABLE accepted (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, lost INTEGER NOT NULL, why TEXT NOT NULL, sum BLOB NOT NULL);
`

// dialect says how many connections a handle may use, and for what.
type dialect int

const (
	toWrite dialect = iota // one connection, each transaction takes the write lock at once
	toRead                 // a few connections that cannot write
)

// logPages is how many pages the write-ahead log has until it is folded into the database: one wrong bit in the log
// costs all that stands behind it there, so it is kept short, at some twenty small batches. Folding waits for the disk
// twice, which that many commits outweigh: it is done although somebody waits, or one who always does would put it off.
const logPages = 64

// connect returns a handle on the database file at path; nothing is opened yet.
func connect(path string, use dialect) (*sql.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the journal: %w", err)
	}
	options := url.Values{"_pragma": {"busy_timeout(5000)", "synchronous(FULL)", "cell_size_check(ON)", "trusted_schema(OFF)"}}
	connections := 1
	if use == toRead {
		options.Add("_pragma", "query_only(ON)")
		connections = max(2, runtime.GOMAXPROCS(0))
	} else {
		options.Set("_txlock", "immediate")
	}
	address := url.URL{Scheme: "file", Path: absolute, RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	return db, nil
}

// errFormat says that a file is not a journal that this program can read.
var errFormat = errors.New("unreadable format")

// ready makes an empty file a journal, migrates one of an older format, and refuses
// what it cannot read before changing anything.
func (s *Store) ready() error {
	var application, version, tables int
	err := s.writer.QueryRow(`SELECT (SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_schema)`).Scan(&application, &version, &tables)
	if err != nil {
		return err
	}
	head, _ := s.head.read()
	fresh := application == 0 && version == 0 && tables == 0
	switch {
	case fresh && head.seq > 0:
		return unopenable{fmt.Errorf("the database is empty, but batch %d was acknowledged: restore %s from a backup, or move the folder away to start anew",
			head.seq, databaseName)}
	case !fresh && application != applicationID:
		return unopenable{fmt.Errorf("%w: %s is a database, but not a Muster journal", errFormat, databaseName)}
	case !fresh && version > formatVersion:
		return fmt.Errorf("%w: it is of version %d, this program reads versions 1 to %d: use the Muster that wrote it or a newer one, or another folder",
			errFormat, version, formatVersion)
	case !fresh && version < 1:
		return unopenable{fmt.Errorf("%w: it says to be of version %d, expected 1 to %d: restore it from a backup", errFormat, version, formatVersion)}
	}
	var mode string
	if err := s.writer.QueryRow("PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("this file system cannot hold a write-ahead log (SQLite offers %q): use a local disk", mode)
	}
	if fresh {
		return inTransaction(s.writer, create)
	}
	if version == 1 {
		return inTransaction(s.writer, s.migrate1)
	}
	return nil
}

// inTransaction runs do and commits, or rolls back where it fails.
func inTransaction(db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	if err := do(tx); err != nil {
		// What failed matters; that a full disk already rolled it back does not.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

// create writes an empty journal of the current format.
func create(tx *sql.Tx) error {
	if err := execAll(tx, schema, stamp()); err != nil {
		return err
	}
	return saveOrigin(tx, beginning())
}

// stamp is the statement that marks the file as a journal of the current format.
func stamp() string {
	return fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, formatVersion)
}

func execAll(tx *sql.Tx, scripts ...string) error {
	_, err := tx.Exec(strings.Join(scripts, ";\n"))
	return err
}

// migrate1 makes a journal of format 1 one of format 2. Format 1 was
//
//	batch(seq, body, crc), snapshot(seq, data, crc)
//
// with a CRC-32 (IEEE) per row: a row could rot and be noticed, but rows could vanish
// from the end, or be exchanged, unseen. Bodies ended where the keys begin now. It
// never dropped a batch, so its first one is 1.
func (s *Store) migrate1(tx *sql.Tx) error {
	if err := execAll(tx, "ALTER TABLE batch RENAME TO batch1; ALTER TABLE snapshot RENAME TO snapshot1", schema, stamp()); err != nil {
		return err
	}
	if err := saveOrigin(tx, beginning()); err != nil {
		return err
	}
	at := genesis()
	for {
		next, err := migrateBatch(tx, at)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err != nil {
			return fmt.Errorf("migrate the journal from format 1 to 2 (nothing was changed): %w", err)
		}
		at = next
	}
	if err := migrateSnapshots(tx, at.seq); err != nil {
		return fmt.Errorf("migrate the journal from format 1 to 2 (nothing was changed): %w", err)
	}
	// The head file comes first: without it, format 2 would have to suspect a lost
	// tail. Format 1 does not look at it, so a crash before the commit does no harm.
	if err := s.head.reset(at); err != nil {
		return err
	}
	return execAll(tx, "DROP TABLE batch1; DROP TABLE snapshot1")
}

// migrateBatch copies the batch after at from format 1.
func migrateBatch(tx *sql.Tx, at link) (link, error) {
	var seq Seq
	var body []byte
	var crc uint32
	row := tx.QueryRow("SELECT seq, body, crc FROM batch1 WHERE seq > ? ORDER BY seq LIMIT 1", at.seq)
	if err := row.Scan(&seq, &body, &crc); err != nil {
		return link{}, err
	}
	if seq != at.seq+1 {
		return link{}, fmt.Errorf("batch %d is missing: restore %s from a backup", at.seq+1, databaseName)
	}
	if crc32.ChecksumIEEE(body) != crc {
		return link{}, fmt.Errorf("batch %d does not match its checksum: restore %s from a backup", seq, databaseName)
	}
	body = appendKeys(body, nil)
	if _, err := decode(seq, body); err != nil {
		return link{}, err
	}
	next := at.next(body)
	_, err := tx.Exec(insertBatch, next.seq, body, next.chain[:])
	return next, err
}

func migrateSnapshots(tx *sql.Tx, last Seq) error {
	for after := Seq(-1); ; {
		var seq Seq
		var data []byte
		var crc uint32
		err := tx.QueryRow("SELECT seq, data, crc FROM snapshot1 WHERE seq > ? ORDER BY seq LIMIT 1", after).Scan(&seq, &data, &crc)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		if seq > last || crc32.ChecksumIEEE(data) != crc {
			return fmt.Errorf("the snapshot at batch %d is damaged or beyond the last batch, %d: restore %s from a backup", seq, last, databaseName)
		}
		at, err := linkAt(tx, seq)
		if err != nil {
			return err
		}
		if err := putSnapshot(tx, at, data); err != nil {
			return err
		}
		after = seq
	}
}
