package store

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// small is a batch of one record of 200 bytes.
func small() Batch {
	return Batch{Events: []Record{{Kind: "event", Data: make([]byte, 200)}}}
}

// appendMany appends n small batches by several goroutines at once.
func appendMany(t testing.TB, s *Store, n int64) {
	t.Helper()
	var next atomic.Int64
	var group sync.WaitGroup
	for range 64 {
		group.Go(func() {
			for next.Add(1) <= n {
				if _, err := s.Append(small()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
}

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			var commits atomic.Int64
			s := open(b, b.TempDir(), Options{OnCommit: func(Stats) { commits.Add(1) }})
			var next atomic.Int64
			var group sync.WaitGroup
			b.ResetTimer()
			for range writers {
				group.Go(func() {
					for next.Add(1) <= int64(b.N) {
						if _, err := s.Append(small()); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
			b.ReportMetric(float64(b.N)/float64(max(1, commits.Load())), "batches/commit")
		})
	}
}

func BenchmarkReplay(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	appendMany(b, s, 20000)
	for b.Loop() {
		if err := s.Replay(1, func(Batch) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(20000*float64(b.N)/b.Elapsed().Seconds(), "batches/s")
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := open(b, dir, Options{})
	appendMany(b, s, 20000)
	closeStore(b, s)
	for b.Loop() {
		closeStore(b, open(b, dir, Options{}))
	}
	b.ReportMetric(20000*float64(b.N)/b.Elapsed().Seconds(), "batches/s")
}
