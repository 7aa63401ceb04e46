package store

import (
	"database/sql"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// schema1 is format 1 as it was written, never to be changed.
const schema1 = `
CREATE TABLE batch (seq INTEGER PRIMARY KEY, body BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE snapshot (seq INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL);
PRAGMA application_id=1299412082; PRAGMA user_version=1;
`

// writeFormat1 makes a journal of format 1 with n batches, without the samples' keys,
// which it could not hold, and a snapshot at 5.
func writeFormat1(t testing.TB, n int) string {
	t.Helper()
	dir := tempDir(t)
	db, err := connect(filepath.Join(dir, databaseName), toWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec("PRAGMA journal_mode=WAL"); err != nil {
		t.Fatal(err)
	}
	err = inTransaction(db, func(tx *sql.Tx) error {
		if err := execAll(tx, schema1); err != nil {
			return err
		}
		for i := 1; i <= n; i++ {
			body := appendRecords(appendRecords(nil, sample(i).Events), sample(i).Commits)
			if _, err := tx.Exec("INSERT INTO batch VALUES (?, ?, ?)", i, body, crc32.ChecksumIEEE(body)); err != nil {
				return err
			}
		}
		_, err := tx.Exec("INSERT INTO snapshot VALUES (5, ?, ?)", state(5), crc32.ChecksumIEEE(state(5)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMigrationFromFormat1(t *testing.T) {
	dir := writeFormat1(t, 300)
	for start := range 2 { // the second start finds format 2
		s := open(t, dir, Options{})
		r, err := s.Verify()
		if err != nil || !r.Intact() || r.First != 1 || r.Last != Seq(300+start) || len(r.Snapshots) != 1 {
			t.Fatalf("%v, %v", r, err)
		}
		next := 1
		err = s.Replay(1, func(b Batch) error {
			want := numbered(next)
			if next <= 300 {
				want.Keys = nil
			}
			if fmt.Sprint(b) != fmt.Sprint(want) {
				return fmt.Errorf("batch %d was read as %+v", next, b)
			}
			next++
			return nil
		})
		if err != nil || next != 301+start {
			t.Fatalf("replay ended before %d: %v", next, err)
		}
		if latest, found, err := s.LatestSnapshot(); err != nil || !found || string(latest.Data) != string(state(5)) {
			t.Fatalf("%v, %v", found, err)
		}
		fill(t, s, 301+start, 301+start)
		closeStore(t, s)
	}
}

// What format 1 can see to be wrong is refused, and the file stays as it was.
func TestMigrationRefusesDamage(t *testing.T) {
	for _, c := range []struct{ name, sql, want string }{
		{"body", "UPDATE batch SET body = x'00' WHERE seq = 7", "batch 7 does not match its checksum"},
		{"hole", "DELETE FROM batch WHERE seq = 7", "batch 7 is missing"},
		{"snapshot", "UPDATE snapshot SET data = x'00'", "the snapshot at batch 5 is damaged"},
		{"snapshot of later", "DELETE FROM batch WHERE seq > 4", "the snapshot at batch 5 is damaged or beyond the last batch, 4"},
	} {
		dir := writeFormat1(t, 10)
		alter(t, dir, c.sql)
		for range 2 {
			if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
		}
	}
}

func TestForeignFormats(t *testing.T) {
	for _, c := range []struct{ name, sql, want string }{
		{"newer", "PRAGMA user_version=3", "version 3, this program reads versions 1 to 2: use the Muster that wrote it"},
		{"no version", "PRAGMA user_version=0", "version 0"},
		{"negative version", "PRAGMA user_version=-1", "version -1"},
		{"another application", "PRAGMA application_id=1", "not a Muster journal"},
		{"older than it says", "PRAGMA user_version=1", "already"},
	} {
		dir := tempDir(t)
		s := open(t, dir, Options{})
		fill(t, s, 1, 3)
		closeStore(t, s)
		alter(t, dir, c.sql)
		before, err := os.ReadFile(filepath.Join(dir, databaseName))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, Options{AcceptTruncatedTail: true}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if after, err := os.ReadFile(filepath.Join(dir, databaseName)); err != nil || string(after) != string(before) {
			t.Errorf("%s: the refused file was changed (%v)", c.name, err)
		}
		alter(t, dir, "PRAGMA user_version=2; PRAGMA application_id=1299412082")
		wantAll(t, open(t, dir, Options{}), 1, 3)
	}
}
