package store

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"modernc.org/sqlite"

	"github.com/musterdl/muster/model/unit"
)

// querier is what reads rows: a handle or a transaction.
type querier interface {
	Query(query string, args ...any) (*sql.Rows, error)
	QueryRow(query string, args ...any) *sql.Row
}

// SQLite's result codes that we tell apart; the lowest eight bits are the class.
const (
	sqliteCorrupt    = 11
	sqliteFull       = 13
	sqliteTooBig     = 18
	sqliteFormat     = 24
	sqliteNotDB      = 26
	sqliteShortRead  = 522
	sqliteFsync      = 1034
	sqliteDirFsync   = 1290
	sqliteSharedSize = 4874
)

// errDamaged says that a row is not what was written.
var errDamaged = errors.New("the row does not match its hash")

// code returns SQLite's result code, 0 where err is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// isDamage tells stored content that is wrong from everything else that can fail.
func isDamage(err error) bool {
	switch c := code(err); {
	case errors.Is(err, errDamaged), c == sqliteShortRead:
		return true
	default:
		return c&0xff == sqliteCorrupt || c&0xff == sqliteTooBig || c&0xff == sqliteFormat || c&0xff == sqliteNotDB
	}
}

// blob, whole and text are columns of exactly that type: a rotten type code must be
// noticed, where database/sql would convert.
type (
	blob  []byte
	whole int64
	text  string
)

// Scan takes a blob.
func (b *blob) Scan(v any) error {
	x, ok := v.([]byte)
	if !ok && v != nil { // the driver gives nil for an empty blob
		return errDamaged
	}
	*b = bytes.Clone(x)
	return nil
}

// Scan takes an integer.
func (n *whole) Scan(v any) error {
	x, ok := v.(int64)
	if !ok {
		return errDamaged
	}
	*n = whole(x)
	return nil
}

// Scan takes a text.
func (t *text) Scan(v any) error {
	x, ok := v.(string)
	if !ok {
		return errDamaged
	}
	*t = text(x)
	return nil
}

// asDigest returns b as a digest; one of a wrong length becomes zero, which no row hashes to.
func asDigest(b blob) digest {
	if len(b) != len(digest{}) {
		return digest{}
	}
	return digest(b)
}

// origin is where the journal begins: the place before the first batch held, and the
// instant up to which expired keys were purged.
type origin struct {
	at     link
	purged unit.Time
}

// beginning is the origin of a journal that holds everything.
func beginning() origin { return origin{at: genesis(), purged: math.MinInt64} }

func (o origin) sum() digest {
	return sum("origin", number(int64(o.at.seq)), o.at.chain[:], number(int64(o.purged)))
}

func saveOrigin(tx *sql.Tx, o origin) error {
	s := o.sum()
	_, err := tx.Exec("INSERT OR REPLACE INTO origin (id, seq, chain, purged, sum) VALUES (1, ?, ?, ?, ?)",
		o.at.seq, o.at.chain[:], int64(o.purged), s[:])
	return err
}

func loadOrigin(q querier) (origin, error) {
	var seq, purged whole
	var chain, hash blob
	err := q.QueryRow("SELECT seq, chain, purged, sum FROM origin WHERE id = 1").Scan(&seq, &chain, &purged, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return origin{}, fmt.Errorf("the origin is missing: %w", errDamaged)
	}
	if err != nil {
		return origin{}, fmt.Errorf("read the origin: %w", err)
	}
	o := origin{link{Seq(seq), asDigest(chain)}, unit.Time(purged)}
	if o.sum() != asDigest(hash) {
		return origin{}, fmt.Errorf("origin: %w", errDamaged)
	}
	return o, nil
}

func snapshotSum(at link, data []byte) digest {
	return sum("snapshot", number(int64(at.seq)), at.chain[:], data)
}

func putSnapshot(tx *sql.Tx, at link, data []byte) error {
	if data == nil {
		data = []byte{} // a nil slice would be NULL
	}
	s := snapshotSum(at, data)
	_, err := tx.Exec("INSERT OR REPLACE INTO snapshot (seq, chain, data, sum) VALUES (?, ?, ?, ?)", at.seq, at.chain[:], data, s[:])
	return err
}

