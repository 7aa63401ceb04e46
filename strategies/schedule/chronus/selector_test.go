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

// TestLaterEndIsPromised: a job that was offered an end before the one that it asked for and was refused.
func TestLaterEndIsPromised(t *testing.T) {
	s := newSelector(Default(), 2)
	lefts := []unit.Duration{107 * unit.Minute, 136 * unit.Minute, unit.Minute, unit.Minute, unit.Minute, 89 * unit.Minute}
	look := func(job plan.JobID) unit.Duration { return lefts[job] }
	for i, size := range []int64{1, 1, 2, 2, 2, 1} {
		l := live{job: plan.JobID(i), size: size, left: lefts[i]}
		by := unit.Time(l.left) * []unit.Time{188, 231, 80, 80, 80, 203}[i] / 100
		ok, earliest := s.admit(0, s.ask(l, by), look)
		if !ok && earliest <= by {
			t.Errorf("job %d asks for an end by %v, is refused and offered %v", i, unit.Duration(by), unit.Duration(earliest))
		}
		if !ok {
			s.admit(0, s.ask(l, earliest), look)
		}
	}
}

// TestAdmittedForGood: whoever is promised an end is promised every later one, and what was promised the others stands.
func TestAdmittedForGood(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		chance, left := rand.New(rand.NewPCG(seed, 1)), map[plan.JobID]unit.Duration{}
		s := newSelector(Default(), 1+chance.Int64N(4))
		look := func(job plan.JobID) unit.Duration { return left[job] }
		for job := range plan.JobID(12) {
			l := live{job: job, size: 1 + chance.Int64N(s.cal.Capacity()), left: unit.Duration(1+chance.IntN(150)) * unit.Minute}
			left[job] = l.left
			by := unit.Time(l.left) * unit.Time(100+chance.IntN(300)) / 100
			later := by + unit.Time(chance.IntN(200))*unit.Time(unit.Minute)
			again := newSelector(Default(), s.cal.Capacity())
			again.cal.Replace(s.cal.Holdings())
			ok, earliest := s.admit(0, s.ask(l, by), look)
			if then, offered := again.admit(0, again.ask(l, later), look); ok && !then || !ok && !then && earliest != offered {
				t.Fatalf("seed %d: asked for an end by %v: admitted %v, offered %v; by %v: admitted %v, offered %v",
					seed, unit.Duration(by), ok, unit.Duration(earliest), unit.Duration(later), then, unit.Duration(offered))
			}
			if !ok {
				s.admit(0, s.ask(l, earliest), look)
			}
			for _, h := range s.cal.Holdings() {
				if worth := s.cal.Promised(0, &h); worth < s.config.need(left[h.Job], h.Size) || s.cal.Room(s.cal.At(h.By-1)) < 0 {
					t.Fatalf("seed %d: job %d was promised %v of %v before %v", seed, h.Job, worth, s.config.need(left[h.Job], h.Size), unit.Duration(h.By))
				}
			}
		}
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
