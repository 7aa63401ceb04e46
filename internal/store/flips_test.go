package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// flippedBatches are in the journals that TestFlips damages: more than the log ever holds.
const flippedBatches = 300

// TestFlips: one bit flipped, or a file cut, anywhere in the journal of a control plane that was killed or that
// ended. What follows from the batches is made anew without a question. What is lost is told, and the option that
// the error names goes on with all before it; of the log that is never more than it holds between two foldings.
// Only a database whose own beginnings are gone cannot be opened, and says so.
func TestFlips(t *testing.T) {
	dir := tempDir(t)
	s := open(t, dir, Options{})
	fill(t, s, 1, 150)
	if err := s.SaveSnapshot(140, state(140)); err != nil {
		t.Fatal(err)
	}
	fill(t, s, 151, flippedBatches)
	killed := readFiles(t, dir)
	closeStore(t, s)
	ended := readFiles(t, dir)
	if n := len(killed[databaseName+"-wal"]) / 4096; n > 2*logPages {
		t.Errorf("the log has %d pages, it is to be folded in at %d", n, logPages)
	}
	var whole, lost, most, unopenable int
	for seed := range uint64(long(20)) {
		chance := rand.New(rand.NewPCG(seed, 3))
		files := map[string][]byte{}
		for name, b := range [...]map[string][]byte{killed, ended}[chance.IntN(2)] {
			files[name] = slices.Clone(b)
		}
		name := [...]string{databaseName, databaseName + "-wal", headName}[chance.IntN(3)]
		if len(files[name]) == 0 {
			name = databaseName
		}
		at := chance.IntN(len(files[name]))
		what := fmt.Sprintf("seed %d: %s of %d bytes, cut at %d", seed, name, len(files[name]), at)
		if chance.IntN(4) == 0 {
			files[name] = files[name][:at]
		} else {
			files[name][at] ^= 1 << chance.IntN(8)
			what = fmt.Sprintf("seed %d: %s of %d bytes, a bit of byte %d flipped", seed, name, len(files[name]), at)
		}
		dir := lay(t, files)
		s, err := Open(dir, Options{})
		if err != nil {
			if unopenable++; !Unopenable(err) || name == databaseName+"-wal" || name == headName {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		r := s.Report()
		closeStore(t, s)
		if !r.Intact() {
			s, err := Open(dir, Options{AcceptTruncatedTail: true})
			if err != nil {
				t.Errorf("%s: %v: accepted: %v", what, r, err)
				continue
			}
			n := flippedBatches - int(s.Report().Last)
			if lost++; name == databaseName+"-wal" {
				most = max(most, n)
			}
			wantAll(t, s, s.Report().First, s.Report().Last)
			closeStore(t, s)
			continue
		}
		whole++
		s = open(t, dir, Options{})
		if err := s.Replay(1, func(Batch) error { return nil }); err != nil && !errors.As(err, new(*DamageError)) || s.Last() != flippedBatches {
			t.Errorf("%s: %v, then %v", what, r, err)
		}
		closeStore(t, s)
	}
	if most > logPages+1 {
		t.Errorf("damage in the log cost up to %d of %d batches, it is folded in every %d pages", most, flippedBatches, logPages)
	}
	t.Logf("%d whole, %d lost something and went on (of the log %d batches at most), %d cannot be opened", whole, lost, most, unopenable)
}
