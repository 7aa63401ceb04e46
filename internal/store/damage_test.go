package store

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// damageBatches is how many batches the journals have that these tests damage.
const damageBatches = 60

// long returns n, or many times that when MUSTER_LONG=1, and more when MUSTER_FULL=1.
func long(n int) int {
	switch {
	case os.Getenv("MUSTER_FULL") == "1":
		return 30 * n
	case os.Getenv("MUSTER_LONG") == "1":
		return 12 * n
	}
	return n
}

// crashedFiles returns the files of a journal as kill -9 would leave them: part of it
// checkpointed, part of it in the log, snapshots at 20 and 40.
func crashedFiles(t testing.TB) map[string][]byte {
	t.Helper()
	dir := tempDir(t)
	s := open(t, dir, Options{})
	fill(t, s, 1, 20)
	if err := s.SaveSnapshot(20, state(20)); err != nil {
		t.Fatal(err)
	}
	fill(t, s, 21, 45)
	if err := s.SaveSnapshot(40, state(40)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	fill(t, s, 46, damageBatches)
	files := readFiles(t, dir)
	closeStore(t, s)
	return files
}

// closedFiles returns the files of the same journal after Close, when there is no log.
func closedFiles(t testing.TB) map[string][]byte {
	t.Helper()
	dir := lay(t, crashedFiles(t))
	closeStore(t, open(t, dir, Options{}))
	return readFiles(t, dir)
}

// readFiles reads the files of a journal; one that is not there becomes nil.
func readFiles(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, name := range []string{databaseName, databaseName + "-wal", headName} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		files[name] = b
	}
	return files
}

