package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/musterdl/muster/model/unit"
)

// sample is the batch that the tests write as number i: all of it follows from i.
func sample(i int) Batch {
	data := []byte(strings.Repeat(fmt.Sprintf("event %d;", i), 1+i%7*40))
	return Batch{
		Events:  []Record{{Kind: "submit", At: unit.Time(i), Data: data}, {Kind: "tick", At: unit.Time(i)}},
		Commits: []Record{{Kind: "commit", At: unit.Time(i), Data: []byte{byte(i)}}},
		Keys:    []Key{{Key: sampleKey(i), Value: sampleValue(i), ExpiresAt: unit.Never}},
	}
}

func sampleKey(i int) string   { return fmt.Sprintf("request-%d", i) }
func sampleValue(i int) []byte { return []byte(fmt.Sprintf("job %d", i)) }

// numbered is what Replay must give for sample(i) as batch i.
func numbered(i int) Batch {
	b := sample(i)
	b.Seq = Seq(i)
	return b
}

// tempDir returns a new folder, in memory where the system has such a place: these tests
// wait for the disk some thousand times and are not about the disk.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "muster-store-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func closeStore(t testing.TB, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// fill appends sample(from) to sample(to).
func fill(t testing.TB, s *Store, from, to int) {
	t.Helper()
	for i := from; i <= to; i++ {
		seq, err := s.Append(sample(i))
		if err != nil {
			t.Fatal(err)
		}
		if seq != Seq(i) {
			t.Fatalf("batch %d became number %d", i, seq)
		}
	}
}

// replayed reads everything from a number on and checks each batch against what was written.
func replayed(t testing.TB, s *Store, from Seq) (next Seq, err error) {
	t.Helper()
	next = from
	err = s.Replay(from, func(b Batch) error {
		if want := numbered(int(next)); !reflect.DeepEqual(b, want) {
			t.Fatalf("batch %d was read as %+v, written as %+v", next, b, want)
		}
		next++
		return nil
	})
	return next, err
}

func wantAll(t testing.TB, s *Store, from, last Seq) {
	t.Helper()
	next, err := replayed(t, s, from)
	if err != nil {
		t.Fatal(err)
	}
	if next != last+1 {
		t.Fatalf("replay ended before %d, want up to %d", next, last)
	}
	report, err := s.Verify()
	if err != nil || !report.Intact() || report.Last != last {
		t.Fatalf("verify: %v, %v", report, err)
	}
}

func TestAppendedIsReplayed(t *testing.T) {
	dir := filepath.Join(tempDir(t), "odd name #1 50%?x=y")
	s := open(t, dir, Options{})
	fill(t, s, 1, 300) // more than one chunk
	wantAll(t, s, 1, 300)
	wantAll(t, s, 299, 300)
	wantAll(t, s, 301, 300)
	closeStore(t, s)

	s = open(t, dir, Options{})
	if r := s.Report(); !r.Intact() || r.Last != 300 || r.First != 1 || r.Keys != 300 {
		t.Fatalf("after reopening: %+v", r)
	}
	fill(t, s, 301, 310)
	wantAll(t, s, 1, 310)
}

func TestReplayBounds(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	fill(t, s, 1, 3)
	for _, from := range []Seq{-1, 0, 5} {
		if err := s.Replay(from, func(Batch) error { return nil }); err == nil || !strings.Contains(err.Error(), "expected 1 to 4") {
			t.Errorf("from %d: %v", from, err)
		}
	}
	stop := errors.New("enough")
	seen := 0
	err := s.Replay(1, func(Batch) error { seen++; return stop })
	if err != stop || seen != 1 {
		t.Errorf("stopping gave %v after %d", err, seen)
	}
}

