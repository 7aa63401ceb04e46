package snapshot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterdl/muster/internal/plane"
	"github.com/musterdl/muster/internal/store"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/model/workload"
	"github.com/musterdl/muster/run/simulated"
)

// busy is a history with preemptions and failures.
func busy(strategy string) past {
	return past{trace: "gen:rw-a", strategy: strategy, jobs: 150, nodes: 3,
		breaks: simulated.Breaks{Seed: 1, NodeEvery: 40 * unit.Hour, NodeFor: unit.Hour}}
}

// TestRoundTrip: what is loaded is what was saved, to the byte, the journal is decided
// again the same, and a plane recovers from it the state that folding it gives.
func TestRoundTrip(t *testing.T) {
	for _, strategy := range []string{"fifo", "tiresias", "srtf"} {
		t.Run(strategy, func(t *testing.T) {
			l := busy(strategy).live(t)
			name, m := saved(t, l, Options{Program: "test", MadeAt: 7})
			f := opened(t, name)
			if f.Manifest.Batches != int64(len(l.batches)) || f.Manifest.Commits != l.result.Commits || f.Manifest.Jobs != 150 ||
				f.Manifest.MadeAt != 7 || f.Manifest.Strategy != strategy || len(m.Files) != len(f.Manifest.Files) {
				t.Errorf("the manifest says %+v", f.Manifest)
			}
			dir := filepath.Join(t.TempDir(), "state")
			if err := Load(f, dir); err != nil {
				t.Fatal(err)
			}
			found, err := verified(dir)
			if err != nil {
				t.Fatal(err)
			}
			if found.Commits != l.result.Commits {
				t.Errorf("%d commits were decided again, %d were made", found.Commits, l.result.Commits)
			}
			journal, err := store.Open(filepath.Join(dir, "journal"), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer journal.Close()
			var back []store.Batch
			if err := journal.Replay(1, func(b store.Batch) error { back = append(back, b); return nil }); err != nil {
				t.Fatal(err)
			}
			if err := sameBatches(l.batches, back); err != nil {
				t.Error(err)
			}
			sameImage(t, journal, l)
		})
	}
}

// sameImage compares the state that a plane recovers from with the folded history's.
func sameImage(t *testing.T, journal *store.Store, l *lived) {
	t.Helper()
	snapshot, found, err := journal.LatestSnapshot()
	if err != nil || !found || snapshot.Seq != journal.Last() {
		t.Fatalf("the newest state is of batch %d of %d, %v", snapshot.Seq, journal.Last(), err)
	}
	var p plane.Past
	for _, b := range l.batches {
		if _, err := p.Fold(b); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := p.Image(); err != nil || !bytes.Equal(want, snapshot.Data) {
		t.Errorf("the state is another than the history's, %v", err)
	}
}

// TestLoadRefuses: a directory with anything in it stays as it is.
func TestLoadRefuses(t *testing.T) {
	name, _ := saved(t, past{trace: "gen:rw-a", strategy: "fifo", jobs: 5, nodes: 1}.live(t), Options{})
	f := opened(t, name)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Load(f, dir); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("loading into a directory with a file in it: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d entries are left, %v", len(left), err)
	}
	if err := os.Remove(filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	if err := Load(f, dir); err != nil {
		t.Errorf("loading into an empty directory: %v", err)
	}
	if err := Load(f, dir); err == nil {
		t.Error("it can be loaded twice")
	}
}

// TestEnvironmentStaysOut: no variable of a job is in a snapshot, whatever it is called.
func TestEnvironmentStaysOut(t *testing.T) {
	p := past{trace: "gen:rw-a", strategy: "fifo", jobs: 20, nodes: 2, mark: func(_ int, j *workload.Job) {
		j.Command, j.Env = []string{"train-visibly"}, []string{"HARMLESS=hunter2-hunter2", "PATH=/opt/hunter2"}
	}}
	l := p.live(t)
	for i := range l.batches {
		l.batches[i].Keys = []store.Key{{Key: "hunter2", Value: []byte("hunter2")}}
	}
	for _, anonymise := range []bool{false, true} {
		name, _ := saved(t, l, Options{Anonymise: anonymise})
		for file, data := range contents(t, opened(t, name)) {
			if bytes.Contains(data, []byte("hunter2")) || bytes.Contains(data, []byte("HARMLESS")) {
				t.Errorf("anonymise %v: %s holds a variable or a key", anonymise, file)
			}
			if seen := bytes.Contains(data, []byte("train-visibly")); file == journalName && seen == anonymise {
				t.Errorf("anonymise %v: the command is there: %v", anonymise, seen)
			}
		}
	}
}

// TestDamaged: whatever byte is wrong or missing, and whatever else is given, is
// noticed, and the error says which it is.
func TestDamaged(t *testing.T) {
	name, _ := saved(t, past{trace: "gen:rw-a", strategy: "fifo", jobs: 8, nodes: 1}.live(t), Options{})
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	try := func(data []byte) error {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(name)
		if err == nil {
			f.Close()
		}
		return err
	}
	if err := try(whole); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		data []byte
		want error
	}{
		{"half of it", whole[:len(whole)/2], ErrDamaged},
		{"its end missing", whole[:len(whole)-1], ErrDamaged},
		{"nothing", nil, ErrForeign},
		{"text", []byte(strings.Repeat("no snapshot\n", 100)), ErrForeign},
	} {
		if err := try(c.data); !errors.Is(err, c.want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", c.what, err)
		}
	}
	step := max(1, len(whole)/600)
	for i := 0; i < len(whole); i += step {
		broken := bytes.Clone(whole)
		broken[i] ^= 0x40
		// Some bytes of a zip mean nothing: instants, and a second copy of sizes.
		if err := try(broken); err != nil && !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrForeign) {
			t.Errorf("byte %d: neither damaged nor foreign: %v", i, err)
		} else if err == nil {
			f := opened(t, name)
			if !bytes.Equal(contents(t, f)[journalName], contentsOf(t, whole)[journalName]) {
				t.Errorf("byte %d: another history is taken for the one written", i)
			}
		}
	}
}

