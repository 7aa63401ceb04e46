package plane

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/musterdl/muster/model/unit"
)

// BenchmarkSubmit submits jobs from 64 clients in process, each waiting until its job is
// durable before it sends the next.
func BenchmarkSubmit(b *testing.B) {
	w := newBench(b, b.TempDir(), "fifo")
	defer w.close()
	began := time.Now()
	w.config.Now = func() unit.Time { return epoch.Add(unit.Duration(time.Since(began).Microseconds())) }
	ctx, stop := context.WithCancel(b.Context())
	p := w.rebuilt()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	var next atomic.Int64
	var clients sync.WaitGroup
	waits := make([][]time.Duration, 64)
	b.ResetTimer()
	for c := range waits {
		clients.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				sent := time.Now()
				if _, err := p.Request(ctx, submission(fmt.Sprint("job-", i), 1), ""); err != nil {
					b.Error(err)
					return
				}
				waits[c] = append(waits[c], time.Since(sent))
			}
		})
	}
	clients.Wait()
	b.StopTimer()
	all := slices.Concat(waits...)
	slices.Sort(all)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, "p99-ms")
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}