// A callback may append: Replay holds nothing meanwhile, and ends where it was to end.
func TestAppendDuringReplay(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	fill(t, s, 1, 5)
	seen := 0
	err := s.Replay(1, func(Batch) error {
		seen++
		_, err := s.Append(sample(5 + seen))
		return err
	})
	if err != nil || seen != 5 || s.Last() != 10 {
		t.Fatalf("%v, saw %d, last %d", err, seen, s.Last())
	}
}

func TestManyWriters(t *testing.T) {
	const writers, each = 32, 20
	var commits, batches, records atomic.Int64
	s := open(t, tempDir(t), Options{MaxGroupBatches: 10, OnCommit: func(st Stats) {
		commits.Add(1)
		batches.Add(int64(st.Batches))
		records.Add(int64(st.Records))
		if st.Batches > 10 || st.Batches != len(st.Waits) || st.Err != nil {
			t.Errorf("a group of %d, %d waits, %v", st.Batches, len(st.Waits), st.Err)
		}
	}})
	var mu sync.Mutex
	wrote := map[Seq]string{}
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for n := range each {
				kind := fmt.Sprintf("%d/%d", w, n)
				seq, err := s.Append(Batch{Events: []Record{{Kind: kind}}})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				wrote[seq] = kind
				mu.Unlock()
			}
		})
	}
	group.Wait()
	next := make([]int, writers)
	err := s.Replay(1, func(b Batch) error {
		kind := b.Events[0].Kind
		if wrote[b.Seq] != kind {
			return fmt.Errorf("batch %d is %s, its writer was told otherwise: %q", b.Seq, kind, wrote[b.Seq])
		}
		who, which, _ := strings.Cut(kind, "/")
		w, _ := strconv.Atoi(who)
		if n, _ := strconv.Atoi(which); n != next[w] {
			return fmt.Errorf("writer %d's batch %d came when %d was due", w, n, next[w])
		}
		next[w]++
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s) // the last callback has come
	if len(wrote) != writers*each || batches.Load() != writers*each || records.Load() != writers*each {
		t.Fatalf("%d numbers, %d batches and %d records reported", len(wrote), batches.Load(), records.Load())
	}
	if commits.Load() >= writers*each {
		t.Errorf("%d commits for %d batches: no group was formed", commits.Load(), writers*each)
	}
}

func TestStatsMeasureTime(t *testing.T) {
	var now atomic.Int64 // each look at the clock takes a millisecond
	var got Stats
	s := open(t, tempDir(t), Options{
		Now:      func() unit.Time { return unit.Time(now.Add(int64(unit.Millisecond))) },
		OnCommit: func(st Stats) { got = st; got.Waits = append([]unit.Duration(nil), st.Waits...) },
	})
	fill(t, s, 1, 1)
	closeStore(t, s)
	if got.Commit <= 0 || len(got.Waits) != 1 || got.Waits[0] <= got.Commit || got.Bytes != len(sample(1).encode()) {
		t.Fatalf("%+v", got)
	}
}

func TestLimits(t *testing.T) {
	s := open(t, tempDir(t), Options{MaxBatchBytes: 100})
	big := Batch{Events: []Record{{Kind: "k", Data: make([]byte, 200)}}}
	if _, err := s.Append(big); err == nil || !strings.Contains(err.Error(), "at most 100 are allowed") {
		t.Errorf("too big: %v", err)
	}
	if _, err := s.Append(Batch{}); err == nil {
		t.Error("an empty batch was accepted")
	}
	if _, err := Open(tempDir(t), Options{MaxGroupBytes: -1}); err == nil || !strings.Contains(err.Error(), "MaxGroupBytes is -1") {
		t.Errorf("negative option: %v", err)
	}
	if s.Last() != 0 {
		t.Errorf("something was written: %d", s.Last())
	}
}