// loadSnapshot reads the snapshot at seq, sql.ErrNoRows where there is none.
func loadSnapshot(q querier, seq Seq) (link, []byte, error) {
	var chain, data, hash blob
	if err := q.QueryRow("SELECT chain, data, sum FROM snapshot WHERE seq = ?", seq).Scan(&chain, &data, &hash); err != nil {
		return link{}, nil, fmt.Errorf("read the snapshot at batch %d: %w", seq, err)
	}
	at := link{seq, asDigest(chain)}
	if snapshotSum(at, data) != asDigest(hash) {
		return link{}, nil, fmt.Errorf("snapshot at batch %d: %w", seq, errDamaged)
	}
	return at, data, nil
}

// snapshotSeqs lists the snapshots held, newest first.
func snapshotSeqs(q querier) ([]Seq, error) {
	rows, err := q.Query("SELECT seq FROM snapshot ORDER BY seq DESC")
	if err != nil {
		return nil, fmt.Errorf("list the snapshots: %w", err)
	}
	defer rows.Close()
	var out []Seq
	for rows.Next() {
		var seq whole
		if err := rows.Scan(&seq); err != nil {
			return nil, fmt.Errorf("list the snapshots: %w", err)
		}
		out = append(out, Seq(seq))
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list the snapshots: %w", err)
	}
	return out, nil
}

// linkAt returns the place after batch seq. A batch's own row is believed here; if it
// is wrong, the next batch will not fit.
func linkAt(q querier, seq Seq) (link, error) {
	o, err := loadOrigin(q)
	if err == nil && o.at.seq == seq {
		return o.at, nil
	}
	if err != nil && !isDamage(err) {
		return link{}, err
	}
	at, _, err := loadSnapshot(q, seq)
	if err == nil || !isDamage(err) && !errors.Is(err, sql.ErrNoRows) {
		return at, err
	}
	var chain blob
	if err := q.QueryRow("SELECT chain FROM batch WHERE seq = ?", seq).Scan(&chain); err != nil {
		return link{}, fmt.Errorf("find batch %d: %w", seq, err)
	}
	return link{seq, asDigest(chain)}, nil
}

// keyRow is a row of the key table.
type keyRow struct {
	Key
	seq Seq
}

func (k keyRow) sum() digest {
	return sum("key", []byte(k.Key.Key), k.Value, number(int64(k.seq)), number(int64(k.ExpiresAt)))
}

// The statements that every batch needs.
const (
	insertBatch = "INSERT INTO batch (seq, body, chain) VALUES (?, ?, ?)"
	insertKey   = "INSERT OR REPLACE INTO key (key, value, seq, expires, sum) VALUES (?, ?, ?, ?, ?)"
	selectKey   = "SELECT key, value, seq, expires, sum FROM key WHERE key = ?"
)

// putKey writes a key by insertKey.
func putKey(put *sql.Stmt, k keyRow) error {
	if k.Value == nil {
		k.Value = []byte{}
	}
	s := k.sum()
	_, err := put.Exec(k.Key.Key, k.Value, k.seq, int64(k.ExpiresAt), s[:])
	return err
}

// scanKey reads the columns key, value, seq, expires, sum.
func scanKey(scan func(into ...any) error) (keyRow, error) {
	var name text
	var value, hash blob
	var seq, expires whole
	if err := scan(&name, &value, &seq, &expires, &hash); err != nil {
		return keyRow{}, err
	}
	k := keyRow{Key{string(name), value, unit.Time(expires)}, Seq(seq)}
	if k.sum() != asDigest(hash) {
		return keyRow{}, errDamaged
	}
	return k, nil
}

// findKey returns the row of a key, expired or not, by selectKey.
func findKey(find *sql.Stmt, key string) (k keyRow, found bool, err error) {
	k, err = scanKey(find.QueryRow(key).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return keyRow{}, false, nil
	}
	if err != nil {
		return keyRow{}, false, fmt.Errorf("look up idempotency key %q: %w", key, err)
	}
	return k, true, nil
}