func contentsOf(t *testing.T, whole []byte) map[string][]byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "whole.zip")
	if err := os.WriteFile(name, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	f := opened(t, name)
	return contents(t, f)
}

// TestForeignVersion: a snapshot of another version says which program reads it.
func TestForeignVersion(t *testing.T) {
	_, m := saved(t, past{trace: "gen:rw-a", strategy: "fifo", jobs: 3, nodes: 1}.live(t), Options{Program: "muster v9"})
	m.Version = 2
	for _, c := range []struct {
		change func(*Manifest)
		want   string
	}{
		{func(m *Manifest) { m.Version = 2 }, "its version is 2, this program reads 1: use the Muster that wrote it (muster v9)"},
		{func(m *Manifest) { m.Format = "other" }, `its format is "other"`},
		{func(m *Manifest) { m.Version, m.Format, m.Files = Version, Format, m.Files[:2] }, "does not list"},
	} {
		other := m
		c.change(&other)
		name := rewritten(t, other)
		if _, err := Open(name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
}

// TestLines: any batch that a journal may hold reads back as it was written.
func TestLines(t *testing.T) {
	for _, data := range []string{`{"a":1}`, "{\"a\":1}\n", "", "\n", " 1", "1 ", "1\n\n", "{\n}", "\xff\x00", `"x"`, "null", "{} {}", "1\r"} {
		b := store.Batch{Seq: 3, Events: []store.Record{{Kind: "k<\"\n", At: -5, Data: []byte(data)}},
			Commits: []store.Record{{Kind: "c", At: 9, Data: []byte(data)}, {Kind: "d", Data: []byte(data)}}}
		text := appendLine(nil, b)
		if n := bytes.Count(text, []byte("\n")); n != 1 || text[len(text)-1] != '\n' {
			t.Errorf("%q is written on %d lines: %q", data, n, text)
		}
		back, err := parseLine(text)
		if err == nil {
			err = sameBatches([]store.Batch{b}, []store.Batch{back})
		}
		if err != nil || back.Seq != 3 {
			t.Errorf("%q: batch %d, %v", data, back.Seq, err)
		}
	}
}

// TestSaveBesideAppends: snapshots taken while the journal is written are prefixes of it.
func TestSaveBesideAppends(t *testing.T) {
	l := past{trace: "gen:rw-a", strategy: "fifo", jobs: 60, nodes: 2}.live(t)
	journal, err := store.Open(t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	half := len(l.batches) / 2
	err = journal.Import(func(add func(store.Batch) error) error { return (&lived{batches: l.batches[:half]}).history(add) })
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		for _, b := range l.batches[half:] {
			if _, err := journal.Append(store.Batch{Events: b.Events, Commits: b.Commits}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	history := func(each func(store.Batch) error) error { return journal.Replay(1, each) }
	for writing := true; writing; {
		select {
		case err := <-done:
			if writing = false; err != nil {
				t.Fatal(err)
			}
		default:
		}
		name := filepath.Join(t.TempDir(), "snapshot.zip")
		var file bytes.Buffer
		m, err := Save(&file, history, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		var back []store.Batch
		if err := opened(t, name).Each(func(b store.Batch) error { back = append(back, b); return nil }); err != nil {
			t.Fatal(err)
		}
		if err := sameBatches(l.batches[:m.Batches], back); err != nil || m.Batches < int64(half) {
			t.Fatalf("%d batches: %v", m.Batches, err)
		}
		if !writing && m.Batches != int64(len(l.batches)) {
			t.Errorf("%d batches were saved of %d", m.Batches, len(l.batches))
		}
	}
}
