package snapshot

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWeek measures what a week of history costs: MUSTER_LONG=1 with -v.
func TestWeek(t *testing.T) {
	if os.Getenv("MUSTER_LONG") == "" {
		t.Skip("measures for a minute: set MUSTER_LONG=1")
	}
	began := time.Now()
	took := func(what string) {
		t.Helper()
		t.Logf("%-28s %6.2f s", what, time.Since(began).Seconds())
		began = time.Now()
	}
	l := past{trace: "gen:philly?days=7", strategy: "tiresias", nodes: 74, perNode: 8, load: 0.9}.live(t)
	took("simulated")
	bytes := 0
	for _, b := range l.batches {
		for _, r := range append(b.Events, b.Commits...) {
			bytes += len(r.Data)
		}
	}
	name, m := saved(t, l, Options{})
	took("saved")
	_, anonymised := saved(t, l, Options{Anonymise: true})
	took("saved with other names")
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d jobs, %d batches, %d events, %d commits, %d preemptions, %.1f MB of records", m.Jobs, m.Batches, m.Events, m.Commits, l.result.Preemptions, float64(bytes)/1e6)
	for i, sum := range m.Files {
		t.Logf("%-16s %8.2f MB, %8.2f MB anonymised", sum.Name, float64(sum.Bytes)/1e6, float64(anonymised.Files[i].Bytes)/1e6)
	}
	t.Logf("the file has %.2f MB", float64(info.Size())/1e6)
	began = time.Now()
	f := opened(t, name)
	took("opened and checked")
	dir := filepath.Join(t.TempDir(), "state")
	if err := Load(f, dir); err != nil {
		t.Fatal(err)
	}
	took("loaded")
	if _, err := verified(dir); err != nil {
		t.Fatal(err)
	}
	took("decided again")
	p, err := Read(f, ReadOptions{Restart: restart})
	if err != nil {
		t.Fatal(err)
	}
	took("read to be replayed")
	if _, err := p.Replay(t.Context(), []string{"fifo", "tiresias", "srtf"}); err != nil {
		t.Fatal(err)
	}
	took("replayed three times")
}

// BenchmarkSave is the cost of saving per batch.
func BenchmarkSave(b *testing.B) {
	l := busy("tiresias").live(b)
	for _, c := range []struct {
		name string
		o    Options
	}{{"plain", Options{}}, {"anonymised", Options{Anonymise: true}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Save(io.Discard, l.history, c.o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(l.batches)), "ns/batch")
		})
	}
}
