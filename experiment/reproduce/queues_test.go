package reproduce

import (
	"os"
	"testing"
)

// TestMeasureQueues: the benchmark measures what it says.
func TestMeasureQueues(t *testing.T) {
	c, err := MeasureQueues("fifo", QueueWork{Queues: 60, Groups: 6, Devices: 160, Waiting: 500, Measured: 200, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if c.WaitingJobs < 50 || c.Steps < 200 || c.AdmissionsPerSec <= 0 {
		t.Errorf("measured %+v", c)
	}
	t.Logf("%+v", c)
}

func BenchmarkQueues(b *testing.B) {
	for _, strategy := range []string{"fifo", "fifo+easy"} {
		b.Run(strategy, func(b *testing.B) {
			for range b.N {
				c, err := MeasureQueues(strategy, QueueWork{Queues: 1000, Groups: 30, Devices: size(10_000), Waiting: size(100_000), Measured: size(5000), Seed: 1})
				if err != nil {
					b.Fatal(err)
				}
				b.Logf("%+v", c)
			}
		})
	}
}

// size is a number of the full benchmark, or a tenth of it.
func size(n int) int {
	if os.Getenv("MUSTER_LONG") == "" {
		return n / 10
	}
	return n
}
