package store

import (
	"errors"
	"fmt"
	"testing"
)

// TestImport: an imported history is intact and goes on; a second one, or one that fails,
// changes nothing.
func TestImport(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	batch := func(i int) Batch {
		return Batch{Seq: Seq(i * 7), Events: []Record{{Kind: "e", At: 5, Data: fmt.Append(nil, i)}}, Keys: []Key{{Key: fmt.Sprint(i)}}}
	}
	broke := errors.New("broke")
	if err := s.Import(func(add func(Batch) error) error { return errors.Join(add(batch(1)), broke) }); !errors.Is(err, broke) || s.Last() != 0 {
		t.Fatalf("a history that ends in an error: %v, last %d", err, s.Last())
	}
	if err := s.Import(func(add func(Batch) error) error { return add(Batch{}) }); err == nil || s.Last() != 0 {
		t.Fatalf("an empty batch: %v, last %d", err, s.Last())
	}
	const batches = 1000
	err = s.Import(func(add func(Batch) error) error {
		for i := range batches {
			if err := add(batch(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || s.Last() != batches {
		t.Fatalf("%v, last %d", err, s.Last())
	}
	if err := s.Import(func(add func(Batch) error) error { return add(batch(1)) }); err == nil {
		t.Error("a history was imported on top of another")
	}
	if err := s.SaveSnapshot(batches, []byte("state")); err != nil {
		t.Error(err)
	}
	if seq, err := s.Append(batch(batches)); err != nil || seq != batches+1 {
		t.Errorf("the next batch is %d, %v", seq, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	report, err := s.Verify()
	if err != nil || !report.Intact() || report.Last != batches+1 {
		t.Errorf("%s, %v", report, err)
	}
	next := 0
	err = s.Replay(1, func(b Batch) error {
		if string(b.Events[0].Data) != fmt.Sprint(next) || b.Seq != Seq(next+1) || next < batches && b.Keys != nil {
			return fmt.Errorf("batch %d is %+v", next+1, b)
		}
		next++
		return nil
	})
	if err != nil || next != batches+1 {
		t.Errorf("%d batches, %v", next, err)
	}
}
