package store

import (
	"strings"
	"testing"
)

func state(seq Seq) []byte { return []byte(strings.Repeat("state;", 1000+int(seq))) }

func TestSnapshotsAndCompaction(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir, Options{})
	if _, found, err := s.LatestSnapshot(); found || err != nil {
		t.Fatalf("a new journal has a snapshot: %v, %v", found, err)
	}
	fill(t, s, 1, 30)
	compact := func(want int64) {
		t.Helper()
		done, err := s.Compact()
		if err != nil || done.Batches != want {
			t.Fatalf("compact dropped %+v, %v; want %d batches", done, err, want)
		}
	}
	for i, seq := range []Seq{10, 20, 30} {
		compact([]int64{0, 0, 10}[i]) // two snapshots are needed
		if err := s.SaveSnapshot(seq, state(seq)); err != nil {
			t.Fatal(err)
		}
	}
	compact(10)
	compact(0)
	for range 2 {
		if r, err := s.Verify(); err != nil || !r.Intact() || r.First != 21 || len(r.Snapshots) != 2 {
			t.Fatalf("verify: %v, %v", r, err)
		}
		wantAll(t, s, 21, 30)
		latest, found, err := s.LatestSnapshot()
		if err != nil || !found || latest.Seq != 30 || string(latest.Data) != string(state(30)) {
			t.Fatalf("latest: %d, %v, %v", latest.Seq, found, err)
		}
		if _, err := replayed(t, s, 20); err == nil || !strings.Contains(err.Error(), "batches up to 20 were compacted") {
			t.Fatalf("replay of what was compacted: %v", err)
		}
		if value, seen, err := s.Seen(sampleKey(3)); err != nil || !seen || string(value) != string(sampleValue(3)) {
			t.Fatalf("a key outlives its batch: %q, %v, %v", value, seen, err)
		}
		closeStore(t, s)
		s = open(t, dir, Options{})
	}
	fill(t, s, 31, 35)
	wantAll(t, s, 31, 35)
}

func TestCompactInSteps(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	const last = 2*compactStep + 100
	appendMany(t, s, last)
	for _, seq := range []Seq{last - 1, last} {
		if err := s.SaveSnapshot(seq, nil); err != nil {
			t.Fatal(err)
		}
	}
	done, err := s.Compact()
	if err != nil || done.Batches != last-1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if r, err := s.Verify(); err != nil || !r.Intact() || r.First != last || r.Last != last {
		t.Fatalf("%v, %v", r, err)
	}
	if latest, found, err := s.LatestSnapshot(); err != nil || !found || len(latest.Data) != 0 {
		t.Fatalf("an empty state: %v, %v, %v", latest, found, err)
	}
}

func TestKeepHistory(t *testing.T) {
	s := open(t, tempDir(t), Options{KeepHistory: true})
	fill(t, s, 1, 10)
	for _, seq := range []Seq{5, 6, 7} {
		if err := s.SaveSnapshot(seq, state(seq)); err != nil {
			t.Fatal(err)
		}
	}
	if done, err := s.Compact(); err != nil || done.Batches != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	wantAll(t, s, 1, 10)
	if r, _ := s.Verify(); len(r.Snapshots) != 2 || r.Snapshots[0] != 7 {
		t.Fatalf("snapshots %v", r.Snapshots)
	}
}

func TestSaveSnapshotRefuses(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	fill(t, s, 1, 4)
	if err := s.SaveSnapshot(3, state(3)); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveSnapshot(3, state(3)); err != nil {
		t.Errorf("the same again: %v", err)
	}
	for seq, want := range map[Seq]string{2: "newer one, at batch 3", 5: "ends at batch 4", -1: "ends at batch 4"} {
		if err := s.SaveSnapshot(seq, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at %d: %v, want %q", seq, err, want)
		}
	}
	fill(t, s, 5, 5) // a refusal does not stop the journal
}

// A replay that the compaction overtakes says so; it does not speak of damage.
func TestCompactDuringReplay(t *testing.T) {
	s := open(t, tempDir(t), Options{})
	fill(t, s, 1, 3*chunkBatches)
	err := s.Replay(1, func(b Batch) error {
		if b.Seq != 1 {
			return nil
		}
		for _, seq := range []Seq{2*chunkBatches + 1, 2*chunkBatches + 2} {
			if err := s.SaveSnapshot(seq, state(seq)); err != nil {
				return err
			}
		}
		_, err := s.Compact()
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "were compacted") {
		t.Fatal(err)
	}
	wantAll(t, s, 2*chunkBatches+2, 3*chunkBatches)
}