// lay writes files into a new folder; a nil one is left out.
func lay(t testing.TB, files map[string][]byte) string {
	t.Helper()
	dir := tempDir(t)
	for name, b := range files {
		if b == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// outcome counts how damaged journals were dealt with.
type outcome struct{ whole, lost, harmed, refused int }

// judge opens a damaged journal and fails unless all that it gives is what was written
// and whatever it does not give is reported.
func judge(t *testing.T, dir string, o *outcome) {
	t.Helper()
	s, err := Open(dir, Options{})
	if err != nil {
		o.refused++
		return
	}
	r := s.Report()
	judgeContent(t, s, r)
	_, appendErr := s.Append(sample(int(r.Last) + 1))
	closeStore(t, s)
	var damaged *DamageError
	switch {
	case r.Intact() && appendErr == nil && r.Last == damageBatches:
		o.whole++
		return
	case r.Intact() || !errors.As(appendErr, &damaged):
		t.Fatalf("report %v, and append said %v", r, appendErr)
	case r.Loss == nil:
		o.harmed++
	default:
		o.lost++
		if r.Loss.From != r.Last+1 || r.Loss.Batches != int64(damageBatches-r.Last) {
			t.Fatalf("%d batches were acknowledged, the report says %v", damageBatches, r)
		}
	}
	s, err = Open(dir, Options{AcceptTruncatedTail: true})
	if err != nil {
		t.Fatalf("accept %v: %v", r, err)
	}
	if got := s.Report(); !got.Intact() || got.Last != r.Last || (r.Loss != nil) != (len(got.Accepted) == 1) {
		t.Fatalf("accepted %v, became %v", r, got)
	}
	fill(t, s, int(r.Last)+1, int(r.Last)+3)
	wantAll(t, s, s.Report().First, r.Last+3)
	closeStore(t, s)
}

// judgeContent checks all that can be read from a journal that opened.
func judgeContent(t *testing.T, s *Store, r Report) {
	t.Helper()
	for _, from := range []Seq{1, 21, 41} {
		next, err := replayed(t, s, from)
		var damaged *DamageError
		if next != damageBatches+1 && err == nil || err != nil && !errors.As(err, &damaged) && !isDamage(err) {
			t.Fatalf("replay from %d ended before %d with %v; report %v", from, next, err, r)
		}
		if from == 41 && next != max(from, r.Last+1) {
			t.Fatalf("replay from 41 ended before %d; report %v", next, r)
		}
	}
	latest, found, err := s.LatestSnapshot()
	if err == nil && (found && string(latest.Data) != string(state(latest.Seq)) || !found && r.Intact() && len(r.Mended) == 0) {
		t.Fatalf("a wrong snapshot (%d, %v); report %v", latest.Seq, found, r)
	}
	for i := 1; i <= damageBatches; i++ {
		value, seen, err := s.Seen(sampleKey(i))
		switch {
		case err == nil && seen && string(value) != string(sampleValue(i)):
			t.Fatalf("key %d has the value %q; report %v", i, value, r)
		case r.Intact() && (err != nil || !seen):
			t.Fatalf("key %d: %v, %v; report %v", i, seen, err, r)
		}
	}
	if report, err := s.Verify(); err == nil && r.Loss != nil && report.Loss == nil {
		t.Fatalf("open found %v, verify found %v", r, report)
	}
}

func TestDamageAnywhere(t *testing.T) {
	crashed, closed := crashedFiles(t), closedFiles(t)
	cut := func(rng *rand.Rand, b []byte) ([]byte, string) {
		n := rng.IntN(len(b))
		return b[:n], fmt.Sprintf("cut at %d of %d", n, len(b))
	}
	flip := func(rng *rand.Rand, b []byte) ([]byte, string) {
		at, with := rng.IntN(len(b)), byte(1+rng.IntN(255))
		b[at] ^= with
		return b, fmt.Sprintf("byte %d changed by %#x", at, with)
	}
	zero := func(rng *rand.Rand, b []byte) ([]byte, string) {
		at := rng.IntN(len(b)) / 512 * 512
		clear(b[at:min(len(b), at+512)])
		return b, fmt.Sprintf("sector at %d zeroed", at)
	}
	for _, c := range []struct {
		name   string
		files  map[string][]byte
		file   string
		damage func(*rand.Rand, []byte) ([]byte, string)
		rounds int
	}{
		{"database cut", crashed, databaseName, cut, 8},
		{"database flipped", crashed, databaseName, flip, 30},
		{"database zeroed", crashed, databaseName, zero, 10},
		{"closed database cut", closed, databaseName, cut, 4},
		{"closed database flipped", closed, databaseName, flip, 30},
		{"closed database zeroed", closed, databaseName, zero, 20},
		{"log cut", crashed, databaseName + "-wal", cut, 15},
		{"log flipped", crashed, databaseName + "-wal", flip, 15},
		{"log zeroed", crashed, databaseName + "-wal", zero, 10},
		{"head cut", closed, headName, cut, 4},
		{"head flipped", crashed, headName, flip, 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			var o outcome
			for seed := range uint64(long(c.rounds)) {
				damaged := map[string][]byte{}
				for name, b := range c.files {
					damaged[name] = slices.Clone(b)
				}
				var what string
				damaged[c.file], what = c.damage(rand.New(rand.NewPCG(seed, 1)), damaged[c.file])
				dir := lay(t, damaged)
				ok := t.Run(fmt.Sprintf("%d", seed), func(t *testing.T) { judge(t, dir, &o) })
				if !ok {
					t.Fatalf("seed %d: %s", seed, what)
				}
			}
			t.Logf("%+v", o)
		})
	}
}

// Cutting the log anywhere must be seen, whatever is cut: all its batches were acknowledged.
func TestTornLogIsReported(t *testing.T) {
	files := crashedFiles(t)
	log := files[databaseName+"-wal"]
	for _, keep := range []int{0, 20, 32, 5000, len(log) / 2, len(log) - 1} {
		files[databaseName+"-wal"] = log[:keep]
		dir := lay(t, files)
		s := open(t, dir, Options{})
		r := s.Report()
		if r.Loss == nil || r.Last < 45 || r.Last >= damageBatches || !strings.Contains(r.Loss.Why, "batch 60 was acknowledged") {
			t.Errorf("of %d bytes, %d kept: %v", len(log), keep, r)
		}
		closeStore(t, s)
		kept, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("%s-wal.lost-from-%d", databaseName, r.Last+1)))
		if keep > 0 && (err != nil || len(kept) != keep) {
			t.Errorf("of %d bytes of log, %d were put aside: %v", keep, len(kept), err)
		}
	}
	files[databaseName+"-wal"] = nil
	if r := open(t, lay(t, files), Options{}).Report(); r.Loss == nil || r.Loss.From != 46 || r.Loss.Batches != 15 {
		t.Errorf("without the log: %v", r)
	}
}