func TestKeys(t *testing.T) {
	var now atomic.Int64
	s := open(t, tempDir(t), Options{Now: func() unit.Time { return unit.Time(now.Load()) }})
	keyed := func(value string, expires unit.Time) Batch {
		return Batch{Events: []Record{{Kind: "submit"}}, Keys: []Key{{Key: "k", Value: []byte(value), ExpiresAt: expires}}}
	}
	wantSeen := func(want string) {
		t.Helper()
		value, seen, err := s.Seen("k")
		if err != nil || seen != (want != "") || string(value) != want {
			t.Fatalf("at %d: %q, %v, %v; want %q", now.Load(), value, seen, err, want)
		}
	}
	wantSeen("")
	if _, err := s.Append(keyed("first", 100)); err != nil {
		t.Fatal(err)
	}
	wantSeen("first")
	_, err := s.Append(keyed("second", 200))
	var duplicate *DuplicateKeyError
	if !errors.As(err, &duplicate) || string(duplicate.Value) != "first" || duplicate.Seq != 1 || s.Last() != 1 {
		t.Fatalf("a second use of the key gave %v, last %d", err, s.Last())
	}
	now.Store(100)
	wantSeen("")
	if _, err := s.Append(keyed("second", 200)); err != nil {
		t.Fatal(err)
	}
	wantSeen("second")
	if report, err := s.Verify(); err != nil || !report.Intact() {
		t.Fatalf("after a key was used again: %v, %v", report, err)
	}
	now.Store(300)
	done, err := s.Compact()
	if err != nil || done.Keys != 1 {
		t.Fatalf("compact: %+v, %v", done, err)
	}
	now.Store(150) // even if the clock goes back: purged is not missing
	if report, err := s.Verify(); err != nil || !report.Intact() || report.Keys != 0 {
		t.Fatalf("after the purge: %v, %v", report, err)
	}
}

// Of many requests with one key exactly one is written, and the others learn which.
func TestOneKeyManyWriters(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	var won, lost atomic.Int64
	var group sync.WaitGroup
	for w := range 20 {
		group.Go(func() {
			_, err := s.Append(Batch{Keys: []Key{{Key: "k", Value: []byte{byte(w)}, ExpiresAt: unit.Never}}})
			var duplicate *DuplicateKeyError
			switch {
			case err == nil:
				won.Add(1)
			case errors.As(err, &duplicate) && duplicate.Seq == 1:
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	group.Wait()
	if won.Load() != 1 || lost.Load() != 19 || s.Last() != 1 {
		t.Fatalf("%d won, %d lost, last %d", won.Load(), lost.Load(), s.Last())
	}
}

func TestLock(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir, Options{})
	_, err := Open(dir, Options{})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Fatalf("second open: %v", err)
	}
	fill(t, s, 1, 1) // the refused one did no harm
	closeStore(t, s)
	open(t, dir, Options{})
}

func TestClosed(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	fill(t, s, 1, 2)
	closeStore(t, s)
	_, appendErr := s.Append(sample(3))
	_, _, seenErr := s.Seen("k")
	_, _, snapshotErr := s.LatestSnapshot()
	_, verifyErr := s.Verify()
	for name, err := range map[string]error{
		"append": appendErr, "seen": seenErr, "latest": snapshotErr, "verify": verifyErr, "close": s.Close(),
		"replay": s.Replay(1, func(Batch) error { return nil }), "save": s.SaveSnapshot(1, nil),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
}

// Close while many append: each call is answered, and what was acknowledged is there.
func TestCloseWhileAppending(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir, Options{})
	var top atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for {
				seq, err := s.Append(Batch{Events: []Record{{Kind: "k"}}})
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
					return
				}
				for old := top.Load(); int64(seq) > old && !top.CompareAndSwap(old, int64(seq)); old = top.Load() {
				}
			}
		})
	}
	for s.Last() < 50 {
		if _, err := s.Append(Batch{Events: []Record{{Kind: "k"}}}); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	group.Wait()
	s = open(t, dir, Options{})
	if !s.Report().Intact() || int64(s.Last()) < top.Load() {
		t.Fatalf("acknowledged up to %d, found %v", top.Load(), s.Report())
	}
}
