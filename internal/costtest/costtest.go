// Package costtest measures what something takes of the processor and of the heap, and holds
// it to what one request of a stranger may take.
package costtest

import (
	"runtime/metrics"
	"syscall"
	"testing"
	"time"
)

// What reading one file, or answering one request, may take.
const (
	MostSeconds = 1.0 // of the processor
	MostMiB     = 200 // on the heap
)

// Of runs f and returns the processor's seconds and the MiB on the heap that it took.
func Of(t testing.TB, f func()) (seconds, mib float64) {
	t.Helper()
	ended, most := make(chan struct{}), make(chan float64)
	before, began := heap(), used(t)
	go func() {
		peak := 0.0
		for {
			peak = max(peak, heap())
			select {
			case <-ended:
				most <- peak
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	f()
	seconds = used(t) - began
	close(ended)
	return seconds, <-most - before
}

// Within runs f and fails the test where it takes more than so many times what may be taken.
// Of a program that the race detector slows down nothing is compared.
func Within(t testing.TB, what string, times float64, f func()) {
	t.Helper()
	seconds, mib := Of(t, f)
	t.Logf("%s: %.2f s, %.0f MiB", what, seconds, mib)
	if !Slowed && (seconds > times*MostSeconds || mib > MostMiB) {
		t.Errorf("%s: %.2f s and %.0f MiB, expected at most %.0f s and %d MiB", what, seconds, mib, times*MostSeconds, MostMiB)
	}
}

// heap is what lies on the heap, in MiB.
func heap() float64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64()) / (1 << 20)
}

// used is the processor time that this process had, in seconds.
func used(t testing.TB) float64 {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
