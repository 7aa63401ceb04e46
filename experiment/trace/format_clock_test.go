package trace

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The short way reads what the long way reads, and leaves the rest to it.
func TestPlainClock(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	read := 0
	for range 20000 {
		cell := fmt.Sprintf("%04d-%02d-%02d %02d:%02d:%02d", 1968+r.IntN(136), r.IntN(14), r.IntN(33), r.IntN(26), r.IntN(62), r.IntN(62))
		at, plain := plainClock(cell)
		if !plain {
			continue
		}
		read++
		if want, err := time.Parse(time.DateTime, cell); err != nil || want.UnixMicro() != int64(at) {
			t.Fatalf("%s: %d, want %d (%v)", cell, at, want.UnixMicro(), err)
		}
	}
	if read < 10000 {
		t.Errorf("%d of 20000 were read the short way", read)
	}
	for _, cell := range []string{"", "2017-09-04", "2017-09-04 10:30:4x", "2017/09/04 10:30:41", "2017-09-04 10:30:41.5", "2017-09-31 10:30:41"} {
		if _, plain := plainClock(cell); plain {
			t.Errorf("%q is read the short way", cell)
		}
	}
}
