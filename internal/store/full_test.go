package store

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// fillUp appends batches of 4 KiB by several goroutines until each got an error,
// and returns how many were acknowledged.
func fillUp(t *testing.T, s *Store) (acknowledged int64) {
	t.Helper()
	var n atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for {
				_, err := s.Append(Batch{Events: []Record{{Kind: "k", Data: make([]byte, 4096)}}})
				if errors.Is(err, ErrFull) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	group.Wait()
	return n.Load()
}

// wantCount fails unless the journal holds n intact batches, neither more nor fewer.
func wantCount(t *testing.T, s *Store, n int64) {
	t.Helper()
	r, err := s.Verify()
	if err != nil || !r.Intact() || int64(r.Last) != n {
		t.Fatalf("%d batches were acknowledged: %v, %v", n, r, err)
	}
}

func TestFullDisk(t *testing.T) {
	dir := tempDir(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	defer func() {
		// Detached, so that a failed test with the journal still open leaves no mount behind.
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := fillUp(t, s)
	if n < 10 {
		t.Fatalf("only %d batches fit", n)
	}
	wantCount(t, s, n)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=3m"); err != nil {
		t.Fatal(err)
	}
	n += fillUp(t, s)
	wantCount(t, s, n)
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=8m"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(sample(1)); err != nil {
		t.Fatalf("after space came back: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	wantCount(t, again, n+1)
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// The same without the right to mount: SQLite is told that the file may not grow.
func TestFullDatabase(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	if _, err := s.writer.Exec("PRAGMA max_page_count=200"); err != nil {
		t.Fatal(err)
	}
	n := fillUp(t, s)
	wantCount(t, s, n)
	if err := s.SaveSnapshot(Seq(n), make([]byte, 1<<20)); !errors.Is(err, ErrFull) {
		t.Fatalf("a snapshot without space: %v", err)
	}
	if _, err := s.writer.Exec("PRAGMA max_page_count=100000"); err != nil {
		t.Fatal(err)
	}
	if seq, err := s.Append(sample(1)); err != nil || int64(seq) != n+1 {
		t.Fatalf("after space came back: %d, %v", seq, err)
	}
	wantCount(t, s, n+1)
}

// While the head file cannot be written nothing further is acknowledged.
func TestHeadFileFails(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	fill(t, s, 1, 1)
	readOnly, err := os.Open(s.head.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	use := func(f *os.File) {
		t.Helper()
		if err := s.inWriter(func(*sql.Tx) error { s.head.file = f; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	good := s.head.file
	use(readOnly)
	fill(t, s, 2, 2) // durable before the head file failed, so acknowledged
	if _, err := s.Append(sample(3)); err == nil || !strings.Contains(err.Error(), "write the journal's head file") {
		t.Fatalf("acknowledged without a head file: %v", err)
	}
	if s.Last() != 2 {
		t.Fatalf("batch %d was written", s.Last())
	}
	s.head.file = good // the writer waits for work; use would be refused
	fill(t, s, 3, 4)
	wantAll(t, s, 1, 4)
	if at, found := s.head.read(); !found || at.seq != 4 {
		t.Fatalf("the head file did not catch up: %+v", at)
	}
}

// A failed commit that left something behind stops the journal: its next batch would
// get a number that is taken.
func TestHalfFailedCommitStops(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	fill(t, s, 1, 2)
	if _, err := s.writer.Exec("INSERT INTO batch VALUES (3, x'00', x'00')"); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("the commit failed")
	err := s.inWriter(func(*sql.Tx) error { return failed })
	if !errors.Is(err, failed) || !strings.Contains(err.Error(), "open the journal again") {
		t.Fatal(err)
	}
	if _, err := s.Append(sample(3)); err == nil || !strings.Contains(err.Error(), "open the journal again") {
		t.Fatal(err)
	}
}

// That a smaller batch found space does not say that there is some for what was refused.
func TestRefusingOutlastsSmallBatches(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	if _, err := s.writer.Exec("PRAGMA max_page_count=200"); err != nil {
		t.Fatal(err)
	}
	large := Batch{Events: []Record{{Kind: "k", Data: make([]byte, 1<<20)}}}
	for _, c := range []struct {
		batch    Batch
		refusing bool
	}{{small(), false}, {large, true}, {small(), true}} {
		_, err := s.Append(c.batch)
		if refused := errors.Is(err, ErrFull); err != nil && !refused || errors.Is(s.Refusing(), ErrFull) != c.refusing {
			t.Fatalf("%d bytes: %v, and then refusing: %v", len(c.batch.encode()), err, s.Refusing())
		}
	}
	if _, err := s.writer.Exec("PRAGMA max_page_count=100000"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(large); err != nil || s.Refusing() != nil {
		t.Fatalf("after space came back: %v, and then refusing: %v", err, s.Refusing())
	}
}
