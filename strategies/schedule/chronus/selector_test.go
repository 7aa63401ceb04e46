package chronus

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/musterdl/muster/internal/draws"
	"github.com/musterdl/muster/model/unit"
	"github.com/musterdl/muster/plan"
	"github.com/musterdl/muster/strategies/schedule/chronus/lease"
)

// TestRefusalOffersAnEnd: who asks again with the end that was offered is admitted.
func TestRefusalOffersAnEnd(t *testing.T) {
	refused := 0
	draws.Check(t, func(t *rapid.T) {
		s := newSelector(Default(), rapid.Int64Range(1, 8).Draw(t, "devices"))
		left := map[plan.JobID]unit.Duration{}
		look := func(job plan.JobID) unit.Duration { return left[job] }
		for job := range plan.JobID(rapid.IntRange(1, 20).Draw(t, "jobs")) {
			l := live{job: job, size: rapid.Int64Range(1, s.cal.Capacity()).Draw(t, "size"), left: unit.Duration(rapid.IntRange(1, 300).Draw(t, "left")) * unit.Minute}
			by := unit.Time(l.left) * unit.Time(rapid.IntRange(80, 300).Draw(t, "slack")) / 100
			left[job] = l.left
			ok, earliest := s.admit(0, s.ask(l, by), look)
			if ok {
				continue
			}
			refused++
			if earliest <= by {
				t.Fatalf("asked for an end by %v, refused and offered %v", unit.Duration(by), unit.Duration(earliest))
			}
			if ok, again := s.admit(0, s.ask(l, earliest), look); !ok {
				t.Fatalf("offered an end by %v, and then %v", unit.Duration(earliest), unit.Duration(again))
			}
		}
	})
	if refused == 0 {
		t.Error("nobody was refused: nothing was tested")
	}
}

// TestAdmitLatency: 99 of 100 answers to jobs that come while 500 others are admitted
// take at most 50 ms. Each is the fastest of three, since others use the machine too.
func TestAdmitLatency(t *testing.T) {
	if os.Getenv("MUSTER_LONG") != "1" {
		t.Skip("it measures time; set MUSTER_LONG=1")
	}
	s, chance := newSelector(Default(), 960), rand.New(rand.NewPCG(1, 1))
	left := map[plan.JobID]unit.Duration{}
	look := func(job plan.JobID) unit.Duration { return left[job] }
	draw := func(job plan.JobID, widest, longest int) lease.Ask {
		l := live{job: job, size: 1 + chance.Int64N(int64(widest)), left: unit.Duration(20+chance.IntN(longest)) * unit.Minute}
		left[job] = l.left
		return s.ask(l, unit.Time(float64(l.left)*(1.2+2*chance.Float64())))
	}
	job := plan.JobID(0)
	for ; len(s.cal.Holdings()) < 500; job++ {
		s.admit(0, draw(job, 8, 2000), look)
	}
	var took []time.Duration
	refused := 0
	for ; len(took) < 100; job++ {
		a, fastest := draw(job, 512, 2000), time.Duration(math.MaxInt64)
		for try := range 3 {
			began := time.Now()
			ok, _ := s.admit(0, a, look)
			fastest = min(fastest, time.Since(began))
			s.cal.Drop(job)
			if !ok && try == 0 {
				refused++
			}
		}
		took = append(took, fastest)
	}
	slices.Sort(took)
	p99 := took[len(took)*99/100-1]
	t.Logf("%d of %d refused; median %v, p99 %v", refused, len(took), took[len(took)/2], p99)
	if refused == 0 || refused == len(took) || p99 > 50*time.Millisecond {
		t.Errorf("%d of %d refused; p99 is %v, want at most 50 ms", refused, len(took), p99)
	}
}