func TestDamagedRows(t *testing.T) {
	files := crashedFiles(t)
	for _, c := range []struct {
		name, sql string
		last      Seq    // of the report at Open
		want      string // in the report of Verify, nothing if Open refuses
		refused   string // in Open's error
	}{
		{"body", "UPDATE batch SET body = (SELECT body FROM batch WHERE seq = 51) WHERE seq = 50", 49, "batch 50 does not match its chain hash", ""},
		{"chain", "UPDATE batch SET chain = zeroblob(32) WHERE seq = 50", 49, "batch 50 does not match", ""},
		{"chain's type", "UPDATE batch SET chain = 'text' WHERE seq = 50", 49, "batch 50 cannot be read", ""},
		{"hole", "DELETE FROM batch WHERE seq = 50", 49, "batch 50 is missing", ""},
		{"last batch", "DELETE FROM batch WHERE seq = 60", 59, "the database ends at batch 59, but batch 60 was acknowledged", ""},
		{"all after the snapshot", "DELETE FROM batch WHERE seq > 40", 40, "lost 20 batches from batch 41 on", ""},
		{"exchanged", "UPDATE batch SET seq = CASE seq WHEN 50 THEN -1 ELSE 50 END WHERE seq IN (50, 51); UPDATE batch SET seq = 51 WHERE seq = -1",
			49, "batch 50 does not match", ""},
		{"history", "UPDATE batch SET body = x'00' WHERE seq = 7", 60, "history before the snapshot at batch 40: batch 7 does not match", ""},
		{"newest snapshot", "UPDATE snapshot SET data = x'00' WHERE seq = 40", 60, "snapshot at batch 40: the row does not match", ""},
		{"both snapshots", "UPDATE snapshot SET data = x'00'", 60, "snapshot at batch 20: the row does not match", ""},
		{"key's value", "UPDATE key SET value = x'00' WHERE key = 'request-3'", 60, "idempotency key number", ""},
		{"key gone", "DELETE FROM key WHERE key = 'request-50'", 60, `key "request-50" of batch 50 is missing`, ""},
		{"key gone before the snapshot", "DELETE FROM key WHERE key = 'request-3'", 60, `key "request-3" of batch 3 is missing`, ""},
		{"origin", "UPDATE origin SET seq = 3", 60, "origin: the row does not match", ""},
		{"no origin", "DELETE FROM origin", 60, "the origin is missing", ""},
		{"nothing to begin with", "DELETE FROM origin; DELETE FROM snapshot", 0, "", "neither the origin nor a snapshot is intact"},
		{"compacted without snapshot", "DELETE FROM batch WHERE seq < 41; DELETE FROM snapshot; UPDATE origin SET seq = 40", 0, "", "neither the origin nor a snapshot"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := lay(t, files)
			alter(t, dir, c.sql)
			s, err := Open(dir, Options{})
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Fatalf("open: %v, want %q", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if mended := s.Report().Mended; len(mended) > 0 { // what follows from batches that are all there
				if r, err := s.Verify(); err != nil || !r.Intact() || r.First != 1 || r.Last != damageBatches || !strings.Contains(strings.Join(mended, "; "), c.want) {
					t.Fatalf("mended: %v\nverify: %v, %v", mended, r, err)
				}
				wantAll(t, s, 1, damageBatches)
				return
			}
			r, err := s.Verify()
			if err != nil || r.Intact() || s.Report().Last != c.last || !strings.Contains(r.String(), c.want) {
				t.Fatalf("open: %v\nverify: %v, %v", s.Report(), r, err)
			}
			judgeContent(t, s, r)
		})
	}
}

// alter changes rows behind the store's back, as it lies on the disk.
func alter(t testing.TB, dir, script string) {
	t.Helper()
	db, err := connect(filepath.Join(dir, databaseName), toWrite)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := inTransaction(db, func(tx *sql.Tx) error { return execAll(tx, script) }); err != nil {
		t.Fatal(err)
	}
}

// A loss is accepted once: what was for a lost batch is forgotten, the damaged file is
// kept, and the loss stays on record.
func TestAcceptTruncatedTail(t *testing.T) {
	files := crashedFiles(t)
	dir := lay(t, files)
	alter(t, dir, "DELETE FROM batch WHERE seq = 50")
	s := open(t, dir, Options{AcceptTruncatedTail: true})
	want := []Loss{{From: 50, Batches: 11, Why: "batch 50 is missing"}}
	if r := s.Report(); !r.Intact() || r.Last != 49 || r.First != 41 || !reflect.DeepEqual(r.Accepted, want) || r.Keys != 49 {
		t.Fatalf("%+v", r)
	}
	if _, seen, err := s.Seen(sampleKey(50)); seen || err != nil {
		t.Fatalf("the key of a lost batch: %v, %v", seen, err)
	}
	fill(t, s, 50, 55) // with the keys of lost batches
	wantAll(t, s, 1, 55)
	closeStore(t, s)
	damaged, err := filepath.Glob(filepath.Join(dir, databaseName+".damaged-*"))
	if err != nil || len(damaged) != 1 {
		t.Fatalf("kept: %v, %v", damaged, err)
	}
	s = open(t, dir, Options{})
	if r := s.Report(); !r.Intact() || !reflect.DeepEqual(r.Accepted, want) {
		t.Fatalf("at the next start: %+v", r)
	}
}

// Where the history before the newest snapshot is damaged too, the rebuilt journal
// begins at that snapshot, and an older one that leads nowhere goes.
func TestAcceptWithDamagedHistory(t *testing.T) {
	dir := lay(t, crashedFiles(t))
	alter(t, dir, "UPDATE batch SET body = x'00' WHERE seq = 30; DELETE FROM batch WHERE seq = 50")
	s := open(t, dir, Options{AcceptTruncatedTail: true})
	r, err := s.Verify()
	if err != nil || !r.Intact() || r.First != 41 || r.Last != 49 || !reflect.DeepEqual(r.Snapshots, []Seq{40}) || r.Keys != 49 {
		t.Fatalf("%+v, %v", r, err)
	}
	wantAll(t, s, 41, 49)
}

// A crash at any step of a rebuild leaves it to be finished, or to be done again.
func TestRebuildSurvivesCrash(t *testing.T) {
	lost := lay(t, crashedFiles(t))
	alter(t, lost, "DELETE FROM batch WHERE seq = 50")
	ready := tempDir(t)
	if err := os.CopyFS(ready, os.DirFS(lost)); err != nil {
		t.Fatal(err)
	}
	closeStore(t, open(t, ready, Options{AcceptTruncatedTail: true}))
	rebuilt, err := os.ReadFile(filepath.Join(ready, databaseName))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		damage func(dir string) error
		last   Seq // -1 where the loss is not accepted yet
	}{
		{"half written", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, partialName), rebuilt[:len(rebuilt)/2], 0o600)
		}, -1},
		{"complete", func(dir string) error { return os.WriteFile(filepath.Join(dir, acceptedName), rebuilt, 0o600) }, 49},
		{"old one already aside", func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, acceptedName), rebuilt, 0o600),
				os.Rename(filepath.Join(dir, databaseName), filepath.Join(dir, databaseName+".damaged-1")))
		}, 49},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tempDir(t)
			if err := errors.Join(os.CopyFS(dir, os.DirFS(lost)), c.damage(dir)); err != nil {
				t.Fatal(err)
			}
			if c.last < 0 {
				s := open(t, dir, Options{})
				if s.Report().Intact() {
					t.Fatal("the loss is forgotten")
				}
				closeStore(t, s)
			}
			s := open(t, dir, Options{AcceptTruncatedTail: true})
			if r := s.Report(); !r.Intact() || r.Last != 49 {
				t.Fatalf("%v", r)
			}
			fill(t, s, 50, 52)
			wantAll(t, s, 1, 52)
		})
	}
}

func TestFilesThatDoNotBelong(t *testing.T) {
	files := crashedFiles(t)
	other := tempDir(t)
	s := open(t, other, Options{})
	appendMany(t, s, damageBatches)
	otherHead := readFiles(t, other)[headName]
	closeStore(t, s)
	with := func(name string, b []byte) map[string][]byte {
		changed := map[string][]byte{}
		for n, old := range files {
			changed[n] = old
		}
		changed[name] = b
		return changed
	}
	for _, c := range []struct {
		name  string
		files map[string][]byte
		want  string
	}{
		{"head of another journal", with(headName, otherHead), "not of one journal"},
		{"no database", with(databaseName, nil), "journal.db is missing or empty, but its log"},
		{"empty database", with(databaseName, []byte{}), "journal.db is missing or empty, but its log"},
		{"neither database nor log", map[string][]byte{headName: files[headName]}, "but batch 60 was acknowledged"},
		{"not a database", with(databaseName, []byte(strings.Repeat("no database ", 1000))), "restore the folder from a backup"},
	} {
		if _, err := Open(lay(t, c.files), Options{AcceptTruncatedTail: true}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	noHead := with(headName, nil)
	dir := lay(t, noHead)
	s = open(t, dir, Options{})
	if r := s.Report(); r.Intact() || r.Last != damageBatches || !strings.Contains(r.String(), "head file is missing") {
		t.Errorf("without head file: %v", r)
	}
	closeStore(t, s)
	wantAll(t, open(t, dir, Options{AcceptTruncatedTail: true}), 1, damageBatches)
}
